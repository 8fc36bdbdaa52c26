//! The cycle: from free resources to grants, looking only at agents and frameworks that changed.
//!
//! A *run* is a shuffled queue of agents. An agent that changed is shown to everybody in the order of shares; after a
//! framework changed, agents that did not change are shown to it alone. What the master returns waits for the next batch
//! run, at most one per interval, so that offers do not spin; new agents and frameworks are served in the same turn.
//! A call looks at a limited number of agents; the run goes on with the next call.
//!
//! Never: who holds what (`ledger`), who comes next (`tree`), a clock.

use alloc::vec::Vec;

use tepui_fsm::{Mono, Rng};
use tepui_resources::{Resource, Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::Allocator;
use crate::allocator::{Agent, Wants};
use crate::constraints::admits;
use crate::filters::FilterId;
use crate::ledger::Part;
use crate::order::{Scope, Walk};
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot};
use crate::tree::{Client, Wishes};

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

/// What changed and what is under way.
#[derive(Clone, Debug)]
pub(crate) struct Cycle {
    /// Agents that want this turn, or the next batch. May name agents that are gone or want nothing any more.
    turn: Vec<AgentSlot>,
    batch: Vec<AgentSlot>,
    /// Clients that all agents must be shown to.
    fresh: Vec<ClientSlot>,
    /// The run under way, last first.
    queue: Vec<(AgentSlot, Scope)>,
    /// Filters that ended, but must outlive the next batch.
    lingering: Vec<FilterId>,
    run: u64,
    batches: u64,
    last_batch: Option<Mono>,
    walk: Walk,
    rng: Rng,
}

impl Cycle {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            turn: Vec::new(),
            batch: Vec::new(),
            fresh: Vec::new(),
            queue: Vec::new(),
            lingering: Vec::new(),
            run: 0,
            batches: 0,
            last_batch: None,
            walk: Walk::default(),
            rng: Rng::seeded(seed ^ 0x616c_6c6f_6361_7465),
        }
    }

    pub(crate) fn add_fresh(&mut self, client: ClientSlot) {
        if !self.fresh.contains(&client) {
            self.fresh.push(client);
        }
    }

    pub(crate) fn forget_client(&mut self, client: ClientSlot) {
        self.fresh.retain(|fresh| *fresh != client);
    }

    /// How many batch runs there were.
    pub(crate) fn batches(&self) -> u64 {
        self.batches
    }

    fn batch_due(&self, now: Mono, interval: core::time::Duration) -> bool {
        !self.batch.is_empty() && self.last_batch.is_none_or(|last| now >= last + interval)
    }
}

impl Allocator {
    /// Free -> offered, for everything that changed since. Costs next to nothing if nothing did.
    pub fn allocate(&mut self, now: Mono) -> Allocation {
        self.end_filters(now);
        let mut decided = Allocation::default();
        let mut left = self.options.turn_agents_max;
        while left > 0 && (!self.cycle.queue.is_empty() || self.begin_run(now)) {
            if let Some((agent, scope)) = self.cycle.queue.pop() {
                self.look_at(agent, scope, &mut decided);
                left -= 1;
            }
        }
        if self.cycle.queue.is_empty() && !self.cycle.batch_due(now, self.options.allocation_interval) {
            for filter in core::mem::take(&mut self.cycle.lingering) {
                self.end_filter(filter);
            }
        }
        decided
    }

