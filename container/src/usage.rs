//! What containers use, read from /proc: every process below their supervisors, those of nested containers included.
//!
//! One look at the whole machine serves all containers. Never here: limits, which are the agent's to know.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};
use tepui_types::ContainerId;

use crate::host::process::{self, Spent, Stat};
use crate::launcher::tree;
use crate::runtime_dir::{Claim, RuntimeDir};

/// Ticks of the kernel's clock per second, as it shows them to programs: the same everywhere.
const TICKS_PER_SECOND: u64 = 100;

/// What one container uses, and what those nested in it use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub processes: u64,
    pub threads: u64,
    /// With what ended processes used, as far as somebody waited for them.
    pub cpus_user_time: Duration,
    pub cpus_system_time: Duration,
    pub mem_rss_bytes: u64,
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

    /// Of every outermost container that has a living process. May take as long as /proc is large.
    pub fn read(&self) -> io::Result<BTreeMap<ContainerId, Usage>> {
        let all = process::all()?;
        let mut usages: BTreeMap<ContainerId, Usage> = BTreeMap::new();
        for id in self.runtime.list()? {
            // Whatever cannot be read any more has ended in this very moment.
            if let Ok(Claim::Supervisor(supervisor)) = self.runtime.container(&id).claimed()
                && let Some(root) = all.iter().find(|stat| stat.process == supervisor && !stat.ended)
            {
                let usage = usages.entry(id.top().clone()).or_default();
                // The supervisor is ours, but what it waited for is the container's.
                usage.add_times(&root.spent);
                tree::descendants(&all, supervisor).into_iter().for_each(|stat| usage.add(stat));
            }
        }
        Ok(usages)
    }
}

impl Usage {
    fn add(&mut self, stat: &Stat) {
        self.processes += 1;
        self.threads += stat.spent.threads;
        self.mem_rss_bytes += stat.spent.rss_pages * page_bytes();
        self.add_times(&stat.spent);
    }

    fn add_times(&mut self, spent: &Spent) {
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
