//! The processes of a container: finding and killing all of them.
//!
//! The supervisor is the subreaper of everything it started: however a command detaches (a double fork, a session of
//! its own), its processes stay below the supervisor as long as that lives. Only if the supervisor itself is killed
//! do its descendants scatter; then those in its session are found by that.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host::background::{Interrupted, blocking};
use crate::host::process::{self, Process, Stat};

/// Limit of passes over a tree that is being stopped; processes of one that forks faster are killed as found.
const STOP_ROUNDS_MAX: usize = 8;

/// The pause between two attempts to kill grows from the first to the second. Only a process stuck in the kernel needs
/// more than a few; it is tried for ever, because a container with a living process has not ended.
const KILL_PAUSE_MS_MIN: u64 = 1;
const KILL_PAUSE_MS_MAX: u64 = 500;
const KILL_ATTEMPTS_BEFORE_WARNING: u32 = 60;

/// After so many attempts (63 ms) a supervisor that has nothing left to supervise is killed.
const SUPERVISOR_GRACE_ATTEMPTS: u32 = 6;

/// Parents of processes, as read before.
pub(crate) struct Tree<'a> {
    stats: BTreeMap<i32, &'a Stat>,
    children: BTreeMap<i32, Vec<&'a Stat>>,
}

impl<'a> Tree<'a> {
    pub fn new(all: &'a [Stat]) -> Self {
        let mut children: BTreeMap<i32, Vec<&Stat>> = BTreeMap::new();
        for stat in all {
            children.entry(stat.parent).or_default().push(stat);
        }
        Self { stats: all.iter().map(|stat| (stat.process.pid, stat)).collect(), children }
    }

    /// The process itself, unless it has exited or the pid was reused.
    pub fn get(&self, process: Process) -> Option<&'a Stat> {
        self.stats.get(&process.pid).copied().filter(|stat| stat.process == process)
    }

    /// Every living process below `root`, which itself is not among them.
    pub fn below(&self, root: Process) -> Vec<&'a Stat> {
        let mut found = Vec::new();
        let (mut seen, mut next) = (BTreeSet::from([root.pid]), Vec::from_iter(self.get(root)));
        while let Some(parent) = next.pop() {
            for stat in self.children.get(&parent.process.pid).into_iter().flatten() {
                if seen.insert(stat.process.pid) {
                    next.push(stat);
                    if !stat.ended {
                        found.push(*stat);
                    }
                }
            }
        }
        found
    }
}

/// Every living process below `root`, which itself is not among them.
pub(crate) fn below(root: Process) -> io::Result<Vec<Process>> {
    let all = process::all()?;
    Ok(Tree::new(&all).below(root).into_iter().map(|stat| stat.process).collect())
}

/// Sends a signal to every process below `root`.
pub(crate) fn signal_below(root: Process, signal: i32) -> io::Result<()> {
    signal_each(below(root)?, signal)?;
    Ok(())
}

/// Stops and then kills everything below `root` that one look after the other finds. Returns how many were killed: zero
/// means that nothing was left.
pub(crate) fn kill_below(root: Process) -> io::Result<usize> {
    let mut found = BTreeSet::new();
    for _ in 0..STOP_ROUNDS_MAX {
        let fresh: Vec<Process> = below(root)?.into_iter().filter(|process| found.insert(*process)).collect();
        if fresh.is_empty() {
            break;
        }
        signal_each(fresh, libc::SIGSTOP)?;
    }
    signal_each(found, libc::SIGKILL)
}

/// Returns how many were signalled. A process with more rights than ours (a set-user-id program under an agent that
/// is not root) cannot be signalled: waiting for it would never end.
fn signal_each(processes: impl IntoIterator<Item = Process>, signal: i32) -> io::Result<usize> {
    let mut reached = 0;
    for process in processes {
        match process.signal(signal) {
            Ok(there) => reached += usize::from(there),
            Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
                tracing::debug!(
                    pid = process.pid,
                    signal,
                    "not permitted to signal a process of a container"
                );
            }
            Err(err) => return Err(err),
        }
    }
    Ok(reached)
}

