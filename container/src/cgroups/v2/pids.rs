//! pids: a container cannot take all process ids of the machine. The file is that of v1.

use std::path::Path;

use crate::cgroups::plan::Step;
use crate::cgroups::v1;

pub(crate) fn prepare(cgroup: &Path) -> Vec<Step> {
    v1::pids::prepare(cgroup)
}
