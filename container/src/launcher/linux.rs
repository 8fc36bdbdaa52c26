//! The Linux launcher: the posix launcher, with every container in cgroups of its own.
//!
//! Decides once, at the start of the agent, whether cgroups can be used; then creates, changes, evaluates and removes
//! those of each container. The command enters them before it runs (`enter`); its processes are killed by them.
//! Blocking work is done on separate threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, LaunchSpec};

use super::fault::CgroupFault;
use crate::cgroups::devices::AllowedDevice;
use crate::cgroups::hierarchy::Hierarchies;
use crate::cgroups::layout::{Above, Layout};
use crate::cgroups::machine::MachineMemory;
use crate::cgroups::mark::Mark;
use crate::cgroups::oom_watch::Subject;
use crate::cgroups::{Cgroups, Controller, Demand, Place, Policy, Version, destroy, devices, oom, plan};
use crate::host::background::blocking;
use crate::host::user;
use crate::isolation::Isolation;
use crate::runtime_dir::{RuntimeDir, is_valid};

/// How containers are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Launcher {
    /// `linux` if this is possible here, else `posix`.
    #[default]
    Auto,
    Posix,
    Linux,
}

/// What an operator chose about cgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupOptions {
    /// Below each mount; shared only with other agents of this machine.
    pub root: PathBuf,
    pub enable_cfs: bool,
    pub limit_swap: bool,
    pub revocable_cpu_low_priority: bool,
}

impl Default for CgroupOptions {
    /// The defaults of the v1 flags.
    fn default() -> Self {
        Self {
            root: PathBuf::from("mesos"),
            enable_cfs: false,
            limit_swap: false,
            revocable_cpu_low_priority: true,
        }
    }
}

impl CgroupOptions {
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            enable_cfs: self.enable_cfs,
            limit_swap: self.limit_swap,
            revocable_cpu_low_priority: self.revocable_cpu_low_priority,
        }
    }
}

/// The launcher of an agent that uses cgroups.
#[derive(Clone, Debug)]
pub(crate) struct Linux {
    layout: Arc<Layout>,
    runtime: RuntimeDir,
    mark: Mark,
}

/// Chooses: `None` is posix. The reason why something cannot be had is complete.
pub(crate) fn choose(
    launcher: Launcher,
    isolation: &Isolation,
    options: &CgroupOptions,
    devices: &[AllowedDevice],
    runtime: &RuntimeDir,
    work_dir: &Path,
) -> Result<Option<Linux>, CgroupFault> {
    let layout = match launcher {
        Launcher::Posix => Err(CgroupFault::PosixLauncher),
        Launcher::Auto | Launcher::Linux => try_layout(isolation, options, devices),
    };
    match (layout, launcher, isolation.needs_linux()) {
        (Ok(layout), _, _) => {
            tracing::info!(root = %options.root.display(), "linux launcher enabled");
            let mark = Mark::open(work_dir).map_err(CgroupFault::Mark)?;
            let (layout, runtime) = (Arc::new(layout), runtime.clone());
            Ok(Some(Linux { layout, runtime, mark }))
        }
        (Err(fault), Launcher::Linux, _) => Err(CgroupFault::LinuxLauncher(fault.into())),
        (Err(fault), _, Some(isolator)) => {
            Err(CgroupFault::NeedsLinuxLauncher { isolator, fault: fault.into() })
        }
        (Err(fault), Launcher::Auto, None) => {
            tracing::info!(why = %fault, "posix launcher enabled: no limits are enforced");
            Ok(None)
        }
        (Err(_), Launcher::Posix, None) => Ok(None),
    }
}

/// The most of cpu, memory and process isolation that works on this machine; the reason if nothing does.
pub fn isolation_of_host(options: &CgroupOptions) -> Result<Isolation, CgroupFault> {
    let choices = ["cgroups/cpu,cgroups/mem,cgroups/pids", "cgroups/cpu,cgroups/mem"];
    let mut missing = CgroupFault::NotMounted;
    for choice in choices {
        let isolation = Isolation::parse(choice.split(','))?;
        match try_layout(&isolation, options, &[]) {
            Ok(_) => return Ok(isolation),
            Err(fault) => missing = fault,
        }
    }
    Err(missing)
}

