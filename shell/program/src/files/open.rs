//! Opens the file of a virtual path, and nothing outside of its sandbox.
//!
//! The path is resolved with its links first and must end up inside; then it is opened component by component, from
//! the sandbox down, following no link. A directory that is replaced by a link in between causes a rejection.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};

use super::attached::{self, Attached};

#[derive(Debug)]
pub(super) enum FilesError {
    NotFound,
    /// The request makes no sense or is not allowed.
    Wrong(String),
    Io(io::Error),
}

/// Something in a sandbox.
#[derive(Debug)]
pub(super) enum Opened {
    File(File),
    Directory(Directory),
}

/// A directory, and the sandbox it is in.
#[derive(Debug)]
pub(super) struct Directory {
    pub fd: OwnedFd,
    pub root: PathBuf,
}

impl Opened {
    pub fn open(attached: &[Attached], path: &str) -> Result<Self, FilesError> {
        let (one, rest) = attached::find(attached, path).ok_or(FilesError::NotFound)?;
        open_below(Path::new(&one.real), rest.trim_start_matches('/'), path)
    }
}

fn open_below(attached: &Path, rest: &str, path: &str) -> Result<Opened, FilesError> {
    let root = attached.canonicalize().map_err(fault)?;
    let real = match rest {
        "" => root.clone(),
        rest => root.join(rest).canonicalize().map_err(fault)?,
    };
    let inside = real.strip_prefix(&root).map_err(|_| inaccessible(path))?;
    let mut fd =
        open(&root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|err| fault(err.into()))?;
    let step = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for component in inside.components() {
        let Component::Normal(name) = component else { return Err(inaccessible(path)) };
        fd = openat(&fd, name, step, Mode::empty()).map_err(|err| fault(err.into()))?;
    }
    let kind = FileType::from_raw_mode(fstat(&fd).map_err(|err| fault(err.into()))?.st_mode);
    match kind {
        FileType::Directory => {
            let fd = reopen(&fd, OFlags::DIRECTORY)?;
            Ok(Opened::Directory(Directory { fd, root }))
        }
        FileType::RegularFile => reopen(&fd, OFlags::empty()).map(|fd| Opened::File(File::from(fd))),
        // A pipe would make us wait for the task, a device is not the task's to show.
        _ => Err(inaccessible(path)),
    }
}

/// The same thing, for reading. The way over /proc opens exactly what `fd` is, whatever its name means by now.
fn reopen(fd: &OwnedFd, flags: OFlags) -> Result<OwnedFd, FilesError> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | flags, Mode::empty())
        .map_err(|err| fault(err.into()))
}

fn inaccessible(path: &str) -> FilesError {
    FilesError::Wrong(format!("'{path}' is inaccessible"))
}

fn fault(err: io::Error) -> FilesError {
    match err.kind() {
        // Also what could be the name of no file.
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidFilename => FilesError::NotFound,
        _ => FilesError::Io(err),
    }
}