/// Ends a whole container and returns when nothing of it is left.
pub(crate) async fn destroy(supervisor: Process, sandbox: PathBuf) {
    let (mut pause, mut attempt) = (KILL_PAUSE_MS_MIN, 0u32);
    loop {
        let sandbox = sandbox.clone();
        let patient = attempt < SUPERVISOR_GRACE_ATTEMPTS;
        let round = blocking(move || destroy_round(supervisor, &sandbox, patient)).await;
        match round {
            Ok(Ok(0)) => return,
            Ok(Ok(_)) => (),
            Ok(Err(err)) => {
                tracing::debug!(pid = supervisor.pid, %err, "cannot kill a container, retrying")
            }
            Err(Interrupted::GoingDown) => return, // The next agent starts over.
            Err(fault @ Interrupted::Panicked(_)) => {
                tracing::error!(pid = supervisor.pid, %fault, "cannot kill a container, retrying");
            }
        }
        attempt = attempt.saturating_add(1);
        if attempt == KILL_ATTEMPTS_BEFORE_WARNING {
            tracing::warn!(pid = supervisor.pid, "processes of a container survive SIGKILL, retrying");
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        pause = (pause * 2).min(KILL_PAUSE_MS_MAX);
    }
}

/// One attempt. The supervisor is killed last: as long as it lives, no process can leave the tree. With nothing left
/// below it, it writes the exit status and exits; otherwise it is killed once we are no longer `patient`.
fn destroy_round(supervisor: Process, sandbox: &Path, patient: bool) -> io::Result<usize> {
    let found = kill_below(supervisor)?;
    if found > 0 {
        return Ok(found);
    }
    let last = if patient { libc::SIGCONT } else { libc::SIGKILL };
    if supervisor.signal(last)? {
        return Ok(1);
    }
    signal_each(scattered(&process::all()?, supervisor, sandbox), libc::SIGKILL)
}

/// Processes left behind by a killed supervisor: its session, and within that only those that work in the sandbox.
/// Without the second condition a later session with the same number would be killed.
fn scattered(all: &[Stat], supervisor: Process, sandbox: &Path) -> Vec<Process> {
    let works_here = |stat: &&Stat| {
        let place = |link: &str| std::fs::read_link(format!("/proc/{}/{link}", stat.process.pid));
        ["cwd", "fd/1", "fd/2"].iter().any(|link| place(link).is_ok_and(|path| path.starts_with(sandbox)))
    };
    all.iter()
        .filter(|stat| stat.session == supervisor.pid && !stat.ended)
        .filter(|stat| stat.process.start_ticks >= supervisor.start_ticks)
        .filter(works_here)
        .map(|stat| stat.process)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process::Spent;

    fn stat(pid: i32, parent: i32, start_ticks: u64, ended: bool) -> Stat {
        Stat { process: Process { pid, start_ticks }, parent, session: 1, ended, spent: Spent::default() }
    }

    #[test]
    fn descendants_include_those_of_zombies_and_exclude_the_root() {
        let all = [
            stat(1, 0, 0, false),
            stat(10, 1, 5, false),
            stat(11, 10, 6, true),
            stat(12, 11, 7, false),
            stat(13, 10, 8, false),
            stat(20, 1, 9, false),
        ];
        let pids = |root| {
            let mut pids: Vec<i32> =
                Tree::new(&all).below(root).iter().map(|stat| stat.process.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(Process { pid: 10, start_ticks: 5 }), [12, 13]);
        assert!(pids(Process { pid: 10, start_ticks: 4 }).is_empty(), "another process had this pid");
        assert!(pids(Process { pid: 99, start_ticks: 4 }).is_empty());
    }
}
