//! Directories and files that nobody but their owner reads: records hold the environment and the secrets of tasks.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes a directory that only its owner enters; one that exists becomes so.
pub fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    limit_mode(path, 0o700)
}

/// Takes away what a mode has beyond `most`. Links are left alone, and so is what only others may change.
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

/// Limits every entry of a directory, but not what is below them: files to 0600, directories to 0700 or to what `most` says.
pub fn limit_entries(dir: &Path, most: impl Fn(&Path) -> Option<u32>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let usual = if entry.file_type()?.is_dir() { 0o700 } else { 0o600 };
        limit_mode(&entry.path(), most(&entry.path()).unwrap_or(usual))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
    }

    #[test]
    fn old_modes_are_limited_and_stricter_ones_stay() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for (name, old) in [("open", 0o755), ("path", 0o755), ("strict", 0o500)] {
            std::fs::create_dir(at(name)).expect("made");
            std::fs::set_permissions(at(name), PermissionsExt::from_mode(old)).expect("ours");
        }
        std::fs::write(at("file"), "").expect("written");
        std::fs::set_permissions(at("file"), PermissionsExt::from_mode(0o644)).expect("ours");
        std::os::unix::fs::symlink("/nowhere", at("link")).expect("made");
        limit_entries(dir.path(), |path| path.ends_with("path").then_some(0o711)).expect("limited");
        assert_eq!(
            ["open", "path", "strict", "file"].map(|name| mode(&at(name))),
            [0o700, 0o711, 0o500, 0o600]
        );
        private_directory(&at("a/b")).expect("made");
        assert_eq!((mode(&at("a")), mode(&at("a/b"))), (0o700, 0o700));
        private_directory(&at("path")).expect("limited");
        assert_eq!(mode(&at("path")), 0o700);
    }
}
