//! Copies one layer over those below it: the backend for hosts without overlay file systems.
//!
//! Deletions of the layer are applied first. No link is followed, neither in the layer nor in the target: an image
//! may contain links to anywhere.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags};

use super::unpack::{OPAQUE, WHITEOUT};
use crate::host::beneath;

const ATTRIBUTES_BYTES_MAX: usize = 1 << 16;

struct Copying<'a> {
    to: &'a Path,
    /// Files with several names, by their number: where the first went.
    seen: BTreeMap<u64, PathBuf>,
}

pub(super) fn copy(layer: &Path, to: &Path) -> io::Result<()> {
    let (from, into) = (beneath::open_dir(layer, Path::new(""))?, beneath::open_dir(to, Path::new(""))?);
    Copying { to, seen: BTreeMap::new() }.directory(&from, &into, Path::new(""))
}

impl Copying<'_> {
    fn directory(&mut self, from: &OwnedFd, into: &OwnedFd, path: &Path) -> io::Result<()> {
        let names = names(from)?;
        if names.iter().any(|name| name.as_bytes() == OPAQUE) {
            self::names(into)?.iter().try_for_each(|name| remove(into, name))?;
        }
        for name in &names {
            if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
                remove(into, OsStr::from_bytes(gone))?;
            }
        }
        for name in names.iter().filter(|name| !name.as_bytes().starts_with(WHITEOUT)) {
            self.entry(from, into, name, &path.join(name))?;
        }
        finish(from, into)
    }

    fn entry(&mut self, from: &OwnedFd, into: &OwnedFd, name: &OsStr, path: &Path) -> io::Result<()> {
        let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind == FileType::Directory {
            return self.directory(&open_dir(from, name)?, &make_dir(into, name)?, path);
        }
        remove(into, name)?;
        if stat.st_nlink > 1
            && let Some(first) = self.seen.get(&stat.st_ino)
        {
            let above = beneath::open_dir(self.to, first.parent().unwrap_or(Path::new("")))?;
            let first = first.file_name().unwrap_or_default();
            return Ok(rustix::fs::linkat(&above, first, into, name, AtFlags::empty())?);
        }
        self.seen.insert(stat.st_ino, path.to_owned());
        match kind {
            FileType::RegularFile => return copy_file(from, into, name),
            FileType::Symlink => {
                let to = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(to.as_c_str(), into, name)?;
            }
            FileType::Fifo => rustix::fs::mknodat(into, name, kind, mode(&stat), 0)?,
            _ => return Ok(()), // A layer of ours holds nothing else.
        }
        let (uid, gid) = owner(&stat);
        rustix::fs::chownat(into, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(rustix::fs::utimensat(into, name, &times(&stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

fn copy_file(from: &OwnedFd, into: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut source = File::from(rustix::fs::openat(from, name, read, Mode::empty())?);
    let mut file = File::from(rustix::fs::openat(into, name, write, Mode::from_raw_mode(0o600))?);
    io::copy(&mut source, &mut file)?;
    finish(&source.into(), &file.into())
}

/// Gives owner, rights, attributes and time of one to the other.
fn finish(from: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    let stat = rustix::fs::fstat(from)?;
    let (uid, gid) = owner(&stat);
    rustix::fs::fchown(to, uid, gid)?;
    rustix::fs::fchmod(to, mode(&stat))?;
    let mut list = vec![0; ATTRIBUTES_BYTES_MAX];
    let listed = rustix::fs::flistxattr(from, &mut list)?;
    for name in list[..listed].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; ATTRIBUTES_BYTES_MAX];
        let size = rustix::fs::fgetxattr(from, name, &mut value)?;
        rustix::fs::fsetxattr(to, name, &value[..size], XattrFlags::empty())?;
    }
    Ok(rustix::fs::futimens(to, &times(&stat))?)
}

/// A directory of those below stays; whatever else has the name goes.
fn make_dir(into: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match open_dir(into, name) {
        Ok(there) => return Ok(there),
        Err(err) if err.kind() == io::ErrorKind::NotFound => (),
        Err(_) => remove(into, name)?,
    }
    rustix::fs::mkdirat(into, name, Mode::from_raw_mode(0o755))?;
    open_dir(into, name)
}

fn open_dir(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

fn names(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match name.as_bytes() {
        b"" | b"." | b".." => Ok(()),
        _ => beneath::remove_tree(&beneath::held(dir, ""), Path::new(name)),
    }
}

fn owner(stat: &Stat) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(stat.st_uid)), Some(Gid::from_raw(stat.st_gid)))
}

fn mode(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o7777)
}

fn times(stat: &Stat) -> Timestamps {
    let time = Timespec { tv_sec: stat.st_mtime as _, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn upper_layers_replace_and_whiteouts_remove_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |path: &str| dir.path().join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().expect("a parent")).expect("made");
            std::fs::write(at(path), text).expect("written");
        };
        write("outside/precious", "kept");
        write("1/gone/file", "1");
        write("1/opaque/old", "1");
        write("1/kept", "1");
        symlink(at("outside"), at("1/link")).expect("linked");
        write("2/.wh.gone", "");
        write("2/opaque/.wh..wh..opq", "");
        write("2/opaque/new", "2");
        write("2/link/file", "2");
        write("2/kept", "2");
        std::fs::hard_link(at("2/kept"), at("2/twin")).expect("linked");
        std::fs::create_dir(at("root")).expect("made");
        for layer in ["1", "2"] {
            copy(&at(layer), &at("root")).expect("copied");
        }
        let names = |dir: &str| {
            let mut names: Vec<_> = std::fs::read_dir(at(dir)).expect("there").flatten().collect();
            names.sort_by_key(std::fs::DirEntry::file_name);
            names
                .iter()
                .map(|entry| entry.file_name().into_string().expect("text"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(names("root"), "kept link opaque twin");
        assert_eq!((names("root/opaque"), names("root/link")), ("new".into(), "file".into()));
        assert_eq!(names("outside"), "precious", "a link of a lower layer leads nowhere");
        let stat = |path: &str| rustix::fs::stat(at(path)).expect("there").st_ino;
        assert_eq!(stat("root/kept"), stat("root/twin"));
    }
}
