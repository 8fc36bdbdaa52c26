//! The terminal in front of a person: how large it is, and that it passes keys on as they are typed.
//!
//! Whoever changes a terminal gives it back: at the end, on an error and in a panic. Ends by signals are made ordinary
//! ends by who waits for them.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, Once, PoisonError};

use anyhow::{Context, Result};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};

/// A terminal that was changed, and how it was before. There is one at most.
static CHANGED: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// A terminal that shows nothing by itself and turns no key into a signal, until this is dropped.
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
        let _ = tcsetattr(terminal, OptionalActions::Now, &before); // If it is gone there is nothing to restore.
    }
}

fn changed() -> std::sync::MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic says is to be read on a terminal as it was.
fn restore_in_panics() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        restore();
        say(panic);
    }));
}

/// Rows and columns of the terminal that we write to or read from, if there is one.
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

    // One test: there is one changed terminal of a process at most.
    #[test]
    fn a_terminal_is_given_back() {
        let (_ours, theirs) = terminal();
        let raw = Raw::enter(&theirs).expect("raw");
        assert!(!echoes(&theirs));
        drop(raw);
        assert!(echoes(&theirs), "at the end");

        let in_panic = theirs.try_clone().expect("another handle");
        let panicked = std::thread::spawn(move || {
            // Forgotten: what gives it back is the panic itself, before it says its words.
            std::mem::forget(Raw::enter(&in_panic));
            assert!(echoes(&in_panic), "a panic");
        });
        assert!(panicked.join().is_err());
        assert!(echoes(&theirs), "in a panic");
        assert!(Raw::enter(std::fs::File::open("/dev/null").expect("opened")).is_err());
    }
}
