//! The first obstacle between one agent and one client, and between its idle reservations and the client: the
//! conditions of the cycle, one by one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tepui_fsm::Mono;
use tepui_resources::{Resource, Resources, Role};

use super::{Capability, Finding, Reason};
use crate::agent::Agent;
use crate::candidates::can_handle;
use crate::grant::Stage;
use crate::ledger::Ledger;
use crate::marks::Traits;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slot};
use crate::slack_books::{is_lendable, is_slack};
use crate::tally::{is_plain, plain_quantities};
use crate::{Allocator, Held};

/// A reason, cheap to make and to compare.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
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
    Borrows,
    OthersFirst,
    NothingReserved,
    NotLent(Option<NodeSlot>),
    LentTo(FrameworkSlot),
    Suppressed,
    FrameworkInactive,
}

/// Agents by their obstacle. Outlives slots: entities in the reasons are named by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    ordinary: BTreeMap<Key, Finding>,
    slack: BTreeMap<Key, Finding>,
}

/// The same for reasons that are reported as one.
type Key = (u8, usize);

impl Tallies {
    /// Most agents first.
    pub(super) fn findings(self) -> (Vec<Finding>, Vec<Finding>) {
        let sorted = |findings: BTreeMap<Key, Finding>| {
            let mut findings: Vec<Finding> = findings.into_values().collect();
            findings.sort_by_key(|finding| Reverse(finding.agents));
            findings
        };
        (sorted(self.ordinary), sorted(self.slack))
    }
}

impl Obstacle {
    fn key(self) -> Key {
        match self {
            Obstacle::Waiting => (0, 0),
            Obstacle::Offered { .. } => (1, 0),
            Obstacle::AgentInactive => (2, 0),
            Obstacle::NotWhitelisted => (3, 0),
            Obstacle::LacksCapability(capability) => (4, capability as usize),
            Obstacle::OfferConstraint => (5, 0),
            Obstacle::HeldInOffer { by, .. } => (6, by.index()),
            Obstacle::ReservedFor(role) => (7, role.index()),
            Obstacle::InUse => (8, 0),
            Obstacle::BelowMinAllocatable => (9, 0),
            Obstacle::Refused { .. } => (10, 0),
            Obstacle::QuotaLimit(role) => (11, role.index()),
            Obstacle::Headroom => (12, 0),
            Obstacle::Borrows => (13, 0),
            Obstacle::NothingReserved => (14, 0),
            Obstacle::NotLent(role) => (15, role.map_or(0, |role| role.index() + 1)),
            Obstacle::LentTo(framework) => (16, framework.index()),
            Obstacle::Suppressed => (17, 0),
            Obstacle::FrameworkInactive => (18, 0),
            Obstacle::OthersFirst => (19, 0),
        }
    }
}

impl Reason {
    /// Takes in another of the same key: the oldest offer, the longest refusal.
    fn merge(&mut self, other: Obstacle) {
        match (self, other) {
            (Reason::Offered { since }, Obstacle::Offered { since: other })
            | (Reason::HeldInOffer { since, .. }, Obstacle::HeldInOffer { since: other, .. }) => {
                *since = other.min(*since);
            }
            (Reason::Refused { until, .. }, Obstacle::Refused { until: other }) => *until = other.max(*until),
            _ => (),
        }
    }
}

impl Allocator {
    /// Counts an agent under what stands in its way.
    pub(super) fn tally(&self, slot: AgentSlot, client: ClientSlot, tallies: &mut Tallies) {
        let obstacle = self.obstacle(slot, client);
        self.count(&mut tallies.ordinary, slot, obstacle, || {
            let refused = self.fit(client, self.agents[slot].ledger.free());
            self.reason(obstacle, refused)
        });
        let obstacle = self.slack_obstacle(slot, client);
        self.count(&mut tallies.slack, slot, obstacle, || self.reason(obstacle, self.loanable(slot, client)));
    }

