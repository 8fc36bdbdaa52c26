//! Entities whose consequences are pending until the next reconcile pass.

use alloc::collections::BTreeSet;

use tepui_types::{ExecutorId, FrameworkId};

use super::ExecutorKey;

/// Filled by handlers, emptied by `reconcile`.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) executors: BTreeSet<ExecutorKey>,
    pub(crate) frameworks: BTreeSet<FrameworkId>,
    /// Resources were released, or a launch waits for them: lent resources are balanced again.
    pub(crate) slack: bool,
}

impl Touched {
    pub(crate) fn executor(&mut self, framework: &FrameworkId, id: &ExecutorId) {
        self.executors.insert((framework.clone(), id.clone()));
    }

    pub(crate) fn framework(&mut self, id: &FrameworkId) {
        self.frameworks.insert(id.clone());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.executors.is_empty() && self.frameworks.is_empty() && !self.slack
    }
}