/// Creates and removes cgroups as for a container: a wrong configuration must not fail task by task.
fn try_layout(
    isolation: &Isolation,
    options: &CgroupOptions,
    allowed: &[AllowedDevice],
) -> Result<Layout, CgroupFault> {
    let hierarchies = usable(&options.root)?;
    let layout = Layout {
        controllers: controllers(isolation, &hierarchies)?,
        hierarchies,
        root: options.root.clone(),
        policy: options.policy(),
        devices: devices::usual().into_iter().chain(allowed.iter().map(AllowedDevice::rule)).collect(),
    };
    let (cgroups, mut steps) =
        layout.create(&ContainerId::root(format!("trial-{}", std::process::id())), None, Above::Unsure);
    steps.extend(cgroups.settle(&Demand::new(&[], &BTreeMap::new()), &layout.policy, true));
    let tried = plan::apply(&steps);
    for place in &cgroups.places {
        destroy::remove_tree(&place.cgroup).ok(); // Empty, and harmless.
    }
    Ok(tried.map(|()| layout)?)
}

/// Whether cgroups can be made here, and if not, why.
pub(crate) fn usable(root: &Path) -> Result<Hierarchies, CgroupFault> {
    if !user::are_root() {
        return Err(CgroupFault::NotRoot);
    }
    if root.as_os_str().is_empty() || !crate::host::beneath::is_inner(root) {
        return Err(CgroupFault::Root(root.to_owned()));
    }
    let hierarchies = Hierarchies::detect().map_err(CgroupFault::MountTable)?;
    let Some(core) = hierarchies.of(Controller::Core) else {
        return Err(CgroupFault::NotMounted);
    };
    let path = core.mount.join(root);
    match std::fs::create_dir_all(&path) {
        Ok(()) => Ok(hierarchies),
        Err(err) => Err(CgroupFault::Create { path, err }),
    }
}

/// Controllers requested by name are required; `cgroups/all` uses the available ones.
fn controllers(
    isolation: &Isolation,
    hierarchies: &Hierarchies,
) -> Result<BTreeSet<Controller>, CgroupFault> {
    let available = hierarchies.available();
    let mut chosen = isolation.controllers();
    chosen.insert(Controller::Core);
    if isolation.takes_all_cgroups() {
        return Ok(available);
    }
    chosen.retain(|one| *one != Controller::Cpuacct || available.contains(one));
    match chosen.iter().find(|one| !available.contains(one)) {
        Some(Controller::Devices)
            if hierarchies.of(Controller::Core).is_some_and(|one| one.version == Version::V2) =>
        {
            Err(CgroupFault::DevicesNeedPrograms)
        }
        Some(missing) => Err(CgroupFault::NoController(missing.v1_name())),
        None => Ok(chosen),
    }
}

impl Linux {
    /// Makes a container's cgroups and sets what it may use.
    pub async fn prepare(&self, spec: &LaunchSpec) -> Result<Cgroups, CgroupFault> {
        let (linux, spec) = (self.clone(), spec.clone());
        blocking(move || linux.prepare_now(&spec)).await?
    }

    fn prepare_now(&self, spec: &LaunchSpec) -> Result<Cgroups, CgroupFault> {
        let shared = spec.id.parent().filter(|_| shares_cgroups(spec));
        let shared = shared.map(|parent| self.runtime.container(parent).cgroups());
        let demand = Demand::new(&spec.resources, &spec.limits);
        if spec.id.parent().is_some() && shared.is_none() {
            self.check_requests(spec)?;
        }
        let (mut cgroups, mut steps) = self.layout.create(&spec.id, shared.as_ref(), Above::Made);
        let settle = cgroups.settle(&demand, &self.layout.policy, true);
        steps.extend_from_slice(&settle);
        cgroups.holds_tasks = spec.holds_tasks;
        cgroups.oom_score_adj = cgroups.score(&demand, memory_bytes());
        let kept = self.runtime.container(&spec.id).write_cgroups(&cgroups);
        kept.map_err(CgroupFault::Persist)?;
        let applied = match plan::apply(&steps) {
            // The cgroup made at the agent's start may have been removed, or made again with fewer controllers.
            Err(_) => {
                let (_, mut all) = self.layout.create(&spec.id, shared.as_ref(), Above::Unsure);
                all.extend(settle);
                plan::apply(&all)
            }
            applied => applied,
        };
        applied?;
        if let Some(core) = cgroups.core().filter(|_| spec.id.parent().is_none()) {
            self.mark.put(&core.cgroup);
        }
        Ok(cgroups)
    }

    /// A nested container with cgroups of its own needs a request or a limit.
    fn check_requests(&self, spec: &LaunchSpec) -> Result<(), CgroupFault> {
        let requested =
            |name: &str| spec.resources.iter().any(|one| one.name == name && one.scalar.value > 0.0);
        let given = |name: &str| requested(name) || spec.limits.contains_key(name);
        for (name, controller) in [("cpus", Controller::Cpu), ("mem", Controller::Memory)] {
            if self.layout.controllers.contains(&controller) && !given(name) {
                return Err(CgroupFault::MissingRequest(name));
            }
        }
        Ok(())
    }

