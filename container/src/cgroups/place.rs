//! The cgroups of one container.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::hierarchy::{Hierarchies, Hierarchy};
use super::{Controller, Version};

/// The cgroup of v2 that holds processes, below the one with the limits.
const LEAF: &str = "leaf";

/// One cgroup of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub version: Version,
    /// What is accounted or limited here.
    pub controllers: Vec<Controller>,
    pub cgroup: PathBuf,
    /// Made for this container; otherwise it is its parent's.
    pub own: bool,
}

impl Place {
    /// The cgroup that holds the processes themselves.
    pub fn processes(&self) -> PathBuf {
        match self.version {
            Version::V1 => self.cgroup.clone(),
            Version::V2 => self.cgroup.join(LEAF),
        }
    }
}

/// All cgroups of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cgroups {
    pub places: Vec<Place>,
    /// OOM score of its processes below their memory request. Set for containers that may exceed it.
    #[serde(default)]
    pub oom_score_adj: Option<i32>,
    /// Its processes are those of tasks, which are killed first above their memory request.
    #[serde(default)]
    pub holds_tasks: bool,
}

impl Cgroups {
    /// The cgroups of a process that was placed by another program; none if it has exited.
    pub fn of_live(pid: i32) -> Cgroups {
        let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        Cgroups::of_process(&Hierarchies::detect().unwrap_or_default(), &text)
    }

    /// The same from its file in /proc. The root of a hierarchy is not the process's own.
    pub fn of_process(hierarchies: &Hierarchies, text: &str) -> Cgroups {
        let place = |hierarchy: &Hierarchy| {
            let is_its = |names: &str| match hierarchy.version {
                Version::V1 => {
                    names.split(',').any(|name| hierarchy.controllers.iter().any(|one| one.v1_name() == name))
                }
                Version::V2 => names.is_empty(),
            };
            let path = text.lines().find_map(|line| {
                let (names, path) = line.split_once(':')?.1.split_once(':')?;
                (is_its(names) && path != "/").then_some(path)
            })?;
            let (version, controllers) = (hierarchy.version, hierarchy.controllers.clone());
            let cgroup = hierarchy.mount.join(path.trim_start_matches('/'));
            Some(Place { version, controllers, cgroup, own: true })
        };
        Cgroups { places: hierarchies.iter().filter_map(place).collect(), ..Cgroups::default() }
    }

    /// The cgroup by which the container's processes are killed.
    pub fn core(&self) -> Option<&Place> {
        self.places.iter().find(|place| place.own && place.controllers.contains(&Controller::Core))
    }

    /// The container's own place for a controller.
    pub fn own(&self, controller: Controller) -> Option<&Place> {
        self.places.iter().find(|place| place.own && place.controllers.contains(&controller))
    }
}
