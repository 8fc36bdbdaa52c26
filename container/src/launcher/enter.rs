//! The last steps of a process before it becomes the command: into its cgroups, then whatever the isolators asked for,
//! then its user.
//!
//! Everything that needs memory is made before the fork; [`Entry::enter`] makes system calls only. A step that fails
//! fails the command: nothing ever runs less isolated than it should.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::unistd::Gid;

use super::InitSpec;
use crate::host::user::Identity;

/// What the child does, ready to be done.
pub(super) struct Entry {
    /// The open `cgroup.procs` files.
    cgroups: Vec<File>,
    oom_score_adj: Option<String>,
    identity: Option<Identity>,
    groups: Vec<Gid>,
}

impl Entry {
    pub fn new(spec: &InitSpec) -> io::Result<Entry> {
        let open = |path: &std::path::PathBuf| File::options().write(true).open(path.join("cgroup.procs"));
        let groups = spec.identity.iter().flat_map(|user| &user.groups).copied().map(Gid::from_raw);
        Ok(Entry {
            cgroups: spec.cgroups.iter().map(open).collect::<io::Result<_>>()?,
            oom_score_adj: spec.oom_score_adj.map(|score| score.to_string()),
            groups: groups.collect(),
            identity: spec.identity.clone(),
        })
    }

    /// Nothing but system calls: it runs between fork and exec.
    pub fn enter(&self) -> io::Result<()> {
        for cgroup in &self.cgroups {
            write(cgroup.as_raw_fd(), b"0")?; // Whoever writes it.
        }
        if let Some(score) = &self.oom_score_adj {
            // SAFETY: a constant string that ends with NUL. WHY: the file is that of this process, so not opened before.
            let file =
                unsafe { libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
            if file < 0 {
                return Err(io::Error::last_os_error());
            }
            write(file, score.as_bytes())?;
        }
        self.identity.as_ref().map_or(Ok(()), |identity| identity.assume_with(&self.groups))
    }
}

fn write(file: i32, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the memory is the slice's. WHY: std's error path may allocate.
    let written = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
