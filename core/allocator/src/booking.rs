//! Bookings: what each role and each framework in a role holds.
//!
//! All scalars count for shares, reserved and revocable ones as well; a shared resource counts once on each agent. For
//! quota only what is neither reserved nor revocable counts here: reservations count whether they are held or not
//! (`quota`). Bookings only remember who changed; the order follows in `ranking`, so that it stands still while one
//! agent is given away.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Resource, Resources};

use crate::ledger::has_shared;
use crate::slab::{AgentSlot, ClientSlot, NodeSlot, Slot};
use crate::tree::Tree;

/// Amounts held, and how often something was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) amount: Quantities,
    pub(crate) grants: u64,
}

/// Those who count a shared resource once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Client(ClientSlot),
    Own(NodeSlot),
    Subtree(NodeSlot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    In,
    Out,
}

impl Tree {
    /// The client holds more, or less, of an agent.
    pub(crate) fn book(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources, way: Booking) {
        if !self.clients[client].touched {
            self.clients[client].touched = true;
            self.touched.push(client);
        }
        let node = self.clients[client].node;
        let plain = plain_quantities(resources);
        if has_shared(resources) {
            self.book_shared(client, agent, resources, way);
        } else {
            let amount = resources.scalar_quantities();
            self.clients[client].held.book(&amount, way);
            self.nodes[node].own.book(&amount, way);
            self.each_above(node, |tree, at| tree.nodes[at].subtree.book(&amount, way));
        }
        if !plain.is_empty() {
            self.consume(node, &plain, way);
        }
    }

    fn book_shared(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources, way: Booking) {
        let node = self.clients[client].node;
        let amount = resources.non_shared().scalar_quantities();
        let shared = resources.shared().unallocate();
        let sum = amount.clone() + &self.count(Counted::Client(client), agent, &shared, way);
        self.clients[client].held.book(&sum, way);
        let sum = amount.clone() + &self.count(Counted::Own(node), agent, &shared, way);
        self.nodes[node].own.book(&sum, way);
        self.each_above(node, |tree, at| {
            // All roles together have no share.
            if at == tree.root {
                return;
            }
            let sum = amount.clone() + &tree.count(Counted::Subtree(at), agent, &shared, way);
            tree.nodes[at].subtree.book(&sum, way);
        });
    }

    /// Visits the node and all above it.
    pub(crate) fn each_above(&mut self, node: NodeSlot, mut visit: impl FnMut(&mut Self, NodeSlot)) {
        let mut next = Some(node);
        while let Some(at) = next {
            visit(self, at);
            next = self.nodes[at].parent;
        }
    }

    /// Keeps the copies of shared resources; returns the amount of those that came first or went last.
    fn count(&mut self, who: Counted, agent: AgentSlot, shared: &Resources, way: Booking) -> Quantities {
        if agent.index() >= self.shared.len() {
            self.shared.resize_with(agent.index() + 1, Vec::new);
        }
        let here = &mut self.shared[agent.index()];
        let at = here.iter().position(|(counted, _)| *counted == who).unwrap_or_else(|| {
            here.push((who, Resources::new()));
            here.len() - 1
        });
        let copies = &mut here[at].1;
        if way == Booking::Out {
            *copies -= shared;
        }
        let mut changed = Quantities::new();
        for one in shared.iter().filter(|one| copies.copies(one) == 0) {
            changed.increase(one.name(), one.amount().unwrap_or_default());
        }
        if way == Booking::In {
            *copies += shared;
        }
        if copies.is_empty() {
            here.swap_remove(at);
        }
        changed
    }
}

impl Tally {
    fn book(&mut self, amount: &Quantities, way: Booking) {
        match way {
            Booking::In => {
                self.amount += amount;
                self.grants += 1;
            }
            Booking::Out => self.amount -= amount,
        }
    }
}

/// Whether quota limits the use of this: an amount that is nobody's reservation and stays with who has it.
pub(crate) fn is_plain(resource: &Resource) -> bool {
    resource.amount().is_some() && !resource.is_reserved() && !resource.is_revocable()
}

/// How much of these quota limits the use of.
pub(crate) fn plain_quantities(resources: &Resources) -> Quantities {
    let mut sum = Quantities::new();
    for resource in resources.iter().filter(|resource| is_plain(resource)) {
        sum.increase(resource.name(), resource.amount().unwrap_or_default());
    }
    sum
}
