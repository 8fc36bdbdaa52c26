//! A small disk that a test can fill.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Facility, available};

/// Unmounted when dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// A disk of so many megabytes below `folder`. `None`: recorded as skipped.
    pub fn mount(folder: &Path, megabytes: u32) -> Option<Self> {
        if !available(&[Facility::Mounts]) {
            return None;
        }
        let path = folder.join("disk");
        std::fs::create_dir(&path).expect("a directory");
        let size = format!("size={megabytes}m");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        assert!(mount.expect("mount starts").status.success());
        Some(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// How many bytes could still be written.
    pub fn available(&self) -> u64 {
        let df = Command::new("df").args(["--output=avail", "--block-size=1"]).arg(&self.0).output();
        let said = String::from_utf8(df.expect("df starts").stdout).expect("df writes numbers");
        said.lines().nth(1).and_then(|line| line.trim().parse().ok()).expect("a number below the heading")
    }

    /// Writes a file that uses all free space.
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
