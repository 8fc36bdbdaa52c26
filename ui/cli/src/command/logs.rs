//! `tepui logs`: what a task wrote.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use super::{Cluster, block_on, sandbox};

/// Print a file of a task's sandbox.
#[derive(Args)]
pub struct Logs {
    #[command(flatten)]
    cluster: Cluster,
    /// Go on as the file grows.
    #[arg(long, short)]
    follow: bool,
    /// The task's id, or its beginning.
    task: String,
    /// The file in the sandbox.
    #[arg(default_value = "stdout")]
    file: String,
}

impl Logs {
    pub fn run(self) -> Result<ExitCode> {
        block_on(self.print())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn print(&self) -> Result<()> {
        let master = self.cluster.client()?;
        let sandbox = sandbox::find(&master, &self.task).await?;
        let path = format!("{}/{}", sandbox.directory, self.file);
        let mut tail = sandbox.agent.follow(&path, 0);
        loop {
            let data = if self.follow { tail.next().await } else { tail.available().await };
            let data = data.with_context(|| format!("cannot read {path}"))?;
            if data.is_empty() {
                return Ok(());
            }
            let mut out = std::io::stdout().lock();
            out.write_all(&data).and_then(|()| out.flush()).context("cannot write")?;
        }
    }
}
