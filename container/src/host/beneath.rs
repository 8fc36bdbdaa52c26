//! Directories below a root, opened without following symbolic links.
//!
//! Sandboxes belong to users, who may replace a directory by a link at any moment; a process with more rights must
//! not follow it. Every step is an openat(2) that rejects links.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// `path` without the leading `root`; `None` if it is not strictly below, or holds `..`.
pub(crate) fn relative<'a>(root: &Path, path: &'a Path) -> Option<&'a Path> {
    let rest = path.strip_prefix(root).ok()?;
    is_inner(rest).then_some(rest)
}

/// Whether a path stays inside of wherever it starts: relative, not empty, no `..`.
pub(crate) fn is_inner(path: &Path) -> bool {
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        && path.file_name().is_some()
}

/// Opens the directory `rest` below `root`.
pub(crate) fn open_dir(root: &Path, rest: &Path) -> io::Result<OwnedFd> {
    walk(root, rest, None)
}

/// As [`open_dir`], making missing directories on the way with the given mode.
pub(crate) fn make_dir(root: &Path, rest: &Path, mode: u32) -> io::Result<OwnedFd> {
    walk(root, rest, Some(Mode::from_raw_mode(mode)))
}

fn walk(root: &Path, rest: &Path, make: Option<Mode>) -> io::Result<OwnedFd> {
    // Directories on the way are only entered: their users need not be able to read them.
    let flags = |is_last: bool| {
        let access = if is_last { OFlags::RDONLY } else { OFlags::PATH };
        access | OFlags::DIRECTORY | OFlags::CLOEXEC
    };
    let mut parts = rest.components().peekable();
    let mut dir = rustix::fs::open(root, flags(parts.peek().is_none()), Mode::empty())?;
    while let Some(part) = parts.next() {
        let name = match part {
            Component::Normal(name) => name,
            // Only the first can be one; it is the root.
            Component::CurDir => {
                dir = rustix::fs::openat(&dir, ".", flags(parts.peek().is_none()), Mode::empty())?;
                continue;
            }
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::Error::from(io::ErrorKind::InvalidInput));
            }
        };
        if let Some(mode) = make {
            match rustix::fs::mkdirat(&dir, name, mode) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => (),
                Err(err) => return Err(err.into()),
            }
        }
        let flags = flags(parts.peek().is_none()) | OFlags::NOFOLLOW;
        dir = rustix::fs::openat(&dir, name, flags, Mode::empty())?;
    }
    Ok(dir)
}

/// Opens a file in `dir` to append to it, making it if it is missing. A link in its place is an error.
pub(crate) fn open_to_append(dir: &OwnedFd, name: &str, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?))
}

/// Removes `rest` below `root` with everything in it; what is not there is already removed.
pub(crate) fn remove_tree(root: &Path, rest: &Path) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = rest.file_name().filter(|_| is_inner(rest)).ok_or_else(invalid)?;
    let parent = rest.parent().ok_or_else(invalid)?;
    match open_dir(root, parent) {
        Ok(dir) => remove_entry(&dir, name),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
    }
}

/// Removes one entry of a directory: a tree, a file, or a link but not what it points to.
fn remove_entry(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let path = held(dir, name);
    let removed = match std::fs::symlink_metadata(&path) {
        Ok(meta) if meta.is_dir() => remove_dir(&path),
        Ok(_) => std::fs::remove_file(&path),
        Err(err) => Err(err),
    };
    match removed {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Users remove write permission from their own directories (0555 is usual for downloaded sources); the owner can
/// restore it.
fn remove_dir(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            unlock(path);
            std::fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

/// Makes every directory of a tree writable, as far as we may; only ever needed by an agent that is not root.
fn unlock(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).ok(); // The removal reports the error.
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

/// A path to an entry of an open directory that stays right when the directory is moved or swapped.
pub(crate) fn held(dir: &OwnedFd, name: impl AsRef<Path>) -> PathBuf {
    Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_outside_the_root_are_detected() {
        for (path, inner) in [
            ("a", true),
            ("a/b", true),
            ("./a", true),
            ("", false),
            (".", false),
            ("..", false),
            ("a/../b", false),
            ("a/..", false),
            ("/a", false),
        ] {
            assert_eq!(is_inner(Path::new(path)), inner, "{path}");
        }
        let root = Path::new("/w");
        assert_eq!(relative(root, Path::new("/w/a")), Some(Path::new("a")));
        for outside in ["/w", "/w/", "/wa", "/", "/w/../etc", "w/a"] {
            assert_eq!(relative(root, Path::new(outside)), None, "{outside}");
        }
    }

    #[test]
    fn symlink_in_a_path_is_rejected() {
        let (root, elsewhere) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        std::fs::create_dir_all(elsewhere.path().join("dir/precious")).expect("made");
        symlink(elsewhere.path(), root.path().join("link")).expect("linked");
        assert!(remove_tree(root.path(), Path::new("link/dir")).is_err());
        assert!(make_dir(root.path(), Path::new("link/new"), 0o755).is_err());
        assert!(elsewhere.path().join("dir/precious").is_dir());
        assert!(!elsewhere.path().join("new").exists());
        // The link itself is an ordinary thing to remove.
        remove_tree(root.path(), Path::new("link")).expect("removed");
        assert!(elsewhere.path().join("dir").is_dir());
    }

    #[test]
    fn read_only_directories_are_removed_by_their_owner() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("a/b/c")).expect("made");
        for dir in ["a/b/c", "a/b"] {
            std::fs::set_permissions(root.path().join(dir), PermissionsExt::from_mode(0o500))
                .expect("locked");
        }
        remove_tree(root.path(), Path::new("a")).expect("removed");
        assert!(!root.path().join("a").exists());
    }

    #[test]
    fn removing_a_missing_path_succeeds() {
        let root = tempfile::tempdir().expect("a directory");
        remove_tree(root.path(), Path::new("a/b/c")).expect("nothing to do");
        make_dir(root.path(), Path::new("a/b/c"), 0o755).expect("made");
        remove_tree(root.path(), Path::new("a")).expect("removed");
        assert!(!root.path().join("a").exists());
        assert!(remove_tree(root.path(), Path::new("../x")).is_err());
        assert!(remove_tree(root.path(), Path::new(".")).is_err());
    }
}
