//! `tepui run`: a small framework that launches a command, shows what it writes and ends as it ends.
//!
//! An ordinary user of the client library; nothing here that an outside framework could not do.

mod framework;
mod output;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::{Cluster, block_on};

/// Run a command as a task: `tepui run --cpus 0.5 -- sleep 10`.
#[derive(Args, Clone, Debug)]
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
    /// How many tasks to run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// The command; several words are run as they are, one word by a shell.
    #[arg(last = true, required = true)]
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
        for variable in &self.environment {
            variable.split_once('=').with_context(|| format!("--env {variable:?} must be KEY=VALUE"))?;
        }
        Ok(())
    }
}
