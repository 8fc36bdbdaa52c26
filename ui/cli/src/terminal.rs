//! The user's terminal: its size and raw mode.
//!
//! Terminal modes are restored on exit, on an error and in a panic. Terminating signals are handled by the commands, which
//! then exit normally.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal that was changed, and how it was before. There is one at most.
static CHANGED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// A terminal in raw mode until this is dropped: no echo, no signals by keys.
#[must_use]
pub struct Raw(());

impl Raw {
    pub fn enter(terminal: impl AsFd) -> Result<Raw> {
        static HOOK: Once = Once::new();
        HOOK.call_once(restore_in_panics);
        let terminal = terminal.as_fd().try_clone_to_owned().context("cannot use the terminal")?;
        let before = tcgetattr(&terminal).context("standard input is not a terminal")?;
        let mut raw = before.clone();
        raw.make_raw();
        *changed() = Some((terminal.try_clone().context("cannot use the terminal")?, before));
        tcsetattr(&terminal, OptionalActions::Now, &raw).context("cannot change the terminal")?;
        Ok(Raw(()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some((terminal, before)) = changed().take() {
        let _ = tcsetattr(terminal, OptionalActions::Now, &before); // Fails only if the terminal is closed.
    }
}

fn changed() -> std::sync::MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal before a panic message is printed.
fn restore_in_panics() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        say(panic);
    }));
}

/// Rows and columns of the terminal of standard output or input, if there is one.
pub fn own_size() -> Option<(u16, u16)> {
    size(std::io::stdout()).or_else(|| size(std::io::stdin()))
}

fn size(terminal: impl AsFd) -> Option<(u16, u16)> {
    let size = tcgetwinsize(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

pub fn is_terminal(file: impl AsFd) -> bool {
    isatty(file)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::LocalModes;

    use super::*;

    /// Both ends of a terminal.
    fn terminal() -> (OwnedFd, OwnedFd) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("a name");
        let theirs = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened");
        (ours, theirs)
    }

    fn echoes(terminal: &OwnedFd) -> bool {
        tcgetattr(terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO)
    }

    // One test: a process has at most one terminal in raw mode.
    #[test]
    fn terminal_modes_are_restored() {
        let (_ours, theirs) = terminal();
        let raw = Raw::enter(&theirs).expect("raw");
        assert!(!echoes(&theirs));
        drop(raw);
        assert!(echoes(&theirs), "at the end");

        let in_panic = theirs.try_clone().expect("another handle");
        let panicked = std::thread::spawn(move || {
            // Forgotten: the panic hook restores it before the message is printed.
            std::mem::forget(Raw::enter(&in_panic));
            assert!(echoes(&in_panic), "a panic");
        });
        assert!(panicked.join().is_err());
        assert!(echoes(&theirs), "in a panic");
        assert!(Raw::enter(std::fs::File::open("/dev/null").expect("opened")).is_err());
    }
}
