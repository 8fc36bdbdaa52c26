//! Locations of a container's cgroups, and the plans to create and to change them.
//!
//! `<mount>/<root>/<container>`, nested ones in `mesos/<container>` below their parent's. On v2 the processes are in
//! `leaf` below that, because there a cgroup has either processes or children with limits. A nested container always
//! has a cgroup of its own, by which it is killed; its resources are counted with its parent's unless it requests
//! otherwise.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tepui_types::ContainerId;

use super::devices::Rule;
use super::hierarchy::{Hierarchies, Hierarchy};
use super::plan::Step;
use super::{Cgroups, Controller, Demand, Place, Policy, Version, oom, prepare, settle, v1, v2};

/// Between a container's cgroup and those nested in it.
const SEPARATOR: &str = "mesos";

impl Cgroups {
    /// The score of its processes below their request, if they may go beyond it.
    pub fn score(&self, demand: &Demand, capacity_bytes: u64) -> Option<i32> {
        let goes_first = self.holds_tasks && self.own(Controller::Memory).is_some() && demand.bursts();
        goes_first.then(|| oom::score_adj(demand.mem_bytes, capacity_bytes))
    }

    /// What makes the container's own cgroups follow a new demand.
    pub fn settle(&self, demand: &Demand, policy: &Policy, fresh: bool) -> Vec<Step> {
        let own = self.places.iter().filter(|place| place.own);
        own.flat_map(|place| place.controllers.iter().map(move |controller| (place, *controller)))
            .flat_map(|(place, one)| settle(place.version, one, &place.cgroup, demand, policy, fresh))
            .collect()
    }
}

/// What the operator chose and the host has.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub hierarchies: Hierarchies,
    /// Relative to each mount.
    pub root: PathBuf,
    /// [`Controller::Core`] is always among them.
    pub controllers: BTreeSet<Controller>,
    pub policy: Policy,
    /// What of the host's devices containers may use.
    pub devices: Vec<Rule>,
}

/// What of the cgroups above a container's is made with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Above {
    /// The root that all containers share is there.
    Made,
    /// Perhaps nothing is.
    Unsure,
}

impl Layout {
    /// The cgroups of a new container and the steps that make them, without any demand. `shared` are its parent's, if it
    /// does not have its resources counted by itself.
    pub fn create(&self, id: &ContainerId, shared: Option<&Cgroups>, above: Above) -> (Cgroups, Vec<Step>) {
        let (mut places, mut steps) = (Vec::new(), Vec::new());
        for hierarchy in self.hierarchies.iter() {
            let wanted = |one: &&Controller| self.controllers.contains(one);
            let mut controllers: Vec<Controller> =
                hierarchy.controllers.iter().filter(wanted).copied().collect();
            if let Some(parent) = shared {
                controllers.retain(|one| *one == Controller::Core);
                if controllers.is_empty() {
                    places.extend(parents_place(parent, hierarchy));
                    continue;
                }
            }
            if !controllers.is_empty() {
                let cgroup = hierarchy.mount.join(&self.root).join(below(id));
                let place = Place { version: hierarchy.version, controllers, cgroup, own: true };
                steps.extend(self.make(hierarchy, &place, above));
                places.push(place);
            }
        }
        (Cgroups { places, ..Cgroups::default() }, steps)
    }

    fn make(&self, hierarchy: &Hierarchy, place: &Place, above: Above) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut path = match above {
            Above::Made => hierarchy.mount.join(&self.root),
            Above::Unsure => hierarchy.mount.clone(),
        };
        let rest = place.cgroup.strip_prefix(&path).map(Path::to_owned).unwrap_or_default();
        let enable = self.enable(hierarchy);
        let has_sets = hierarchy.version == Version::V1 && place.controllers.contains(&Controller::Cpuset);
        for name in &rest {
            // The first is the host's: it may be enabled already, and may not be ours to change.
            match path == hierarchy.mount {
                true => {
                    steps.extend(enable.iter().map(|one| Step::offer(&path, "cgroup.subtree_control", one)))
                }
                false if above == Above::Made && path == hierarchy.mount.join(&self.root) => (),
                false => {
                    steps.extend(enable.iter().map(|one| Step::write(&path, "cgroup.subtree_control", one)))
                }
            }
            path.push(name);
            steps.push(Step::Make(path.clone()));
            if has_sets {
                steps.extend(prepare(Version::V1, Controller::Cpuset, &path, &[]));
                steps.extend((path != place.cgroup).then(|| v1::cpuset::pass_on(&path)));
            }
        }
        for one in place.controllers.iter().filter(|one| **one != Controller::Cpuset) {
            steps.extend(prepare(place.version, *one, &place.cgroup, &self.devices));
        }
        if place.version == Version::V2 {
            steps.extend(enable.iter().map(|one| Step::write(&path, "cgroup.subtree_control", one)));
            steps.push(Step::Make(place.processes()));
            steps
                .extend(self.counts_memory(hierarchy).then(|| v2::memory::kill_together(&place.processes())));
        }
        steps
    }

    fn counts_memory(&self, hierarchy: &Hierarchy) -> bool {
        let memory = Controller::Memory;
        hierarchy.controllers.contains(&memory) && self.controllers.contains(&memory)
    }

    /// On v2 a controller must be enabled for the children of a cgroup; enabled everywhere, so that memory is counted
    /// in each leaf.
    fn enable(&self, hierarchy: &Hierarchy) -> Vec<String> {
        if hierarchy.version == Version::V1 {
            return Vec::new();
        }
        let names = hierarchy.controllers.iter().filter(|one| self.controllers.contains(one));
        names.filter_map(|one| one.v2_name()).map(|name| format!("+{name}")).collect()
    }
}

