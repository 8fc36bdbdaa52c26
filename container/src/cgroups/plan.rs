//! Plans: what will be written where, as values that can be shown and compared, and the one place that writes them.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::devices::{self, Rule};
use crate::host::bpf;

/// How often, and how long between, a limit is tried that those below are in the way of.
const YIELD_TRIES_MAX: usize = 20;
const YIELD_PAUSE: Duration = Duration::from_millis(10);
/// While no nested cgroup has more: a removed one counts until the kernel has released it, on a loaded machine for longer.
const RELEASE_TRIES_MAX: usize = 500;

/// One change below a cgroup mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Makes a cgroup; one that exists is left alone.
    Make(PathBuf),
    Write {
        file: PathBuf,
        value: String,
    },
    /// As Write, but a rejected value is ignored: an old kernel without the file, or a limit below the current usage.
    Offer {
        file: PathBuf,
        value: String,
    },
    /// As Write, only if the value differs, which is a lot cheaper where the kernel compares a written value with all
    /// other cgroups. A file that an old kernel does not have is ignored.
    Change {
        file: PathBuf,
        value: String,
    },
    /// Copies a file of the cgroup above into this cgroup, if it is empty here.
    Inherit {
        file: PathBuf,
    },
    /// Limits the processes of a v2 cgroup to the devices that the rules allow.
    Devices {
        cgroup: PathBuf,
        rules: Vec<Rule>,
    },
    /// As Write, only if the number there now is lower; `max` and negative numbers count as endless.
    Raise {
        file: PathBuf,
        value: String,
    },
    /// As Write, but a lower limit waits for the cgroups below: the kernel rejects it while one of them has a higher
    /// limit, also for some moments after its removal. If one keeps a higher limit, the former limit stays.
    Yield {
        file: PathBuf,
        value: String,
    },
    /// As Write, only if the usage in another file is below the value: else the kernel would kill.
    Lower {
        file: PathBuf,
        value: String,
        used: PathBuf,
    },
}

impl Step {
    pub fn write(cgroup: &Path, file: &str, value: impl ToString) -> Step {
        Step::Write { file: cgroup.join(file), value: value.to_string() }
    }

    pub fn offer(cgroup: &Path, file: &str, value: impl ToString) -> Step {
        Step::Offer { file: cgroup.join(file), value: value.to_string() }
    }

    pub fn change(cgroup: &Path, file: &str, value: impl ToString) -> Step {
        Step::Change { file: cgroup.join(file), value: value.to_string() }
    }

    pub fn raise(cgroup: &Path, file: &str, value: impl ToString) -> Step {
        Step::Raise { file: cgroup.join(file), value: value.to_string() }
    }

    pub fn lower(cgroup: &Path, file: &str, value: impl ToString, used: &str) -> Step {
        Step::Lower { file: cgroup.join(file), value: value.to_string(), used: cgroup.join(used) }
    }

    pub fn yielding(cgroup: &Path, file: &str, value: impl ToString) -> Step {
        Step::Yield { file: cgroup.join(file), value: value.to_string() }
    }

    pub fn inherit(cgroup: &Path, file: &str) -> Step {
        Step::Inherit { file: cgroup.join(file) }
    }

    fn apply(&self, writer: &mut Writer) -> io::Result<()> {
        match self {
            Step::Make(path) => match std::fs::create_dir(path) {
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            },
            Step::Write { file, value } => writer.write(file, value),
            Step::Change { file, value } => match std::fs::read_to_string(file) {
                Ok(now) if now.trim() == value => Ok(()),
                Ok(_) => write(file, value),
                Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(err) => Err(err),
            },
            Step::Offer { file, value } => {
                if let Err(err) = write(file, value) {
                    tracing::debug!(file = %file.display(), value, %err, "the kernel rejected a cgroup value");
                }
                Ok(())
            }
            Step::Inherit { file } => inherit(file),
            Step::Devices { cgroup, rules } => bpf::attach_devices(cgroup, &devices::program(rules)),
            Step::Raise { file, value } => {
                let now = std::fs::read_to_string(file)?;
                if is_lower(now.trim(), value) { write(file, value) } else { Ok(()) }
            }
            Step::Yield { file, value } => {
                let now = std::fs::read_to_string(file)?;
                if is_lower(value, now.trim()) { write_patiently(file, value) } else { write(file, value) }
            }
            Step::Lower { file, value, used } => {
                let used = std::fs::read_to_string(used)?;
                if is_lower(used.trim(), value) { write(file, value) } else { Ok(()) }
            }
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Make(path) => write!(f, "make {}", path.display()),
            Step::Write { file, value } => write!(f, "write {} {value}", file.display()),
            Step::Offer { file, value } => write!(f, "offer {} {value}", file.display()),
            Step::Change { file, value } => write!(f, "change {} {value}", file.display()),
            Step::Inherit { file } => write!(f, "inherit {}", file.display()),
            Step::Devices { cgroup, rules } => {
                write!(f, "devices {}", cgroup.display())?;
                rules.iter().try_for_each(|rule| write!(f, ", {rule}"))
            }
            Step::Raise { file, value } => write!(f, "raise {} {value}", file.display()),
            Step::Yield { file, value } => write!(f, "yield {} {value}", file.display()),
            Step::Lower { file, value, .. } => write!(f, "lower {} {value}", file.display()),
        }
    }
}

