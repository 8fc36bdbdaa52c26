//! What a container's input and output are to be: decided by the agent, done by the supervisor.

use serde::{Deserialize, Serialize};
use tepui_types::LaunchSpec;

pub use super::log::Rotation;

/// The smallest size at which a file may be exchanged: a page, as in v1.
const ROTATION_BYTES_MIN: u64 = 4096;

/// More older files are never kept.
const KEPT_MAX: u32 = 1000;

/// What becomes of the output of containers, as an operator chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ContainerLogger {
    /// Files in the sandbox that grow as long as the container writes.
    #[default]
    Sandbox,
    /// Files in the sandbox that are exchanged when they have grown large. A container may choose otherwise by
    /// variables of its environment that begin with `prefix`.
    Rotate { stdout: Rotation, stderr: Rotation, prefix: String },
}

/// Parameters of the supervisor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StdioPlan {
    #[serde(rename = "board")]
    pub switchboard: Option<SwitchboardPlan>,
    pub stdout: Option<Rotation>,
    pub stderr: Option<Rotation>,
}

/// How a switchboard behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwitchboardPlan {
    /// The command has a terminal.
    pub terminal: Option<Terminal>,
    /// Output is read only once a client is attached, and a single client may be slow.
    pub is_session: bool,
}

/// A terminal of this size, or of no particular one. A struct, because the serialized form would lose the difference
/// between no terminal and one without a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Terminal {
    pub size: Option<(u16, u16)>,
}

impl StdioPlan {
    /// Whether the supervisor moves the bytes; otherwise the command writes to the files by itself.
    pub fn is_moved(&self) -> bool {
        self.switchboard.is_some() || self.stdout.is_some() || self.stderr.is_some()
    }
}

/// Why output files cannot be rotated as requested.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationFault {
    #[error("{name} is not a size: '{value}'")]
    Size { name: String, value: String },
    #[error("{name}: {fault}")]
    Variable { name: String, fault: Box<RotationFault> },
    #[error("output files cannot be smaller than {ROTATION_BYTES_MIN} bytes")]
    TooSmall,
    #[error("at most {KEPT_MAX} rotated files can be kept")]
    TooMany,
    #[error("'rotate {0}' is not a number of files")]
    Number(String),
}

pub(crate) fn plan(logger: &ContainerLogger, spec: &LaunchSpec) -> Result<StdioPlan, RotationFault> {
    let tty = spec.container.as_ref().and_then(|container| container.tty_info.as_option());
    let side = |cells: u32| u16::try_from(cells).unwrap_or(u16::MAX);
    let terminal = tty.map(|tty| Terminal {
        size: tty.window_size.as_option().map(|size| (side(size.rows), side(size.columns))),
    });
    let is_session = spec.is_session;
    let switchboard = (terminal.is_some() || is_session).then_some(SwitchboardPlan { terminal, is_session });
    let (stdout, stderr) = match logger {
        ContainerLogger::Sandbox => (None, None),
        ContainerLogger::Rotate { stdout, stderr, prefix } => {
            (Some(chosen(*stdout, spec, prefix, "STDOUT")?), Some(chosen(*stderr, spec, prefix, "STDERR")?))
        }
    };
    Ok(StdioPlan { switchboard, stdout, stderr })
}

/// From the container's own environment, else from the operator.
fn chosen(
    default: Rotation,
    spec: &LaunchSpec,
    prefix: &str,
    stream: &str,
) -> Result<Rotation, RotationFault> {
    let mut rotation = default;
    let variable = |name: String| spec.environment.get(&name).map(|value| (name, value));
    if let Some((name, value)) = variable(format!("{prefix}MAX_{stream}_SIZE")) {
        rotation.bytes_max =
            bytes(value).ok_or_else(|| RotationFault::Size { name, value: value.clone() })?;
    }
    if let Some((name, value)) = variable(format!("{prefix}LOGROTATE_{stream}_OPTIONS")) {
        let kept =
            parse_options(value).map_err(|fault| RotationFault::Variable { name, fault: fault.into() })?;
        rotation.kept_max = kept.unwrap_or(rotation.kept_max);
    }
    check(rotation)
}

/// Whether files may be exchanged like this.
pub(crate) fn check(rotation: Rotation) -> Result<Rotation, RotationFault> {
    match (rotation.bytes_max >= ROTATION_BYTES_MIN, rotation.kept_max <= KEPT_MAX) {
        (true, true) => Ok(rotation),
        (false, _) => Err(RotationFault::TooSmall),
        (true, false) => Err(RotationFault::TooMany),
    }
}

/// The `rotate N` among the options of logrotate, one on a line. The others (`compress`, `missingok`, …) are about how
/// that program works, which we do not need; they change nothing.
pub(crate) fn parse_options(text: &str) -> Result<Option<u32>, RotationFault> {
    let mut kept = None;
    for line in text.split(['\n', ';']) {
        if let Some(("rotate", number)) = line.trim().split_once(char::is_whitespace) {
            let number = number.trim();
            kept = Some(number.parse().map_err(|_| RotationFault::Number(number.to_owned()))?);
        }
    }
    Ok(kept)
}

/// `10MB`, as v1 writes sizes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let unit: u64 = match &text[digits..] {
        "B" => 1,
        "KB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

impl Rotation {
    /// With logrotate's options, or the error in them.
    pub fn with_options(self, options: &str) -> Result<Rotation, RotationFault> {
        let kept_max = parse_options(options)?.unwrap_or(self.kept_max);
        check(Rotation { kept_max, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_without_a_size_round_trips() {
        let switchboard = SwitchboardPlan { terminal: Some(Terminal { size: None }), is_session: true };
        let plan = StdioPlan { switchboard: Some(switchboard), ..StdioPlan::default() };
        let told = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<StdioPlan>(&told).unwrap(), plan);
    }

    #[test]
    fn log_sizes_are_parsed() {
        for (text, expected) in [
            ("10MB", Some(10 << 20)),
            ("4096B", Some(4096)),
            ("1TB", Some(1 << 40)),
            ("10", None),
            ("MB", None),
            ("1.5MB", None),
            ("99999999999TB", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn logrotate_options_are_parsed() {
        for (text, expected) in [
            ("", Ok(None)),
            ("rotate 5", Ok(Some(5))),
            ("compress\n  rotate 7\nmissingok", Ok(Some(7))),
            ("rotate 3; nocompress", Ok(Some(3))),
            ("rotate many", Err("'rotate many' is not a number of files".to_owned())),
        ] {
            assert_eq!(parse_options(text).map_err(|fault| fault.to_string()), expected, "{text}");
        }
        let rotation = Rotation { bytes_max: 4096, kept_max: 9 };
        assert_eq!(rotation.with_options("rotate 2"), Ok(Rotation { kept_max: 2, ..rotation }));
        assert!(rotation.with_options("rotate 1001").is_err());
        assert!(check(Rotation { bytes_max: 100, kept_max: 1 }).is_err());
    }
}
