//! Makes an attempt of a check by a command in the container, and ends what takes too long.
//!
//! The engine cannot end a command that it runs in a container. We can, if its processes are on this machine.

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
            if let Err(fault) = end(container, &execution).await {
                tracing::warn!(%fault, "a check that took too long may go on");
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

async fn end(container: &Container, execution: &Execution) -> Result<(), EngineFault> {
    let first = container.found.get().map_or(0, |found| found.state.pid);
    if let Some(pid) = execution.pid().await?
        && is_inside(pid, first)
    {
        kill::signal_tree(pid, Signal::SIGKILL);
    }
    Ok(())
}

/// Whether a process sees the files that the container's `first` does, and we do not: nobody else has that number then.
fn is_inside(pid: i32, first: i32) -> bool {
    let files_of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let (theirs, own) = (files_of(&pid.to_string()), files_of("self"));
    theirs.is_some() && theirs == files_of(&first.to_string()) && theirs != own
}
