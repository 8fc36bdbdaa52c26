//! What containers use: told by their cgroups; without these, read from /proc, where every process below a supervisor
//! belongs to its container, those of nested containers included.
//!
//! One look at /proc serves all containers that need it. Never here: what was asked for, which is the agent's to know.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};
use tepui_proto::mesos::v1::cgroup_info::blkio;
use tepui_types::ContainerId;

pub use crate::cgroups::shortage::Shortages;
use crate::cgroups::{counted, shortage};
use crate::host::process::{self, Process, Spent, Stat};
use crate::isolators::DiskUse;
use crate::launcher::tree::Tree;
use crate::runtime_dir::{Claim, RuntimeDir};

/// Ticks of the kernel's clock per second, as it shows them to programs: the same everywhere.
const TICKS_PER_SECOND: u64 = 100;

/// Fewer are not worth a thread.
const CONTAINERS_PER_THREAD_MIN: usize = 32;

/// What one container uses, and what those nested in it use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub processes: u64,
    pub threads: u64,
    /// With what ended processes used, as far as somebody waited for them.
    pub cpus_user_time: Duration,
    pub cpus_system_time: Duration,
    pub mem_rss_bytes: u64,
    /// These are known of containers in cgroups only.
    pub throttled: Option<Throttled>,
    pub memory: Option<Memory>,
    /// Of v1 only.
    pub shortages: Option<Shortages>,
    pub blkio: Option<blkio::Statistics>,
    /// What was found on its disk when that was last looked at: of outermost containers, with `disk/du`.
    pub disk: Vec<DiskUse>,
}

/// How often a quota of processor time was used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    pub periods: u64,
    pub throttled: u64,
    pub time: Duration,
}

/// Memory by kind, as a cgroup counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All of it, caches included: this is what limits hold for.
    pub total_bytes: u64,
    pub total_memsw_bytes: Option<u64>,
    pub kmem_bytes: Option<u64>,
    pub kmem_tcp_bytes: Option<u64>,
    pub file_bytes: u64,
    pub anon_bytes: u64,
    pub mapped_file_bytes: u64,
    pub swap_bytes: u64,
    pub unevictable_bytes: u64,
    /// Of files that nobody used for a while: the kernel takes it back at any time.
    pub inactive_file_bytes: u64,
    /// What the container was promised, as the kernel knows it.
    pub request_bytes: Option<u64>,
    /// `None`: endless.
    pub limit_bytes: Option<u64>,
}

impl Memory {
    /// Without what can be had back at any time.
    pub fn needed_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub(self.inactive_file_bytes)
    }
}

/// Looks at the containers of one agent.
#[derive(Clone, Debug)]
pub struct Meter {
    runtime: RuntimeDir,
}

impl Meter {
    /// Of the containers under this runtime directory.
    pub fn open(runtime_dir: &Path) -> io::Result<Self> {
        Ok(Self { runtime: RuntimeDir::open(runtime_dir)? })
    }

    /// Of every outermost container that has a living process, and of every nested one with cgroups of its own. May take
    /// as long as /proc is large if some have no cgroups.
    pub fn read(&self) -> io::Result<BTreeMap<ContainerId, Usage>> {
        self.read_in(|_| true)
    }

    /// The same of what is in some outermost containers, themselves included. Nothing of the others is looked at.
    pub fn read_in(&self, wanted: impl Fn(&ContainerId) -> bool) -> io::Result<BTreeMap<ContainerId, Usage>> {
        let mut usages: BTreeMap<ContainerId, Usage> = BTreeMap::new();
        let mut others = Vec::new();
        let mut ids = self.runtime.list()?;
        ids.retain(|id| wanted(id.top()));
        for (id, supervisor, counted) in self.read_counted(&ids) {
            match counted {
                Some(usage) => drop(usages.insert(id, usage)),
                // It is counted with its parent.
                None if id.parent().is_some() && usages.contains_key(id.top()) => (),
                None => others.push((id, supervisor)),
            }
        }
        if !others.is_empty() {
            Self::read_processes(&mut usages, others)?;
        }
        for (id, usage) in usages.iter_mut().filter(|(id, _)| id.parent().is_none()) {
            usage.disk = self.runtime.container(id).disk();
        }
        Ok(usages)
    }

    /// Every one of these that has a supervisor, with what its own cgroups say. Many are shared out to threads: each
    /// costs some twenty files of the kernel, and none depends on another.
    fn read_counted(&self, ids: &[ContainerId]) -> Vec<(ContainerId, Process, Option<Usage>)> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = ids.len().div_ceil(threads).max(CONTAINERS_PER_THREAD_MIN);
        let (first, rest) = ids.split_at(share.min(ids.len()));
        std::thread::scope(|scope| {
            let read =
                |ids: &[ContainerId]| ids.iter().filter_map(|id| self.read_one(id)).collect::<Vec<_>>();
            let threads: Vec<_> = rest.chunks(share).map(|ids| scope.spawn(move || read(ids))).collect();
            let mut all = read(first);
            all.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()));
            all
        })
    }

    /// `None`: it has ended, or does so in this very moment.
    fn read_one(&self, id: &ContainerId) -> Option<(ContainerId, Process, Option<Usage>)> {
        let dir = self.runtime.container(id);
        let Ok(Claim::Supervisor(supervisor)) = dir.claimed() else { return None };
        let counted = counted::read(&dir.live_cgroups(), supervisor);
        let counted = counted.map(|usage| Usage { shortages: shortage::read(supervisor), ..usage });
        Some((id.clone(), supervisor, counted))
    }

    /// Adds what processes of containers without cgroups use.
    fn read_processes(
        usages: &mut BTreeMap<ContainerId, Usage>,
        others: Vec<(ContainerId, Process)>,
    ) -> io::Result<()> {
        let all = process::all()?;
        let tree = Tree::new(&all);
        for (id, supervisor) in others {
            if let Some(root) = tree.get(supervisor).filter(|stat| !stat.ended) {
                let usage = usages.entry(id.top().clone()).or_default();
                // The supervisor is ours, but what it waited for is the container's.
                usage.add_times(&root.spent);
                tree.below(supervisor).into_iter().for_each(|stat| usage.add(stat));
            }
        }
        Ok(())
    }
}

impl Usage {
    pub(crate) fn add(&mut self, stat: &Stat) {
        self.processes += 1;
        self.threads += stat.spent.threads;
        self.mem_rss_bytes += stat.spent.rss_pages * page_bytes();
        self.add_times(&stat.spent);
    }

    pub(crate) fn add_times(&mut self, spent: &Spent) {
        self.cpus_user_time += time(spent.user_ticks);
        self.cpus_system_time += time(spent.system_ticks);
    }
}

fn page_bytes() -> u64 {
    const USUAL: i64 = 4096;
    sysconf(SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(USUAL).unsigned_abs()
}

fn time(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000 / TICKS_PER_SECOND))
}
