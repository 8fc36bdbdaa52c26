//! `tepui run`: a small framework that launches a command, shows what it writes and ends as it ends.
//!
//! An ordinary user of the client library; nothing here that an outside framework could not do.
//! Exits as a shell would: with the task's code, with 128 and the number of the signal that ended it, with 125 if the
//! task was lost or could not run, with 1 if there is no master or it is interrupted.

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

/// Less would give up before the first answer.
const RECONNECT_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// How it ends, for the help.
const EXIT_CODES: &str = "\
Exits with the task's code (of several tasks the highest), with 128+N if signal N ended it, with 125 if it was lost or \
    could not run, and with 1 if there is no master or it is interrupted.";

/// Run a command as a task: `tepui run --cpus 0.5 -- sleep 10`.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", after_help = EXIT_CODES)]
pub struct Run {
    #[command(flatten)]
    pub cluster: Cluster,
    /// Name of the task; with --count a number is added.
    #[arg(long, default_value = "run")]
    pub name: String,
    #[arg(long, default_value_t = 0.1)]
    pub cpus: f64,
    /// Megabytes.
    #[arg(long, default_value_t = 32.0)]
    pub mem: f64,
    /// Megabytes.
    #[arg(long, default_value_t = 0.0)]
    pub disk: f64,
    /// How many processors it may use at most, `inf` for all there are; agents need the isolator `cgroups/cpu`.
    #[arg(long, value_name = "CPUS|inf")]
    pub cpus_limit: Option<f64>,
    /// How many megabytes it may use at most, `inf` for all there are; agents need the isolator `cgroups/mem`.
    #[arg(long, value_name = "MEM|inf")]
    pub mem_limit: Option<f64>,
    /// Role in which to ask for resources.
    #[arg(long, default_value = "*")]
    pub role: String,
    /// Variable for the command: KEY=VALUE; may be repeated.
    #[arg(long = "env", value_name = "KEY=VALUE")]
    pub environment: Vec<String>,
    /// A file to fetch into the sandbox first; may be repeated.
    #[arg(long = "uri")]
    pub uris: Vec<String>,
    /// User to run as.
    #[arg(long)]
    pub user: Option<String>,
    /// Image to run in; agents need --image_providers=docker. Without a command, the image's own runs.
    #[arg(long, value_name = "NAME")]
    pub image: Option<String>,
    /// Image to run in, by a Docker engine; agents need --containerizers=docker,mesos. Without a command, the image's own runs.
    #[arg(long, value_name = "IMAGE", conflicts_with = "image")]
    pub docker: Option<String>,
    /// How many tasks to run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// How long to look for a master that went away; for as long a master keeps tasks whose `tepui run` went away.
    #[arg(long, value_name = "DURATION", default_value = "5mins", value_parser = value::duration)]
    pub reconnect_timeout: Duration,
    /// The command; several words are run as they are, one word by a shell.
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