    fn count(
        &self,
        findings: &mut BTreeMap<Key, Finding>,
        slot: AgentSlot,
        obstacle: Obstacle,
        reason: impl FnOnce() -> Reason,
    ) {
        let finding = findings.entry(obstacle.key()).or_insert_with(|| Finding {
            reason: reason(),
            agents: 0,
            example: self.agents[slot].id.clone(),
        });
        finding.agents += 1;
        finding.reason.merge(obstacle);
    }

    fn reason(&self, obstacle: Obstacle, refused: Resources) -> Reason {
        let role = |node: NodeSlot| self.tree.nodes[node].role.clone();
        match obstacle {
            Obstacle::Waiting => Reason::Waiting,
            Obstacle::Offered { since } => Reason::Offered { since },
            Obstacle::AgentInactive => Reason::AgentInactive,
            Obstacle::NotWhitelisted => Reason::NotWhitelisted,
            Obstacle::LacksCapability(capability) => Reason::LacksCapability(capability),
            Obstacle::OfferConstraint => Reason::OfferConstraint,
            Obstacle::HeldInOffer { by, since } => {
                Reason::HeldInOffer { by: self.frameworks[by].id.clone(), since }
            }
            Obstacle::ReservedFor(node) => Reason::ReservedFor(role(node)),
            Obstacle::InUse => Reason::InUse,
            Obstacle::BelowMinAllocatable => Reason::BelowMinAllocatable,
            Obstacle::Refused { until } => Reason::Refused { until, refused },
            Obstacle::QuotaLimit(node) => {
                let claims = &self.tree.nodes[node].claims;
                let (consumed, limits) = (claims.consumed.clone(), claims.quota.limits.clone());
                Reason::QuotaLimit { role: role(node), consumed, limits }
            }
            Obstacle::Headroom => Reason::Headroom { required: self.tree.required().clone() },
            Obstacle::Borrows => Reason::Borrows,
            Obstacle::OthersFirst => Reason::OthersFirst,
            Obstacle::NothingReserved => Reason::NothingReserved,
            Obstacle::NotLent(owner) => Reason::NotLent(owner.map(role)),
            Obstacle::LentTo(borrower) => Reason::LentTo(self.frameworks[borrower].id.clone()),
            Obstacle::Suppressed => Reason::Suppressed,
            Obstacle::FrameworkInactive => Reason::FrameworkInactive,
        }
    }

    fn obstacle(&self, slot: AgentSlot, client: ClientSlot) -> Obstacle {
        if let Some(obstacle) = self.permanent_obstacle(slot, client) {
            return obstacle;
        }
        let fit = self.fit(client, self.agents[slot].ledger.free());
        match self.is_enough(client, &fit) {
            true => self.quota_obstacle(slot, client, &fit),
            // It is added to a loan that is enough for an offer.
            false if !fit.is_empty() && self.takes_loan_alone(slot, client) => self.timing_obstacle(client),
            false => self.size_obstacle(slot, client),
        }
    }

    /// Whether what could be lent is enough for an offer, and not refused.
    fn takes_loan_alone(&self, slot: AgentSlot, client: ClientSlot) -> bool {
        let loan = self.loanable(slot, client);
        let borrows = self.tree.client_traits(client).traits.has_any(Traits::REVOCABLE);
        borrows && self.is_enough(client, &loan) && !self.filters.covers(client, slot, &loan)
    }

    /// Whether the agent as a whole is nothing for the client.
    fn permanent_obstacle(&self, slot: AgentSlot, client: ClientSlot) -> Option<Obstacle> {
        let agent = &self.agents[slot];
        if !agent.active {
            return Some(Obstacle::AgentInactive);
        }
        if !agent.whitelisted {
            return Some(Obstacle::NotWhitelisted);
        }
        let traits = self.tree.client_traits(client).traits;
        let lacking = self.lacking(agent, traits).map(Obstacle::LacksCapability);
        let constraints = self.tree.clients[client].terms.constraints.as_ref();
        let excluded = || constraints.is_some_and(|constraints| !constraints.admit(&agent.spec));
        lacking.or_else(|| excluded().then_some(Obstacle::OfferConstraint))
    }

