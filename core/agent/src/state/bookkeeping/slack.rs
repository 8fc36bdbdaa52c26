//! Borrowers of allocation slack, and launches that wait for them.

use alloc::collections::{BTreeMap, BTreeSet};

use tepui_fsm::Mono;
use tepui_resources::Resources;
use tepui_types::{ExecutorId, FrameworkId};

pub(crate) type ExecutorKey = (FrameworkId, ExecutorId);

/// Executors to which something is lent, and launches that wait for room.
#[derive(Debug, Default)]
pub(crate) struct Slack {
    pub(crate) borrowers: BTreeSet<ExecutorKey>,
    /// Resources of preempted executors: all of them until their containers have terminated.
    pub(crate) leaving: BTreeMap<ExecutorKey, Resources>,
    /// Since when.
    pub(crate) waiting: BTreeMap<ExecutorKey, Mono>,
}

impl Slack {
    /// Whether an executor, or what is queued for it, waits for room.
    pub(crate) fn is_waiting(&self, framework: &FrameworkId, id: &ExecutorId) -> bool {
        !self.waiting.is_empty() && self.waiting.contains_key(&(framework.clone(), id.clone()))
    }

    /// The executor's container terminated, and with it everything that it held.
    pub(crate) fn release(&mut self, key: &ExecutorKey) {
        self.borrowers.remove(key);
        self.leaving.remove(key);
        self.waiting.remove(key);
    }
}
