//! Operator calls that are not answered yet.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use tepui_types::{ConnId, ContainerId};

/// Calls that wait for something to happen. Each is on a connection of its own, of which the shell allows so many.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) launches: BTreeMap<ContainerId, ConnId>,
    pub(crate) waits: BTreeMap<ContainerId, Vec<(ConnId, WaitForm)>>,
    /// By sandbox.
    pub(crate) removals: BTreeMap<String, ConnId>,
    /// The container that each connection keeps alive.
    pub(crate) sessions: BTreeMap<ConnId, ContainerId>,
    /// Oldest first.
    pub(crate) ended_sessions: VecDeque<ContainerId>,
}

impl Requests {
    /// WAIT_CONTAINER calls without an answer yet.
    pub(crate) fn pending_waits(&self) -> usize {
        self.waits.values().map(Vec::len).sum()
    }
}

/// Which of the two calls is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitForm {
    Plain,
    Nested,
}
