//! Directories and files readable by their owner only: records contain the environment and the secrets of tasks.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Creates a directory accessible by its owner only; the mode of an existing one is tightened.
pub fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    limit_mode(path, 0o700)
}

/// Removes permissions beyond `most`. Symbolic links and files of other users are unchanged.
pub fn limit_mode(path: &Path, most: u32) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    let (mode, limited) = (found.mode() & 0o7777, found.mode() & most);
    let own = rustix::process::geteuid();
    let may_change = own.is_root() || found.uid() == own.as_raw();
    if mode == limited || found.is_symlink() || !may_change {
        return Ok(());
    }
    std::fs::set_permissions(path, PermissionsExt::from_mode(limited))
}

/// As [`limit_mode`] for a directory that an operator named. One that others share (sticky, or right below `/`) is left alone.
pub fn limit_own_directory(path: &Path, most: u32) -> io::Result<()> {
    let is_sticky = std::fs::metadata(path)?.mode() & 0o1000 != 0;
    let is_top = path.parent().is_none_or(|parent| parent == Path::new("/"));
    if is_sticky || is_top { Ok(()) } else { limit_mode(path, most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
    }

    #[test]
    fn loose_modes_are_tightened_and_strict_ones_unchanged() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for (name, old) in [("open", 0o755), ("path", 0o755), ("strict", 0o500)] {
            std::fs::create_dir(at(name)).expect("made");
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(old)).expect("ours");
        }
        std::fs::write(at("file"), "").expect("written");
        std::fs::set_permissions(at("file"), PermissionsExt::from_mode(0o644)).expect("ours");
        std::os::unix::fs::symlink("/nowhere", at("link")).expect("made");
        for (name, most) in
            [("open", 0o700), ("path", 0o711), ("strict", 0o700), ("file", 0o600), ("link", 0)]
        {
            limit_mode(&at(name), most).expect("limited");
        }
        assert_eq!(
            ["open", "path", "strict", "file"].map(|name| mode(&at(name))),
            [0o700, 0o711, 0o500, 0o600]
        );
        std::fs::set_permissions(at("open"), PermissionsExt::from_mode(0o1777)).expect("ours");
        limit_own_directory(&at("open"), 0o711).expect("left alone");
        assert_eq!(mode(&at("open")), 0o1777, "a directory for everybody stays so");
        limit_own_directory(&at("path"), 0o710).expect("limited");
        assert_eq!(mode(&at("path")), 0o710);
        private_directory(&at("a/b")).expect("made");
        assert_eq!((mode(&at("a")), mode(&at("a/b"))), (0o700, 0o700));
        private_directory(&at("path")).expect("limited");
        assert_eq!(mode(&at("path")), 0o700);
    }
}
