//! What stands first between one agent and one client, and between what is idle of it and the client: the questions of
//! the cycle, asked one by one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tepui_fsm::Mono;
use tepui_resources::{Resource, Resources, Role};

use super::{Capability, Finding, Reason};
use crate::allocator::Agent;
use crate::booking::{is_plain, plain_quantities};
use crate::cycle::Stage;
use crate::ledger::{Ledger, is_slack};
use crate::look::can_handle;
use crate::marks::Traits;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, NodeSlot, Slot};
use crate::slack::is_lendable;
use crate::{Allocator, Held};

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
    Borrows,
    OthersFirst,
    NothingReserved,
    NotLent(Option<NodeSlot>),
    LentTo(FrameworkSlot),
    Suppressed,
    FrameworkInactive,
}

/// Agents by what stands in their way. Outlives slots: what the reasons name is told by its own name.
#[derive(Clone, Debug, Default)]
pub(super) struct Tallies {
    ordinary: BTreeMap<Key, Finding>,
    slack: BTreeMap<Key, Finding>,
}

/// The same for reasons that are told as one.
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

impl Why {
    fn key(self) -> Key {
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
            Why::Borrows => (13, 0),
            Why::NothingReserved => (14, 0),
            Why::NotLent(role) => (15, role.map_or(0, |role| role.index() + 1)),
            Why::LentTo(framework) => (16, framework.index()),
            Why::Suppressed => (17, 0),
            Why::FrameworkInactive => (18, 0),
            Why::OthersFirst => (19, 0),
        }
    }
}

impl Reason {
    /// Takes in another of the same key: the oldest offer, the longest refusal.
    fn merge(&mut self, other: Why) {
        match (self, other) {
            (Reason::Offered { since }, Why::Offered { since: other })
            | (Reason::HeldInOffer { since, .. }, Why::HeldInOffer { since: other, .. }) => {
                *since = other.min(*since);
            }
            (Reason::Refused { until, .. }, Why::Refused { until: other }) => *until = other.max(*until),
            _ => (),
        }
    }
}

impl Allocator {
    /// Counts an agent under what stands in its way.
    pub(super) fn tally(&self, slot: AgentSlot, client: ClientSlot, tallies: &mut Tallies) {
        let why = self.why(slot, client);
        self.count(&mut tallies.ordinary, slot, why, || {
            let refused = self.fit(client, self.agents[slot].ledger.free());
            self.reason(why, refused)
        });
        let why = self.why_not_lent(slot, client);
        self.count(&mut tallies.slack, slot, why, || self.reason(why, self.loanable(slot, client)));
    }

    fn count(
        &self,
        findings: &mut BTreeMap<Key, Finding>,
        slot: AgentSlot,
        why: Why,
        reason: impl FnOnce() -> Reason,
    ) {
        let finding = findings.entry(why.key()).or_insert_with(|| Finding {
            reason: reason(),
            agents: 0,
            example: self.agents[slot].id.clone(),
        });
        finding.agents += 1;
        finding.reason.merge(why);
    }

    fn reason(&self, why: Why, refused: Resources) -> Reason {
        let role = |node: NodeSlot| self.tree.nodes[node].role.clone();
        match why {
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
            Why::Refused { until } => Reason::Refused { until, refused },
            Why::QuotaLimit(node) => {
                let claims = &self.tree.nodes[node].claims;
                let (consumed, limits) = (claims.consumed.clone(), claims.quota.limits.clone());
                Reason::QuotaLimit { role: role(node), consumed, limits }
            }
            Why::Headroom => Reason::Headroom { required: self.tree.required().clone() },
            Why::Borrows => Reason::Borrows,
            Why::OthersFirst => Reason::OthersFirst,
            Why::NothingReserved => Reason::NothingReserved,
            Why::NotLent(owner) => Reason::NotLent(owner.map(role)),
            Why::LentTo(borrower) => Reason::LentTo(self.frameworks[borrower].id.clone()),
            Why::Suppressed => Reason::Suppressed,
            Why::FrameworkInactive => Reason::FrameworkInactive,
        }
    }

    fn why(&self, slot: AgentSlot, client: ClientSlot) -> Why {
        if let Some(why) = self.why_not_at_all(slot, client) {
            return why;
        }
        let fit = self.fit(client, self.agents[slot].ledger.free());
        match self.is_enough(client, &fit) {
            true => self.why_not_all(slot, client, &fit),
            // It is added to a loan that is enough for an offer.
            false if !fit.is_empty() && self.takes_loan_alone(slot, client) => self.why_not_now(client),
            false => self.why_too_little(slot, client),
        }
    }

    /// Whether what could be lent is enough for an offer, and not refused.
    fn takes_loan_alone(&self, slot: AgentSlot, client: ClientSlot) -> bool {
        let loan = self.loanable(slot, client);
        let borrows = self.tree.glance(client).traits.has_any(Traits::REVOCABLE);
        borrows && self.is_enough(client, &loan) && !self.filters.covers(client, slot, &loan)
    }

