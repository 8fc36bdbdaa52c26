//! The allocator's interface for agents and frameworks: their descriptions and requests.
//!
//! `moves` contains the transitions of resources, `cycle` the offers.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::Mono;
use tepui_resources::{Name, Quantities, Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::agent::{Agent, Urgency};
use crate::bits::Bits;
use crate::borrowers::Borrowers;
use crate::constraints::Constraints;
use crate::cycle::Cycle;
use crate::filters::Filters;
use crate::held::Part;
use crate::ids::Ids;
use crate::inverse::Inverse;
use crate::ledger::Ledger;
use crate::marks::Traits;
use crate::options::Sorters;
use crate::owners::Owners;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, Slab};
use crate::slack_books::SlackTerms;
use crate::tally::{Booking, plain_quantities};
use crate::tree::{OfferTerms, Tree};
use crate::{AgentSpec, FrameworkSpec, Options};

#[derive(Clone, Debug)]
pub struct Allocator {
    pub(crate) options: Options,
    pub(crate) agents: Slab<AgentSlot, Agent>,
    pub(crate) agent_ids: Ids<AgentId, AgentSlot>,
    pub(crate) frameworks: Slab<FrameworkSlot, Framework>,
    pub(crate) framework_ids: Ids<FrameworkId, FrameworkSlot>,
    pub(crate) tree: Tree,
    pub(crate) borrowers: Borrowers,
    pub(crate) filters: Filters,
    pub(crate) inverse: Inverse,
    pub(crate) cycle: Cycle,
    /// Agents that a new framework must be shown: something is free or can be lent, or they are to be left.
    pub(crate) spacious: Bits<AgentSlot>,
    /// Agents on which more is lent than is idle.
    pub(crate) over_lent: Bits<AgentSlot>,
    slack_terms: SlackTerms,
    pub(crate) recovery: Option<Recovery>,
    /// Only these hosts are offered, if there is a list.
    whitelist: Option<BTreeSet<String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Framework {
    pub(crate) id: FrameworkId,
    pub(crate) active: bool,
    pub(crate) suppressed: BTreeSet<Role>,
    /// Where it holds something.
    pub(crate) agents: Bits<AgentSlot>,
}

/// The pause after a start, see `recovery`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// So many agents end the pause.
    pub(crate) agents: usize,
    /// The latest end of the pause.
    pub(crate) until: Mono,
}

impl Allocator {
    pub fn new(options: Options) -> Self {
        let sorters = Sorters { roles: options.role_sorter, frameworks: options.framework_sorter };
        let tree = Tree::new(sorters, options.fair_sharing_excluded.clone(), options.seed);
        let borrowers = Borrowers::new(sorters, options.fair_sharing_excluded.clone(), options.seed);
        let cycle = Cycle::new(options.seed);
        Self {
            slack_terms: options.slack_terms(),
            options,
            agents: Slab::new(),
            agent_ids: Ids::new(),
            frameworks: Slab::new(),
            framework_ids: Ids::new(),
            tree,
            borrowers,
            filters: Filters::default(),
            inverse: Inverse::default(),
            cycle,
            spacious: Bits::new(),
            over_lent: Bits::new(),
            recovery: None,
            whitelist: None,
        }
    }
}

/// Agents.
impl Allocator {
    /// A new agent, active. `used` is what runs there, allocated to roles; a framework that is not known yet gets an
    /// inactive place.
    pub fn add_agent(&mut self, id: AgentId, spec: AgentSpec, used: Vec<(FrameworkId, Resources)>) {
        let agent = Agent {
            id: id.clone(),
            ledger: Ledger::new(self.slack_terms.clone()),
            owners: Owners::default(),
            active: true,
            whitelisted: true,
            unavailable: false,
            has_gpus: false,
            remote: false,
            urgency: Urgency::Nothing,
            served: Bits::new(),
            available: Quantities::new(),
            spec: AgentSpec::default(),
        };
        let slot = self.agents.insert(agent);
        if let Some(former) = self.agent_ids.insert(id, slot) {
            debug_assert!(false, "agent {} is added twice", self.agents[slot].id);
            self.forget_agent(former);
        }
        self.set_spec(slot, spec);
        for (framework, resources) in used {
            let framework = self.ensure_framework(&framework);
            self.hold(slot, framework, Part::Used, &resources);
        }
        self.note_free(slot);
        self.want(slot, Urgency::Turn);
    }