    fn slack_obstacle(&self, slot: AgentSlot, client: ClientSlot) -> Obstacle {
        let (ledger, own) = (&self.agents[slot].ledger, self.tree.clients[client].framework);
        let (slack, role) = (ledger.slack(), self.tree.role_of(client));
        if let Some(obstacle) = borrowing(ledger, own, role) {
            return obstacle;
        }
        let Some(owner) =
            ledger.total().iter().filter(|one| is_lendable(one)).find_map(Resource::reservation_role)
        else {
            return Obstacle::NothingReserved;
        };
        if slack.total().is_empty() {
            return Obstacle::NotLent(self.tree.node(owner).filter(|_| self.options.allocation_slack));
        }
        if let Some(obstacle) = self.permanent_obstacle(slot, client) {
            return obstacle;
        }
        if !self.tree.client_traits(client).traits.has_any(Traits::REVOCABLE) {
            return Obstacle::LacksCapability(Capability::RevocableResources);
        }
        self.loan_obstacle(slot, client, own)
    }

    /// It could borrow if enough were left.
    fn loan_obstacle(&self, slot: AgentSlot, client: ClientSlot, own: FrameworkSlot) -> Obstacle {
        let (ledger, role) = (&self.agents[slot].ledger, self.tree.role_of(client));
        let slack = ledger.slack();
        let idle = slack.idle();
        if idle.is_empty() {
            return Obstacle::InUse;
        }
        let foreign = idle.allocation_slack(Some(role));
        if foreign.is_empty() {
            return Obstacle::ReservedFor(self.tree.clients[client].node);
        }
        let rest = self.loanable(slot, client);
        // Too little or refused by itself, it is added to an ordinary offer.
        if !rest.is_empty()
            && !self.takes_loan_alone(slot, client)
            && matches!(self.obstacle(slot, client), Obstacle::Waiting)
        {
            return Obstacle::Waiting;
        }
        if self.is_enough(client, &rest) {
            return match self.filters.refused_until(client, slot, &rest) {
                Some(until) => Obstacle::Refused { until },
                None => self.turn_obstacle(slot, client),
            };
        }
        let borrows = |held: &Held| [&held.offered, &held.used].iter().any(|part| part.iter().any(is_slack));
        let mut others = ledger.held().filter(|(framework, held)| *framework != own && borrows(held));
        match others.next() {
            Some((other, _)) if self.is_enough(client, &foreign) => Obstacle::LentTo(other),
            Some(_) | None => Obstacle::BelowMinAllocatable,
        }
    }

    /// It could be lent something of the agent, and others could as well.
    fn turn_obstacle(&self, slot: AgentSlot, client: ClientSlot) -> Obstacle {
        let served = self.borrowers.slot(client).filter(|it| self.agents[slot].served.contains(*it));
        match self.timing_obstacle(client) {
            Obstacle::Waiting if served.is_some() => Obstacle::OthersFirst,
            obstacle => obstacle,
        }
    }

