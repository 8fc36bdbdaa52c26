//! Flags of `tepui agent` for container output: `--container_logger` and the module parameters of v1's logger under the
//! same names.

use anyhow::{Result, anyhow};
use clap::Args;
use tepui_container::{ContainerLogger, Rotation};

use super::value;

/// v1's name of the logger that rotates files.
const LOGROTATE: &str = "org_apache_mesos_LogrotateContainerLogger";

/// The default number of rotated files.
const KEPT: u32 = 9;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LoggerFlags {
    /// Container logger: `sandbox` (unlimited files) or `logrotate` (rotated files).
    #[arg(long, default_value = "sandbox", value_parser = ["sandbox", "logrotate", LOGROTATE])]
    pub container_logger: String,
    /// Size at which `stdout` is rotated, with --container_logger=logrotate.
    #[arg(long, value_parser = value::bytes, default_value = "10MB")]
    pub max_stdout_size: u64,
    /// Size at which `stderr` is rotated, with --container_logger=logrotate.
    #[arg(long, value_parser = value::bytes, default_value = "10MB")]
    pub max_stderr_size: u64,
    /// Number of rotated `stdout` files to keep, as in `rotate 5`; other logrotate options are ignored.
    #[arg(long)]
    pub logrotate_stdout_options: Option<String>,
    /// Number of rotated `stderr` files to keep, as in `rotate 5`; other logrotate options are ignored.
    #[arg(long)]
    pub logrotate_stderr_options: Option<String>,
    /// Prefix of task environment variables that override these flags, as in
    /// `CONTAINER_LOGGER_MAX_STDOUT_SIZE`.
    #[arg(long, default_value = "CONTAINER_LOGGER_")]
    pub environment_variable_prefix: String,
}

impl LoggerFlags {
    pub fn logger(&self) -> Result<ContainerLogger> {
        let rotation = |stream: &str, bytes_max: u64, options: &Option<String>| {
            let rotation = Rotation { bytes_max, kept_max: KEPT };
            let chosen = rotation.with_options(options.as_deref().unwrap_or_default());
            chosen.map_err(|reason| anyhow!("--max_{stream}_size, --logrotate_{stream}_options: {reason}"))
        };
        let stdout = rotation("stdout", self.max_stdout_size, &self.logrotate_stdout_options)?;
        let stderr = rotation("stderr", self.max_stderr_size, &self.logrotate_stderr_options)?;
        Ok(match self.container_logger.as_str() {
            "sandbox" => ContainerLogger::Sandbox,
            _ => ContainerLogger::Rotate { stdout, stderr, prefix: self.environment_variable_prefix.clone() },
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        flags: LoggerFlags,
    }

    fn logger(flags: &[&str]) -> Result<ContainerLogger> {
        let typed = Typed::try_parse_from(["agent"].iter().chain(flags))?;
        typed.flags.logger()
    }

    #[test]
    fn container_logger_flags_are_validated() {
        assert_eq!(logger(&[]).expect("a logger"), ContainerLogger::Sandbox);
        let rotate =
            |stdout, stderr| ContainerLogger::Rotate { stdout, stderr, prefix: "CONTAINER_LOGGER_".into() };
        let ten = Rotation { bytes_max: 10 << 20, kept_max: 9 };
        assert_eq!(logger(&["--container_logger=logrotate"]).expect("a logger"), rotate(ten, ten));
        let chosen = [
            "--container_logger=org_apache_mesos_LogrotateContainerLogger",
            "--max_stdout_size=4KB",
            "--logrotate_stdout_options=rotate 3\ncompress",
        ];
        let small = Rotation { bytes_max: 4096, kept_max: 3 };
        assert_eq!(logger(&chosen).expect("a logger"), rotate(small, ten));
        for wrong in
            ["--container_logger=syslog", "--max_stdout_size=1KB", "--logrotate_stderr_options=rotate x"]
        {
            assert!(logger(&[wrong]).is_err(), "{wrong}");
        }
    }
}
