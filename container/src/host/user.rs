//! Users: from a name to the kernel's numbers, and becoming that user.

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Uid, User};
use serde::{Deserialize, Serialize};

/// A user by the kernel's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups, `gid` included.
    pub groups: Vec<u32>,
}

impl Identity {
    /// Looks a name up in the host's user database. `None`: there is no such user.
    pub fn lookup(name: &str) -> io::Result<Option<Identity>> {
        let Some(user) = User::from_name(name)? else { return Ok(None) };
        let name = CString::new(name)?;
        let groups = nix::unistd::getgrouplist(&name, user.gid)?;
        Ok(Some(Identity {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
        }))
    }

    /// Whether this process already is that user.
    pub fn is_ours(&self) -> bool {
        nix::unistd::geteuid().as_raw() == self.uid
    }

    /// Gives up being root and becomes this user, for good. Nothing but system calls: it may run between fork and exec.
    pub fn assume_with(&self, groups: &[Gid]) -> io::Result<()> {
        nix::unistd::setgroups(groups)?;
        nix::unistd::setgid(Gid::from_raw(self.gid))?;
        nix::unistd::setuid(Uid::from_raw(self.uid))?;
        Ok(())
    }
}

pub(crate) fn are_root() -> bool {
    nix::unistd::geteuid().is_root()
}
