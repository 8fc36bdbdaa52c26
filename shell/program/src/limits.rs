//! Limits of this process that the system sets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process open as many files as it is allowed to ask for. For programs that start no others: those would
/// inherit it.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(err) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!(%err, "cannot raise the limit of open files");
    }
}