    /// New totals, attributes, capabilities. Changed attributes drop the filters on it. True if anything changed.
    pub fn update_agent(&mut self, id: &AgentId, spec: AgentSpec) -> bool {
        let Some(slot) = self.agent_slot(id) else { return false };
        let agent = &self.agents[slot];
        let moved = agent.spec.attributes != spec.attributes
            || agent.spec.domain != spec.domain
            || agent.spec.hostname != spec.hostname;
        let changed =
            moved || agent.spec.capabilities != spec.capabilities || *agent.ledger.total() != spec.total;
        if moved {
            self.filters.remove_agent(slot);
            self.tree.forget_judged(slot);
        }
        if changed {
            self.set_spec(slot, spec);
            self.note_free(slot);
            self.want(slot, Urgency::Turn);
        }
        changed
    }

    /// Removes it and all allocations on it.
    pub fn remove_agent(&mut self, id: &AgentId) {
        if let Some(slot) = self.agent_ids.remove(id) {
            self.forget_agent(slot);
        }
    }

    fn forget_agent(&mut self, slot: AgentSlot) {
        let holders: Vec<FrameworkSlot> = self.agents[slot].ledger.held().map(|(holder, _)| holder).collect();
        holders.into_iter().for_each(|framework| self.drop_held(slot, framework));
        self.filters.remove_agent(slot);
        self.inverse.remove_agent(slot);
        self.tree.forget_judged(slot);
        let agent = self.agents.remove(slot);
        self.tree.available -= &agent.available;
        self.spacious.remove(slot);
        self.over_lent.remove(slot);
        self.tree.book_reservations(agent.ledger.total(), Booking::Out);
        self.tree.change_totals(&agent.ledger.total().scalar_quantities(), &Default::default());
        self.borrowers.tree.change_totals(agent.ledger.lendable(), &Default::default());
    }

    pub fn activate_agent(&mut self, id: &AgentId) {
        if let Some(slot) = self.agent_slot(id) {
            self.agents[slot].active = true;
            self.note_free(slot);
            self.want(slot, Urgency::Batch);
        }
    }

    /// Nothing more is offered of it; what is held stays held.
    pub fn deactivate_agent(&mut self, id: &AgentId) {
        if let Some(slot) = self.agent_slot(id) {
            self.agents[slot].active = false;
            self.note_free(slot);
        }
    }

    /// Its unavailability was set (true), changed (true again) or taken away (false): inverse offers begin anew or
    /// end. Outstanding ones are the caller's to take back.
    pub fn set_unavailable(&mut self, id: &AgentId, unavailable: bool) {
        if let Some(slot) = self.agent_slot(id) {
            self.inverse.remove_agent(slot);
            self.agents[slot].unavailable = unavailable;
            self.note_free(slot);
            self.want(slot, Urgency::Turn);
        }
    }

    /// Only these hosts are offered from now on; `None`: all.
    pub fn set_whitelist(&mut self, hosts: Option<BTreeSet<String>>) {
        self.whitelist = hosts;
        let slots: Vec<AgentSlot> = self.agents.slots().collect();
        for slot in slots {
            self.check_whitelist(slot);
            self.note_free(slot);
            self.want(slot, Urgency::Batch);
        }
    }

    fn check_whitelist(&mut self, slot: AgentSlot) {
        let agent = &mut self.agents[slot];
        agent.whitelisted = self.whitelist.as_ref().is_none_or(|hosts| hosts.contains(&*agent.spec.hostname));
    }

