//! Unpacks one layer of an image into a directory of its own, whatever the layer contains.
//!
//! Nothing is ever written outside of that directory: no path may be absolute or contain `..`, and no link is
//! followed on the way. Deletions of lower layers (`.wh.`) are kept in the form of the backend. Blocking. An invalid
//! layer fails as a whole, with the entry's name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use serde::{Deserialize, Serialize};

use super::fault::EntryFault;
use super::tar::{Entry, Kind, Tar};
use crate::host::beneath;

/// What one layer may hold. More is a mistake, or an attack on the disk.
const ENTRIES_MAX: u64 = 1_000_000;
const BYTES_MAX: u64 = 32 << 30;
const DEPTH_MAX: usize = 200;

pub(super) const WHITEOUT: &[u8] = b".wh.";
pub(super) const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other files of the same family are instructions to a file system that is no longer in use.
const BOOKKEEPING: &[u8] = b".wh..wh.";
const OVERLAY_OPAQUE: &str = "trusted.overlay.opaque";

/// The form of deletions in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// As the kernel's overlay file system does: a device 0:0, an attribute.
    Overlay,
    /// As the archive does, by names.
    Plain,
}

struct Unpacking<'a, R> {
    root: &'a Path,
    form: Form,
    tar: Tar<R>,
    entries: u64,
    bytes: u64,
    /// Set at the end: until then everything that is made in a directory changes it.
    directories: BTreeMap<PathBuf, (u32, i64)>,
}

/// Unpacks into `root`, an empty directory. Returns what comes after the archive.
pub(super) fn unpack<R: Read>(reader: R, root: &Path, form: Form) -> Result<R, EntryFault> {
    let mut unpacking =
        Unpacking { root, form, tar: Tar::new(reader), entries: 0, bytes: 0, directories: BTreeMap::new() };
    while let Some(entry) = unpacking.tar.next().map_err(EntryFault::Io)? {
        unpacking.count(&entry)?;
        let path = checked(&entry.path).map_err(at(&entry.path))?;
        unpacking.make(&path, &entry).map_err(at(&path))?;
    }
    unpacking.finish_directories()?;
    Ok(unpacking.tar.into_inner())
}

/// A relative path without `.` and `..`; empty for the root itself.
fn checked(path: &Path) -> Result<PathBuf, EntryFault> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => (),
            Component::ParentDir => return Err(EntryFault::ParentDirectory),
            Component::RootDir | Component::Prefix(_) => return Err(EntryFault::Absolute),
        }
    }
    match plain.components().count() <= DEPTH_MAX {
        true => Ok(plain),
        false => Err(EntryFault::Depth(DEPTH_MAX)),
    }
}

