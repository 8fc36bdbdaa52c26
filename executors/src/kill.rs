//! Signals to a process and everything it started, found through `/proc`.
//!
//! A tree is the root, its descendants, and processes that share a process group or a session with one of these,
//! except that the caller's own group and session are never followed.

use std::collections::BTreeSet;
use std::path::Path;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

/// Processes that fork during a scan are found by the next one; a tree that still grows after this many scans is
/// signalled as far as it is known.
const SCANS_MAX: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
}

/// Sends `signal` to the tree of `root`. Processes that are already gone are no error.
pub fn signal_tree(root: i32, signal: Signal) {
    let mut signalled = BTreeSet::new();
    for _ in 0..SCANS_MAX {
        let tree = members(root, i32::try_from(std::process::id()).unwrap_or(0), &processes());
        let new: Vec<i32> = tree.difference(&signalled).copied().collect();
        if new.is_empty() {
            return;
        }
        for pid in new {
            // ESRCH: it exited after the scan. EPERM: it runs as another user and cannot be signalled.
            let _ = nix::sys::signal::kill(Pid::from_raw(pid), signal);
            signalled.insert(pid);
        }
    }
}

fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| process(&entry.path())).collect()
}

fn process(directory: &Path) -> Option<Process> {
    let pid = directory.file_name()?.to_str()?.parse().ok()?;
    parse_stat(pid, &std::fs::read_to_string(directory.join("stat")).ok()?)
}

/// Reads `pid (name) state ppid pgrp session …`; the name may hold anything, so the last `)` counts.
fn parse_stat(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
    let mut next = || fields.next()?.parse().ok();
    Some(Process { pid, parent: next()?, group: next()?, session: next()? })
}

/// The tree of `root`, without the process `own`, whose group and session are not followed.
fn members(root: i32, own: i32, processes: &[Process]) -> BTreeSet<i32> {
    let own = processes.iter().find(|process| process.pid == own).copied();
    let foreign = |id: i32, ours: fn(&Process) -> i32| own.as_ref().is_none_or(|own| ours(own) != id);
    let mut tree = BTreeSet::from([root]);
    let (mut groups, mut sessions) = (BTreeSet::new(), BTreeSet::new());
    loop {
        for process in processes.iter().filter(|process| tree.contains(&process.pid)) {
            groups.extend(foreign(process.group, |own| own.group).then_some(process.group));
            sessions.extend(foreign(process.session, |own| own.session).then_some(process.session));
        }
        let joins = |process: &&Process| {
            tree.contains(&process.parent)
                || groups.contains(&process.group)
                || sessions.contains(&process.session)
        };
        let pids = processes.iter().filter(joins).map(|process| process.pid);
        let new: Vec<i32> =
            pids.filter(|pid| !tree.contains(pid) && own.is_none_or(|own| own.pid != *pid)).collect();
        if new.is_empty() {
            return tree;
        }
        tree.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_follow_parents_groups_and_sessions() {
        let table = [
            // pid, parent, group, session
            (1, 0, 1, 1),
            (50, 1, 50, 50),  // the executor
            (51, 50, 50, 50), // a check of the executor, in its group
            (60, 50, 60, 60), // the task
            (61, 60, 60, 60), // its child
            (62, 61, 62, 60), // a job in its own process group
            (63, 1, 60, 60),  // an orphan in the task's session
            (64, 61, 64, 64), // started its own session
            (65, 1, 64, 64),  // an orphan in that one
            (70, 1, 70, 70),  // a stranger
        ]
        .map(|(pid, parent, group, session)| Process { pid, parent, group, session });
        assert_eq!(members(60, 50, &table), BTreeSet::from([60, 61, 62, 63, 64, 65]));
        assert_eq!(members(51, 50, &table), BTreeSet::from([51]), "the executor's own group is not followed");
        assert_eq!(members(99, 50, &table), BTreeSet::from([99]));
    }

    #[test]
    fn stat_lines_are_parsed() {
        let expected = Process { pid: 7, parent: 1, group: 2, session: 3 };
        assert_eq!(parse_stat(7, "7 (a) b) (c) S 1 2 3 0 -1 4194560"), Some(expected));
        assert_eq!(parse_stat(7, "7 (sh) S 1"), None);
    }

    #[test]
    fn process_tree_is_killed() {
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & sleep 1000 & echo ready; wait"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut ready = [0; 5];
        let mut out = child.stdout.take().expect("piped");
        std::io::Read::read_exact(&mut out, &mut ready).expect("it says ready");
        signal_tree(child.id().cast_signed(), Signal::SIGKILL);
        assert_eq!(child.wait().expect("waited").signal(), Some(9));
        // The pipe closes only when the last of the tree, which all hold it, is gone.
        let mut rest = Vec::new();
        std::io::Read::read_to_end(&mut out, &mut rest).expect("closed");
    }
}
