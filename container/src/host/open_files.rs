//! The limit of open files. The agent raises its own, because it holds some for each container; containers get the limit
//! that the agent was started with.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of an agent besides those of its containers: listeners, connections of clients, stores, logs.
const OTHER_FILES: u64 = 256;

/// Files that the agent holds for one container: its pid, its memory events, its executor's connection.
const FILES_PER_CONTAINER: u64 = 3;

/// The soft limit before it was raised.
static STARTED_WITH: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the soft limit to the hard one. Returns how many containers that allows; none if there is no limit.
pub fn raise_open_files() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    STARTED_WITH.get_or_init(|| limit.current);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    Ok(limit.maximum.map(|files| files.saturating_sub(OTHER_FILES) / FILES_PER_CONTAINER))
}

/// The soft limit that containers should have, if the agent's own was raised.
pub(crate) fn started_with() -> Option<u64> {
    STARTED_WITH.get().copied().flatten()
}

/// Sets the soft limit of this process.
pub(crate) fn set_soft(files: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..limit })?)
}
