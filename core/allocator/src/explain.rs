//! Explain: why a framework or a role was offered some resources and not the others.
//!
//! Computed on request, from the same data and by the same rules as the cycle; only the times of offers are stored
//! for it. Each agent is counted under the first obstacle to an offer, and under the first obstacle to lending its
//! idle reservations. An inquiry takes as many calls as its budgets make it: entities removed by the next call are
//! left out, new ones are included. Absent: texts (the master's answer and the command line have those).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Budget, Mono};
use tepui_resources::{Limits, Quantities, Resource, Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::grant::{Scope, Stage};
use crate::share::Weight;
use crate::slab::{ClientSlot, FrameworkSlot, NodeSlot, Slot};
use crate::slack_books::is_slack;
use crate::tree::{Child, Tree};
use crate::walk::Walk;
use crate::{Allocator, Quota};
use obstacle::Tallies;

mod obstacle;

/// How a framework stands in each of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameworkReport {
    pub framework: FrameworkId,
    /// Connected: an inactive framework is offered nothing.
    pub active: bool,
    /// By role.
    pub roles: Vec<ClientReport>,
}

/// A framework in one of its roles.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientReport {
    pub framework: FrameworkId,
    pub role: Role,
    /// Connected: an inactive framework is offered nothing.
    pub active: bool,
    /// It suppressed this role.
    pub suppressed: bool,
    /// Of the cluster, by its dominant resource.
    pub share: f64,
    pub held: Quantities,
    /// Where it stands among all that can be offered something.
    pub place: Option<Place>,
    /// When it was last offered something in this role, if it ever was.
    pub last_offered: Option<Mono>,
    /// The first obstacle of every agent; most agents first. Only for a framework.
    pub findings: Vec<Finding>,
    pub borrowing: Borrowing,
    /// Of every agent, what stands first in the way of lending; most agents first.
    pub slack: Vec<Finding>,
}

/// How a framework or a role stands among borrowers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Borrowing {
    /// What is lent to it, offered or used; to a role with all below it.
    pub borrowed: Quantities,
    /// Of all that can be lent, by the dominant resource; of a role divided by its weight.
    pub share: f64,
    /// Of a framework among all borrowers, of a role among its siblings.
    pub place: Option<Place>,
}

/// A question about a framework that is being answered.
#[derive(Clone, Debug)]
pub struct Inquiry {
    framework: FrameworkId,
    /// The first agent that is not evaluated yet.
    next: usize,
    roles: BTreeMap<Role, Tallies>,
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
    /// Available to any role, beyond all that is required.
    pub surplus: Quantities,
    pub borrowing: Borrowing,
    /// Those in this very role.
    pub frameworks: Vec<ClientReport>,
}

