//! What stands first between one agent and one client: the questions of the cycle, asked one by one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tepui_fsm::Mono;
use tepui_resources::{Resource, Resources};

use super::{Capability, Finding, Reason};
use crate::Allocator;
use crate::allocator::Agent;
use crate::booking::{is_plain, plain_quantities};
use crate::cycle::Stage;
use crate::look::can_handle;
use crate::marks::Traits;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slot};

/// A reason, cheap to make and to compare.
#[derive(Clone, Copy, Debug)]
enum Why {
    Waiting,
    Offered { since: Mono },
    AgentInactive,
    NotWhitelisted,
    LacksCapability(Capability),
    OfferConstraint,
    HeldInOffer { by: FrameworkSlot, since: Mono },
    ReservedFor(NodeSlot),
    InUse,
    BelowMinAllocatable,
    Refused { until: Mono },
    QuotaLimit(NodeSlot),
    Headroom,
}

/// Agents with the same reason.
struct Group {
    agents: usize,
    example: AgentSlot,
    why: Why,
}

impl Why {
    /// The same for reasons that are told as one.
    fn key(self) -> (u8, usize) {
        match self {
            Why::Waiting => (0, 0),
            Why::Offered { .. } => (1, 0),
            Why::AgentInactive => (2, 0),
            Why::NotWhitelisted => (3, 0),
            Why::LacksCapability(capability) => (4, capability as usize),
            Why::OfferConstraint => (5, 0),
            Why::HeldInOffer { by, .. } => (6, by.index()),
            Why::ReservedFor(role) => (7, role.index()),
            Why::InUse => (8, 0),
            Why::BelowMinAllocatable => (9, 0),
            Why::Refused { .. } => (10, 0),
            Why::QuotaLimit(role) => (11, role.index()),
            Why::Headroom => (12, 0),
        }
    }

    /// Both as one: the oldest offer, the longest refusal.
    fn merged(self, other: Why) -> Why {
        match (self, other) {
            (Why::Offered { since }, Why::Offered { since: other }) => {
                Why::Offered { since: since.min(other) }
            }
            (Why::HeldInOffer { by, since }, Why::HeldInOffer { since: other, .. }) => {
                Why::HeldInOffer { by, since: since.min(other) }
            }
            (Why::Refused { until }, Why::Refused { until: other }) => {
                Why::Refused { until: until.max(other) }
            }
            (one, _) => one,
        }
    }
}

impl Allocator {
    /// What stands in the way of every agent, in groups.
    pub(super) fn findings(&self, client: ClientSlot) -> Vec<Finding> {
        let mut groups: BTreeMap<(u8, usize), Group> = BTreeMap::new();
        for (slot, _) in self.agents.iter() {
            let why = self.why(slot, client);
            let group = groups.entry(why.key()).or_insert(Group { agents: 0, example: slot, why });
            group.agents += 1;
            group.why = group.why.merged(why);
        }
        let finding = |group: &Group| Finding {
            reason: self.reason(group, client),
            agents: group.agents,
            example: self.agents[group.example].id.clone(),
        };
        let mut findings: Vec<Finding> = groups.values().map(finding).collect();
        findings.sort_by_key(|finding| Reverse(finding.agents));
        findings
    }

    fn reason(&self, group: &Group, client: ClientSlot) -> Reason {
        let role = |node: NodeSlot| self.tree.nodes[node].role.clone();
        match group.why {
            Why::Waiting => Reason::Waiting,
            Why::Offered { since } => Reason::Offered { since },
            Why::AgentInactive => Reason::AgentInactive,
            Why::NotWhitelisted => Reason::NotWhitelisted,
            Why::LacksCapability(capability) => Reason::LacksCapability(capability),
            Why::OfferConstraint => Reason::OfferConstraint,
            Why::HeldInOffer { by, since } => {
                Reason::HeldInOffer { by: self.frameworks[by].id.clone(), since }
            }
            Why::ReservedFor(node) => Reason::ReservedFor(role(node)),
            Why::InUse => Reason::InUse,
            Why::BelowMinAllocatable => Reason::BelowMinAllocatable,
            Why::Refused { until } => {
                let refused = self.fit(client, self.agents[group.example].ledger.free());
                Reason::Refused { until, refused }
            }
            Why::QuotaLimit(node) => {
                let claims = &self.tree.nodes[node].claims;
                let (consumed, limits) = (claims.consumed.clone(), claims.quota.limits.clone());
                Reason::QuotaLimit { role: role(node), consumed, limits }
            }
            Why::Headroom => Reason::Headroom { required: self.tree.required().clone() },
        }
    }

    fn why(&self, slot: AgentSlot, client: ClientSlot) -> Why {
        let agent = &self.agents[slot];
        let traits = self.tree.glance(client).traits;
        if !agent.active {
            return Why::AgentInactive;
        }
        if !agent.whitelisted {
            return Why::NotWhitelisted;
        }
        if let Some(capability) = self.lacking(agent, traits) {
            return Why::LacksCapability(capability);
        }
        if !self.is_wanted(slot, client) {
            return Why::OfferConstraint;
        }
        let fit = self.fit(client, agent.ledger.free());
        match self.is_enough(client, &fit) {
            true => self.why_not_all(slot, client, &fit),
            false => self.why_too_little(slot, client),
        }
    }

