//! The posix launcher: starts the supervisor of a container and hears whether it could begin.
//!
//! No root, no cgroups, no namespaces: it works wherever processes do.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{InitReport, InitSpec};
use crate::host::pages;
use crate::host::process::Process;

/// A supervisor that did not say anything for so long is killed, and its container has failed to launch.
const START_SECS_MAX: u64 = 60;

#[derive(Debug, thiserror::Error)]
pub(crate) enum LauncherFault {
    #[error("cannot start the supervisor {program}: {err}")]
    Spawn { program: String, err: io::Error },
    #[error("cannot tell the supervisor what to do: {0}")]
    Tell(io::Error),
    #[error("the supervisor ended before it started the command")]
    Silent,
    #[error("the supervisor did not answer within {START_SECS_MAX} seconds")]
    Late,
    #[error("{0}")]
    Setup(String),
}

/// Starts the container and returns its supervisor once that has claimed it.
/// `label` is for those who look at the list of processes; the directory after it is how the supervisor is found again
/// if that was deleted.
pub(crate) async fn start(program: &Path, label: &str, spec: &InitSpec) -> Result<Process, LauncherFault> {
    let mut child = tokio::process::Command::new(program)
        .args([crate::HELPER_COMMAND, crate::SUPERVISE, label])
        .arg(&spec.runtime)
        .env_clear()
        .envs(pages::small_only())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|err| LauncherFault::Spawn { program: program.display().to_string(), err })?;
    let answer = tokio::time::timeout(Duration::from_secs(START_SECS_MAX), converse(&mut child, spec)).await;
    let answer = answer.unwrap_or(Err(LauncherFault::Late));
    if answer.is_err() {
        child.start_kill().ok(); // It may have ended by itself.
    }
    // Somebody must reap it; if this program ends before, the next parent does.
    tokio::spawn(async move { child.wait().await });
    answer
}

async fn converse(child: &mut tokio::process::Child, spec: &InitSpec) -> Result<Process, LauncherFault> {
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LauncherFault::Silent);
    };
    let text = serde_json::to_vec(spec).map_err(|err| LauncherFault::Tell(err.into()))?;
    let told = stdin.write_all(&text).await;
    drop(stdin);
    let mut answer = Vec::new();
    stdout.read_to_end(&mut answer).await.map_err(LauncherFault::Tell)?;
    if answer.is_empty() {
        return Err(told.err().map_or(LauncherFault::Silent, LauncherFault::Tell));
    }
    match serde_json::from_slice(&answer) {
        Ok(InitReport::Ready { pid, start_ticks }) => Ok(Process { pid, start_ticks }),
        Ok(InitReport::Failed { message }) => Err(LauncherFault::Setup(message)),
        Err(err) => Err(LauncherFault::Tell(err.into())),
    }
}
