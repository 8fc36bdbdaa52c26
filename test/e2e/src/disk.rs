//! A small disk of its own, which a test can fill.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tepui_facilities::{Facility, available};

/// Unmounted when dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// `None`: recorded as skipped.
    pub fn mount(folder: &Path) -> Option<Self> {
        if !available(&[Facility::Mounts]) {
            return None;
        }
        let path = folder.join("disk");
        std::fs::create_dir(&path).expect("a directory");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&path).output();
        assert!(mount.expect("mount starts").status.success());
        Some(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file that takes all there is.
    pub fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
