//! Persistent volumes that a running container gains or loses: our own program, started again, enters the container's
//! mount namespace and changes the mounts of the sandbox.
//!
//! Sources are opened on the host before, because they are not visible inside. An ordinary process with one thread.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::sched::CloneFlags;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt;

use super::mounts::{self, Ground};
use crate::host::process::Process;
use crate::runtime_dir::Mounted;

/// The change, read from standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Remount {
    /// Holds the namespace.
    pub process: Process,
    /// As seen in there.
    pub sandbox: PathBuf,
    pub gone: Vec<Mounted>,
    pub new: Vec<Mounted>,
}

/// Why the volumes of a running container cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemountFault {
    #[error("{0}")]
    Failed(String),
    #[error("cannot change the volumes of a container: {0}")]
    Helper(io::Error),
}

/// Has it done by a process of its own; the error is its last words.
pub(crate) async fn request(program: &Path, what: &Remount) -> Result<(), RemountFault> {
    let done = async {
        let mut child = tokio::process::Command::new(program)
            .args([crate::HELPER_COMMAND, crate::REMOUNT])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let text = serde_json::to_vec(what)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(&text).await?;
        }
        child.wait_with_output().await
    };
    match done.await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(RemountFault::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(err) => Err(RemountFault::Helper(err)),
    }
}

/// Applies the change on standard input.
pub(crate) fn work() -> io::Result<()> {
    let mut text = Vec::new();
    io::stdin().read_to_end(&mut text)?;
    let what: Remount = serde_json::from_slice(&text)?;
    let take = |one: &Mounted| take(one).map_err(|err| named(one, err));
    let trees = what.new.iter().map(take).collect::<io::Result<Vec<OwnedFd>>>()?;
    let namespace = File::open(format!("/proc/{}/ns/mnt", what.process.pid))?;
    if !what.process.is_alive() {
        return Ok(()); // No reader is left.
    }
    nix::sched::setns(namespace, CloneFlags::CLONE_NEWNS)?;
    std::env::set_current_dir(&what.sandbox)?;
    for one in &what.gone {
        mounts::hide(Path::new(&one.target)).map_err(|err| named(one, err))?;
    }
    let ground = Ground::here()?;
    for (one, tree) in what.new.iter().zip(&trees) {
        ground.show(tree, Path::new(&one.target)).map_err(|err| named(one, err))?;
    }
    Ok(())
}

fn take(one: &Mounted) -> io::Result<OwnedFd> {
    let tree = mounts::clone_tree(libc::AT_FDCWD, Path::new(&one.source))?;
    if one.read_only {
        mounts::set_read_only(tree.as_raw_fd())?;
    }
    Ok(tree)
}

fn named(one: &Mounted, err: io::Error) -> io::Error {
    io::Error::other(format!("cannot show the volume '{}' as '{}': {err}", one.source, one.target))
}