    /// Whether the agent as a whole is nothing for the client.
    fn why_not_at_all(&self, slot: AgentSlot, client: ClientSlot) -> Option<Why> {
        let agent = &self.agents[slot];
        if !agent.active {
            return Some(Why::AgentInactive);
        }
        if !agent.whitelisted {
            return Some(Why::NotWhitelisted);
        }
        let traits = self.tree.glance(client).traits;
        let lacking = self.lacking(agent, traits).map(Why::LacksCapability);
        let constraints = self.tree.clients[client].wishes.constraints.as_ref();
        let excluded = || constraints.is_some_and(|constraints| !constraints.admit(&agent.spec));
        lacking.or_else(|| excluded().then_some(Why::OfferConstraint))
    }

    fn why_not_lent(&self, slot: AgentSlot, client: ClientSlot) -> Why {
        let (ledger, own) = (&self.agents[slot].ledger, self.tree.clients[client].framework);
        let (slack, role) = (ledger.slack(), self.tree.role_of(client));
        if let Some(why) = borrowing(ledger, own, role) {
            return why;
        }
        let Some(owner) =
            ledger.total().iter().filter(|one| is_lendable(one)).find_map(Resource::reservation_role)
        else {
            return Why::NothingReserved;
        };
        if slack.total().is_empty() {
            return Why::NotLent(self.tree.node(owner).filter(|_| self.options.allocation_slack));
        }
        if let Some(why) = self.why_not_at_all(slot, client) {
            return why;
        }
        if !self.tree.glance(client).traits.has_any(Traits::REVOCABLE) {
            return Why::LacksCapability(Capability::RevocableResources);
        }
        self.why_no_loan(slot, client, own)
    }

    /// It could borrow if enough were left.
    fn why_no_loan(&self, slot: AgentSlot, client: ClientSlot, own: FrameworkSlot) -> Why {
        let (ledger, role) = (&self.agents[slot].ledger, self.tree.role_of(client));
        let slack = ledger.slack();
        let idle = slack.idle();
        if idle.is_empty() {
            return Why::InUse;
        }
        let foreign = idle.allocation_slack(Some(role));
        if foreign.is_empty() {
            return Why::ReservedFor(self.tree.clients[client].node);
        }
        let rest = self.loanable(slot, client);
        // Too little or refused by itself, it is added to an ordinary offer.
        if !rest.is_empty()
            && !self.takes_loan_alone(slot, client)
            && matches!(self.why(slot, client), Why::Waiting)
        {
            return Why::Waiting;
        }
        if self.is_enough(client, &rest) {
            return match self.filters.refused_until(client, slot, &rest) {
                Some(until) => Why::Refused { until },
                None => self.why_no_turn(slot, client),
            };
        }
        let borrows = |held: &Held| [&held.offered, &held.used].iter().any(|part| part.iter().any(is_slack));
        let mut others = ledger.held().filter(|(framework, held)| *framework != own && borrows(held));
        match others.next() {
            Some((other, _)) if self.is_enough(client, &foreign) => Why::LentTo(other),
            Some(_) | None => Why::BelowMinAllocatable,
        }
    }

    /// It could be lent something of the agent, and others could as well.
    fn why_no_turn(&self, slot: AgentSlot, client: ClientSlot) -> Why {
        let asked = self.borrowers.slot(client).filter(|it| self.agents[slot].asked.contains(*it));
        match self.why_not_now(client) {
            Why::Waiting if asked.is_some() => Why::OthersFirst,
            why => why,
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
                None => self.why_not_now(client),
            };
        }
        self.limiting(node, &part, fit).unwrap_or(Why::Headroom)
    }

    /// Nothing about the agent stands in the way.
    fn why_not_now(&self, client: ClientSlot) -> Why {
        let framework = &self.frameworks[self.tree.clients[client].framework];
        match framework.suppressed.contains(self.tree.role_of(client)) {
            _ if !framework.active => Why::FrameworkInactive,
            true => Why::Suppressed,
            false => Why::Waiting,
        }
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
            let offered = offered.filter(|resource| !is_slack(resource));
            if framework == own && !offered.is_empty() {
                return Why::Offered { since };
            }
            back += offered.unallocate();
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

/// Whether the framework has slack of this agent for the role already.
fn borrowing(ledger: &Ledger, framework: FrameworkSlot, role: &Role) -> Option<Why> {
    let is_own = |one: &Resource| is_slack(one) && one.allocation() == Some(role);
    let offers = ledger.offers().find(|(by, offered, _)| *by == framework && offered.iter().any(is_own));
    if let Some((_, _, since)) = offers {
        return Some(Why::Offered { since });
    }
    ledger.held_by(framework).filter(|held| held.used.iter().any(is_own)).map(|_| Why::Borrows)
}
