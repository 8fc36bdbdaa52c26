//! One file per subcommand, and shared parts: the cluster, the runtime, the sandbox of a task.

pub mod agent;
pub mod agents;
pub mod attach;
pub mod bench;
mod cluster;
pub mod completions;
mod console;
pub mod dev;
pub mod drain;
pub mod events;
pub mod exec;
pub mod executor;
pub mod executors;
pub mod explain;
pub mod files;
mod filter;
mod find;
pub mod framework;
pub mod frameworks;
pub mod logs;
pub mod maintenance;
pub mod master;
pub mod metrics;
pub mod offers;
pub mod prune_images;
pub mod quota;
pub mod reserve;
pub mod roles;
pub mod run;
#[cfg(test)]
pub mod sample;
mod sandbox;
pub mod service;
pub mod summary;
pub mod swarm;
pub mod task;
mod task_rows;
mod task_state;
pub mod tasks;
pub mod teardown;
mod usage;
pub mod volumes;
pub mod weights;

use anyhow::{Context, Result};
use tokio::signal::unix;

pub use cluster::Cluster;

/// Raises the limit of open files to its maximum, for agents with many containers.
pub fn raise_open_files() {
    match tepui_container::raise_open_files() {
        Ok(containers_max) => tracing::info!(
            containers_max = %containers_max.map_or("unlimited".to_string(), |count| count.to_string()),
            "open files limit raised"
        ),
        Err(err) => tracing::warn!(%err, "cannot raise the limit of open files"),
    }
}

/// Runs a command's future on a new runtime.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(future)
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn signal() -> Result<()> {
    Signals::listen()?.next().await;
    Ok(())
}

/// Ctrl-C and SIGTERM from the moment of listening on; none is missed while something else is done.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        let listen = |kind| unix::signal(kind).context("cannot wait for signals");
        Ok(Self {
            interrupt: listen(unix::SignalKind::interrupt())?,
            terminate: listen(unix::SignalKind::terminate())?,
        })
    }

    /// Cancel safe.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

/// A fault domain from the JSON of `--domain`.
pub fn domain(text: &str) -> Result<tepui_proto::mesos::v1::DomainInfo> {
    let domain: tepui_proto::mesos::v1::DomainInfo = tepui_proto::json::from_slice(text.as_bytes())
        .map_err(|error| anyhow::anyhow!("--domain: {error}"))?;
    anyhow::ensure!(domain.fault_domain.is_set(), "--domain: fault_domain is missing");
    Ok(domain)
}
