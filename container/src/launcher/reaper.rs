//! The tiny init of a container that has namespaces of its own: a copy of the supervisor that stays inside.
//!
//! It holds the namespaces for processes that join later, passes signals on to its one child, reaps orphans, and
//! reports the child's exit through a pipe: as the first process of a pid namespace it cannot terminate by a signal
//! as its child did. It makes system calls only and never returns.

use std::os::fd::RawFd;

/// Forks. Returns in the new process; the old one watches it and reports its exit through `status`, if given.
pub(super) fn fork(status: Option<RawFd>) -> std::io::Result<()> {
    fork_with(status, || ())
}

/// As [`fork`]; the old process first does `settle`.
pub(super) fn fork_with(status: Option<RawFd>, settle: impl FnOnce()) -> std::io::Result<()> {
    // SAFETY: the process has one thread, and the child makes system calls only. WHY: there is no other way in.
    match unsafe { libc::fork() } {
        0 => {
            terminate_with_parent();
            Ok(())
        }
        child if child > 0 => {
            settle();
            watch(child, status)
        }
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A container whose supervisor or init is killed must terminate.
pub(super) fn terminate_with_parent() {
    // SAFETY: plain numbers. WHY: no wrapper without allocation.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

fn watch(child: libc::pid_t, status: Option<RawFd>) -> ! {
    close_all_but(status);
    // SAFETY: an all-zero set is filled by the C library. WHY: as everything here, no allocation.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours. WHY: a signal must be waited for, not obeyed.
    unsafe {
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
    loop {
        if let Some(how) = reap(child) {
            write_status(status, how);
            // SAFETY: ends this process at once; nothing of it is needed any more. WHY: no destructor of a copy may run.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: the set is filled, no other memory is involved. WHY: safe wrappers panic on real-time signals.
        match unsafe { libc::sigwaitinfo(&all, std::ptr::null_mut()) } {
            libc::SIGCHLD => (),
            // SAFETY: the child is ours and not reaped, so the pid is still its own. WHY: as above.
            signal if signal > 0 => unsafe {
                libc::kill(child, signal);
            },
            _ => (),
        }
    }
}

/// Reaps all processes that have exited; the status of `child` if it is among them.
fn reap(child: libc::pid_t) -> Option<i32> {
    let mut found = None;
    loop {
        let mut how = 0;
        // SAFETY: the kernel writes to a local integer. WHY: the raw status is passed on.
        match unsafe { libc::waitpid(-1, &mut how, libc::WNOHANG) } {
            pid if pid <= 0 => return found,
            pid if pid == child => found = Some(how),
            _ => (),
        }
    }
}

fn write_status(status: Option<RawFd>, how: i32) {
    if let Some(status) = status {
        let bytes = how.to_ne_bytes();
        // SAFETY: the memory is ours. WHY: no allocation. An error means that the supervisor has exited.
        unsafe { libc::write(status, bytes.as_ptr().cast(), bytes.len()) };
    }
}

/// What the supervisor has open must be closed by its end, not by ours.
fn close_all_but(kept: Option<RawFd>) {
    const LAST: libc::c_uint = libc::c_uint::MAX;
    /// As many as an old kernel without close_range(2) is likely to have given.
    const TRIED: libc::c_uint = 1024;
    let kept = kept.map_or(LAST, RawFd::cast_unsigned);
    let ranges = [(0, kept.wrapping_sub(1)), (kept.saturating_add(1), LAST)];
    for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
        // SAFETY: plain numbers; nothing here uses what is closed. WHY: no wrapper.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            (first..=last.min(TRIED)).for_each(|fd| {
                // SAFETY: as above. WHY: as above.
                unsafe { libc::close(fd.cast_signed()) };
            });
        }
    }
}
