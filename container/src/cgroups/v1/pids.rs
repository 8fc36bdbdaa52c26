//! pids: a container cannot take all process ids of the machine.

use std::path::Path;

use crate::cgroups::plan::Step;

/// Processes and threads of one container.
pub(crate) const PIDS_MAX: u64 = 16_384;

pub(crate) fn prepare(cgroup: &Path) -> Vec<Step> {
    vec![Step::write(cgroup, "pids.max", PIDS_MAX)]
}
