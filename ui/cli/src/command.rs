//! One file per subcommand, and the few things they share: which master, which runtime.

pub mod agent;
pub mod agents;
pub mod dev;
pub mod logs;
pub mod master;
pub mod run;
mod sandbox;
pub mod tasks;

use anyhow::{Context, Result};
use clap::Args;
use tepui_client::operator::Client;

/// Which cluster a command talks to.
#[derive(Args, Clone, Debug)]
pub struct Cluster {
    /// The master, or several by comma: `host:port`. Also TEPUI_MASTER.
    #[arg(long, default_value = "127.0.0.1:5050")]
    pub master: String,
}

impl Cluster {
    pub fn client(&self) -> Result<Client> {
        Client::new(&self.master).with_context(|| format!("--master={} is not an address", self.master))
    }

    /// What to try when the master does not answer.
    pub fn hint(&self) -> String {
        format!(
            "no answer from the master at {}; start one with `tepui dev`, or name yours with --master",
            self.master
        )
    }
}

/// Runs a command's future on a runtime of its own.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(future)
}

/// Waits until the process is told to end: Ctrl-C or SIGTERM.
pub async fn signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt.context("cannot wait for Ctrl-C"),
        _ = terminate.recv() => Ok(()),
    }
}

/// A fault domain from the JSON of `--domain`.
pub fn domain(text: &str) -> Result<tepui_proto::mesos::v1::DomainInfo> {
    let domain: tepui_proto::mesos::v1::DomainInfo = tepui_proto::json::from_slice(text.as_bytes())
        .map_err(|error| anyhow::anyhow!("--domain: {error}"))?;
    anyhow::ensure!(domain.fault_domain.is_set(), "--domain: fault_domain is missing");
    Ok(domain)
}
