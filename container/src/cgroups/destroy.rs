//! Destruction of a container's cgroups: every process in them is killed, then they are removed.
//!
//! A process cannot leave a cgroup without rights over cgroups, so none escapes by forking faster than it is killed:
//! v2 has a file for it; v1 stops all processes first, unless killing those present was sufficient.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::{Cgroups, Place, Version};

use crate::host::background::{Interrupted, blocking};

/// The pause between two attempts grows from the first to the second.
const PAUSE_MS_MIN: u64 = 1;
const PAUSE_MS_MAX: u64 = 200;
/// So many are killed without being stopped before, once, and waited for so long.
const FEW: usize = 32;
const FEW_END_MAX: Duration = Duration::from_millis(50);
/// Limit of checks, 1 ms apart, until all processes have stopped; a process blocked in the kernel is killed without
/// that.
const FREEZE_LOOKS_MAX: u32 = 200;
/// Attempts after which a failure is logged as an error.
const KILLS_BEFORE_WARNING: u32 = 60;
/// Link count of a directory without subdirectories; avoids listing its many files.
const LINKS_OF_CHILDLESS: u64 = 2;
/// The kernel may need a moment to empty a cgroup whose processes have exited.
const REMOVALS_MAX: u32 = 60;

/// Kills every process in the container's cgroup and below it, and returns when none is left. False: there is no such
/// cgroup, so its processes, if there are any, are elsewhere.
pub(crate) async fn kill(cgroups: &Cgroups) -> bool {
    let Some(place) = cgroups.core().cloned() else { return false };
    let (mut pause, mut attempt) = (PAUSE_MS_MIN, 0u32);
    loop {
        let round = place.clone();
        match blocking(move || kill_round(&round, attempt == 0)).await {
            Ok(Ok(Remaining::Empty)) => return true,
            Ok(Ok(Remaining::Processes)) => (),
            Ok(Err(err)) if err.kind() == io::ErrorKind::NotFound => return false, // Removed under us: it was empty.
            Ok(Err(err)) => {
                tracing::debug!(cgroup = %place.cgroup.display(), %err, "cannot kill a cgroup, retrying")
            }
            Err(Interrupted::GoingDown) => return false, // The next agent starts over.
            Err(fault @ Interrupted::Panicked(_)) => {
                tracing::error!(cgroup = %place.cgroup.display(), %fault, "cannot kill a cgroup, retrying");
            }
        }
        attempt = attempt.saturating_add(1);
        if attempt == KILLS_BEFORE_WARNING {
            tracing::warn!(cgroup = %place.cgroup.display(), "processes of a container survive SIGKILL, retrying");
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        pause = (pause * 2).min(PAUSE_MS_MAX);
    }
}

/// Removes the container's own cgroups. One that cannot be removed is logged and stays; it is empty.
pub(crate) async fn remove(cgroups: &Cgroups) {
    let mut left: Vec<PathBuf> =
        cgroups.places.iter().filter(|place| place.own).map(|place| place.cgroup.clone()).collect();
    let mut pause = PAUSE_MS_MIN;
    for attempt in 1..=REMOVALS_MAX {
        let all = left.clone();
        match blocking(move || remove_all(all)).await {
            Ok(remaining) => left = remaining,
            Err(Interrupted::GoingDown) => return, // The next agent starts over.
            Err(fault @ Interrupted::Panicked(_)) => {
                tracing::error!(%fault, "cannot remove cgroups, retrying")
            }
        }
        if left.is_empty() {
            return;
        }
        if attempt < REMOVALS_MAX {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            pause = (pause * 2).min(PAUSE_MS_MAX);
        }
    }
    tracing::warn!(cgroups = ?left, "cannot remove cgroups");
}

/// Those that could not be removed.
fn remove_all(mut cgroups: Vec<PathBuf>) -> Vec<PathBuf> {
    cgroups.retain(|cgroup| {
        let removed = remove_tree(cgroup);
        removed
            .inspect_err(|err| tracing::debug!(cgroup = %cgroup.display(), %err, "not removed yet"))
            .is_err()
    });
    cgroups
}

/// What an attempt left behind.
enum Remaining {
    Empty,
    Processes,
}

/// One attempt.
fn kill_round(place: &Place, is_first: bool) -> io::Result<Remaining> {
    let there = processes_below(&place.cgroup)?;
    if there.is_empty() {
        return Ok(Remaining::Empty);
    }
    let few = Some(&there)
        .filter(|there| is_first && there.len() <= FEW)
        .and_then(|there| HeldProcesses::open(there));
    match (place.version, &few) {
        (Version::V2, _) if write(&place.cgroup, "cgroup.kill", "1").is_ok() => (),
        (Version::V1, Some(few)) => few.kill(&processes_below(&place.cgroup)?),
        (Version::V2, _) => {
            kill_frozen(&place.cgroup, ("cgroup.freeze", "1", "0"), ("cgroup.events", "frozen 1"))?
        }
        (Version::V1, None) => {
            kill_frozen(&place.cgroup, ("freezer.state", "FROZEN", "THAWED"), ("freezer.state", "FROZEN"))?;
        }
    }
    match few {
        Some(few) if few.have_ended() && processes_below(&place.cgroup)?.is_empty() => Ok(Remaining::Empty),
        Some(_) | None => Ok(Remaining::Processes),
    }
}

/// Processes that are held fast: their numbers may be used again, what is held means them.
struct HeldProcesses(Vec<(i32, OwnedFd)>);

impl HeldProcesses {
    /// None if the kernel cannot do that.
    fn open(pids: &[i32]) -> Option<HeldProcesses> {
        let mut found = Vec::new();
        for pid in pids {
            match pidfd_open(Pid::from_raw(*pid)?, PidfdFlags::empty()) {
                Ok(fd) => found.push((*pid, fd)),
                Err(rustix::io::Errno::SRCH) => (),
                Err(_) => return None,
            }
        }
        Some(HeldProcesses(found))
    }

    /// Kills the processes of the cgroup, listed while they are stopped.
    fn kill(&self, there: &[i32]) {
        for (_, fd) in self.0.iter().filter(|(pid, _)| there.contains(pid)) {
            rustix::process::pidfd_send_signal(fd, Signal::KILL).ok(); // It has ended by itself.
        }
    }

    /// Whether all of them end soon.
    fn have_ended(&self) -> bool {
        let deadline = Instant::now() + FEW_END_MAX;
        self.0.iter().all(|(_, fd)| {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap_or_default();
            poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&left)).is_ok_and(|ready| ready > 0)
        })
    }
}