    fn lacking(&self, agent: &Agent, traits: Traits) -> Option<Capability> {
        let can = &agent.spec.capabilities;
        let gpus = agent.has_gpus && self.options.filter_gpu_resources;
        let lacks = |needed, one| needed && !traits.has_any(one);
        let has = |unfit, one| unfit && traits.has_any(one);
        let reasons = [
            (lacks(gpus, Traits::GPUS), Capability::GpuResources),
            (lacks(agent.remote, Traits::REGION), Capability::RegionAware),
            (has(!can.multi_role, Traits::MULTI_ROLE), Capability::MultiRole),
            (has(!can.hierarchical_role, Traits::NESTED_ROLE), Capability::HierarchicalRole),
        ];
        reasons.into_iter().find(|(lacking, _)| *lacking).map(|(_, capability)| capability)
    }

    /// Enough is free and fit.
    fn why_not_all(&self, slot: AgentSlot, client: ClientSlot, fit: &Resources) -> Why {
        if let Some(until) = self.filters.refused_until(client, slot, fit) {
            return Why::Refused { until };
        }
        let node = self.tree.clients[client].node;
        let plain = plain_quantities(fit);
        let amount = self.tree.allowance(node, &plain, Stage::Guarantees).amount;
        let part = fit.filter(is_plain).shrink_to(&amount) + &fit.filter(|resource| !is_plain(resource));
        if self.is_enough(client, &part) {
            return match self.filters.refused_until(client, slot, &part) {
                Some(until) => Why::Refused { until },
                None => Why::Waiting,
            };
        }
        self.limiting(node, &part, fit).unwrap_or(Why::Headroom)
    }

    /// The first role from here upwards whose limit lets have less than there is.
    fn limiting(&self, node: NodeSlot, part: &Resources, fit: &Resources) -> Option<Why> {
        let (less, more) = (part.quantities(), fit.quantities());
        let mut next = Some(node);
        while let Some(at) = next {
            let node = &self.tree.nodes[at];
            let claims = &node.claims;
            let is_full = claims.quota.limits.iter().any(|(name, limit)| {
                let left = limit.minus_or_zero(claims.consumed.get(name));
                less.get(name) < more.get(name) && left <= less.get(name)
            });
            if is_full {
                return Some(Why::QuotaLimit(at));
            }
            next = node.parent;
        }
        None
    }

    /// What is free and fit is less than the smallest offer.
    fn why_too_little(&self, slot: AgentSlot, client: ClientSlot) -> Why {
        let agent = &self.agents[slot];
        let own = self.tree.clients[client].framework;
        let mut back = agent.ledger.free().clone();
        for (framework, offered, since) in agent.ledger.offers() {
            if framework == own {
                return Why::Offered { since };
            }
            back += offered.clone().unallocate();
            if self.is_enough(client, &self.fit(client, &back)) {
                return Why::HeldInOffer { by: framework, since };
            }
        }
        if let Some(reason) = self.why_not_fit(client, agent.ledger.free()) {
            return reason;
        }
        match self.is_enough(client, &self.fit(client, agent.ledger.total())) {
            true => Why::InUse,
            false => self.why_not_fit(client, agent.ledger.total()).unwrap_or(Why::BelowMinAllocatable),
        }
    }

    /// Whether there would be enough if the client could have more of these.
    fn why_not_fit(&self, client: ClientSlot, some: &Resources) -> Option<Why> {
        let (role, traits) = (self.tree.role_of(client), self.tree.glance(client).traits);
        let mine = some.allocatable_to(role);
        for (one, capability) in [
            (Traits::REVOCABLE, Capability::RevocableResources),
            (Traits::REFINED, Capability::ReservationRefinement),
            (Traits::SHARED, Capability::SharedResources),
        ] {
            let more = traits.with(one);
            if self.is_enough(client, &mine.filter(|resource| can_handle(more, resource))) {
                return (more != traits).then_some(Why::LacksCapability(capability));
            }
        }
        let others =
            some.filter(|resource| !resource.is_allocatable_to(role) && can_handle(traits, resource));
        let owner =
            others.iter().find_map(Resource::reservation_role).and_then(|role| self.tree.node(role))?;
        self.is_enough(client, &others).then_some(Why::ReservedFor(owner))
    }

    fn fit(&self, client: ClientSlot, some: &Resources) -> Resources {
        let (role, traits) = (self.tree.role_of(client), self.tree.glance(client).traits);
        some.filter(|resource| resource.is_allocatable_to(role) && can_handle(traits, resource))
    }

    fn is_enough(&self, client: ClientSlot, some: &Resources) -> bool {
        let own = self.tree.clients[client].wishes.min_allocatable.as_ref();
        own.unwrap_or(&self.options.min_allocatable).allows(&some.quantities())
    }
}