impl<R: Read> Unpacking<'_, R> {
    fn count(&mut self, entry: &Entry) -> Result<(), EntryFault> {
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(entry.size);
        if self.entries > ENTRIES_MAX {
            return Err(EntryFault::Entries(ENTRIES_MAX));
        }
        if self.bytes > BYTES_MAX {
            return Err(EntryFault::Bytes(BYTES_MAX));
        }
        Ok(())
    }

    fn make(&mut self, path: &Path, entry: &Entry) -> Result<(), EntryFault> {
        let Some(name) = path.file_name() else {
            self.directories.insert(PathBuf::new(), (entry.mode, entry.changed));
            return Ok(());
        };
        let above = path.parent().unwrap_or(Path::new(""));
        let dir = beneath::make_dir(self.root, above, 0o755).map_err(through_a_link)?;
        if name.as_bytes().starts_with(WHITEOUT) {
            return self.white_out(&dir, name);
        }
        let there = file_type(&dir, name).map_err(EntryFault::Io)?;
        if entry.kind == Kind::Directory && there == Some(FileType::Directory) {
            self.directories.insert(path.to_owned(), (entry.mode, entry.changed));
            return own(&dir, name, entry).map_err(EntryFault::Io);
        }
        if there.is_some() {
            remove(&dir, name).map_err(EntryFault::Io)?;
        }
        let made = match entry.kind {
            Kind::File => self.make_file(&dir, name),
            Kind::HardLink => return self.link(&dir, name, &entry.link),
            Kind::Symlink => {
                rustix::fs::symlinkat(entry.link.as_os_str(), &dir, name).map_err(io::Error::from)
            }
            Kind::Directory => {
                self.directories.insert(path.to_owned(), (entry.mode, entry.changed));
                let made = rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o755));
                made.map_err(io::Error::from).and_then(|()| self.hide_below(&dir, name, there))
            }
            Kind::Fifo => rustix::fs::mknodat(&dir, name, FileType::Fifo, Mode::from_raw_mode(entry.mode), 0)
                .map_err(io::Error::from),
            // Every container has its own /dev; what is there could not be seen.
            Kind::Character | Kind::Block if path.starts_with("dev") => return Ok(()),
            Kind::Character | Kind::Block => return Err(EntryFault::Device),
        };
        made.and_then(|()| own(&dir, name, entry)).map_err(EntryFault::Io)
    }

    fn make_file(&mut self, dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?);
        io::copy(&mut self.tar, &mut file)?;
        Ok(())
    }

    /// To a file of the same layer: there is no other way to have one file by two names.
    fn link(&self, dir: &OwnedFd, name: &OsStr, to: &Path) -> Result<(), EntryFault> {
        let failed = |to: &Path| {
            let to = to.to_owned();
            move |fault: EntryFault| EntryFault::HardLink { to, fault: fault.into() }
        };
        let to = checked(to).map_err(failed(to))?;
        let (Some(file), Some(above)) = (to.file_name(), to.parent()) else {
            return Err(EntryFault::LinkToNothing);
        };
        let source = beneath::open_dir(self.root, above).map_err(|err| failed(&to)(through_a_link(err)))?;
        let linked = rustix::fs::linkat(&source, file, dir, name, AtFlags::empty());
        linked.map_err(|err| failed(&to)(EntryFault::Io(err.into())))
    }

    fn white_out(&self, dir: &OwnedFd, name: &OsStr) -> Result<(), EntryFault> {
        let bytes = name.as_bytes();
        if bytes != OPAQUE && bytes.starts_with(BOOKKEEPING) {
            return Ok(());
        }
        let gone = OsStr::from_bytes(&bytes[WHITEOUT.len()..]);
        if gone.is_empty() || gone == "." || gone == ".." {
            return Err(EntryFault::WhiteoutOfNothing);
        }
        let done = match self.form {
            Form::Plain => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(drop)
            }
            Form::Overlay if bytes == OPAQUE => set_opaque(dir),
            Form::Overlay => match file_type(dir, gone).map_err(EntryFault::Io)? {
                // Replaced by what came before in this very layer.
                Some(FileType::Directory) => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    rustix::fs::openat(dir, gone, flags, Mode::empty()).and_then(|dir| set_opaque(&dir))
                }
                Some(_) => Ok(()),
                None => rustix::fs::mknodat(dir, gone, FileType::CharacterDevice, Mode::empty(), 0),
            },
        };
        done.map_err(|err| EntryFault::Io(err.into()))
    }

    /// A directory that replaces a deleted one hides all of its content.
    fn hide_below(&self, dir: &OwnedFd, name: &OsStr, there: Option<FileType>) -> io::Result<()> {
        if self.form != Form::Overlay || there != Some(FileType::CharacterDevice) {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(set_opaque(&rustix::fs::openat(dir, name, flags, Mode::empty())?)?)
    }

    fn finish_directories(&self) -> Result<(), EntryFault> {
        for (path, (mode, changed)) in &self.directories {
            // One that was replaced later by something else is no directory any more.
            let Ok(dir) = beneath::open_dir(self.root, path) else { continue };
            let set = rustix::fs::fchmod(&dir, Mode::from_raw_mode(*mode))
                .and_then(|()| rustix::fs::futimens(&dir, &times(*changed)));
            set.map_err(|err| at(path)(EntryFault::Io(err.into())))?;
        }
        Ok(())
    }
}

fn set_opaque(dir: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fsetxattr(dir, OVERLAY_OPAQUE, b"y", XattrFlags::empty())
}

fn file_type(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<FileType>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(err) => Err(err.into()),
    }
}

fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    beneath::remove_tree(&beneath::held(dir, ""), Path::new(name))
}

