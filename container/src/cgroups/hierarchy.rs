//! Where each controller lives on this host: a v1 hierarchy of its own or shared, the v2 hierarchy, or nowhere.
//!
//! Found by what is mounted, so hosts with both versions work: each controller is bound to one hierarchy only.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{Controller, Version, devices};
use crate::host::bpf;

/// A mounted hierarchy and those of our controllers it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub version: Version,
    pub mount: PathBuf,
    pub controllers: Vec<Controller>,
}

/// All hierarchies that are of use. No controller is in two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies(Vec<Hierarchy>);

impl Hierarchies {
    pub fn detect() -> io::Result<Hierarchies> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo")?;
        let unified = |mount: &Path| std::fs::read_to_string(mount.join("cgroup.controllers")).ok();
        let programs = || bpf::load_devices(&devices::program(&[])).is_ok();
        Ok(Hierarchies::from_mounts(&mounts, is_cgroup, unified, programs))
    }

    /// From the text of `/proc/self/mountinfo`. `visible`: is not covered by a later mount; `unified`: the
    /// controllers of a v2 mount; `programs`: whether the kernel accepts device programs.
    fn from_mounts(
        mounts: &str,
        visible: impl Fn(&Path) -> bool,
        unified: impl Fn(&Path) -> Option<String>,
        programs: impl Fn() -> bool,
    ) -> Hierarchies {
        let mut found = Vec::new();
        let mut taken = BTreeSet::new();
        let mut mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
        mounts.retain(|mount| mount.kind.starts_with("cgroup") && visible(&mount.path));
        for mount in mounts.iter().filter(|mount| mount.kind == "cgroup") {
            let names: Vec<&str> = mount.options.split(',').collect();
            let fresh = |one: &Controller| names.contains(&one.v1_name()) && taken.insert(*one);
            let controllers: Vec<Controller> = Controller::ALL.into_iter().filter(fresh).collect();
            if !controllers.is_empty() {
                found.push(Hierarchy { version: Version::V1, mount: mount.path.clone(), controllers });
            }
        }
        if let Some(mount) = mounts.iter().find(|mount| mount.kind == "cgroup2")
            && let Some(names) = unified(&mount.path)
        {
            let names: Vec<&str> = names.split_whitespace().collect();
            // Every v2 cgroup counts the processor time and ends its processes.
            let has = |one: &Controller| match one.v2_name() {
                Some(name) => names.contains(&name),
                None if *one == Controller::Devices => !taken.contains(one) && programs(),
                None => matches!(one, Controller::Core | Controller::Cpuacct),
            };
            let controllers: Vec<Controller> = Controller::ALL.into_iter().filter(has).collect();
            let fresh = |one: &Controller| taken.insert(*one);
            let controllers: Vec<Controller> = controllers.into_iter().filter(fresh).collect();
            if !controllers.is_empty() {
                found.push(Hierarchy { version: Version::V2, mount: mount.path.clone(), controllers });
            }
        }
        Hierarchies(found)
    }

    #[cfg(test)]
    pub fn of_all(hierarchies: Vec<Hierarchy>) -> Hierarchies {
        Hierarchies(hierarchies)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Hierarchy> {
        self.0.iter()
    }

    pub fn of(&self, controller: Controller) -> Option<&Hierarchy> {
        self.0.iter().find(|hierarchy| hierarchy.controllers.contains(&controller))
    }

    pub fn available(&self) -> BTreeSet<Controller> {
        self.0.iter().flat_map(|hierarchy| hierarchy.controllers.iter().copied()).collect()
    }
}

/// Whether a path shows a cgroup file system, of either version.
fn is_cgroup(path: &Path) -> bool {
    const MAGIC_V1: u64 = 0x0027_e0eb;
    const MAGIC_V2: u64 = 0x6367_7270;
    rustix::fs::statfs(path).is_ok_and(|found| matches!(found.f_type as u64, MAGIC_V1 | MAGIC_V2))
}

/// One line of mountinfo.
struct Mount<'a> {
    path: PathBuf,
    kind: &'a str,
    /// Of the file system, not of the mount.
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Mount<'a>> {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let (kind, _source, options) = (system.next()?, system.next()?, system.next()?);
        Some(Mount { path: unescape(mount.split(' ').nth(4)?), kind, options })
    }
}

/// Blanks and the like are written as octal numbers.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = (*first == b'\\').then(|| after.get(..3)).flatten();
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(<std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(mounts: &str, unified: &str, expected: Expect) {
        let found = Hierarchies::from_mounts(
            mounts,
            |path| !path.starts_with("/hidden"),
            |_| Some(unified.to_owned()),
            || true,
        );
        let lines = found.iter().map(|one| {
            let names: Vec<String> = one.controllers.iter().map(|one| format!("{one:?}")).collect();
            format!("{:?} {} {}\n", one.version, one.mount.display(), names.join(","))
        });
        expected.assert_eq(&lines.collect::<String>());
    }

    #[test]
    fn v1_v2_and_hybrid_hierarchies_are_detected() {
        let v1 = "\
            30 1 0:1 / /hidden/cpu rw - cgroup cgroup rw,cpu\n\
            31 1 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            32 1 0:2 / /mnt/a\\040b rw - cgroup cgroup rw,memory\n\
            33 1 0:3 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
            34 1 0:2 / /again rw - cgroup cgroup rw,memory\n\
            35 1 0:4 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";
        let v2 = "36 1 0:5 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        check(
            v1,
            "",
            expect![[r#"
                V1 /sys/fs/cgroup/cpu,cpuacct Cpu,Cpuacct
                V1 /mnt/a b Memory
                V1 /sys/fs/cgroup/freezer Core
            "#]],
        );
        check(
            v2,
            "cpuset cpu io memory pids\n",
            expect![[r#"
                V2 /sys/fs/cgroup Cpu,Cpuacct,Cpuset,Memory,Pids,Devices,Blkio,Core
            "#]],
        );
        check(
            &format!("{v2}{v1}"),
            "io\n",
            expect![[r#"
                V1 /sys/fs/cgroup/cpu,cpuacct Cpu,Cpuacct
                V1 /mnt/a b Memory
                V1 /sys/fs/cgroup/freezer Core
                V2 /sys/fs/cgroup Devices,Blkio
            "#]],
        );
        check("22 1 8:1 / / rw - ext4 /dev/sda rw\n", "", expect![""]);
    }
}
