//! Reports of a process before it becomes the command about a failed step: a few bytes through a pipe.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::plan::Plan;

/// A step of the plan that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    what: FailedStep,
    errno: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailedStep {
    /// By its place in the plan.
    Mount(usize),
    Rlimit(usize),
    Step(&'static str),
}

const STEPS: u8 = 0;
const MOUNTS: u8 = 1;
const RLIMITS: u8 = 2;
/// No step has a longer name.
const BYTES_MAX: usize = 256;

impl Failure {
    pub fn at(step: &'static str) -> impl Fn(io::Error) -> Failure {
        move |err| Failure { what: FailedStep::Step(step), errno: errno(&err) }
    }

    pub fn of_mount(index: usize, err: &io::Error) -> Failure {
        Failure { what: FailedStep::Mount(index), errno: errno(err) }
    }

    pub fn of_rlimit(index: usize, err: &io::Error) -> Failure {
        Failure { what: FailedStep::Rlimit(index), errno: errno(err) }
    }

    /// For a process that can report itself; mounts do not fail there.
    pub fn in_words(self) -> io::Error {
        let what = match self.what {
            FailedStep::Step(step) => step,
            FailedStep::Mount(_) => "a mount",
            FailedStep::Rlimit(_) => "a limit",
        };
        io::Error::other(format!("cannot set up {what}: {}", io::Error::from_raw_os_error(self.errno)))
    }

    /// Writes the report; returns the error for std. System calls only.
    pub fn write_to(self, pipe: RawFd) -> io::Error {
        let mut bytes = [0; BYTES_MAX];
        let (kind, index, text) = match self.what {
            FailedStep::Step(text) => (STEPS, 0, text.as_bytes()),
            FailedStep::Mount(index) => (MOUNTS, index, &b""[..]),
            FailedStep::Rlimit(index) => (RLIMITS, index, &b""[..]),
        };
        let text = &text[..text.len().min(BYTES_MAX - 9)];
        bytes[0] = kind;
        bytes[1..5].copy_from_slice(&self.errno.to_ne_bytes());
        bytes[5..9].copy_from_slice(&(index as u32).to_ne_bytes());
        bytes[9..9 + text.len()].copy_from_slice(text);
        // SAFETY: the memory is ours. WHY: no allocation.
        unsafe { libc::write(pipe, bytes.as_ptr().cast(), 9 + text.len()) };
        io::Error::from_raw_os_error(self.errno)
    }
}

fn errno(err: &io::Error) -> i32 {
    err.raw_os_error().unwrap_or(libc::EINVAL)
}

/// The report as text; `None` if there is none.
pub(super) fn read_failure(pipe: OwnedFd, plan: &Plan) -> Option<String> {
    rustix::io::ioctl_fionbio(&pipe, true).ok()?;
    let mut bytes = Vec::new();
    // It ends by "would block" if a copy of the other end is still open somewhere.
    std::fs::File::from(pipe).take(BYTES_MAX as u64).read_to_end(&mut bytes).ok();
    let (head, text) = bytes.split_at_checked(9)?;
    let errno = i32::from_ne_bytes(head[1..5].try_into().ok()?);
    let index = u32::from_ne_bytes(head[5..9].try_into().ok()?) as usize;
    let what = match head[0] {
        MOUNTS => plan.mounts.get(index).map(|mount| format!("cannot {mount}"))?,
        RLIMITS => plan.rlimits.get(index).map(|limit| format!("cannot set the limit {}", limit.name))?,
        _ => format!("cannot set up {}", String::from_utf8_lossy(text)),
    };
    Some(format!("{what}: {}", io::Error::from_raw_os_error(errno)))
}

/// A pipe whose ends are closed when the command starts.
pub(super) struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Pipe {
    pub fn new() -> io::Result<Pipe> {
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Pipe { read, write })
    }

    pub fn writer(&self) -> RawFd {
        self.write.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Make, Mount, Root, Target};

    #[test]
    fn launch_failures_are_reported_through_the_pipe() {
        let target = Target::new(Root::Host, "proc", Make::Nothing);
        let plan = Plan { mounts: vec![Mount::Proc { target }], ..Default::default() };
        let denied = || io::Error::from_raw_os_error(libc::EPERM);
        for (failure, words) in [
            (
                Some(Failure::of_mount(0, &denied())),
                Some("cannot proc on /proc: Operation not permitted (os error 1)"),
            ),
            (
                Some(Failure::at("its user")(denied())),
                Some("cannot set up its user: Operation not permitted (os error 1)"),
            ),
            (None, None),
        ] {
            let pipe = Pipe::new().expect("a pipe");
            if let Some(failure) = failure {
                failure.write_to(pipe.writer());
            }
            assert_eq!(read_failure(pipe.read, &plan).as_deref(), words);
        }
    }
}
