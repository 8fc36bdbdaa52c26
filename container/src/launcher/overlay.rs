//! Mounts a tree of layers, see `images::rootfs`.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::AsRawFd;

use nix::sched::CloneFlags;

use super::system_calls::{done, mount, open, text};
use crate::plan::Overlay;

/// An overlay, ready to be mounted.
pub(super) struct Step {
    directory: CString,
    options: CString,
}

impl Step {
    pub fn new(overlay: &Overlay) -> io::Result<Step> {
        // Relative, so that they are short and hold no character that means something.
        let layers: Vec<String> = (0..overlay.layers).map(|index| format!("l/{index}")).collect();
        let options = format!("lowerdir={},upperdir=upper,workdir=work", layers.join(":"));
        Ok(Step { directory: text(&overlay.directory)?, options: CString::new(options)? })
    }

    /// Nothing but system calls. Leaves this process where it was.
    pub fn make(&self) -> io::Result<()> {
        let here = open(c".")?;
        // SAFETY: a path that ends with NUL. WHY: std's error path may allocate.
        done(unsafe { libc::chdir(self.directory.as_ptr()) })?;
        let kind: &CStr = c"overlay";
        let mounted = mount(Some(kind), c"rootfs", Some(kind), 0, Some(&self.options));
        // SAFETY: an open descriptor. WHY: as above.
        done(unsafe { libc::fchdir(here.as_raw_fd()) })?;
        mounted
    }
}

/// Mounts an overlay in a thread with a mount namespace of its own, which is removed with it.
pub(crate) fn attempt(overlay: &Overlay) -> io::Result<()> {
    let step = Step::new(overlay)?;
    let attempt = move || {
        nix::sched::unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)?;
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE, None)?;
        step.make()
    };
    let ended = std::thread::Builder::new().name(String::from("overlay trial")).spawn(attempt)?.join();
    ended.unwrap_or_else(|_| Err(io::Error::other("the trial failed")))
}
