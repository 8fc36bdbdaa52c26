//! The end of a container's cgroups: everything in them is killed, then they are removed.
//!
//! Whoever is in a cgroup cannot leave it without rights over cgroups, so nobody escapes by forking faster than we kill:
//! v1 stops all of them first, v2 has a file for it.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Cgroups, Place, Version};

/// The pause between two attempts grows from the first to the second.
const PAUSE_MS_MIN: u64 = 1;
const PAUSE_MS_MAX: u64 = 200;
/// How long to wait for all of them to stop, in looks of a millisecond; who is stuck in the kernel is killed unstopped.
const FREEZE_LOOKS_MAX: u32 = 200;
/// After so many attempts an operator should know.
const KILLS_BEFORE_WARNING: u32 = 60;
/// Its name and itself; every directory below adds one. Its many files need not be listed to know that there is none.
const LINKS_OF_CHILDLESS: u64 = 2;
/// A cgroup whose processes have just ended may need a moment.
const REMOVALS_MAX: u32 = 60;

/// Kills every process in the container's cgroup and below it, and returns when none is left. False: there is no such
/// cgroup, so its processes, if there are any, are elsewhere.
pub(crate) async fn kill(cgroups: &Cgroups) -> bool {
    let Some(place) = cgroups.core().cloned() else { return false };
    let (mut pause, mut attempt) = (PAUSE_MS_MIN, 0u32);
    loop {
        let round = place.clone();
        match tokio::task::spawn_blocking(move || kill_round(&round)).await {
            Ok(Ok(0)) => return true,
            Ok(Ok(_)) => (),
            Ok(Err(err)) if err.kind() == io::ErrorKind::NotFound => return false, // Removed under us: it was empty.
            Ok(Err(err)) => {
                tracing::debug!(cgroup = %place.cgroup.display(), %err, "cannot kill a cgroup, trying again")
            }
            Err(_) => return false, // The runtime is shutting down; whoever comes next starts over.
        }
        attempt = attempt.saturating_add(1);
        if attempt == KILLS_BEFORE_WARNING {
            tracing::warn!(cgroup = %place.cgroup.display(), "processes of a container do not die, still trying");
        }
        tokio::time::sleep(Duration::from_millis(pause)).await;
        pause = (pause * 2).min(PAUSE_MS_MAX);
    }
}

/// Removes the container's own cgroups. What cannot be removed is said and left: it is empty.
pub(crate) async fn remove(cgroups: &Cgroups) {
    for place in cgroups.places.iter().filter(|place| place.own) {
        let mut pause = PAUSE_MS_MIN;
        for attempt in 1..=REMOVALS_MAX {
            let path = place.cgroup.clone();
            match tokio::task::spawn_blocking(move || remove_tree(&path)).await {
                Ok(Ok(())) | Err(_) => break,
                Ok(Err(err)) if attempt == REMOVALS_MAX => {
                    tracing::warn!(cgroup = %place.cgroup.display(), %err, "cannot remove a cgroup");
                }
                Ok(Err(_)) => {
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    pause = (pause * 2).min(PAUSE_MS_MAX);
                }
            }
        }
    }
}

/// One attempt; returns how many processes there were.
fn kill_round(place: &Place) -> io::Result<usize> {
    let there = processes_below(&place.cgroup)?.len();
    if there == 0 {
        return Ok(0);
    }
    match place.version {
        Version::V2 if write(&place.cgroup, "cgroup.kill", "1").is_ok() => (),
        Version::V2 => {
            kill_frozen(&place.cgroup, ("cgroup.freeze", "1", "0"), ("cgroup.events", "frozen 1"))?
        }
        Version::V1 => {
            kill_frozen(&place.cgroup, ("freezer.state", "FROZEN", "THAWED"), ("freezer.state", "FROZEN"))?;
        }
    }
    Ok(there)
}

/// Nobody who is stopped can fork, and no pid is used again while its process is stopped.
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
    // 0 is a process that our pid namespace does not show. Gone meanwhile: what was wanted.
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
