//! A thread that starts programs. The cost of a new process grows with the number of files its parent has open, which
//! are copied and closed again, and an agent has some open for each container: this thread has an empty table of open
//! files of its own.
//!
//! On a kernel that does not allow that, the calling thread starts programs.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::{Child, Command};
use std::sync::{OnceLock, mpsc};

use nix::sched::CloneFlags;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// Standard input, output and errors stay.
const FIRST_CLOSED: libc::c_uint = 3;

/// What a program reads from and writes to.
pub(super) struct Ends {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
}

struct Job {
    command: Command,
    /// Numbers in the caller's table; the caller keeps them open until it has an answer.
    stdin: RawFd,
    stdout: RawFd,
    done: mpsc::Sender<io::Result<Child>>,
}

/// Starts a program. Blocks meanwhile: the thread, to which descriptors of others mean nothing, cannot wake the runtime.
pub(super) fn start(command: Command, ends: Ends) -> io::Result<Child> {
    let Some(thread) = thread() else { return spawn(command, ends) };
    let (done, answer) = mpsc::channel();
    let (stdin, stdout) = (ends.stdin.as_raw_fd(), ends.stdout.as_raw_fd());
    if let Err(mpsc::SendError(job)) = thread.send(Job { command, stdin, stdout, done }) {
        return spawn(job.command, ends);
    }
    answer.recv().unwrap_or_else(|_| Err(io::Error::other("the thread that starts programs has exited")))
}

fn spawn(mut command: Command, ends: Ends) -> io::Result<Child> {
    command.stdin(ends.stdin).stdout(ends.stdout).spawn()
}

/// None where a thread cannot have a table of its own, or cannot reach that of the others.
fn thread() -> Option<&'static mpsc::Sender<Job>> {
    static THREAD: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    let begin = || {
        let ((sender, jobs), (ready, is_ready)) = (mpsc::channel(), mpsc::channel());
        let serve = move || serve(&ready, &jobs);
        std::thread::Builder::new().name(String::from("starter")).spawn(serve).ok()?;
        is_ready.recv().ok().map(|()| sender)
    };
    THREAD.get_or_init(begin).as_ref()
}

fn serve(ready: &mpsc::Sender<()>, jobs: &mpsc::Receiver<Job>) {
    let Ok(others) = leave_table() else { return };
    ready.send(()).ok(); // The caller waits for it.
    while let Ok(Job { command, stdin, stdout, done }) = jobs.recv() {
        let take = |number| take(others.as_fd(), number);
        let ends = take(stdin).and_then(|stdin| Ok(Ends { stdin, stdout: take(stdout)? }));
        done.send(ends.and_then(|ends| spawn(command, ends))).ok(); // The caller waits for it.
    }
}

/// Empties this thread's table of open files; the handle is for files of the other threads.
fn leave_table() -> io::Result<OwnedFd> {
    nix::sched::unshare(CloneFlags::CLONE_FILES)?;
    // SAFETY: plain numbers; this thread has a table of its own and uses nothing of what is closed in it.
    // WHY: no wrapper.
    if unsafe { libc::syscall(libc::SYS_close_range, FIRST_CLOSED, libc::c_uint::MAX, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let others = pidfd_open(getpid(), PidfdFlags::empty())?;
    take(others.as_fd(), libc::STDERR_FILENO)?;
    Ok(others)
}

fn take(others: BorrowedFd<'_>, number: RawFd) -> io::Result<OwnedFd> {
    Ok(pidfd_getfd(others, number, PidfdGetfdFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Whatever is open here, not even kept from others, a program that is started has only what it was given.
    #[test]
    fn started_programs_inherit_only_their_own_descriptors() {
        let open = std::fs::File::open("/dev/zero").expect("it is there");
        rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).expect("inheritable");
        for _ in 0..2 {
            let (read, write) = std::io::pipe().expect("a pipe");
            let stdin = std::fs::File::open("/dev/null").expect("it is there").into();
            let mut command = Command::new("ls");
            command.args(["-l", "/proc/self/fd/"]);
            let mut child = start(command, Ends { stdin, stdout: write.into() }).expect("started");
            let mut text = String::new();
            std::fs::File::from(OwnedFd::from(read)).read_to_string(&mut text).expect("closed by its end");
            assert!(child.wait().expect("it is ours").success());
            assert!(text.contains("0 -> /dev/null") && !text.contains("/dev/zero"), "{text}");
        }
        let missing = Ends {
            stdin: std::fs::File::open("/dev/null").expect("it is there").into(),
            stdout: std::fs::File::create("/dev/null").expect("it is there").into(),
        };
        let started = start(Command::new("/no/such/program"), missing);
        assert_eq!(started.expect_err("it is missing").kind(), io::ErrorKind::NotFound);
    }
}
