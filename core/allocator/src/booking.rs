//! Bookings: the holdings of each role and of each framework in a role.
//!
//! All scalars count for shares, reserved and revocable ones as well; a shared resource counts once on each agent.
//! For quota only unreserved, non-revocable resources count here: reservations count whether they are held or not
//! (`quota`). Bookings only mark changed clients; the order follows in `ranking`, so that it is constant while one
//! agent is offered.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Resources};

use crate::ledger::shared_part;
use crate::share::Weight;
use crate::slab::{AgentSlot, ClientSlot, NodeSlot, Slot};
use crate::tally::{Booking, Counted, Turns, is_plain};
use crate::tree::{Client, Node, Tree};

impl Tree {
    /// The client holds more, or less, of an agent.
    pub(crate) fn book(&mut self, client: ClientSlot, agent: AgentSlot, resources: &Resources, way: Booking) {
        self.book_parts(client, agent, resources, &shared_part(resources).unallocate(), way);
    }

    /// The same where it is known what is shared of it, not allocated.
    pub(crate) fn book_parts(
        &mut self,
        client: ClientSlot,
        agent: AgentSlot,
        resources: &Resources,
        shared: &Resources,
        way: Booking,
    ) {
        if !self.clients[client].touched {
            self.clients[client].touched = true;
            self.touched.push(client);
        }
        let node = self.clients[client].node;
        let (plain, rest) = amounts(resources);
        let amount = if rest.is_empty() { plain.clone() } else { rest + &plain };
        let counted = u64::from(way == Booking::In && self.turns == Turns::Counted);
        self.clients[client].held.book(&amount, way, counted);
        self.nodes[node].own.book(&amount, way, counted);
        let mut at = node;
        // All roles together have no share.
        while let Some(parent) = self.nodes[at].parent {
            self.nodes[at].subtree.book(&amount, way, counted);
            at = parent;
        }
        if way == Booking::In && self.turns == Turns::Weighted {
            self.take_turns(client);
        }
        if !shared.is_empty() {
            self.book_shared(client, agent, shared, way);
        }
        if !plain.is_empty() {
            self.consume(node, &plain, way);
        }
    }

    /// A turn of the client, of its role's own clients, and of each role up to the root.
    fn take_turns(&mut self, client: ClientSlot) {
        let Client { node, held, .. } = &mut self.clients[client];
        let Node { own, clocks, .. } = &mut self.nodes[*node];
        held.take_turn(&mut clocks.clients, Weight::ONE);
        own.take_turn(&mut clocks.children, Weight::ONE);
        let mut at = *node;
        while let Some(parent) = self.nodes[at].parent {
            let mut clock = self.nodes[parent].clocks.children;
            let Node { subtree, weight, .. } = &mut self.nodes[at];
            subtree.take_turn(&mut clock, *weight);
            self.nodes[parent].clocks.children = clock;
            at = parent;
        }
    }

    fn book_shared(&mut self, client: ClientSlot, agent: AgentSlot, shared: &Resources, way: Booking) {
        let node = self.clients[client].node;
        let sum = self.count(Counted::Client(client), agent, shared, way);
        way.apply(&mut self.clients[client].held.amount, &sum);
        let sum = self.count(Counted::Own(node), agent, shared, way);
        way.apply(&mut self.nodes[node].own.amount, &sum);
        let mut at = node;
        while let Some(parent) = self.nodes[at].parent {
            let sum = self.count(Counted::Subtree(at), agent, shared, way);
            way.apply(&mut self.nodes[at].subtree.amount, &sum);
            at = parent;
        }
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

/// What quota limits the use of, and the other amounts; of neither what is shared.
fn amounts(resources: &Resources) -> (Quantities, Quantities) {
    let (mut plain, mut rest) = (Quantities::new(), Quantities::new());
    for resource in resources {
        match resource.amount() {
            Some(amount) if is_plain(resource) => plain.increase(resource.name(), amount),
            Some(amount) if !resource.is_shared() => rest.increase(resource.name(), amount),
            Some(_) | None => (),
        }
    }
    (plain, rest)
}
