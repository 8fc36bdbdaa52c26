//! The cycle: which agents are looked at when, and by whom.
//!
//! A *run* is a shuffled queue of agents. An agent that changed is shown to everybody in the order of shares; after a
//! framework changed, agents that did not change are shown to it alone. What the master returns waits for the next batch
//! run, at most one per interval, so that offers do not spin; new agents and frameworks are served in the same turn.
//! While a guarantee is not met, a run has two stages: first the agents are shown to those whom it is meant for, then,
//! shuffled again, to everyone. Agents that only quota kept from somebody are shown again when there is more for it.
//! A call works as long as its budget lasts; the run goes on with the next call.
//!
//! Never: what is offered of an agent (`offer`), who holds what (`ledger`), who comes next (`ranking`), a clock.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Budget, Mono, Rng};
use tepui_resources::{Quantities, Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::Allocator;
use crate::allocator::Wants;
use crate::bits::Bits;
use crate::filters::End;
use crate::look::Look;
use crate::slab::{AgentSlot, ClientSlot, Slot};
use crate::walk::{Scope, Walk};

/// Free resources of an agent that are now offered to a framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub framework: FrameworkId,
    pub role: Role,
    pub agent: AgentId,
    /// Allocated to `role`.
    pub resources: Resources,
}

/// A framework that is to be asked to leave an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InverseGrant {
    pub framework: FrameworkId,
    pub agent: AgentId,
}

/// What one call of `allocate` decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    pub grants: Vec<Grant>,
    pub inverse: Vec<InverseGrant>,
}

/// Whom agents are shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Roles with a guarantee that is not met.
    Guarantees,
    Everyone,
}

/// What changed and what is under way.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    /// Agents that want this turn, or the next batch. May name agents that are gone or want nothing any more.
    turn: Vec<AgentSlot>,
    batch: Vec<AgentSlot>,
    /// Clients that all agents must be shown to.
    pub(crate) fresh: Bits<ClientSlot>,
    pub(crate) stage: Stage,
    /// The stage under way, last first, and what the next one looks at.
    queue: Vec<(AgentSlot, Scope)>,
    second: Vec<(AgentSlot, Scope)>,
    /// The grants of this call that were made in the stage of guarantees.
    pub(crate) guaranteed: BTreeMap<(AgentSlot, ClientSlot), usize>,
    /// Shared resources that were offered in this run.
    pub(crate) shared: SharedOffers,
    /// Agents whose slack was lent in this run.
    pub(crate) lent: Bits<AgentSlot>,
    /// The time of the call under way.
    pub(crate) now: Mono,
    /// Filters that ended, but must outlive the next batch.
    lingering: Vec<End>,
    /// Headroom kept something from somebody in this call; what surplus there was when it last did.
    pub(crate) short: bool,
    short_at: Option<Quantities>,
    /// The last call left something to the next.
    out_of_time: bool,
    runs: u64,
    batches: u64,
    last_batch: Option<Mono>,
    pub(crate) walk: Walk,
    pub(crate) fresh_walk: Walk,
    /// Over those whom what is left of an agent is reserved for.
    pub(crate) narrow_walk: Walk,
    /// Over borrowers.
    pub(crate) loan_walk: Walk,
    pub(crate) fresh_loan_walk: Walk,
    pub(crate) look: Look,
    rng: Rng,
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

    fn clear(&mut self) {
        for agent in self.agents.drain(..) {
            self.offered[agent.index()] = Resources::new();
        }
    }
}

impl Cycle {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            turn: Vec::new(),
            batch: Vec::new(),
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
            look: Look::default(),
            rng: Rng::seeded(seed ^ 0x616c_6c6f_6361_7465),
        }
    }

    /// How many batch runs there were.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    fn is_running(&self) -> bool {
        !self.queue.is_empty() || !self.second.is_empty()
    }

    /// The next agent to look at.
    fn next(&mut self) -> Option<(AgentSlot, Scope)> {
        if self.queue.is_empty() && !self.second.is_empty() {
            self.stage = Stage::Everyone;
            core::mem::swap(&mut self.queue, &mut self.second);
            self.rng.shuffle(&mut self.queue);
        }
        self.queue.pop()
    }
}

impl Allocator {
    /// Free -> offered, for everything that changed since. Costs next to nothing if nothing did. The budget is asked after
    /// each piece of work, so that every call gets on; if it ends, `deadline` is in the past.
    pub fn allocate(&mut self, now: Mono, budget: &mut Budget<'_>) -> Allocation {
        let mut decided = Allocation::default();
        if self.waits_for_agents(now) {
            return decided;
        }
        self.cycle.now = now;
        self.cycle.out_of_time = false;
        self.end_filters(now, budget);
        while !self.cycle.out_of_time && (self.cycle.is_running() || self.begin_run(now)) {
            if let Some((agent, scope)) = self.cycle.next() {
                self.look_at(agent, scope, &mut decided);
                self.cycle.out_of_time = !budget();
            }
        }
        if !self.cycle.is_running() && !self.batch_due(now) {
            self.end_lingering_filters(budget);
        }
        self.cycle.guaranteed.clear();
        self.tree.in_run = self.cycle.is_running();
        self.note_shortage();
        decided
    }

    /// How many runs there were.
    pub fn runs(&self) -> u64 {
        self.cycle.runs
    }