/// A step that could not be done.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step}: {err}")]
pub struct StepFault {
    step: String,
    err: io::Error,
}

/// Does all steps, in order; stops at the first that fails.
pub(crate) fn apply(steps: &[Step]) -> Result<(), StepFault> {
    let mut writer = Writer::default();
    for step in steps {
        step.apply(&mut writer).map_err(|err| StepFault { step: step.to_string(), err })?;
    }
    Ok(())
}

/// Several values for one file, one after the other, need it to be opened only once.
#[derive(Default)]
struct Writer {
    last: Option<(PathBuf, File)>,
}

impl Writer {
    fn write(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let (_, file) = match self.last.take().filter(|(last, _)| last == path) {
            Some(last) => self.last.insert(last),
            None => self.last.insert((path.to_owned(), open(path)?)),
        };
        file.write_all(value.as_bytes())
    }
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    open(file)?.write_all(value.as_bytes())
}

/// Not as `fs::write` does: a control file must exist, and is never truncated.
fn open(file: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new().write(true).open(file)
}

fn write_patiently(file: &Path, value: &str) -> io::Result<()> {
    for attempt in 0..RELEASE_TRIES_MAX {
        match write(file, value) {
            Err(err) if err.kind() == io::ErrorKind::InvalidInput => std::thread::sleep(YIELD_PAUSE),
            done => return done,
        }
        if attempt >= YIELD_TRIES_MAX && has_more_below(file, value) {
            break;
        }
    }
    tracing::info!(file = %file.display(), value, "a nested cgroup has a higher value: the former limit stays");
    Ok(())
}

/// Whether a nested cgroup has more than this in its file of the same name. Endless counts as nothing: it follows its parent.
fn has_more_below(file: &Path, value: &str) -> bool {
    let (Some(cgroup), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let entries = std::fs::read_dir(cgroup).into_iter().flatten().flatten();
    let mut nested = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join(name)).ok());
    nested.any(|has| number(has.trim()).zip(number(value)).is_some_and(|(has, value)| has > value))
}

fn inherit(file: &Path) -> io::Result<()> {
    if !std::fs::read_to_string(file)?.trim().is_empty() {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default();
    let above = file.parent().and_then(Path::parent).unwrap_or(Path::new("/")).join(name);
    write(file, std::fs::read_to_string(above)?.trim())
}

fn is_lower(now: &str, value: &str) -> bool {
    match (number(now), number(value)) {
        (Some(now), Some(value)) => now < value,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// `None`: endless. The kernel shows an endless v1 limit as a number that no machine has.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number < i64::MAX as u64 / 2)
}

#[cfg(test)]
pub(super) fn show(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_cgroups_with_a_higher_limit_are_found() {
        let cgroup = tempfile::tempdir().unwrap();
        let file = cgroup.path().join("quota");
        std::fs::write(&file, "150000").unwrap();
        assert!(!has_more_below(&file, "50000"));
        for (nested, expected) in [("-1", false), ("50000", false), ("100000", true)] {
            std::fs::create_dir_all(cgroup.path().join("b")).unwrap();
            std::fs::write(cgroup.path().join("b/quota"), nested).unwrap();
            assert_eq!(has_more_below(&file, "50000"), expected, "{nested}");
        }
    }

    #[test]
    fn every_kind_of_step_is_applied() {
        let dir = tempfile::tempdir().expect("a directory");
        let child = dir.path().join("child");
        let make = Step::Make(child.clone());
        apply(&[make.clone(), make]).expect("made once, the second time is nothing");
        let file = child.join("n");
        assert!(apply(&[Step::write(&child, "n", 1)]).is_err(), "files are never made");
        apply(&[Step::offer(&child, "n", 1)]).expect("let go");
        std::fs::write(&file, "").expect("written");
        std::fs::write(dir.path().join("n"), "0-3\n").expect("written");
        let now = || std::fs::read_to_string(&file).expect("readable");
        apply(&[Step::inherit(&child, "n"), Step::inherit(&child, "n")]).expect("copied");
        assert_eq!(now(), "0-3");
        apply(&[Step::change(&child, "n", "0-3"), Step::change(&child, "none", 1)]).expect("nothing to do");
        apply(&[Step::change(&child, "n", "4")]).expect("written");
        assert_eq!(now(), "4-3", "a control file is not truncated");
        std::fs::write(&file, "").expect("written");
        apply(&[Step::write(&child, "n", 1), Step::write(&child, "n", 2)]).expect("each is written");
        assert_eq!(now(), "12", "by itself, to the file that is open");
        std::fs::write(child.join("used"), "10\n").expect("written");
        for (value, then) in [(20, "20"), (10, ""), (9, "")] {
            std::fs::write(&file, "").expect("written");
            apply(&[Step::lower(&child, "n", value, "used")]).expect("left or written");
            assert_eq!(now(), then);
        }
    }

    #[test]
    fn limits_are_compared_with_unlimited_as_highest() {
        for (now, value, lower) in [
            ("10", "20", true),
            ("20", "10", false),
            ("10", "max", true),
            ("10", "-1", true),
            ("max", "10", false),
            ("9223372036854771712", "10", false),
        ] {
            assert_eq!(is_lower(now, value), lower, "{now} {value}");
        }
    }
}