    /// Must follow when what is held or free of an agent changed, or whether it can be offered.
    pub(crate) fn note_free(&mut self, slot: AgentSlot) {
        let agent = &mut self.agents[slot];
        let now = match agent.is_offerable() {
            true => plain_quantities(agent.ledger.free()),
            false => Quantities::new(),
        };
        if now != agent.available {
            self.tree.available += &now;
            self.tree.available -= &core::mem::replace(&mut agent.available, now);
        }
        agent.ledger.settle_lent();
        let something = agent.unavailable || !agent.ledger.free().is_empty() || agent.ledger.may_lend();
        self.spacious.set(slot, something);
        self.over_lent.set(slot, agent.ledger.is_over_lent());
    }

    /// Must be followed by `note_free`.
    fn set_spec(&mut self, slot: AgentSlot, mut spec: AgentSpec) {
        let total = core::mem::take(&mut spec.total);
        let agent = &mut self.agents[slot];
        let elsewhere =
            |domain: &crate::Domain| self.options.region.as_ref().is_some_and(|own| *own != domain.region);
        agent.remote = spec.domain.as_ref().is_some_and(elsewhere);
        let amounts = total.scalar_quantities();
        agent.has_gpus = !amounts.get(&Name::Gpus).is_zero();
        agent.spec = spec;
        let lendable = agent.ledger.lendable().clone();
        let before = agent.ledger.set_total(total);
        self.borrowers.tree.change_totals(&lendable, agent.ledger.lendable());
        self.tree.book_reservations(agent.ledger.total(), Booking::In);
        self.tree.book_reservations(&before, Booking::Out);
        self.tree.change_totals(&before.scalar_quantities(), &amounts);
        self.check_whitelist(slot);
    }

    pub(crate) fn agent_slot(&self, id: &AgentId) -> Option<AgentSlot> {
        self.agent_ids.get(id)
    }
}

/// Frameworks.
impl Allocator {
    pub fn add_framework(&mut self, spec: FrameworkSpec) {
        let slot = self.ensure_framework(&spec.id);
        self.set_framework(slot, spec);
    }

    /// Replaces everything; filters of roles it left are dropped. Offers of these roles are the caller's to take back.
    pub fn update_framework(&mut self, spec: FrameworkSpec) {
        if let Some(slot) = self.framework_slot(&spec.id) {
            self.set_framework(slot, spec);
        }
    }

    /// Removes it; all its resources become free.
    pub fn remove_framework(&mut self, id: &FrameworkId) {
        let Some(slot) = self.framework_ids.remove(id) else { return };
        let agents = core::mem::take(&mut self.frameworks[slot].agents);
        for agent in agents.iter() {
            self.drop_held(agent, slot);
            self.want(agent, Urgency::Batch);
        }
        self.inverse.remove_framework(slot);
        for client in self.tree.clients_of(slot) {
            self.unsubscribe(client);
        }
        self.frameworks.remove(slot);
    }

    pub fn activate_framework(&mut self, id: &FrameworkId) {
        self.set_framework_active(id, true);
    }

    /// It is offered nothing, and its filters are dropped; what it holds it holds.
    pub fn deactivate_framework(&mut self, id: &FrameworkId) {
        self.set_framework_active(id, false);
    }

    /// Roles it does not have are ignored. No roles: all of them.
    pub fn suppress(&mut self, id: &FrameworkId, roles: &[Role]) {
        for (framework, client) in self.named_clients(id, roles) {
            let role = self.tree.role_of(client).clone();
            self.frameworks[framework].suppressed.insert(role);
            self.set_active(client, false);
        }
    }

    /// Drops the filters of these roles, and all inverse filters. No roles: all of them.
    pub fn revive(&mut self, id: &FrameworkId, roles: &[Role]) {
        for (framework, client) in self.named_clients(id, roles) {
            let role = self.tree.role_of(client).clone();
            self.frameworks[framework].suppressed.remove(&role);
            self.filters.remove_client(client);
            self.inverse.revive(framework);
            self.refresh(client);
        }
    }

