//! devices: all may be made, few may be opened.

use std::path::Path;

use crate::cgroups::plan::Step;

/// What every container may read and write: console, terminals, tun, null, zero, full, tty, urandom, random. Nodes of
/// any kind may be made: that alone opens nothing.
const ALLOWED: [&str; 14] = [
    "c *:* m",
    "b *:* m",
    "c 5:1 rwm",
    "c 4:0 rwm",
    "c 4:1 rwm",
    "c 136:* rwm",
    "c 5:2 rwm",
    "c 10:200 rwm",
    "c 1:3 rwm",
    "c 1:5 rwm",
    "c 1:7 rwm",
    "c 5:0 rwm",
    "c 1:9 rwm",
    "c 1:8 rwm",
];

pub(crate) fn prepare(cgroup: &Path) -> Vec<Step> {
    let deny = Step::write(cgroup, "devices.deny", "a *:* rwm");
    let allow = ALLOWED.iter().map(|entry| Step::write(cgroup, "devices.allow", entry));
    std::iter::once(deny).chain(allow).collect()
}
