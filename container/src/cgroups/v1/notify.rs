//! Notifications of a v1 cgroup: an eventfd that the kernel signals when a file of the cgroup has news.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::event::EventfdFlags;

/// An eventfd, not blocking, for news of `file`; `argument` is what that file takes, such as a threshold.
pub(crate) fn register(cgroup: &Path, file: &str, argument: &str) -> io::Result<OwnedFd> {
    let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let source = File::open(cgroup.join(file))?;
    let line = format!("{} {} {argument}", event.as_raw_fd(), source.as_raw_fd());
    let mut control = File::options().write(true).open(cgroup.join("cgroup.event_control"))?;
    control.write_all(line.trim_end().as_bytes())?;
    Ok(event)
}

/// Number of signals since the last call.
pub(crate) fn take(event: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(event, &mut count) {
        Ok(_) => u64::from_ne_bytes(count),
        Err(_) => 0, // Not at all.
    }
}
