//! What stands first between one agent and one client: the questions of the cycle, asked one by one.

use tepui_resources::{Resource, Resources};

use super::{Capability, Reason};
use crate::Allocator;
use crate::allocator::Agent;
use crate::booking::{is_plain, plain_quantities};
use crate::cycle::Stage;
use crate::look::can_handle;
use crate::marks::Traits;
use crate::slab::{AgentSlot, ClientSlot, NodeSlot};

impl Allocator {
    pub(super) fn why(&self, slot: AgentSlot, client: ClientSlot) -> Reason {
        let agent = &self.agents[slot];
        let traits = self.tree.glance(client).traits;
        if !agent.active {
            return Reason::AgentInactive;
        }
        if !agent.whitelisted {
            return Reason::NotWhitelisted;
        }
        if let Some(capability) = self.lacking(agent, traits) {
            return Reason::LacksCapability(capability);
        }
        if !self.is_wanted(slot, client) {
            return Reason::OfferConstraint;
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
    fn why_not_all(&self, slot: AgentSlot, client: ClientSlot, fit: &Resources) -> Reason {
        if let Some(until) = self.filters.refused_until(client, slot, fit) {
            return Reason::Refused { until };
        }
        let node = self.tree.clients[client].node;
        let plain = plain_quantities(fit);
        let amount = self.tree.allowance(node, &plain, Stage::Guarantees).amount;
        let part = fit.filter(is_plain).shrink_to(&amount) + &fit.filter(|resource| !is_plain(resource));
        if self.is_enough(client, &part) {
            return match self.filters.refused_until(client, slot, &part) {
                Some(until) => Reason::Refused { until },
                None => Reason::Waiting,
            };
        }
        self.limiting(node, &part, fit).unwrap_or(Reason::Headroom)
    }

    /// The first role from here upwards whose limit lets have less than there is.
    fn limiting(&self, node: NodeSlot, part: &Resources, fit: &Resources) -> Option<Reason> {
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
                let (consumed, limits) = (claims.consumed.clone(), claims.quota.limits.clone());
                return Some(Reason::QuotaLimit { role: node.role.clone(), consumed, limits });
            }
            next = node.parent;
        }
        None
    }

    /// What is free and fit is less than the smallest offer.
    fn why_too_little(&self, slot: AgentSlot, client: ClientSlot) -> Reason {
        let agent = &self.agents[slot];
        let own = self.tree.clients[client].framework;
        let mut back = agent.ledger.free().clone();
        for (framework, offered, since) in agent.ledger.offers() {
            if framework == own {
                return Reason::Offered { since };
            }
            back += offered.clone().unallocate();
            if self.is_enough(client, &self.fit(client, &back)) {
                return Reason::HeldInOffer { by: self.frameworks[framework].id.clone(), since };
            }
        }
        if let Some(reason) = self.why_not_fit(client, agent.ledger.free()) {
            return reason;
        }
        match self.is_enough(client, &self.fit(client, agent.ledger.total())) {
            true => Reason::InUse,
            false => self.why_not_fit(client, agent.ledger.total()).unwrap_or(Reason::BelowMinAllocatable),
        }
    }

    /// Whether there would be enough if the client could have more of these.
    fn why_not_fit(&self, client: ClientSlot, some: &Resources) -> Option<Reason> {
        let (role, traits) = (self.tree.role_of(client), self.tree.glance(client).traits);
        let mine = some.allocatable_to(role);
        for (one, capability) in [
            (Traits::REVOCABLE, Capability::RevocableResources),
            (Traits::REFINED, Capability::ReservationRefinement),
            (Traits::SHARED, Capability::SharedResources),
        ] {
            let more = traits.with(one);
            if self.is_enough(client, &mine.filter(|resource| can_handle(more, resource))) {
                return (more != traits).then_some(Reason::LacksCapability(capability));
            }
        }
        let others =
            some.filter(|resource| !resource.is_allocatable_to(role) && can_handle(traits, resource));
        let owner = others.iter().find_map(Resource::reservation_role)?;
        self.is_enough(client, &others).then(|| Reason::ReservedFor(owner.clone()))
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