    /// What is left of others' idle reservations for the client.
    fn loanable(&self, slot: AgentSlot, client: ClientSlot) -> Resources {
        let slack = self.agents[slot].ledger.slack();
        &slack.idle().allocation_slack(Some(self.tree.role_of(client))) - slack.lent()
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
    fn quota_obstacle(&self, slot: AgentSlot, client: ClientSlot, fit: &Resources) -> Obstacle {
        if let Some(until) = self.filters.refused_until(client, slot, fit) {
            return Obstacle::Refused { until };
        }
        let node = self.tree.clients[client].node;
        let plain = plain_quantities(fit);
        let amount = self.tree.allowance(node, &plain, Stage::Guarantees).amount;
        let part = fit.filter(is_plain).shrink_to(&amount) + &fit.filter(|resource| !is_plain(resource));
        if self.is_enough(client, &part) {
            return match self.filters.refused_until(client, slot, &part) {
                Some(until) => Obstacle::Refused { until },
                None => self.timing_obstacle(client),
            };
        }
        self.limiting(node, &part, fit).unwrap_or(Obstacle::Headroom)
    }

    /// Nothing about the agent stands in the way.
    fn timing_obstacle(&self, client: ClientSlot) -> Obstacle {
        let framework = &self.frameworks[self.tree.clients[client].framework];
        match framework.suppressed.contains(self.tree.role_of(client)) {
            _ if !framework.active => Obstacle::FrameworkInactive,
            true => Obstacle::Suppressed,
            false => Obstacle::Waiting,
        }
    }

    /// The first role from here upwards whose limit allows less than is available.
    fn limiting(&self, node: NodeSlot, part: &Resources, fit: &Resources) -> Option<Obstacle> {
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
                return Some(Obstacle::QuotaLimit(at));
            }
            next = node.parent;
        }
        None
    }

    /// What is free and fit is less than the smallest offer.
    fn size_obstacle(&self, slot: AgentSlot, client: ClientSlot) -> Obstacle {
        let agent = &self.agents[slot];
        let own = self.tree.clients[client].framework;
        let mut back = agent.ledger.free().clone();
        for (framework, offered, since) in agent.ledger.offers() {
            let offered = offered.filter(|resource| !is_slack(resource));
            if framework == own && !offered.is_empty() {
                return Obstacle::Offered { since };
            }
            back += offered.unallocate();
            if self.is_enough(client, &self.fit(client, &back)) {
                return Obstacle::HeldInOffer { by: framework, since };
            }
        }
        if let Some(reason) = self.capability_obstacle(client, agent.ledger.free()) {
            return reason;
        }
        match self.is_enough(client, &self.fit(client, agent.ledger.total())) {
            true => Obstacle::InUse,
            false => self
                .capability_obstacle(client, agent.ledger.total())
                .unwrap_or(Obstacle::BelowMinAllocatable),
        }
    }

    /// Whether there would be enough if the client could have more of these.
    fn capability_obstacle(&self, client: ClientSlot, some: &Resources) -> Option<Obstacle> {
        let (role, traits) = (self.tree.role_of(client), self.tree.client_traits(client).traits);
        let mine = some.allocatable_to(role);
        for (one, capability) in [
            (Traits::REVOCABLE, Capability::RevocableResources),
            (Traits::REFINED, Capability::ReservationRefinement),
            (Traits::SHARED, Capability::SharedResources),
        ] {
            let more = traits.with(one);
            if self.is_enough(client, &mine.filter(|resource| can_handle(more, resource))) {
                return (more != traits).then_some(Obstacle::LacksCapability(capability));
            }
        }
        let others =
            some.filter(|resource| !resource.is_allocatable_to(role) && can_handle(traits, resource));
        let owner =
            others.iter().find_map(Resource::reservation_role).and_then(|role| self.tree.node(role))?;
        self.is_enough(client, &others).then_some(Obstacle::ReservedFor(owner))
    }

    fn fit(&self, client: ClientSlot, some: &Resources) -> Resources {
        let (role, traits) = (self.tree.role_of(client), self.tree.client_traits(client).traits);
        some.filter(|resource| resource.is_allocatable_to(role) && can_handle(traits, resource))
    }

    fn is_enough(&self, client: ClientSlot, some: &Resources) -> bool {
        let own = self.tree.clients[client].terms.min_allocatable.as_ref();
        own.unwrap_or(&self.options.min_allocatable).allows(&some.quantities())
    }
}

/// Whether the framework has slack of this agent for the role already.
fn borrowing(ledger: &Ledger, framework: FrameworkSlot, role: &Role) -> Option<Obstacle> {
    let is_own = |one: &Resource| is_slack(one) && one.allocation() == Some(role);
    let offers = ledger.offers().find(|(by, offered, _)| *by == framework && offered.iter().any(is_own));
    if let Some((_, _, since)) = offers {
        return Some(Obstacle::Offered { since });
    }
    ledger.held_by(framework).filter(|held| held.used.iter().any(is_own)).map(|_| Obstacle::Borrows)
}
