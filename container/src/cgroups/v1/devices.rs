//! devices: everything is forbidden, then the rules are allowed one by one.

use std::path::Path;

use crate::cgroups::devices::Rule;
use crate::cgroups::plan::Step;

pub(crate) fn prepare(cgroup: &Path, rules: &[Rule]) -> Vec<Step> {
    let deny = Step::write(cgroup, "devices.deny", "a *:* rwm");
    let allow = rules.iter().map(|rule| Step::write(cgroup, "devices.allow", rule));
    std::iter::once(deny).chain(allow).collect()
}