    /// When `allocate` has something to do; in the past if it has it now.
    pub fn deadline(&self) -> Option<Mono> {
        let cycle = &self.cycle;
        let busy = [
            cycle.queue.is_empty(),
            cycle.turn.is_empty(),
            cycle.fresh.is_empty(),
            cycle.lingering.is_empty(),
        ];
        if busy.contains(&false) {
            return Some(Mono(0));
        }
        let tick = cycle.last_batch.map_or(Mono(0), |last| last + self.options.allocation_interval);
        let batch = (!cycle.batch.is_empty()).then_some(tick);
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

    fn end_filters(&mut self, now: Mono) {
        while let Some((filter, served)) = self.filters.pop_due(now, self.cycle.batches) {
            match served {
                true => self.end_filter(filter),
                false => self.cycle.lingering.push(filter),
            }
        }
        while let Some(agent) = self.inverse.pop_due(now) {
            self.want(agent, Wants::Batch);
        }
    }

    fn end_filter(&mut self, filter: FilterId) {
        if let Some(agent) = self.filters.remove(filter) {
            self.want(agent, Wants::Batch);
        }
    }

    /// Queues the agents that must be looked at now; false if there are none.
    fn begin_run(&mut self, now: Mono) -> bool {
        let mut changed = core::mem::take(&mut self.cycle.turn);
        if self.cycle.batch_due(now, self.options.allocation_interval) {
            changed.append(&mut self.cycle.batch);
            self.cycle.last_batch = Some(now);
            self.cycle.batches += 1;
        }
        self.cycle.run += 1;
        changed.sort_unstable();
        for slot in changed {
            // Twice in the list, or gone: looked at once, or never.
            if self.agents.get(slot).is_some_and(|agent| agent.wants != Wants::Nothing) {
                self.agents[slot].wants = Wants::Nothing;
                self.cycle.queue.push((slot, Scope::All));
            }
        }
        self.queue_for_fresh();
        let Cycle { queue, rng, .. } = &mut self.cycle;
        rng.shuffle(queue);
        !queue.is_empty()
    }

    fn queue_for_fresh(&mut self) {
        let fresh = core::mem::take(&mut self.cycle.fresh);
        if fresh.is_empty() {
            return;
        }
        let run = self.cycle.run;
        fresh.into_iter().for_each(|client| self.tree.mark_fresh(client, run));
        let mut queued = self.cycle.queue.clone().into_iter().map(|(slot, _)| slot).peekable();
        for (slot, agent) in self.agents.iter() {
            let seen_by_all = queued.next_if(|other| *other == slot).is_some();
            if !seen_by_all && (agent.unavailable || !agent.ledger.free().is_empty()) {
                self.cycle.queue.push((slot, Scope::Fresh(run)));
            }
        }
    }

    fn look_at(&mut self, slot: AgentSlot, scope: Scope, decided: &mut Allocation) {
        let Some(agent) = self.agents.get(slot) else { return };
        if !agent.active || !agent.whitelisted {
            return;
        }
        self.tree.settle_order();
        let mut shared = Resources::new();
        let mut walk = core::mem::take(&mut self.cycle.walk);
        walk.restart(&self.tree);
        while !self.agents[slot].ledger.free().is_empty()
            && let Some(client) = walk.next(&self.tree, scope)
        {
            if let Some(grant) = self.offer(slot, client, &mut shared) {
                decided.grants.push(grant);
            }
        }
        self.cycle.walk = walk;
        if self.agents[slot].unavailable {
            self.ask_to_leave(slot, decided);
        }
    }

    /// Offers what is free of the agent and fit for the client, unless that is too little or not wanted.
    fn offer(&mut self, slot: AgentSlot, client: ClientSlot, shared: &mut Resources) -> Option<Grant> {
        let (agent, entry) = (&self.agents[slot], &self.tree.clients[client]);
        let role = self.tree.role_of(client);
        if !self.suits(agent, entry, role) {
            return None;
        }
        let fit = agent.ledger.free().filter(|resource| is_fit(resource, &entry.wishes, role, shared));
        let least = entry.wishes.min_allocatable.as_ref().unwrap_or(&self.options.min_allocatable);
        if !least.allows(&fit.quantities()) || self.filters.covers(client, slot, &fit) {
            return None;
        }
        *shared += &fit.shared();
        let role = role.clone();
        let framework = entry.framework;
        let resources = fit.allocate(&role);
        let agent = agent.id.clone();
        self.hold(slot, framework, Part::Offered, &resources);
        Some(Grant { framework: self.frameworks[framework].id.clone(), role, agent, resources })
    }

    /// Whether any resources of this agent may go to this client at all.
    fn suits(&self, agent: &Agent, client: &Client, role: &Role) -> bool {
        let can = &client.wishes.capabilities;
        let gpus = can.gpu_resources || !agent.has_gpus || !self.options.filter_gpu_resources;
        let region = can.region_aware || !agent.remote;
        let roles = !can.multi_role || agent.spec.capabilities.multi_role;
        let depth = !role.is_nested() || agent.spec.capabilities.hierarchical_role;
        let wanted = client.wishes.groups.as_ref().is_none_or(|groups| admits(groups, &agent.spec));
        gpus && region && roles && depth && wanted
    }

    fn ask_to_leave(&mut self, slot: AgentSlot, decided: &mut Allocation) {
        let holders: Vec<FrameworkSlot> = self.agents[slot].ledger.held().keys().copied().collect();
        for holder in holders {
            let framework = &self.frameworks[holder];
            if framework.active && self.inverse.ask(slot, holder) {
                let (framework, agent) = (framework.id.clone(), self.agents[slot].id.clone());
                decided.inverse.push(InverseGrant { framework, agent });
            }
        }
    }
}

/// Whether the client may have this resource and can handle it. A shared one is offered once per run.
fn is_fit(resource: &Resource, wishes: &Wishes, role: &Role, shared: &Resources) -> bool {
    let can = &wishes.capabilities;
    resource.is_allocatable_to(role)
        && (can.revocable_resources || !resource.is_revocable())
        && (can.reservation_refinement || !resource.is_refined())
        && (!resource.is_shared() || (can.shared_resources && shared.copies(resource) == 0))
}
