//! Unanswered pings of agents, and the rate limit of removals.

use alloc::collections::BTreeMap;

use tepui_fsm::Mono;
use tepui_types::AgentId;

/// Liveness of agents.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    pub(crate) unanswered: BTreeMap<AgentId, u32>,
    pub(crate) next_removal: Mono,
    /// How many agents an earlier master knew when this one started.
    pub(crate) known_at_start: usize,
}

impl Liveness {
    pub fn new(known_at_start: usize) -> Self {
        Self { known_at_start, ..Self::default() }
    }
}
