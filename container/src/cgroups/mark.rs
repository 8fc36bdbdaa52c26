//! Ownership of cgroups. Several agents of a machine may use the same root.
//!
//! Every agent has a random name, stored in its work directory and not shared; the cgroups of its containers are
//! marked with it. A container whose other records are lost is recognized by the mark, and containers of other agents
//! are never taken for ours. On a kernel without such marks no container is found by them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::XattrFlags;

const FILE: &str = "cgroups_mark";
/// Writable only with rights over the whole machine.
const ATTRIBUTE: &str = "trusted.tepui.agent";
/// Of a name: a UUID in text.
const BYTES: usize = 36;

#[derive(Clone, Debug)]
pub(crate) struct Mark(Arc<str>);

impl Mark {
    /// The agent's own; a new one if it has none.
    pub fn open(work_dir: &Path) -> io::Result<Mark> {
        let path = work_dir.join(FILE);
        if let Some(name) = std::fs::read_to_string(&path).ok().filter(|name| name.len() == BYTES) {
            return Ok(Mark(name.into()));
        }
        let name = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned();
        std::fs::create_dir_all(work_dir)?;
        let draft = work_dir.join(format!("{FILE}.draft"));
        std::fs::write(&draft, &name)?;
        std::fs::rename(&draft, &path)?;
        Ok(Mark(name.into()))
    }

    pub fn put(&self, cgroup: &Path) {
        let put = rustix::fs::setxattr(cgroup, ATTRIBUTE, self.0.as_bytes(), XattrFlags::empty());
        if let Err(err) = put {
            tracing::debug!(cgroup = %cgroup.display(), %err, "cannot mark a cgroup as ours");
        }
    }

    pub fn is_on(&self, cgroup: &Path) -> bool {
        let mut name = [0; BYTES];
        rustix::fs::getxattr(cgroup, ATTRIBUTE, &mut name)
            .is_ok_and(|read| &name[..read] == self.0.as_bytes())
    }
}