    /// When `allocate` has something to do; in the past if it has it now.
    pub fn deadline(&self) -> Option<Mono> {
        if let Some(until) = self.recovering_until() {
            return Some(until);
        }
        let cycle = &self.cycle;
        let more = [
            cycle.out_of_time,
            cycle.is_running(),
            !cycle.turn.is_empty(),
            !cycle.fresh.is_empty(),
            !cycle.lingering.is_empty(),
        ];
        if more.contains(&true) {
            return Some(Mono(0));
        }
        let tick = cycle.last_batch.map_or(Mono(0), |last| last + self.options.allocation_interval);
        let batch = self.wants_batch().then_some(tick);
        let ends = [self.filters.next_end(), self.inverse.next_end()];
        ends.into_iter().flatten().map(|end| end.max(tick)).chain(batch).min()
    }

    /// Remembers that an agent must be looked at.
    pub(crate) fn want(&mut self, slot: AgentSlot, wants: Wants) {
        let agent = &mut self.agents[slot];
        if wants <= agent.wants {
            return;
        }
        agent.wants = wants;
        match wants {
            Wants::Turn => self.cycle.turn.push(slot),
            Wants::Batch => self.cycle.batch.push(slot),
            Wants::Nothing => (),
        }
    }

    fn wants_batch(&self) -> bool {
        !self.cycle.batch.is_empty() || !self.tree.eased.is_empty() || self.surplus_grew()
    }

    fn batch_due(&self, now: Mono) -> bool {
        let interval = self.options.allocation_interval;
        self.cycle.last_batch.is_none_or(|last| now >= last + interval) && self.wants_batch()
    }

    /// Whether there is more for those whom headroom kept something from.
    fn surplus_grew(&self) -> bool {
        self.cycle.short_at.as_ref().is_some_and(|before| !before.contains(&self.tree.surplus()))
    }

    fn note_shortage(&mut self) {
        if core::mem::take(&mut self.cycle.short) {
            let surplus = self.tree.surplus();
            let least = match &self.cycle.short_at {
                Some(before) => surplus.clone() - &(surplus - before),
                None => surplus,
            };
            self.cycle.short_at = Some(least);
        }
    }

    fn end_filters(&mut self, now: Mono, budget: &mut Budget<'_>) {
        while !self.cycle.out_of_time
            && let Some((filter, served)) = self.filters.pop_due(now, self.cycle.batches)
        {
            match served {
                true => self.end_filter(filter),
                false => self.cycle.lingering.push(filter),
            }
            self.cycle.out_of_time = !budget();
        }
        while let Some(agent) = self.inverse.pop_due(now) {
            self.want(agent, Wants::Batch);
        }
    }

    fn end_lingering_filters(&mut self, budget: &mut Budget<'_>) {
        while !self.cycle.out_of_time
            && let Some(filter) = self.cycle.lingering.pop()
        {
            self.end_filter(filter);
            self.cycle.out_of_time = !budget();
        }
    }

    fn end_filter(&mut self, filter: End) {
        if let Some(agent) = self.filters.remove(filter) {
            self.want(agent, Wants::Batch);
        }
    }

    /// Queues the agents that must be looked at now; false if there are none.
    fn begin_run(&mut self, now: Mono) -> bool {
        if self.batch_due(now) {
            self.begin_batch(now);
        }
        let mut changed = core::mem::take(&mut self.cycle.turn);
        self.cycle.shared.clear();
        self.cycle.lent.clear();
        changed.sort_unstable();
        for slot in changed.drain(..) {
            // Twice in the list, or gone: looked at once, or never.
            if self.agents.get(slot).is_some_and(|agent| agent.wants != Wants::Nothing) {
                self.agents[slot].wants = Wants::Nothing;
                self.cycle.queue.push((slot, Scope::All));
            }
        }
        self.cycle.turn = changed;
        self.queue_for_fresh();
        let Cycle { stage, queue, second, rng, runs, .. } = &mut self.cycle;
        *runs += u64::from(!queue.is_empty());
        rng.shuffle(queue);
        *stage = Stage::Everyone;
        if !self.tree.required().is_empty() {
            *stage = Stage::Guarantees;
            second.clone_from(queue);
        }
        !queue.is_empty()
    }

    /// What waited for a batch takes part in the run that begins.
    fn begin_batch(&mut self, now: Mono) {
        self.cycle.last_batch = Some(now);
        self.cycle.batches += 1;
        if self.surplus_grew() {
            self.cycle.short_at = None;
            let slots: Vec<AgentSlot> = self.spacious.iter().collect();
            slots.into_iter().for_each(|slot| self.want(slot, Wants::Batch));
        }
        let Cycle { turn, batch, .. } = &mut self.cycle;
        turn.append(batch);
        for node in core::mem::take(&mut self.tree.eased) {
            let mut clients = Vec::new();
            self.tree.active_clients_below(node, &mut clients);
            clients.into_iter().for_each(|client| self.cycle.fresh.insert(client));
        }
    }

    fn queue_for_fresh(&mut self) {
        let fresh = core::mem::take(&mut self.cycle.fresh);
        if fresh.is_empty() {
            return;
        }
        self.borrowers.set_fresh(&fresh);
        self.tree.set_fresh(fresh);
        let Cycle { queue, .. } = &mut self.cycle;
        let queued = queue.len();
        let mut at = 0;
        for slot in self.spacious.iter() {
            // Both are sorted.
            while at < queued && queue[at].0 < slot {
                at += 1;
            }
            if at == queued || queue[at].0 != slot {
                queue.push((slot, Scope::Fresh));
            }
        }
    }
}
