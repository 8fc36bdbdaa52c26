//! The flags of `tepui agent` about what becomes of containers' output: `--container_logger` and what v1 gives its
//! logger as parameters of a module, under the same names.

use anyhow::{Result, anyhow};
use clap::Args;
use tepui_container::{ContainerLogger, Rotation};

use super::value;

/// v1's name of the logger that rotates files.
const LOGROTATE: &str = "org_apache_mesos_LogrotateContainerLogger";

/// Without a word about it so many older files are kept.
const KEPT: u32 = 9;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct LoggerFlags {
    /// What becomes of output: `sandbox` (files that grow) or `logrotate` (files that are exchanged when large).
    #[arg(long, default_value = "sandbox", value_parser = ["sandbox", "logrotate", LOGROTATE])]
    pub container_logger: String,
    /// How large `stdout` may grow before it is exchanged, with `--container_logger=logrotate`.
    #[arg(long, value_parser = value::bytes, default_value = "10MB")]
    pub max_stdout_size: u64,
    /// How large `stderr` may grow before it is exchanged.
    #[arg(long, value_parser = value::bytes, default_value = "10MB")]
    pub max_stderr_size: u64,
    /// How many older ones of `stdout` are kept: `rotate 5`. Other options of logrotate change nothing.
    #[arg(long)]
    pub logrotate_stdout_options: Option<String>,
    /// How many older ones of `stderr` are kept.
    #[arg(long)]
    pub logrotate_stderr_options: Option<String>,
    /// With this before the names of these flags, variables of a task choose for it: `CONTAINER_LOGGER_MAX_STDOUT_SIZE`.
    #[arg(long, default_value = "CONTAINER_LOGGER_")]
    pub environment_variable_prefix: String,
}

impl LoggerFlags {
    pub fn logger(&self) -> Result<ContainerLogger> {
        let rotation = |stream: &str, bytes_max: u64, options: &Option<String>| {
            let rotation = Rotation { bytes_max, kept_max: KEPT };
            let chosen = rotation.with_options(options.as_deref().unwrap_or_default());
            chosen.map_err(|why| anyhow!("--max_{stream}_size, --logrotate_{stream}_options: {why}"))
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
    fn what_becomes_of_output() {
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
