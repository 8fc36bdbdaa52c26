//! `tepui run`: a small framework that launches a command, prints its output and exits with its status.
//!
//! Uses the public client library only. Exit codes follow the shell: the task's code, 128 plus the number of its
//! terminating signal, 125 if the task was lost or could not run, 1 without a master or if interrupted.

mod framework;
mod output;
mod task;

pub use task::exit_code;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tepui_client::duration;

use super::{Cluster, block_on};
use crate::flags::value;

/// A shorter timeout could expire before the first answer.
const RECONNECT_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Exit codes, for the help.
const EXIT_CODES: &str = "\
Exits with the task's code (of several tasks the highest), with 128+N if signal N terminated it, with 125 if it was lost \
    or could not run, and with 1 without a master or on an interrupt.";

/// Run a command as a task: `tepui run --cpus 0.5 -- sleep 10`.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", after_help = EXIT_CODES)]
pub struct Run {
    #[command(flatten)]
    pub cluster: Cluster,
    /// Name of the task; a number is appended with --count.
    #[arg(long, default_value = "run")]
    pub name: String,
    /// Cpu request.
    #[arg(long, default_value_t = 0.1)]
    pub cpus: f64,
    /// Memory request in megabytes.
    #[arg(long, default_value_t = 32.0)]
    pub mem: f64,
    /// Disk request in megabytes.
    #[arg(long, default_value_t = 0.0)]
    pub disk: f64,
    /// Cpu limit, `inf` for no limit; requires the isolator `cgroups/cpu` on agents.
    #[arg(long, value_name = "CPUS|inf")]
    pub cpus_limit: Option<f64>,
    /// Memory limit in megabytes, `inf` for no limit; requires the isolator `cgroups/mem` on agents.
    #[arg(long, value_name = "MEM|inf")]
    pub mem_limit: Option<f64>,
    /// Role to register in.
    #[arg(long, default_value = "*")]
    pub role: String,
    /// Environment variable, KEY=VALUE; may be repeated.
    #[arg(long = "env", value_name = "KEY=VALUE")]
    pub environment: Vec<String>,
    /// URI to fetch into the sandbox; may be repeated.
    #[arg(long = "uri")]
    pub uris: Vec<String>,
    /// User to run as.
    #[arg(long)]
    pub user: Option<String>,
    /// Container image; requires --image_providers=docker on agents. Runs the image's own command if none is
    /// given.
    #[arg(long, value_name = "NAME")]
    pub image: Option<String>,
    /// Container image for the Docker engine; requires --containerizers=docker,mesos on agents. Runs the
    /// image's own command if none is given.
    #[arg(long, value_name = "IMAGE", conflicts_with = "image")]
    pub docker: Option<String>,
    /// Number of tasks.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// Time to wait for a lost master; also the failover timeout of the framework.
    #[arg(long, value_name = "DURATION", default_value = "5mins", value_parser = value::duration)]
    pub reconnect_timeout: Duration,
    /// Command: a single word is run by a shell, several words are executed directly.
    #[arg(last = true, required_unless_present_any = ["image", "docker"])]
    pub command: Vec<String>,
}

impl Run {
    pub fn run(self) -> Result<ExitCode> {
        self.check()?;
        block_on(framework::run(self))
    }

    fn check(&self) -> Result<()> {
        for (name, value) in [("cpus", self.cpus), ("mem", self.mem), ("disk", self.disk)] {
            if !value.is_finite() || value < 0.0 {
                bail!("--{name}={value} must be a number that is not negative");
            }
        }
        for (name, limit, request) in
            [("cpus", self.cpus_limit, self.cpus), ("mem", self.mem_limit, self.mem)]
        {
            if limit.is_some_and(|limit| limit.is_nan() || limit < request) {
                bail!("--{name}_limit must not be less than --{name}={request}");
            }
        }
        if self.reconnect_timeout < RECONNECT_TIMEOUT_MIN {
            bail!("--reconnect_timeout must be at least {}", duration::display(RECONNECT_TIMEOUT_MIN));
        }
        for variable in &self.environment {
            variable.split_once('=').with_context(|| format!("--env {variable:?} must be KEY=VALUE"))?;
        }
        Ok(())
    }
}
