//! cpuset: nothing is chosen, but an empty set takes no process, so a new cgroup starts as the one above it.

use std::path::Path;

use crate::cgroups::plan::Step;

pub(crate) fn prepare(cgroup: &Path) -> Vec<Step> {
    vec![Step::inherit(cgroup, "cpuset.cpus"), Step::inherit(cgroup, "cpuset.mems")]
}

/// Lets the kernel start those below as this one. It compares every set that is written with all others, but not this.
pub(crate) fn pass_on(cgroup: &Path) -> Step {
    Step::change(cgroup, "cgroup.clone_children", 1)
}
