//! An attempt of a check in a container's network namespace, through its loopback interface.
//!
//! Each attempt has its own thread, which enters the namespace and exits with the attempt.

use std::fs::File;

use nix::sched::{CloneFlags, setns};
use tokio::sync::oneshot;

use crate::checks::probe;
use crate::checks::{Outcome, Probe};

/// `pid` is the container's first process.
pub(super) async fn probe(pid: i32, probe: Probe) -> Outcome {
    in_thread(move || {
        let made = enter(pid).and_then(|()| make(&probe));
        made.unwrap_or_else(|err| {
            Outcome::Failed(format!("cannot enter the container's network namespace: {err}"))
        })
    })
    .await
}

async fn in_thread(attempt: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    let (done, outcome) = oneshot::channel();
    let started = std::thread::Builder::new().name("check".into()).spawn(move || {
        let _ = done.send(attempt()); // The receiver is gone once the executor exits.
    });
    match started {
        Ok(_) => {
            outcome.await.unwrap_or_else(|_| Outcome::Failed("internal error: the check panicked".into()))
        }
        Err(err) => Outcome::Failed(format!("cannot start a thread: {err}")),
    }
}

fn enter(pid: i32) -> std::io::Result<()> {
    let own = std::fs::read_link("/proc/self/ns/net")?;
    let path = format!("/proc/{pid}/ns/net");
    if std::fs::read_link(&path)? == own {
        return Ok(()); // It is on the host's network, and so are we.
    }
    Ok(setns(File::open(path)?, CloneFlags::CLONE_NEWNET)?)
}

fn make(attempt: &Probe) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(probe::make(attempt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_panics_has_failed() {
        let failed = Outcome::Failed("internal error: the check panicked".into());
        assert_eq!(in_thread(|| panic!("no address")).await, failed);
        assert_eq!(in_thread(|| Outcome::Skipped).await, Outcome::Skipped);
    }
}
