//! The start of a container: starts its supervisor, whatever the launcher, and waits for the report of its setup.
//!
//! No root, no cgroups, no namespaces: it works wherever processes do.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

use super::starter::{self, Ends};
use super::{InitReport, InitSpec};
use crate::host::background::{Interrupted, blocking};
use crate::host::process::Process;

/// A supervisor that does not answer within this time is killed, and its container has failed to launch.
const START_SECS_MAX: u64 = 60;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LauncherFault {
    #[error("cannot start the supervisor {program}: {err}")]
    Spawn { program: String, err: io::Error },
    #[error("cannot send the launch to the supervisor: {0}")]
    Tell(io::Error),
    #[error("the supervisor exited before it started the command")]
    Silent,
    #[error("the supervisor did not answer within {START_SECS_MAX} seconds")]
    Late,
    #[error("{0}")]
    Setup(String),
}

/// Starts the container and returns its supervisor once that has claimed it. `label` is shown in lists of processes;
/// by the directory after it the supervisor is found again if the directory was deleted.
pub(crate) async fn start(program: &Path, label: &str, spec: &InitSpec) -> Result<Process, LauncherFault> {
    let failed = |err| LauncherFault::Spawn { program: program.display().to_string(), err };
    let mut command = Command::new(program);
    command
        .args([crate::HELPER_COMMAND, crate::SUPERVISE, label])
        .arg(&spec.runtime)
        .env_clear()
        .stderr(Stdio::null());
    let (stdin, to) = std::io::pipe().map_err(failed)?;
    let (from, stdout) = std::io::pipe().map_err(failed)?;
    let ends = Ends { stdin: stdin.into(), stdout: stdout.into() };
    let started = blocking(move || starter::start(command, ends)).await;
    let mut child = started.map_err(io::Error::from).flatten().map_err(failed)?;
    let talk = converse(to.into(), from.into(), spec);
    let answer = tokio::time::timeout(Duration::from_secs(START_SECS_MAX), talk).await;
    let answer = answer.unwrap_or(Err(LauncherFault::Late));
    if answer.is_err() {
        child.kill().ok(); // It may have ended by itself.
    }
    tokio::spawn(reap(child)); // If this program ends before, the next parent does it.
    answer
}

async fn converse(to: OwnedFd, from: OwnedFd, spec: &InitSpec) -> Result<Process, LauncherFault> {
    let mut to = pipe::Sender::from_owned_fd(to).map_err(LauncherFault::Tell)?;
    let mut from = pipe::Receiver::from_owned_fd(from).map_err(LauncherFault::Tell)?;
    let text = serde_json::to_vec(spec).map_err(|err| LauncherFault::Tell(err.into()))?;
    let told = to.write_all(&text).await;
    drop(to);
    let mut answer = Vec::new();
    from.read_to_end(&mut answer).await.map_err(LauncherFault::Tell)?;
    if answer.is_empty() {
        return Err(told.err().map_or(LauncherFault::Silent, LauncherFault::Tell));
    }
    match serde_json::from_slice(&answer) {
        Ok(InitReport::Ready { pid, start_ticks }) => Ok(Process { pid, start_ticks }),
        Ok(InitReport::Failed { message }) => Err(LauncherFault::Setup(message)),
        Err(err) => Err(LauncherFault::Tell(err.into())),
    }
}

/// Reaps a child whose status is not used, once it has exited.
async fn reap(mut child: Child) {
    if let Ok(Some(stat)) = Process::find(child.id().cast_signed()) {
        stat.process.ended().await;
    }
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    let waited = blocking(move || child.wait()).await;
    if let Err(fault @ Interrupted::Panicked(_)) = waited {
        tracing::error!(%fault, "cannot reap a supervisor");
    }
}
