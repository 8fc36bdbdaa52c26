//! Cgroup isolation of tasks under executors of frameworks that this master does not have yet.
//!
//! Reported by agents that are new to this master, passed on to a framework when it registers: one executor id has
//! one kind of isolation for ever. Absent: known frameworks, which store it themselves.

use alloc::collections::BTreeMap;

use tepui_types::{ExecutorId, FrameworkId};

/// More are not remembered.
const EXECUTORS_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Isolations {
    shares_cgroups: BTreeMap<FrameworkId, BTreeMap<ExecutorId, bool>>,
    count: usize,
}

impl Isolations {
    /// The first report counts.
    pub(crate) fn insert(&mut self, framework: FrameworkId, executor: ExecutorId, shares: bool) {
        if self.count < EXECUTORS_MAX {
            let known = self.shares_cgroups.entry(framework).or_default();
            let before = known.len();
            known.entry(executor).or_insert(shares);
            self.count += known.len() - before;
        }
    }

    pub(crate) fn take(&mut self, framework: &FrameworkId) -> BTreeMap<ExecutorId, bool> {
        let taken = self.shares_cgroups.remove(framework).unwrap_or_default();
        self.count -= taken.len();
        taken
    }
}
