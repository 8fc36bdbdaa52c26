//! Memory shortages of a container: the events of a v1 cgroup, by severity.
//!
//! The kernel counts them in descriptors that the supervisor keeps open and never reads; they are visible in /proc.
//! So a shortage wakes no process, counts outlive the agent, and the agent holds no descriptor for them. Not used on
//! v2, which has no such events.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::path::Path;

use rustix::event::EventfdFlags;

use crate::host::kernel_file::read_kernel_file;
use crate::host::process::Process;
use crate::usage::Shortages;

/// An event counts for its own level and those before it.
const LEVELS: [&str; 3] = ["low", "medium", "critical"];

/// What the supervisor's descriptors for them are called, from the first on; it has few others.
const FIRST_DESCRIPTOR: RawFd = 64;

/// Lets the kernel count for as long as this process lives. `cgroup` is one of v1 that counts memory.
pub(crate) fn count(cgroup: &Path) -> io::Result<()> {
    let mut control = File::options().write(true).open(cgroup.join("cgroup.event_control"))?;
    let pressure = File::open(cgroup.join("memory.pressure_level"))?;
    for (level, wanted) in LEVELS.into_iter().zip(FIRST_DESCRIPTOR..) {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let kept = rustix::io::fcntl_dupfd_cloexec(&event, wanted)?;
        if kept.as_raw_fd() != wanted {
            return Err(io::Error::other("a descriptor is taken"));
        }
        control.write_all(format!("{} {} {level}", kept.as_raw_fd(), pressure.as_raw_fd()).as_bytes())?;
        let _ = kept.into_raw_fd(); // Open until the process ends.
    }
    Ok(())
}

/// The counts of a supervisor's container; `None` if it does not count.
pub(crate) fn read(supervisor: Process) -> Option<Shortages> {
    let level = |offset: RawFd| {
        let path = format!("/proc/{}/fdinfo/{}", supervisor.pid, FIRST_DESCRIPTOR + offset);
        counted(&read_kernel_file(Path::new(&path))?)
    };
    let found = Shortages { low: level(0)?, medium: level(1)?, critical: level(2)? };
    // Checked after reading: the pid may have been reused.
    supervisor.is_alive().then_some(found)
}

/// A line `eventfd-count:` with a hexadecimal number.
fn counted(shown: &str) -> Option<u64> {
    let count = shown.lines().find_map(|line| line.strip_prefix("eventfd-count:"))?;
    u64::from_str_radix(count.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eventfd_count_is_read_from_fdinfo() {
        let shown =
            "pos:\t0\nflags:\t02004002\nmnt_id:\t16\neventfd-count:               1f\neventfd-id: 7\n";
        assert_eq!(counted(shown), Some(31));
        assert_eq!(counted("pos:\t0\nflags:\t02\n"), None, "another kind of file");
    }
}
