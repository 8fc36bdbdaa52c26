//! Processes: identity, ancestry, liveness, and signals to exactly them.
//!
//! A pid alone identifies no process, because the kernel reuses it: a [`Process`] is a pid with its start time, and
//! every signal goes through a pidfd whose start time was compared after it was opened.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal};
use serde::{Deserialize, Serialize};
use tokio::io::{Interest, unix::AsyncFd};

use super::kernel_file::{read_kernel_bytes, read_kernel_file};

/// Interval of checks on a process on kernels without pidfd_open(2).
const EXIT_POLL_MS: u64 = 200;

/// A process, for as long as this machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Process {
    pub pid: i32,
    /// When it started, in clock ticks since the machine did.
    pub start_ticks: u64,
}

/// One line of `/proc/<pid>/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub process: Process,
    pub parent: i32,
    pub session: i32,
    /// A zombie, or on its way there: it holds a pid and nothing else.
    pub ended: bool,
    pub spent: Spent,
}

/// What a process used so far, and what those used that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub threads: u64,
    pub rss_pages: u64,
}

impl Process {
    /// The process that holds `pid` now, if any.
    pub fn find(pid: i32) -> io::Result<Option<Stat>> {
        match read_kernel_bytes(Path::new(&format!("/proc/{pid}/stat"))) {
            Ok(bytes) => parse_stat(&bytes)
                .map(Some)
                .ok_or_else(|| io::Error::other(format!("cannot understand /proc/{pid}/stat"))),
            // ESRCH: it ended between open and read.
            Err(err) if is_gone(&err) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// This very process.
    pub fn this() -> io::Result<Process> {
        let pid = std::process::id().cast_signed();
        Process::find(pid)?
            .map(|stat| stat.process)
            .ok_or_else(|| io::Error::other("/proc does not list this process"))
    }

    pub fn is_alive(self) -> bool {
        matches!(Process::find(self.pid), Ok(Some(stat)) if stat.process == self && !stat.ended)
    }

    /// Sends a signal to exactly this process. False if it has exited.
    pub fn signal(self, signal: i32) -> io::Result<bool> {
        let (Some(pid), Some(signal)) = (Pid::from_raw(self.pid), named(signal)) else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let sent = match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) if self.is_alive() => rustix::process::pidfd_send_signal(fd, signal),
            Ok(_) => return Ok(false),
            Err(rustix::io::Errno::NOSYS) if self.is_alive() => rustix::process::kill_process(pid, signal),
            Err(rustix::io::Errno::NOSYS) => return Ok(false),
            Err(err) => Err(err),
        };
        match sent {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::SRCH) => Ok(false),
            // Its number is still that of a session or group: older kernels report this for the process.
            Err(rustix::io::Errno::INVAL) if !self.is_alive() => Ok(false),
            Err(err) => Err(err.into()),
        }
    }

    /// Waits until the process has exited, also if it is not a child.
    pub async fn ended(self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let watched = match rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK) {
            // SAFETY: the descriptor is open, owned by the AsyncFd, and never replaced in it. WHY: the only
            // notification of the exit of a process that is not our child.
            Ok(fd) => unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE).ok() },
            Err(_) => None,
        };
        if !self.is_alive() {
            return; // Also excludes a pidfd of a later process.
        }
        if let Some(fd) = watched
            && fd.readable().await.is_ok()
        {
            return;
        }
        while self.is_alive() {
            tokio::time::sleep(std::time::Duration::from_millis(EXIT_POLL_MS)).await;
        }
    }
}

/// Every process that this machine shows us.
pub(crate) fn all() -> io::Result<Vec<Stat>> {
    let mut stats = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One unreadable process (hidepid) must not hide the others.
        if let Ok(Some(stat)) = Process::find(pid) {
            stats.push(stat);
        }
    }
    Ok(stats)
}

/// Distinguishes one start of the machine from the next; empty if the kernel does not report it.
pub(crate) fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    let read = || read_kernel_file(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
    ID.get_or_init(read).trim()
}

fn is_gone(err: &io::Error) -> bool {
    err.kind() == io::ErrorKind::NotFound || err.raw_os_error() == Some(libc::ESRCH)
}

/// A signal by its number, those for real-time use included. The C library keeps 32 and 33 for itself.
fn named(signal: i32) -> Option<Signal> {
    match signal {
        1..=31 => Signal::from_named_raw(signal),
        // SAFETY: signals go up to 64, and the two that are reserved are not in this range. WHY: tasks may be sent
        // any signal, and no safe constructor takes these.
        34..=64 => Some(unsafe { Signal::from_raw_unchecked(signal) }),
        _ => None,
    }
}

/// The command name, field 2, is in parentheses and may hold anything, also blanks and parentheses.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let close = bytes.iter().rposition(|b| *b == b')')?;
    let open = bytes.iter().position(|b| *b == b'(')?;
    let pid = std::str::from_utf8(&bytes[..open]).ok()?.trim().parse().ok()?;
    let rest: Vec<&str> = std::str::from_utf8(&bytes[close + 1..]).ok()?.split_ascii_whitespace().collect();
    Some(Stat {
        process: Process { pid, start_ticks: rest.get(19)?.parse().ok()? },
        parent: rest.get(1)?.parse().ok()?,
        session: rest.get(3)?.parse().ok()?,
        ended: matches!(*rest.first()?, "Z" | "X" | "x"),
        spent: spent(&rest).unwrap_or_default(),
    })
}

/// The fields behind the command name, the third of all first.
fn spent(rest: &[&str]) -> Option<Spent> {
    let number = |field: usize| rest.get(field - 3)?.parse::<u64>().ok();
    Some(Spent {
        user_ticks: number(14)? + number(16)?,
        system_ticks: number(15)? + number(17)?,
        threads: number(20)?,
        rss_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_with_parentheses_in_the_name_is_parsed() {
        let line = b"42 (a) R 1 (b)) S 7 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 9 0 987654 10 11\n";
        let stat = parse_stat(line).expect("it is well formed");
        let spent = Spent { user_ticks: 12, system_ticks: 14, threads: 9, rss_pages: 11 };
        let process = Process { pid: 42, start_ticks: 987654 };
        assert_eq!(stat, Stat { process, parent: 7, session: 40, ended: false, spent });
        assert!(parse_stat(b"42 (x) Z 1 1 1 0").is_none());
        assert!(parse_stat(b"").is_none());
    }

    #[test]
    fn reused_pid_is_neither_alive_nor_signalled() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let now = Process::find(child.id().cast_signed()).expect("/proc is there").expect("it lives").process;
        let former = Process { start_ticks: now.start_ticks - 1, ..now };
        assert!(now.is_alive());
        assert!(!former.is_alive());
        assert!(!former.signal(libc::SIGKILL).expect("no error, nobody there"));
        assert!(now.is_alive());
        assert!(now.signal(libc::SIGKILL).expect("it is ours"));
        child.wait().expect("it was started here");
        assert!(!now.signal(libc::SIGKILL).expect("no error, nobody there"));
    }

    #[tokio::test]
    async fn process_exit_is_observed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let process =
            Process::find(child.id().cast_signed()).expect("/proc is there").expect("it lives").process;
        let watch = tokio::spawn(process.ended());
        process.signal(libc::SIGKILL).expect("it is ours");
        watch.await.expect("the watch ends"); // Before it is reaped.
        child.wait().expect("it was started here");
        process.ended().await;
    }
}
