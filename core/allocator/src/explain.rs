//! Explain: why a framework or a role was offered what it was, and was not offered the rest.
//!
//! Found out when somebody asks, from the same books and by the same rules that the cycle uses; nothing is kept for it
//! but the times of offers. Each agent is counted under the one thing that stands first in the way.
//!
//! Never: words for people (the master's answer and the command line have those).

use alloc::vec::Vec;

use tepui_fsm::Mono;
use tepui_resources::{Limits, Quantities, Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::cycle::Stage;
use crate::share::Weight;
use crate::slab::{ClientSlot, FrameworkSlot, NodeSlot};
use crate::tree::Child;
use crate::walk::{Scope, Walk};
use crate::{Allocator, Quota};

mod why;

/// How a framework stands in each of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameworkReport {
    pub framework: FrameworkId,
    /// Connected: an inactive framework is offered nothing.
    pub active: bool,
    /// By role.
    pub roles: Vec<Standing>,
}

/// A framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub framework: FrameworkId,
    pub role: Role,
    /// Connected: an inactive framework is offered nothing.
    pub active: bool,
    /// It wants no offers for this role.
    pub suppressed: bool,
    /// Of the cluster, by its dominant resource.
    pub share: f64,
    pub held: Quantities,
    /// Where it stands among all that can be offered something.
    pub place: Option<Place>,
    /// When it was last offered something in this role, if it ever was.
    pub last_offered: Option<Mono>,
    /// Of every agent, what stands first in the way; most agents first. Only where a framework was asked about.
    pub findings: Vec<Finding>,
}

/// What stands first in the way of some agents.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub reason: Reason,
    pub agents: usize,
    /// One of them.
    pub example: AgentId,
}

/// `place` of `of`; the first is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub place: usize,
    pub of: usize,
}

/// How a role stands among its siblings, and its frameworks in it.
#[derive(Clone, Debug, PartialEq)]
pub struct RoleReport {
    pub role: Role,
    pub weight: f64,
    /// Of the cluster, by its dominant resource, divided by the weight; with all below it.
    pub share: f64,
    pub held: Quantities,
    /// Among its siblings that can be offered something.
    pub place: Option<Place>,
    pub quota: Option<Quota>,
    pub consumed: Quantities,
    /// Guaranteed and not there yet: so much is kept for it.
    pub required: Quantities,
    /// What may go to anybody, beside all that is kept.
    pub surplus: Quantities,
    /// Those in this very role.
    pub frameworks: Vec<Standing>,
}

/// What stands between an agent and a framework in a role.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// Nothing: it is looked at with the next batch, or others come first.
    Waiting,
    /// Something of it is offered to this framework already: the oldest such offer.
    Offered {
        since: Mono,
    },
    /// Not connected, deactivated, draining.
    AgentInactive,
    NotWhitelisted,
    /// The framework lacks this capability; for `MultiRole` and `HierarchicalRole` the agent does.
    LacksCapability(Capability),
    OfferConstraint,
    /// Enough would be free if this framework had answered an offer: the oldest such offer.
    HeldInOffer {
        by: FrameworkId,
        since: Mono,
    },
    /// Enough would be free if it were not reserved for this role.
    ReservedFor(Role),
    /// All that is fit for it is in use.
    InUse,
    /// What is free, or the whole agent, is less than the smallest offer.
    BelowMinAllocatable,
    /// Its own refusal of these, and when the last such refusal ends.
    Refused {
        until: Mono,
        refused: Resources,
    },
    /// This role is at its limit.
    QuotaLimit {
        role: Role,
        consumed: Quantities,
        limits: Limits,
    },
    /// Kept for guarantees that are not met.
    Headroom {
        required: Quantities,
    },
}

/// Names as v1 has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    GpuResources,
    RegionAware,
    RevocableResources,
    SharedResources,
    ReservationRefinement,
    MultiRole,
    HierarchicalRole,
}

impl Allocator {
    /// Walks all agents once per role of the framework.
    pub fn explain_framework(&mut self, id: &FrameworkId) -> Option<FrameworkReport> {
        let slot = self.framework_slot(id)?;
        self.tree.settle_order();
        let order = self.order();
        let mut roles = Vec::new();
        for client in self.subscribed_clients(slot) {
            let mut standing = self.standing(client, &order);
            standing.findings = self.findings(client);
            roles.push(standing);
        }
        roles.sort_by(|a, b| a.role.cmp(&b.role));
        Some(FrameworkReport { framework: id.clone(), active: self.frameworks[slot].active, roles })
    }

    pub fn explain_role(&mut self, role: &Role) -> Option<RoleReport> {
        let slot = self.tree.node(role)?;
        self.tree.settle_order();
        let order = self.order();
        let own = self.tree.clients.iter().filter(|(_, client)| client.node == slot && client.subscribed);
        let frameworks = own.map(|(client, _)| self.standing(client, &order)).collect();
        let node = &self.tree.nodes[slot];
        Some(RoleReport {
            role: role.clone(),
            weight: node.weight.to_f64(),
            share: self.tree.share(&node.subtree.amount, node.weight).to_f64(),
            held: node.subtree.amount.clone(),
            place: self.place_among_siblings(slot),
            quota: self.quota(role).cloned(),
            consumed: node.claims.consumed.clone(),
            required: node.claims.required.clone(),
            surplus: self.tree.surplus(),
            frameworks,
        })
    }

    fn subscribed_clients(&self, framework: FrameworkSlot) -> Vec<ClientSlot> {
        let mut clients = self.tree.clients_of(framework);
        clients.retain(|client| self.tree.clients[*client].subscribed);
        clients
    }

    fn order(&self) -> Vec<ClientSlot> {
        let mut walk = Walk::new(Scope::All);
        walk.start(&self.tree, Stage::Everyone);
        core::iter::from_fn(|| walk.next(&self.tree)).collect()
    }

    fn standing(&self, client: ClientSlot, order: &[ClientSlot]) -> Standing {
        let entry = &self.tree.clients[client];
        let role = self.tree.role_of(client).clone();
        let place = order.iter().position(|other| *other == client);
        let framework = &self.frameworks[entry.framework];
        Standing {
            framework: framework.id.clone(),
            active: framework.active,
            suppressed: framework.suppressed.contains(&role),
            role,
            share: self.tree.share(&entry.held.amount, Weight::ONE).to_f64(),
            held: entry.held.amount.clone(),
            place: place.map(|place| Place { place: place + 1, of: order.len() }),
            last_offered: entry.last_offered,
            findings: Vec::new(),
        }
    }

    fn place_among_siblings(&self, node: NodeSlot) -> Option<Place> {
        let parent = self.tree.nodes[node].parent?;
        let siblings = &self.tree.nodes[parent].children;
        let place = siblings.iter().position(|(_, child)| child == Child::Role(node))?;
        Some(Place { place: place + 1, of: siblings.len() })
    }
}

#[cfg(test)]
mod tests;
