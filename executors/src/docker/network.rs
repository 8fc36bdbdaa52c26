//! Makes an attempt of a check from inside a container's network, where its loopback interface is.
//!
//! A thread goes there for each attempt and ends with it: it cannot come back.

use std::fs::File;

use nix::sched::{CloneFlags, setns};
use tokio::sync::oneshot;

use crate::checks::probe;
use crate::checks::{Outcome, Probe};

/// `pid` is the container's first process.
pub(super) async fn probe(pid: i32, probe: Probe) -> Outcome {
    let (done, outcome) = oneshot::channel();
    let started = std::thread::Builder::new().name("check".into()).spawn(move || {
        let made = enter(pid).and_then(|()| make(&probe));
        // Nobody listens any more once the executor ends.
        let _ = done.send(made.unwrap_or_else(|err| {
            Outcome::Failed(format!("cannot look from inside the container's network: {err}"))
        }));
    });
    match started {
        Ok(_) => outcome.await.unwrap_or(Outcome::Skipped),
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
