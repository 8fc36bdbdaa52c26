//! Directories of the host that a plan mounts from, made if they are missing. Blocking; in the agent, before the launch.

use std::io;

use crate::host::beneath;
use crate::plan::{NewDirectory, Plan};

const MODE: u32 = 0o755;

pub(crate) fn make(plan: &Plan) -> io::Result<()> {
    plan.directories.iter().try_for_each(|one| {
        make_one(one).map_err(|err| {
            io::Error::new(err.kind(), format!("cannot create the directory '{}': {err}", one.source))
        })
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