/// Where the parent is in a hierarchy; nowhere if it was started without.
fn parents_place(parent: &Cgroups, hierarchy: &Hierarchy) -> Option<Place> {
    let place = parent.places.iter().find(|place| place.cgroup.starts_with(&hierarchy.mount))?;
    Some(Place { own: false, ..place.clone() })
}

fn below(id: &ContainerId) -> PathBuf {
    match id.parent() {
        Some(parent) => below(parent).join(SEPARATOR).join(id.value()),
        None => Path::new(id.value()).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cgroups::demand::tests::{POLICY, demand};
    use crate::cgroups::plan::show;

    fn layout(hierarchies: &[(Version, &str, &[Controller])]) -> Layout {
        let hierarchies = hierarchies.iter().map(|(version, mount, controllers)| Hierarchy {
            version: *version,
            mount: PathBuf::from(mount),
            controllers: controllers.to_vec(),
        });
        Layout {
            hierarchies: Hierarchies::of_all(hierarchies.collect()),
            root: PathBuf::from("mesos"),
            controllers: Controller::ALL.into(),
            policy: POLICY,
            devices: crate::cgroups::devices::usual().split_off(6),
        }
    }

    fn v1() -> Layout {
        use Controller::{Core, Cpu, Cpuacct, Cpuset, Devices, Memory};
        layout(&[
            (Version::V1, "/cpu", &[Cpu, Cpuacct]),
            (Version::V1, "/cpuset", &[Cpuset]),
            (Version::V1, "/mem", &[Memory]),
            (Version::V1, "/dev", &[Devices]),
            (Version::V1, "/freezer", &[Core]),
        ])
    }

    #[test]
    fn v1_container_gets_a_cgroup_per_hierarchy() {
        let (cgroups, steps) = v1().create(&ContainerId::root("a"), None, Above::Unsure);
        expect![[r#"
            make /cpu/mesos
            make /cpu/mesos/a
            make /cpuset/mesos
            inherit /cpuset/mesos/cpuset.cpus
            inherit /cpuset/mesos/cpuset.mems
            change /cpuset/mesos/cgroup.clone_children 1
            make /cpuset/mesos/a
            inherit /cpuset/mesos/a/cpuset.cpus
            inherit /cpuset/mesos/a/cpuset.mems
            make /mem/mesos
            make /mem/mesos/a
            make /dev/mesos
            make /dev/mesos/a
            write /dev/mesos/a/devices.deny a *:* rwm
            write /dev/mesos/a/devices.allow c 5:2 rwm
            write /dev/mesos/a/devices.allow c 10:200 rwm
            write /dev/mesos/a/devices.allow c 1:3 rwm
            write /dev/mesos/a/devices.allow c 1:5 rwm
            write /dev/mesos/a/devices.allow c 1:7 rwm
            write /dev/mesos/a/devices.allow c 5:0 rwm
            write /dev/mesos/a/devices.allow c 1:9 rwm
            write /dev/mesos/a/devices.allow c 1:8 rwm
            make /freezer/mesos
            make /freezer/mesos/a
        "#]]
        .assert_eq(&show(&steps));
        expect![[r#"
            write /cpu/mesos/a/cpu.shares 1024
            change /cpu/mesos/a/cpu.cfs_quota_us -1
            write /mem/mesos/a/memory.soft_limit_in_bytes 67108864
            write /mem/mesos/a/memory.limit_in_bytes 67108864
        "#]]
        .assert_eq(&show(&cgroups.settle(&demand(1.0, None, 64.0, None), &POLICY, true)));
        assert_eq!(cgroups.core().expect("one").processes(), Path::new("/freezer/mesos/a"));
    }

    #[test]
    fn nested_container_shares_or_owns_cgroups() {
        let layout = v1();
        let (parent, _) = layout.create(&ContainerId::root("a"), None, Above::Unsure);
        let id = ContainerId::root("a").child("b");
        let (shares, steps) = layout.create(&id, Some(&parent), Above::Unsure);
        expect![[r#"
            make /freezer/mesos
            make /freezer/mesos/a
            make /freezer/mesos/a/mesos
            make /freezer/mesos/a/mesos/b
        "#]]
        .assert_eq(&show(&steps));
        let joined: Vec<PathBuf> = shares.places.iter().map(Place::processes).collect();
        let expected =
            ["/cpu/mesos/a", "/cpuset/mesos/a", "/mem/mesos/a", "/dev/mesos/a", "/freezer/mesos/a/mesos/b"];
        assert_eq!(joined, expected.map(PathBuf::from));
        assert!(shares.settle(&demand(1.0, None, 64.0, None), &POLICY, true).is_empty());
        let (own, _) = layout.create(&id, None, Above::Unsure);
        assert!(own.places.iter().all(|place| place.own && place.cgroup.ends_with("mesos/a/mesos/b")));
    }

    #[test]
    fn cgroups_of_a_process_are_found() {
        let text = "4:memory:/docker/x\n3:name=systemd:/docker/y\n1:cpu,cpuacct:/docker/z\n0::/docker/u\n";
        let cgroups = Cgroups::of_process(&v1().hierarchies, text);
        let found: Vec<&Path> = cgroups.places.iter().map(|place| place.cgroup.as_path()).collect();
        assert_eq!(found, ["/cpu/docker/z", "/mem/docker/x"].map(Path::new));
        let v2 = layout(&[(Version::V2, "/c", &[Controller::Cpu, Controller::Memory])]);
        assert_eq!(Cgroups::of_process(&v2.hierarchies, text).places[0].cgroup, Path::new("/c/docker/u"));
        assert_eq!(Cgroups::of_process(&v2.hierarchies, "0::/\n"), Cgroups::default());
    }

    #[test]
    fn v2_containers_enable_controllers_in_subtree_control() {
        use Controller::{Core, Cpu, Cpuacct, Devices, Memory, Pids};
        let layout = layout(&[(Version::V2, "/c", &[Cpu, Cpuacct, Memory, Pids, Devices, Core])]);
        let (parent, steps) = layout.create(&ContainerId::root("a"), None, Above::Unsure);
        expect![[r#"
            offer /c/cgroup.subtree_control +cpu
            offer /c/cgroup.subtree_control +memory
            offer /c/cgroup.subtree_control +pids
            make /c/mesos
            write /c/mesos/cgroup.subtree_control +cpu
            write /c/mesos/cgroup.subtree_control +memory
            write /c/mesos/cgroup.subtree_control +pids
            make /c/mesos/a
            write /c/mesos/a/pids.max 16384
            devices /c/mesos/a, c 5:2 rwm, c 10:200 rwm, c 1:3 rwm, c 1:5 rwm, c 1:7 rwm, c 5:0 rwm, c 1:9 rwm, c 1:8 rwm
            write /c/mesos/a/cgroup.subtree_control +cpu
            write /c/mesos/a/cgroup.subtree_control +memory
            write /c/mesos/a/cgroup.subtree_control +pids
            make /c/mesos/a/leaf
            offer /c/mesos/a/leaf/memory.oom.group 1
        "#]]
        .assert_eq(&show(&steps));
        let (again, fewer) = layout.create(&ContainerId::root("a"), None, Above::Made);
        assert_eq!(again, parent);
        assert_eq!(show(&steps), show(&steps[..7]) + &show(&fewer), "all but what is above");
        let (nested, nested_steps) =
            layout.create(&ContainerId::root("a").child("b"), Some(&parent), Above::Made);
        let [place] = nested.places.as_slice() else { panic!("{nested:?}") };
        assert_eq!(place.processes(), Path::new("/c/mesos/a/mesos/b/leaf"));
        assert_eq!(nested_steps.first(), Some(&Step::Make(PathBuf::from("/c/mesos/a"))));
        assert!(place.own && nested.settle(&demand(1.0, None, 64.0, None), &POLICY, true).is_empty());
    }
}