/// A stopped process cannot fork, and its pid is not reused.
fn kill_frozen(
    cgroup: &Path,
    (file, freeze, thaw): (&str, &str, &str),
    (state, frozen): (&str, &str),
) -> io::Result<()> {
    write(cgroup, file, freeze)?;
    for _ in 0..FREEZE_LOOKS_MAX {
        if std::fs::read_to_string(cgroup.join(state))?.lines().any(|line| line == frozen) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = processes_below(cgroup).map(|pids| pids.into_iter().for_each(kill_one));
    write(cgroup, file, thaw)?;
    killed
}

fn kill_one(pid: i32) {
    // 0 is a process that our pid namespace does not show. A process that has exited is a success.
    if pid > 0 {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL).ok();
    }
}

/// The processes of a cgroup and of all below it.
pub(crate) fn processes_below(cgroup: &Path) -> io::Result<Vec<i32>> {
    listed_below(cgroup, "cgroup.procs")
}

/// The numbers in a file of a cgroup and in those of all below it.
pub(crate) fn listed_below(cgroup: &Path, file: &str) -> io::Result<Vec<i32>> {
    let mut found = listed(cgroup, file)?;
    for child in children(cgroup)? {
        match listed_below(&child, file) {
            Ok(more) => found.extend(more),
            Err(err) if err.kind() == io::ErrorKind::NotFound => (),
            Err(err) => return Err(err),
        }
    }
    Ok(found)
}

fn listed(cgroup: &Path, file: &str) -> io::Result<Vec<i32>> {
    match std::fs::read_to_string(cgroup.join(file)) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(err) if is_gone(&err) => Err(io::ErrorKind::NotFound.into()),
        Err(err) => Err(err),
    }
}

/// ENODEV: it was removed between open and read.
fn is_gone(err: &io::Error) -> bool {
    err.kind() == io::ErrorKind::NotFound || err.raw_os_error() == Some(libc::ENODEV)
}

fn children(cgroup: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if std::fs::metadata(cgroup)?.nlink() == LINKS_OF_CHILDLESS {
        return Ok(found);
    }
    for entry in std::fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Removes a cgroup and all below it, which must have no processes; one that is gone is no error.
pub(crate) fn remove_tree(cgroup: &Path) -> io::Result<()> {
    let below = match children(cgroup) {
        Err(err) if is_gone(&err) => return Ok(()),
        below => below?,
    };
    below.iter().try_for_each(|child| remove_tree(child))?;
    match std::fs::remove_dir(cgroup) {
        Err(err) if is_gone(&err) => Ok(()),
        removed => removed,
    }
}

fn write(cgroup: &Path, file: &str, value: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(cgroup.join(file))?;
    io::Write::write_all(&mut file, value.as_bytes())
}
