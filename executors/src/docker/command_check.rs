//! An attempt of a command check in the container, killed at its timeout.
//!
//! The engine cannot kill a command that it runs in a container. The executor can if the processes are on this machine.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tepui_docker::{EngineFault, Exec, Execution};

use super::Container;
use crate::checks::Outcome;
use crate::kill;

pub(super) async fn run(container: &Container, exec: &Exec, limit: Option<Duration>) -> Outcome {
    let until = limit.map(|limit| Instant::now() + limit);
    let started = within(until, container.engine.exec(&container.setup.name, exec)).await;
    let mut execution = match started {
        Some(Ok(execution)) => execution,
        Some(Err(fault)) => return Outcome::Failed(fault.to_string()),
        None => return timed_out(limit),
    };
    match within(until, execution.exit_code()).await {
        Some(Ok(code)) => Outcome::Exited(i32::try_from(code).unwrap_or(i32::MAX)),
        Some(Err(fault)) => Outcome::Failed(fault.to_string()),
        None => {
            if let Err(fault) = kill_command(container, &execution).await {
                tracing::warn!(%fault, "timed-out check may still run");
            }
            timed_out(limit)
        }
    }
}

/// `None`: it took too long.
async fn within<T>(until: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    match until {
        Some(until) => tokio::time::timeout_at(until.into(), work).await.ok(),
        None => Some(work.await),
    }
}

fn timed_out(limit: Option<Duration>) -> Outcome {
    Outcome::Failed(format!("timed out after {:?}", limit.unwrap_or_default()))
}

async fn kill_command(container: &Container, execution: &Execution) -> Result<(), EngineFault> {
    let first = container.found.get().map_or(0, |found| found.state.pid);
    if let Some(pid) = execution.pid().await?
        && is_inside(pid, first)
    {
        kill::signal_tree(pid, Signal::SIGKILL);
    }
    Ok(())
}

/// Whether a process shares the mount namespace of the container's `first`, which is not ours: then the pid was not reused.
fn is_inside(pid: i32, first: i32) -> bool {
    let files_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let (theirs, own) = (files_of(&pid.to_string()), files_of("self"));
    theirs.is_some() && theirs == files_of(&first.to_string()) && theirs != own
}