/// Owner, rights, attributes and time, in the order in which none undoes another.
fn own(dir: &OwnedFd, name: &OsStr, entry: &Entry) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(entry.uid)), Some(Gid::from_raw(entry.gid)));
    rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    if entry.kind == Kind::Symlink {
        return Ok(rustix::fs::utimensat(dir, name, &times(entry.changed), AtFlags::SYMLINK_NOFOLLOW)?);
    }
    rustix::fs::chmodat(dir, name, Mode::from_raw_mode(entry.mode), AtFlags::empty())?;
    let path = beneath::held(dir, name);
    for (key, value) in entry.attributes.iter().filter(|(key, _)| is_kept(key)) {
        rustix::fs::lsetxattr(&path, key.as_str(), value, XattrFlags::empty())?;
    }
    Ok(rustix::fs::utimensat(dir.as_fd(), name, &times(entry.changed), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Others mean something to the host only.
fn is_kept(attribute: &str) -> bool {
    attribute == "security.capability" || attribute.starts_with("user.")
}

fn times(changed: i64) -> Timestamps {
    let time = Timespec { tv_sec: changed, tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

fn through_a_link(err: io::Error) -> EntryFault {
    match err.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => EntryFault::ThroughLink,
        _ => EntryFault::Io(err),
    }
}

fn at(path: &Path) -> impl FnOnce(EntryFault) -> EntryFault {
    let path = path.to_owned();
    move |fault| EntryFault::At { path, fault: fault.into() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    use super::super::testing::TarBuilder;
    use super::*;

    fn unpacked(tar: TarBuilder, form: Form) -> (tempfile::TempDir, Result<(), String>) {
        let dir = tempfile::tempdir().expect("a directory");
        let bytes = tar.finish();
        let done = unpack(bytes.as_slice(), dir.path(), form).map(drop);
        (dir, done.map_err(|fault| fault.to_string()))
    }

    #[test]
    fn files_links_modes_and_devices_are_unpacked() {
        if !tepui_facilities::available(&[tepui_facilities::Facility::Root]) {
            return; // The owners in a layer are kept.
        }
        let tar = TarBuilder::new()
            .directory("./", 0o700)
            .directory("a", 0o555)
            .file("a/b", b"content")
            .hard_link("a/c", "a/b")
            .symlink("etc", "/usr/../../etc")
            .device("dev/null")
            .file("a/b", b"again");
        let (dir, done) = unpacked(tar, Form::Plain);
        done.expect("a layer");
        let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).expect("there");
        assert_eq!((read("a/b").as_str(), read("a/c").as_str()), ("again", "content"));
        assert_eq!(std::fs::metadata(dir.path().join("a")).expect("there").mode() & 0o7777, 0o555);
        assert_eq!(std::fs::metadata(dir.path()).expect("there").mode() & 0o7777, 0o700);
        let link = std::fs::read_link(dir.path().join("etc")).expect("a link");
        assert_eq!(link, Path::new("/usr/../../etc"), "where it leads is the container's affair");
        assert!(!dir.path().join("dev/null").exists());
    }

    #[test]
    fn archive_entries_cannot_escape_the_root() {
        if !tepui_facilities::available(&[tepui_facilities::Facility::Root]) {
            return; // The owners in a layer are kept.
        }
        let outside = tempfile::tempdir().expect("a directory");
        let out = outside.path().display().to_string();
        std::fs::write(outside.path().join("precious"), "kept").expect("written");
        let cases = [
            (TarBuilder::new().file("../x", b"x"), "contains '..'"),
            (TarBuilder::new().file("a/../../x", b"x"), "contains '..'"),
            (TarBuilder::new().file(&format!("{out}/x"), b"x"), "is absolute"),
            (TarBuilder::new().symlink("l", &out).file("l/x", b"x"), "traverses a link"),
            (TarBuilder::new().symlink("l", "..").directory("l/x", 0o755), "traverses a link"),
            (TarBuilder::new().hard_link("x", &format!("{out}/precious")), "is absolute"),
            (TarBuilder::new().hard_link("x", "../precious"), "contains '..'"),
            (
                TarBuilder::new().symlink("l", &out).hard_link("x", "l/precious"),
                "a hard link to 'l/precious': the path traverses a link",
            ),
            (TarBuilder::new().symlink("l", &out).file("l/.wh.precious", b""), "traverses a link"),
            (TarBuilder::new().file("a/.wh...", b""), "a whiteout without a name"),
            (TarBuilder::new().file(".wh.", b""), "a whiteout without a name"),
            (TarBuilder::new().device("etc/disk"), "a device outside of /dev"),
            (TarBuilder::new().long_name(&"d/".repeat(300)).file("", b""), "more than 200 parts"),
        ];
        for (tar, why) in cases {
            for form in [Form::Plain, Form::Overlay] {
                let (_dir, done) = unpacked(tar.clone(), form);
                let err = done.expect_err(why);
                assert!(err.contains(why), "{err}");
            }
        }
        assert_eq!(std::fs::read_dir(outside.path()).expect("there").count(), 1);
        // A file in the place of a link replaces the link.
        let tar = TarBuilder::new().symlink("l", &format!("{out}/precious")).file("l", b"new");
        unpacked(tar, Form::Plain).1.expect("a layer");
        assert_eq!(std::fs::read(outside.path().join("precious")).expect("there"), b"kept");
    }

    #[test]
    fn whiteouts_become_overlay_devices_and_opaque_attributes() {
        if !crate::host::user::are_root() {
            return; // Devices are root's.
        }
        let tar = TarBuilder::new()
            .file("d/.wh..wh..opq", b"")
            .file("d/new", b"")
            .file(".wh.gone", b"")
            .file(".wh..wh.plnk", b"")
            .file(".wh.replaced", b"")
            .directory("replaced", 0o755)
            .directory("before", 0o755)
            .file(".wh.before", b"");
        let (dir, done) = unpacked(tar, Form::Overlay);
        done.expect("a layer");
        let gone = std::fs::metadata(dir.path().join("gone")).expect("there");
        assert!(gone.file_type().is_char_device() && gone.rdev() == 0);
        for opaque in ["d", "replaced", "before"] {
            let mut value = [0; 4];
            let read = rustix::fs::lgetxattr(dir.path().join(opaque), OVERLAY_OPAQUE, &mut value);
            assert_eq!(read, Ok(1), "{opaque}");
        }
        let mut names: Vec<_> =
            std::fs::read_dir(dir.path()).expect("there").flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["before", "d", "gone", "replaced"]);
    }
}
