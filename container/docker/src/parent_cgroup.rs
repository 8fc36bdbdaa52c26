//! A cgroup of our own around a container's. On cgroup v2 its counters include those of the container and outlive it;
//! the engine removes the container's own soon after its termination.
//!
//! Engines that leave their cgroups to systemd accept no parent of ours; on v1 counters are per cgroup.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::memory::{keyed, number, v2_mount};
use crate::{Engine, Memory};

/// Between the root of our cgroups and those around containers of engines.
const FOLDER: &str = "docker";

/// The engine needs a moment to remove what is inside.
const REMOVALS_MAX: u32 = 50;
const REMOVAL_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct ParentCgroup(PathBuf);

impl ParentCgroup {
    /// Makes one and names it in the document; none where that is not possible, or the document names another.
    pub async fn make(
        engine: &Engine,
        root: &Path,
        name: &str,
        document: &mut Value,
    ) -> Option<ParentCgroup> {
        let config = &mut document["HostConfig"];
        if config["CgroupParent"].as_str().is_some_and(|chosen| !chosen.is_empty()) {
            return None;
        }
        let mount = v2_mount()?;
        let engine = engine.info().await.ok()?;
        if engine["CgroupDriver"] != "cgroupfs" || engine["CgroupVersion"] != "2" {
            return None;
        }
        let below = root.join(FOLDER).join(name);
        std::fs::create_dir_all(mount.join(&below)).ok()?;
        config["CgroupParent"] = format!("/{}", below.display()).into();
        Some(ParentCgroup(mount.join(below)))
    }

    /// The counters; `config` is the container's `HostConfig`. None without a kill, or if they cannot be read.
    pub fn killed(&self, config: &Value) -> Option<Memory> {
        let kills = keyed(&self.0, "memory.events", "oom_kill").filter(|kills| *kills > 0)?;
        // An event of a cgroup is one of all around it: a limit above this one is not among them.
        let stopped = keyed(&self.0, "memory.events", "oom").is_some_and(|count| count > 0);
        let limit_bytes = config["Memory"].as_u64();
        let peak_bytes = number(&self.0, "memory.peak").or(limit_bytes).unwrap_or(0);
        let request_bytes = config["MemoryReservation"].as_u64().unwrap_or(0);
        Some(Memory { kills, stopped, request_bytes, limit_bytes, peak_bytes })
    }

    /// What cannot be removed is empty, and removed with the container.
    pub async fn remove(self) {
        for _ in 0..REMOVALS_MAX {
            match std::fs::remove_dir(&self.0) {
                Err(err) if err.kind() == std::io::ErrorKind::ResourceBusy => {
                    tokio::time::sleep(REMOVAL_EVERY).await;
                }
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// Removes what is left around a container that is gone.
pub fn remove_parent_cgroup(root: &Path, name: &str) {
    if let Some(mount) = v2_mount() {
        std::fs::remove_dir(mount.join(root).join(FOLDER).join(name)).ok(); // Mostly it is gone already.
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parent_cgroup_counters_report_the_oom_kill() {
        const MB: u64 = 1024 * 1024;
        let dir = tempfile::tempdir().expect("a directory");
        let (around, config) =
            (ParentCgroup(dir.path().to_owned()), json!({"Memory": 64 * MB, "MemoryReservation": 32 * MB}));
        assert_eq!(around.killed(&config), None);
        let write = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).expect("written");
        write("memory.events", "low 0\noom 0\noom_kill 0\n");
        assert_eq!(around.killed(&config), None);
        write("memory.events", "low 0\noom 2\noom_kill 1\n");
        let (kills, request_bytes, limit_bytes) = (1, 32 * MB, Some(64 * MB));
        let own = Memory { kills, stopped: true, request_bytes, limit_bytes, peak_bytes: 64 * MB };
        assert_eq!(around.killed(&config), Some(own));
        write("memory.events", "low 0\noom 0\noom_kill 1\n");
        write("memory.peak", "41943040\n");
        let others = Memory { stopped: false, peak_bytes: 40 * MB, ..own };
        assert_eq!(around.killed(&config), Some(others));
    }
}