    /// Weights by role; roles that are not named keep theirs.
    pub fn set_weights(&mut self, weights: &BTreeMap<Role, f64>) {
        self.tree.set_weights(weights);
        self.borrowers.tree.set_weights(weights);
    }

    /// How many decline filters there are now in each role where that changed since the last time.
    pub fn recounted_filters(&mut self) -> Vec<(Role, u64)> {
        self.filters.counts.take_changed()
    }

    fn set_framework_active(&mut self, id: &FrameworkId, active: bool) {
        let Some(slot) = self.framework_slot(id) else { return };
        self.frameworks[slot].active = active;
        if !active {
            self.inverse.remove_framework(slot);
        }
        for client in self.tree.clients_of(slot) {
            if !active {
                self.filters.remove_client(client);
            }
            self.refresh(client);
        }
    }

    fn set_framework(&mut self, slot: FrameworkSlot, spec: FrameworkSpec) {
        let framework = &mut self.frameworks[slot];
        framework.active = spec.active;
        framework.suppressed = spec.suppressed;
        framework.suppressed.retain(|role| spec.roles.contains(role));
        for client in self.tree.clients_of(slot) {
            if !spec.roles.contains(self.tree.role_of(client)) {
                self.unsubscribe(client);
            }
        }
        for role in &spec.roles {
            let client = self.tree.ensure_client(slot, role);
            let constraints = spec.constraints.roles.get(role).map(|groups| Constraints::new(groups));
            let min_allocatable = spec.min_allocatable.get(role).cloned();
            let traits = Traits::of(&spec.capabilities, role);
            self.tree.set_offer_terms(client, traits, OfferTerms { constraints, min_allocatable });
            self.tree.clients[client].subscribed = true;
            self.refresh(client);
        }
    }

    /// Adds the client to the order or removes it, by its state; a client in the order is served in this turn.
    fn refresh(&mut self, client: ClientSlot) {
        let entry = &self.tree.clients[client];
        let framework = &self.frameworks[entry.framework];
        let suppressed = framework.suppressed.contains(self.tree.role_of(client));
        let active = entry.subscribed && framework.active && !suppressed;
        self.set_active(client, active);
        if active {
            self.cycle.fresh.insert(client);
        }
    }

    fn set_active(&mut self, client: ClientSlot, active: bool) {
        self.tree.set_active(client, active);
        self.note_borrower(client);
    }

    fn unsubscribe(&mut self, client: ClientSlot) {
        self.filters.remove_client(client);
        self.tree.clients[client].subscribed = false;
        self.set_active(client, false);
        self.drop_client_if_unused(client);
    }

    pub(crate) fn drop_client_if_unused(&mut self, client: ClientSlot) {
        if self.tree.drop_if_unused(client) {
            self.cycle.fresh.remove(client);
        }
    }

    /// The clients of these roles, or of all, that the framework is subscribed with.
    fn named_clients(&self, id: &FrameworkId, roles: &[Role]) -> Vec<(FrameworkSlot, ClientSlot)> {
        let Some(slot) = self.framework_slot(id) else { return Vec::new() };
        let wanted = |client: &ClientSlot| {
            let named = roles.is_empty() || roles.contains(self.tree.role_of(*client));
            named && self.tree.clients[*client].subscribed
        };
        self.tree.clients_of(slot).into_iter().filter(wanted).map(|client| (slot, client)).collect()
    }

    pub(crate) fn framework_slot(&self, id: &FrameworkId) -> Option<FrameworkSlot> {
        self.framework_ids.get(id)
    }

    pub(crate) fn ensure_framework(&mut self, id: &FrameworkId) -> FrameworkSlot {
        let Self { frameworks, framework_ids, .. } = self;
        framework_ids.get_or_insert(id, || {
            let (id, suppressed) = (id.clone(), BTreeSet::new());
            frameworks.insert(Framework { id, active: false, suppressed, agents: Bits::new() })
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
