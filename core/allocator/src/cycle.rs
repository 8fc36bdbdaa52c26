//! The cycle: changes since the last run, and the current run.
//!
//! Plain data; `allocate` decides.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Mono, Rng};
use tepui_resources::{Quantities, Resources};

use crate::AgentCapabilities;
use crate::bits::Bits;
use crate::candidates::Candidates;
use crate::filters::End;
use crate::grant::{Scope, Stage};
use crate::slab::{AgentSlot, ClientSlot, Slot};
use crate::walk::Walk;

/// What changed and what is under way.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    /// Agents marked for this turn, for the end of the delay of releases, or for the next batch. May contain removed
    /// or unmarked agents.
    pub(crate) turn: Vec<AgentSlot>,
    pub(crate) released: Vec<AgentSlot>,
    pub(crate) batch: Vec<AgentSlot>,
    /// The call that first saw what was released.
    pub(crate) released_at: Option<Mono>,
    /// Clients that all agents must be shown to.
    pub(crate) fresh: Bits<ClientSlot>,
    pub(crate) stage: Stage,
    /// The current stage, last first, and the agents of the next one.
    pub(crate) queue: Vec<(AgentSlot, Scope)>,
    pub(crate) second: Vec<(AgentSlot, Scope)>,
    /// The grants of this call that were made in the stage of guarantees.
    pub(crate) guaranteed: BTreeMap<(AgentSlot, ClientSlot), usize>,
    /// Shared resources that were offered in this run.
    pub(crate) shared: SharedOffers,
    /// Agents whose slack was lent in this run.
    pub(crate) lent: Bits<AgentSlot>,
    /// The time of the call under way.
    pub(crate) now: Mono,
    /// Filters that ended, but must outlive the next batch.
    pub(crate) lingering: Vec<End>,
    /// Headroom limited a client in this call; the surplus when it last did.
    pub(crate) short: bool,
    pub(crate) short_at: Option<Quantities>,
    /// The last call left something to the next.
    pub(crate) out_of_time: bool,
    pub(crate) runs: u64,
    pub(crate) batches: u64,
    pub(crate) last_batch: Option<Mono>,
    pub(crate) walk: Walk,
    pub(crate) fresh_walk: Walk,
    /// Over the clients that the rest of an agent is reserved for.
    pub(crate) narrow_walk: Walk,
    /// Over borrowers.
    pub(crate) loan_walk: Walk,
    pub(crate) fresh_loan_walk: Walk,
    pub(crate) candidates: Candidates,
    /// The last agent without a taker.
    pub(crate) unallocatable: Option<Unallocatable>,
    pub(crate) rng: Rng,
}

/// Properties that determine whether an agent has a taker, if no client has filters or constraints that concern it.
/// As long as the tree is unchanged, agents equal in these need not be shown again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unallocatable {
    /// Of the tree.
    pub(crate) version: u64,
    pub(crate) scope: Scope,
    pub(crate) capabilities: AgentCapabilities,
    pub(crate) has_gpus: bool,
    pub(crate) remote: bool,
    pub(crate) free: Resources,
}

/// What is shared and was offered, by agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedOffers {
    /// May be shorter than the list of agents.
    offered: Vec<Resources>,
    agents: Vec<AgentSlot>,
}

impl SharedOffers {
    /// Not allocated.
    pub(crate) fn of(&self, agent: AgentSlot) -> &Resources {
        const NOTHING: &Resources = &Resources::new();
        self.offered.get(agent.index()).unwrap_or(NOTHING)
    }

    pub(crate) fn add(&mut self, agent: AgentSlot, shared: &Resources) {
        if shared.is_empty() {
            return;
        }
        if agent.index() >= self.offered.len() {
            self.offered.resize_with(agent.index() + 1, Resources::new);
        }
        self.offered[agent.index()] += shared;
        self.agents.push(agent);
    }

    pub(crate) fn clear(&mut self) {
        for agent in self.agents.drain(..) {
            self.offered[agent.index()] = Resources::new();
        }
    }
}

impl Cycle {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            turn: Vec::new(),
            released: Vec::new(),
            batch: Vec::new(),
            released_at: None,
            fresh: Bits::new(),
            stage: Stage::Everyone,
            queue: Vec::new(),
            second: Vec::new(),
            guaranteed: BTreeMap::new(),
            shared: SharedOffers::default(),
            lent: Bits::new(),
            now: Mono(0),
            lingering: Vec::new(),
            short: false,
            short_at: None,
            out_of_time: false,
            runs: 0,
            batches: 0,
            last_batch: None,
            walk: Walk::new(Scope::All),
            fresh_walk: Walk::new(Scope::Fresh),
            narrow_walk: Walk::new(Scope::All),
            loan_walk: Walk::new(Scope::All),
            fresh_loan_walk: Walk::new(Scope::Fresh),
            candidates: Candidates::default(),
            unallocatable: None,
            rng: Rng::seeded(seed ^ 0x616c_6c6f_6361_7465),
        }
    }

    /// How many batch runs there were.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    pub(crate) fn is_running(&self) -> bool {
        !self.queue.is_empty() || !self.second.is_empty()
    }

    /// The next agent of the run.
    pub(crate) fn next(&mut self) -> Option<(AgentSlot, Scope)> {
        if self.queue.is_empty() && !self.second.is_empty() {
            self.stage = Stage::Everyone;
            core::mem::swap(&mut self.queue, &mut self.second);
            self.rng.shuffle(&mut self.queue);
        }
        self.queue.pop()
    }
}
