//! A gate at which tasks wait without using the processor, until a test opens it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// More than any test has tasks; fits into a pipe.
const VISITORS_MAX: usize = 4096;

/// A named pipe: tasks read a line of it.
pub struct Gate {
    path: PathBuf,
    open: Option<File>,
}

impl Gate {
    pub fn new(folder: &Path, name: &str) -> Self {
        let path = folder.join(name);
        let status = Command::new("mkfifo").args(["-m", "666"]).arg(&path).status().expect("mkfifo starts");
        assert!(status.success(), "the pipe can be made");
        Self { path, open: None }
    }

    /// A shell command that waits until the gate is open.
    pub fn pass(&self) -> String {
        format!("read line < {}", self.path.display())
    }

    /// Opens it permanently.
    pub fn open(&mut self) {
        let mut pipe =
            File::options().read(true).write(true).open(&self.path).expect("the pipe can be opened");
        pipe.write_all(&[b'\n'; VISITORS_MAX]).expect("the pipe has room");
        self.open = Some(pipe);
    }
}
