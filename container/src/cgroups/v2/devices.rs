//! devices: there is no file for them on v2; a program of ours answers the kernel.

use std::path::Path;

use crate::cgroups::devices::Rule;
use crate::cgroups::plan::Step;

pub(crate) fn prepare(cgroup: &Path, rules: &[Rule]) -> Vec<Step> {
    vec![Step::Devices { cgroup: cgroup.to_owned(), rules: rules.to_vec() }]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tepui_facilities::{Facility, available};

    use super::*;
    use crate::cgroups::{destroy, devices, plan};

    /// A new cgroup on v2. `None`: recorded as skipped.
    fn fresh() -> Option<PathBuf> {
        if !available(&[Facility::CgroupsV2]) {
            return None;
        }
        let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let cgroup =
            Path::new(mount.split(' ').nth(1)?).join(format!("tepui-devices-{}", std::process::id()));
        std::fs::create_dir(&cgroup).expect("a cgroup");
        Some(cgroup)
    }

    #[test]
    fn kernel_enforces_the_device_program() {
        let Some(cgroup) = fresh() else { return };
        let applied = plan::apply(&prepare(&cgroup, &devices::usual()));
        let script = "echo $$ > \"$0\"/cgroup.procs; for one in zero null kmsg; do (: < /dev/$one) 2>/dev/null && echo $one; done";
        let output = std::process::Command::new("sh").args(["-c", script]).arg(&cgroup).output();
        destroy::remove_tree(&cgroup).expect("removed");
        applied.expect("the kernel takes it");
        assert_eq!(String::from_utf8_lossy(&output.expect("it runs").stdout), "zero\nnull\n");
    }
}
