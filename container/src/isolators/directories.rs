//! Directories of the host that a plan mounts from, made if they are missing. Blocking; in the agent, before the launch.

use std::io;

use super::plan::{NewDirectory, Plan};
use crate::host::beneath;

const MODE: u32 = 0o755;

pub(crate) fn make(plan: &Plan) -> Result<(), String> {
    plan.directories.iter().try_for_each(|one| {
        make_one(one).map_err(|err| format!("cannot make the directory '{}': {err}", one.source))
    })
}

fn make_one(directory: &NewDirectory) -> io::Result<()> {
    let (root, path) = (&directory.source.root, &directory.source.path);
    if directory.source.whole().symlink_metadata().is_ok() {
        return Ok(()); // Whether it may be used is found out when it is.
    }
    let made = beneath::make_dir(root, path, MODE)?;
    match directory.owner {
        Some((uid, gid)) => std::os::unix::fs::fchown(made, Some(uid), Some(gid)),
        None => Ok(()),
    }
}
