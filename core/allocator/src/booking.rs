//! Bookings: what each role and each framework in a role holds.
//!
//! All scalars count for shares, reserved and revocable ones as well; a shared resource counts once on each agent. For
//! quota only what is neither reserved nor revocable counts here: reservations count whether they are held or not
//! (`quota`). Bookings only remember who changed; the order follows in `ranking`, so that it stands still while one
//! agent is given away.

use tepui_resources::{Quantities, Resource, Resources};

use crate::ledger::has_shared;
use crate::slab::{AgentSlot, ClientSlot, NodeSlot};
use crate::tree::Tree;

/// Amounts held, and how often something was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) amount: Quantities,
    pub(crate) grants: u64,
}

/// Those who count a shared resource once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
        if has_shared(resources) {
            self.book_shared(client, agent, resources, way);
        } else {
            let amount = resources.scalar_quantities();
            self.clients[client].held.book(&amount, way);
            self.nodes[node].own.book(&amount, way);
            self.each_above(node, |tree, at| tree.nodes[at].subtree.book(&amount, way));
        }
        let plain = plain_quantities(resources);
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
        let copies = self.shared.entry((who, agent)).or_default();
        let before = copies.clone();
        match way {
            Booking::In => *copies += shared,
            Booking::Out => *copies -= shared,
        }
        let after = copies.clone();
        if after.is_empty() {
            self.shared.remove(&(who, agent));
        }
        let (more, less) = if way == Booking::In { (after, before) } else { (before, after) };
        let changed = more.filter(|resource| less.copies(resource) == 0);
        changed.scalar_quantities()
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
