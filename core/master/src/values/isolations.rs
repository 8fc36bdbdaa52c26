//! How tasks had their cgroups under executors of frameworks that this master does not know yet.
//!
//! Told by agents that are new to this master, handed over to a framework when it comes: one executor id has one kind of
//! isolation for ever. Never: of frameworks in the books, which remember by themselves.

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
    /// What was said first counts.
    pub(crate) fn remember(&mut self, framework: FrameworkId, executor: ExecutorId, shares: bool) {
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