/// What stands between an agent and a framework in a role.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// No obstacle: it is shown with the next batch, or others come first.
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
    /// Of slack: it has some of this agent in use.
    Borrows,
    /// Of slack: it was offered some of this agent and used none, so other borrowers come first.
    OthersFirst,
    /// Of slack: nothing is reserved there.
    NothingReserved,
    /// Of slack: nothing is lent in this cluster, or nothing of what is reserved for this role.
    NotLent(Option<Role>),
    /// Of slack: all that is idle is lent already, to this framework for one.
    LentTo(FrameworkId),
    /// No obstacle but that it suppressed this role.
    Suppressed,
    /// Nothing but that the framework is not connected.
    FrameworkInactive,
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
    /// Begins to find out how a framework stands, if there is one.
    pub fn inquire(&self, id: &FrameworkId) -> Option<Inquiry> {
        self.framework_slot(id).map(|_| Inquiry { framework: id.clone(), next: 0, roles: BTreeMap::new() })
    }

    /// Evaluates every agent once per role of the framework, as long as the budget lasts; returns whether that was
    /// all.
    pub fn advance(&self, inquiry: &mut Inquiry, budget: &mut Budget<'_>) -> bool {
        let Some(slot) = self.framework_slot(&inquiry.framework) else { return true };
        let clients = self.subscribed_clients(slot);
        for agent in self.agents.slots_from(inquiry.next) {
            for client in &clients {
                let role = self.tree.role_of(*client);
                let tallies = match inquiry.roles.get_mut(role) {
                    Some(tallies) => tallies,
                    None => inquiry.roles.entry(role.clone()).or_default(),
                };
                self.tally(agent, *client, tallies);
            }
            inquiry.next = agent.index() + 1;
            if !budget() {
                return false;
            }
        }
        true
    }

    /// The answer, if the framework is still there.
    pub fn answer(&mut self, mut inquiry: Inquiry) -> Option<FrameworkReport> {
        let slot = self.framework_slot(&inquiry.framework)?;
        let orders = self.orders();
        let mut roles = Vec::new();
        for client in self.subscribed_clients(slot) {
            let mut client_report = self.client_report(client, &orders);
            let tallies = inquiry.roles.remove(&client_report.role).unwrap_or_default();
            (client_report.findings, client_report.slack) = tallies.findings();
            client_report.borrowing.borrowed = self.borrowed(client);
            roles.push(client_report);
        }
        roles.sort_by(|a, b| a.role.cmp(&b.role));
        Some(FrameworkReport { framework: inquiry.framework, active: self.frameworks[slot].active, roles })
    }

    fn borrowed(&self, client: ClientSlot) -> Quantities {
        let (framework, role) = (self.tree.clients[client].framework, self.tree.role_of(client));
        let is_own = |one: &Resource| is_slack(one) && one.allocation() == Some(role);
        let held = self.frameworks[framework].agents.iter();
        let held = held.filter_map(|agent| self.agents[agent].ledger.held_by(framework));
        let parts = held.flat_map(|held| [&held.offered, &held.used]);
        parts.fold(Quantities::new(), |sum, part| sum + &part.filter(is_own).quantities())
    }

    pub fn explain_role(&mut self, role: &Role) -> Option<RoleReport> {
        let slot = self.tree.node(role)?;
        let orders = self.orders();
        let own = self.tree.clients.iter().filter(|(_, client)| client.node == slot && client.subscribed);
        let frameworks = own.map(|(client, _)| self.client_report(client, &orders)).collect();
        let node = &self.tree.nodes[slot];
        Some(RoleReport {
            role: role.clone(),
            weight: node.weight.to_f64(),
            share: self.tree.share(&node.subtree.amount, node.weight).to_f64(),
            held: node.subtree.amount.clone(),
            place: place_among_siblings(&self.tree, slot),
            borrowing: self.borrowing_of(role),
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

    fn orders(&mut self) -> Orders {
        self.tree.settle_order();
        self.borrowers.tree.settle_order();
        Orders { clients: order(&self.tree), borrowers: order(&self.borrowers.tree) }
    }

    fn borrowing_of(&self, role: &Role) -> Borrowing {
        let tree = &self.borrowers.tree;
        let Some(slot) = tree.node(role) else { return Borrowing::default() };
        let node = &tree.nodes[slot];
        Borrowing {
            borrowed: node.subtree.amount.clone(),
            share: tree.share(&node.subtree.amount, node.weight).to_f64(),
            place: place_among_siblings(tree, slot),
        }
    }

    fn client_report(&self, client: ClientSlot, orders: &Orders) -> ClientReport {
        let entry = &self.tree.clients[client];
        let role = self.tree.role_of(client).clone();
        let tree = &self.borrowers.tree;
        let borrower = tree.client(entry.framework, &role);
        let lent = borrower.map(|borrower| tree.clients[borrower].held.amount.clone()).unwrap_or_default();
        let borrowing = Borrowing {
            share: tree.share(&lent, Weight::ONE).to_f64(),
            borrowed: lent,
            place: borrower.and_then(|borrower| place(&orders.borrowers, borrower)),
        };
        let framework = &self.frameworks[entry.framework];
        ClientReport {
            framework: framework.id.clone(),
            active: framework.active,
            suppressed: framework.suppressed.contains(&role),
            role,
            share: self.tree.share(&entry.held.amount, Weight::ONE).to_f64(),
            held: entry.held.amount.clone(),
            place: place(&orders.clients, client),
            last_offered: entry.last_offered,
            findings: Vec::new(),
            borrowing,
            slack: Vec::new(),
        }
    }
}

/// All clients that can be offered something, in order.
struct Orders {
    clients: Vec<ClientSlot>,
    borrowers: Vec<ClientSlot>,
}

fn order(tree: &Tree) -> Vec<ClientSlot> {
    let mut walk = Walk::new(Scope::All);
    walk.start(tree, Stage::Everyone);
    core::iter::from_fn(|| walk.next(tree)).collect()
}

fn place(order: &[ClientSlot], client: ClientSlot) -> Option<Place> {
    let place = order.iter().position(|other| *other == client)?;
    Some(Place { place: place + 1, of: order.len() })
}

fn place_among_siblings(tree: &Tree, node: NodeSlot) -> Option<Place> {
    let siblings = &tree.nodes[tree.nodes[node].parent?].children;
    let place = siblings.iter().position(|(_, child)| child == Child::Role(node))?;
    Some(Place { place: place + 1, of: siblings.len() })
}

#[cfg(test)]
mod tests;
