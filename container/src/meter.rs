//! Measures what containers use: read from their cgroups; without these from /proc, where every process below a
//! supervisor belongs to its container, those of nested containers included.
//!
//! One look at /proc serves all containers that need it. Absent: requests, which the agent knows.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use tepui_types::ContainerId;

use crate::cgroups::{counted, shortage};
use crate::host::process::{self, Process};
use crate::launcher::tree::Tree;
use crate::runtime_dir::{Claim, RuntimeDir};
use crate::usage::Usage;

/// Fewer are not worth a thread.
const CONTAINERS_PER_THREAD_MIN: usize = 32;

/// A container, its supervisor, and the usage by its own cgroups, if it has any.
type Counted = (ContainerId, Process, Option<Usage>);

/// Measures the containers of one agent.
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

    /// The same for some outermost containers and those nested in them only.
    pub fn read_in(&self, wanted: impl Fn(&ContainerId) -> bool) -> io::Result<BTreeMap<ContainerId, Usage>> {
        let mut usages: BTreeMap<ContainerId, Usage> = BTreeMap::new();
        let mut others = Vec::new();
        let mut ids = self.runtime.list()?;
        ids.retain(|id| wanted(id.top()));
        for (id, supervisor, counted) in self.read_counted(&ids)? {
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

    /// Every one of these that has a supervisor, with the usage by its own cgroups. Many are distributed to threads:
    /// each costs some twenty files of the kernel, and none depends on another.
    fn read_counted(&self, ids: &[ContainerId]) -> io::Result<Vec<Counted>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = ids.len().div_ceil(threads).max(CONTAINERS_PER_THREAD_MIN);
        let (first, rest) = ids.split_at(share.min(ids.len()));
        std::thread::scope(|scope| {
            let read =
                |ids: &[ContainerId]| ids.iter().filter_map(|id| self.read_one(id)).collect::<Vec<_>>();
            let threads: Vec<_> = rest.chunks(share).map(|ids| scope.spawn(move || read(ids))).collect();
            let mut all = read(first);
            for thread in threads {
                all.extend(
                    thread.join().map_err(|_| io::Error::other("a thread that reads cgroups panicked"))?,
                );
            }
            Ok(all)
        })
    }

    /// `None`: it has ended, or does so in this very moment.
    fn read_one(&self, id: &ContainerId) -> Option<Counted> {
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