    pub fn counts_memory(&self) -> bool {
        self.layout.controllers.contains(&Controller::Memory)
    }

    /// What is left for all containers.
    pub fn machine_memory(&self) -> MachineMemory {
        MachineMemory::read(&self.layout)
    }

    /// Every process in any container.
    pub fn all_processes(&self) -> BTreeSet<i32> {
        let core = self.layout.hierarchies.of(Controller::Core);
        let root = core.map(|core| core.mount.join(&self.layout.root));
        root.and_then(|root| destroy::processes_below(&root).ok()).into_iter().flatten().collect()
    }

    /// Containers of ours that have cgroups, those nested in others left out.
    pub fn marked(&self) -> Vec<ContainerId> {
        let core = self.layout.hierarchies.of(Controller::Core);
        let root = core.map(|core| core.mount.join(&self.layout.root));
        let entries = root.and_then(|root| std::fs::read_dir(root).ok()).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| self.mark.is_on(&entry.path()));
        let ids = ours.filter_map(|entry| Some(ContainerId::root(entry.file_name().to_str()?)));
        ids.filter(is_valid).collect()
    }

    /// The cgroups of a container of which nothing else is known; none if it has none.
    pub fn find(&self, id: &ContainerId, parent: Option<&Cgroups>) -> Cgroups {
        let (own, _) = self.layout.create(id, None, Above::Made);
        let shared = parent.filter(|_| !oom::has_request(&own));
        let (mut found, _) = self.layout.create(id, shared, Above::Made);
        if !found.core().is_some_and(|core| core.cgroup.is_dir()) {
            return Cgroups::default();
        }
        found.oom_score_adj =
            oom::bursting_request(&found).map(|bytes| oom::score_adj(bytes, memory_bytes()));
        found.holds_tasks = found.oom_score_adj.is_some();
        found
    }

    /// Sets new requests and limits.
    pub async fn update(
        &self,
        id: &ContainerId,
        resources: &[pb::Resource],
        limits: &BTreeMap<String, f64>,
    ) -> Result<(), CgroupFault> {
        let (linux, id, demand) = (self.clone(), id.clone(), Demand::new(resources, limits));
        blocking(move || linux.update_now(&id, &demand)).await?
    }

    fn update_now(&self, id: &ContainerId, demand: &Demand) -> Result<(), CgroupFault> {
        let dir = self.runtime.container(id);
        let before = dir.cgroups();
        plan::apply(&before.settle(demand, &self.layout.policy, false))?;
        let oom_score_adj = before.score(demand, memory_bytes());
        if !before.holds_tasks || before.oom_score_adj == oom_score_adj {
            return Ok(());
        }
        let after = Cgroups { oom_score_adj, ..before };
        dir.write_cgroups(&after).map_err(CgroupFault::Persist)?;
        if let Some(place) = after.own(Controller::Memory).filter(|_| oom_score_adj.is_none()) {
            oom::score_all(&place.cgroup, oom::own_score()); // Its usage is no longer watched.
        }
        Ok(())
    }

    /// Where OOM kills of the container's processes are counted; `None` if its memory is not limited.
    pub fn oom_subject(&self, id: &ContainerId) -> Option<Subject> {
        let mut around = std::iter::successors(Some(id), |id| id.parent());
        let (owner, place) = around.find_map(|id| {
            let cgroups = self.runtime.container(id).cgroups();
            Some((id.clone(), cgroups.own(Controller::Memory)?.clone()))
        })?;
        let processes = self.victims_place(id, &place);
        let (depth, is_owner) = (around.count(), owner == *id);
        Some(Subject { owner, place, processes, depth, is_owner })
    }

    /// Where kills of the container's processes are counted: on v2 every container has a cgroup for its processes.
    fn victims_place(&self, id: &ContainerId, memory: &Place) -> PathBuf {
        let cgroups = self.runtime.container(id).cgroups();
        let own = cgroups.core().filter(|core| memory.version == Version::V2 && core.version == Version::V2);
        own.unwrap_or(memory).processes()
    }
}

/// A nested container's resources are counted with its parent's unless it requests otherwise.
fn shares_cgroups(spec: &LaunchSpec) -> bool {
    let container = spec.container.as_ref();
    container.and_then(|info| info.linux_info.share_cgroups).unwrap_or(true)
}

/// All memory of the machine.
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit))
}

/// Removes the cgroup of an agent that leaves for good, unless it is in use.
pub(crate) fn remove_root(root: &Path) {
    for hierarchy in Hierarchies::detect().unwrap_or_default().iter() {
        std::fs::remove_dir(hierarchy.mount.join(root)).ok();
    }
}
