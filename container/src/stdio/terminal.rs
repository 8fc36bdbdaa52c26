//! Terminals: a pair of ends, of which the command gets the one that looks like a real terminal.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::host::user::Identity;

/// Both ends of a new terminal: ours, and the command's, which belongs to its user.
pub(super) fn open(window: Option<(u16, u16)>, user: Option<&Identity>) -> io::Result<(File, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&ours)?;
    rustix::pty::unlockpt(&ours)?;
    let name = rustix::pty::ptsname(&ours, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name.as_c_str(), flags, Mode::empty())?;
    if let Some(user) = user {
        std::os::unix::fs::fchown(&theirs, Some(user.uid), None)?;
    }
    let ours = File::from(ours);
    if let Some((rows, columns)) = window {
        resize(&ours, rows, columns)?;
    }
    Ok((ours, theirs))
}

/// Sets the size that programs at the other end see.
pub(super) fn resize(ours: &File, rows: u16, columns: u16) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(rustix::termios::tcsetwinsize(ours, size)?)
}
