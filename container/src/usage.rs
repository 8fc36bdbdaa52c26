//! What a container uses, as plain values.

use std::path::PathBuf;
use std::time::Duration;

use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};
use tepui_proto::mesos::v1::cgroup_info::blkio;

use crate::host::process::{Spent, Stat};

/// Ticks of the kernel's clock per second, as it shows them to programs: the same everywhere.
const TICKS_PER_SECOND: u64 = 100;

/// What one container uses, and what those nested in it use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub processes: u64,
    pub threads: u64,
    /// Including exited processes that were reaped.
    pub cpus_user_time: Duration,
    pub cpus_system_time: Duration,
    pub mem_rss_bytes: u64,
    /// These are known of containers in cgroups only.
    pub throttled: Option<Throttled>,
    pub memory: Option<Memory>,
    /// Of v1 only.
    pub shortages: Option<Shortages>,
    pub blkio: Option<blkio::Statistics>,
    /// The last measurement of its disk: of outermost containers, with `disk/du`.
    pub disk: Vec<DiskUse>,
}

/// How often the container was short of memory since it started, by level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortages {
    pub low: u64,
    pub medium: u64,
    pub critical: u64,
}

/// The last measurement of a path, and its limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    pub path: PathBuf,
    pub limit_bytes: u64,
    pub used_bytes: u64,
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
    /// Of files that were not used for a while: the kernel reclaims it at any time.
    pub inactive_file_bytes: u64,
    /// The protected memory of the container, as the kernel has it.
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
