//! Unanswered pings of agents, and the rate limit of removals.

use alloc::collections::BTreeMap;

use tepui_fsm::Mono;
use tepui_types::AgentId;

/// An agent without contact.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Pings without an answer.
    Unanswered(u32),
    /// It is marked unreachable when the rate limit allows, unless there is contact before.
    RemovalScheduled,
}

/// Liveness of agents.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// Agents that did not answer since the last contact.
    pub(crate) silent: BTreeMap<AgentId, Silence>,
    pub(crate) next_removal: Mono,
    /// How many agents an earlier master knew when this one started.
    pub(crate) known_at_start: usize,
}

impl Liveness {
    pub fn new(known_at_start: usize) -> Self {
        Self { known_at_start, ..Self::default() }
    }
}
