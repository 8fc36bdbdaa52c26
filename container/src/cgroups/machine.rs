//! Memory available to all containers: on the machine, and in cgroups above ours, which an operator may have limited.
//!
//! Read on demand. Absent: the choice of victims.

use std::path::Path;

use super::counted;
use super::hierarchy::Hierarchy;
use super::layout::Layout;
use super::{Controller, Place, Version};

/// The machine's memory, as far as the kernel reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MachineMemory {
    /// What can still be taken, caches that can be given up included.
    pub available_bytes: Option<u64>,
    /// Percent of the last ten seconds in which something waited for memory.
    pub pressure: Option<f64>,
}

impl MachineMemory {
    pub(crate) fn read(layout: &Layout) -> MachineMemory {
        let text = |path: &Path| std::fs::read_to_string(path).ok();
        let mut available = text(Path::new("/proc/meminfo")).as_deref().and_then(available_bytes);
        let mut waiting = text(Path::new("/proc/pressure/memory"));
        if let Some(hierarchy) = layout.hierarchies.of(Controller::Memory) {
            let root = hierarchy.mount.join(&layout.root);
            let rooms = root.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
            available = rooms.filter_map(|cgroup| room_bytes(hierarchy, cgroup)).chain(available).min();
            if hierarchy.version == Version::V2 {
                waiting = text(&root.join("memory.pressure")).or(waiting);
            }
        }
        let pressure = waiting.as_deref().and_then(|text| pressure(text, "avg10"));
        MachineMemory { available_bytes: available, pressure }
    }
}

/// What a cgroup with a limit can still take.
fn room_bytes(hierarchy: &Hierarchy, cgroup: &Path) -> Option<u64> {
    let place =
        Place { version: hierarchy.version, controllers: Vec::new(), cgroup: cgroup.to_owned(), own: false };
    let memory = counted::memory_of(&place)?;
    Some(memory.limit_bytes?.saturating_sub(memory.needed_bytes()))
}

/// `MemAvailable:   16384 kB` among the lines of /proc/meminfo.
fn available_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// `some avg10=0.00 avg60=1.25 avg300=0.00 total=17`: one of the averages of the time in which some waited.
pub fn pressure(text: &str, average: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let value = some.split_whitespace().find_map(|field| field.strip_prefix(average)?.strip_prefix('='))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroups::demand::tests::POLICY;
    use crate::cgroups::hierarchy::Hierarchies;

    #[test]
    fn available_memory_and_pressure_are_parsed() {
        assert_eq!(available_bytes("MemTotal:  9 kB\nMemAvailable:    2048 kB\n"), Some(2 * 1024 * 1024));
        assert_eq!(available_bytes("MemTotal:  9 kB\n"), None);
        let text = "some avg10=0.50 avg60=1.25 avg300=0.00 total=17\nfull avg10=9.00 avg60=9.00 avg300=9.00 total=9\n";
        assert_eq!((pressure(text, "avg10"), pressure(text, "avg60")), (Some(0.5), Some(1.25)));
        assert_eq!(pressure("full avg10=9.00", "avg10"), None);
        assert_eq!(pressure("", "avg10"), None);
    }

    /// Two limited cgroups around the containers: the one with less room counts, whichever it is.
    #[test]
    fn ancestor_cgroup_with_least_free_memory_counts() {
        for (version, files) in [
            (
                Version::V1,
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.none"],
            ),
            (Version::V2, ["memory.max", "memory.current", "inactive_file", "memory.pressure"]),
        ] {
            let dir = tempfile::tempdir().expect("a directory");
            let mount = dir.path().to_owned();
            let write = |below: &str, limit: &str, usage: u64, inactive: u64| {
                let cgroup = mount.join(below);
                std::fs::create_dir_all(&cgroup).expect("made");
                let [limit_file, usage_file, inactive_key, pressure_file] = files;
                for (file, text) in [
                    (limit_file, limit.to_owned()),
                    (usage_file, usage.to_string()),
                    ("memory.stat", format!("{inactive_key} {inactive}\n")),
                    (pressure_file, String::from("some avg10=12.5 avg60=0.0\n")),
                ] {
                    std::fs::write(cgroup.join(file), text).expect("written");
                }
            };
            let controllers = vec![Controller::Memory];
            let layout = Layout {
                hierarchies: Hierarchies::of_all(vec![Hierarchy {
                    version,
                    mount: mount.clone(),
                    controllers,
                }]),
                root: "outer/inner".into(),
                controllers: Default::default(),
                policy: POLICY,
                devices: Vec::new(),
            };
            write("outer", "1000", 900, 50);
            write("outer/inner", "500", 300, 0);
            let read = MachineMemory::read(&layout);
            assert_eq!(read.available_bytes, Some(150), "{version:?}");
            if version == Version::V2 {
                assert_eq!(read.pressure, Some(12.5));
            }
            write("outer/inner", "500", 499, 0);
            assert_eq!(MachineMemory::read(&layout).available_bytes, Some(1), "{version:?}");
        }
    }
}
