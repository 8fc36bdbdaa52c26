//! One output file of a sandbox, which may be exchanged for a fresh one when it has grown large.
//!
//! `stdout` becomes `stdout.1`, that becomes `stdout.2`, and so on; the oldest is removed. Every byte is in exactly one
//! of them, in order. The sandbox belongs to its user, so nothing here follows a link.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::AtFlags;
use serde::{Deserialize, Serialize};

use crate::host::beneath;

const OUTPUT_MODE: u32 = 0o644;

/// When a file is exchanged for a fresh one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// No file is larger.
    pub bytes_max: u64,
    /// How many older ones are kept.
    pub kept_max: u32,
}

#[derive(Debug)]
pub(crate) struct Log {
    /// The sandbox.
    dir: OwnedFd,
    name: &'static str,
    file: File,
    bytes: u64,
    limit: Option<Rotation>,
}

impl Log {
    pub fn open(dir: OwnedFd, name: &'static str, limit: Option<Rotation>) -> io::Result<Log> {
        let file = beneath::open_to_append(&dir, name, OUTPUT_MODE)?;
        let bytes = file.metadata()?.len();
        Ok(Log { dir, name, file, bytes, limit })
    }

    /// The file itself, for a command that writes to it without us.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends. On a full disk the rest is lost, as it would be without the supervisor; the container keeps running.
    pub fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = self.limit.map_or(u64::MAX, |limit| limit.bytes_max.saturating_sub(self.bytes));
            if room == 0 && self.rotate().is_err() {
                // It cannot be exchanged (the user may have made a directory of that name): it grows on.
                self.limit = None;
                continue;
            }
            let room = if room == 0 { self.limit.map_or(u64::MAX, |limit| limit.bytes_max) } else { room };
            let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            self.file.write_all(&bytes[..fits]).ok();
            self.bytes += fits as u64;
            bytes = &bytes[fits..];
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        let kept_max = self.limit.map_or(0, |limit| limit.kept_max);
        let old = |number: u32| match number {
            0 => self.name.to_owned(),
            number => format!("{}.{number}", self.name),
        };
        gone(rustix::fs::unlinkat(&self.dir, old(kept_max), AtFlags::empty()))?;
        for number in (0..kept_max).rev() {
            gone(rustix::fs::renameat(&self.dir, old(number), &self.dir, old(number + 1)))?;
        }
        let file = beneath::open_to_append(&self.dir, self.name, OUTPUT_MODE)?;
        // With the owner of the first file; without the permission to change it the owner is the same anyway.
        let owner = rustix::fs::fstat(&self.file)?;
        std::os::unix::fs::fchown(&file, Some(owner.st_uid), Some(owner.st_gid)).ok();
        self.bytes = file.metadata()?.len();
        self.file = file;
        Ok(())
    }
}

/// What is not there need not be moved.
fn gone(done: rustix::io::Result<()>) -> io::Result<()> {
    match done {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(err) => Err(err.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn log(dir: &Path, limit: Option<Rotation>) -> Log {
        let dir = beneath::open_dir(dir, Path::new("")).expect("a directory");
        Log::open(dir, "stdout", limit).expect("a file")
    }

    fn content(dir: &Path, name: &str) -> Option<String> {
        std::fs::read_to_string(dir.join(name)).ok()
    }

    #[test]
    fn every_byte_is_in_one_file_and_in_order() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut log = log(dir.path(), Some(Rotation { bytes_max: 10, kept_max: 100 }));
        let text: String = (0..50).map(|number| format!("{number};")).collect();
        for piece in text.as_bytes().chunks(7) {
            log.write(piece);
        }
        let mut names: Vec<String> = (1..100).rev().map(|number| format!("stdout.{number}")).collect();
        names.push(String::from("stdout"));
        let files: Vec<String> = names.iter().filter_map(|name| content(dir.path(), name)).collect();
        assert_eq!(files.concat(), text);
        assert!(files.iter().all(|file| file.len() <= 10), "{files:?}");
        assert_eq!(files.len(), text.len().div_ceil(10));
    }

    #[test]
    fn oldest_rotated_logs_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut log = log(dir.path(), Some(Rotation { bytes_max: 2, kept_max: 2 }));
        log.write(b"aabbccdde");
        let found = ["stdout", "stdout.1", "stdout.2", "stdout.3"].map(|name| content(dir.path(), name));
        assert_eq!(found, [Some("e".into()), Some("dd".into()), Some("cc".into()), None]);
    }

    #[test]
    fn rotation_without_kept_files_truncates() {
        let dir = tempfile::tempdir().expect("a directory");
        log(dir.path(), Some(Rotation { bytes_max: 2, kept_max: 0 })).write(b"aabbc");
        assert_eq!(content(dir.path(), "stdout").as_deref(), Some("c"));
        assert_eq!(content(dir.path(), "stdout.1"), None);
    }

    #[test]
    fn links_are_moved_and_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("elsewhere"), "mine").expect("written");
        let mut log = log(dir.path(), Some(Rotation { bytes_max: 4, kept_max: 1 }));
        log.write(b"1234");
        std::fs::remove_file(dir.path().join("stdout")).expect("removed");
        std::os::unix::fs::symlink("elsewhere", dir.path().join("stdout")).expect("linked");
        log.write(b"56");
        assert_eq!(content(dir.path(), "elsewhere").as_deref(), Some("mine"));
        assert_eq!(content(dir.path(), "stdout").as_deref(), Some("56"));
    }

    #[test]
    fn log_that_cannot_be_rotated_keeps_growing() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("stdout.1/full")).expect("made");
        let mut log = log(dir.path(), Some(Rotation { bytes_max: 2, kept_max: 1 }));
        log.write(b"aabb");
        assert_eq!(content(dir.path(), "stdout").as_deref(), Some("aabb"));
    }
}
