//! Borrowers: frameworks in roles that can be lent slack, in the order in which it is lent.
//!
//! The role tree once more, over loans alone: shares are fractions of all that can be lent, roles have their usual
//! weights, and equal shares take turns by weight. In order are the clients of the ordinary tree that are in order there
//! and take revocable resources; a client that left is kept while it has loans. Slots of this tree are called
//! borrowers, those of the ordinary tree clients.
//!
//! Fed by the allocator. Never: which loan a borrower is offered (`lending`), ordinary resources.

use alloc::vec::Vec;

use tepui_fsm::Rng;
use tepui_resources::Name;

use crate::bits::Bits;
use crate::options::Sorters;
use crate::slab::{ClientSlot, Slot};
use crate::tally::Turns;
use crate::tree::{Child, Tree};

#[derive(Clone, Debug)]
pub(crate) struct Borrowers {
    pub(crate) tree: Tree,
    /// By borrower; meaningless for those that are not in order.
    clients: Vec<ClientSlot>,
    /// By client, while it is in order here.
    slots: Vec<Option<ClientSlot>>,
}

impl Borrowers {
    pub(crate) fn new(sorters: Sorters, excluded: Vec<Name>, seed: u64) -> Self {
        let seed = Rng::seeded(seed ^ 0x0062_6f72_726f_7765).next_u64();
        let mut tree = Tree::new(sorters, excluded, seed);
        tree.turns = Turns::Weighted;
        Self { tree, clients: Vec::new(), slots: Vec::new() }
    }

    /// The client of a borrower that is in order.
    pub(crate) fn client(&self, borrower: ClientSlot) -> ClientSlot {
        self.clients[borrower.index()]
    }

    /// The borrower that a client is, if it is in order.
    pub(crate) fn slot(&self, client: ClientSlot) -> Option<ClientSlot> {
        self.slots.get(client.index()).copied().flatten()
    }

    /// Begins a run in which agents that did not change are shown to these clients alone.
    pub(crate) fn set_fresh(&mut self, clients: &Bits<ClientSlot>) {
        let mut fresh = Bits::new();
        clients.iter().filter_map(|client| self.slot(client)).for_each(|borrower| fresh.insert(borrower));
        self.tree.set_fresh(fresh);
    }

    /// The one of these whose turn it is, independent of its loans; of equals the first.
    pub(crate) fn next_turn(&self, mut borrowers: Vec<ClientSlot>) -> Option<ClientSlot> {
        let Tree { nodes, clients, root, .. } = &self.tree;
        let mut at = *root;
        while borrowers.len() > 1 {
            let child = |borrower: &ClientSlot| {
                let mut path =
                    core::iter::successors(Some(clients[*borrower].node), |node| nodes[*node].parent);
                path.find(|node| nodes[*node].parent == Some(at)).map_or(Child::Own, Child::Role)
            };
            let turns = |child: &Child| match child {
                Child::Own => nodes[at].own.grants,
                Child::Role(role) => nodes[*role].subtree.grants,
            };
            let first = borrowers.iter().map(child).min_by_key(turns)?;
            borrowers.retain(|borrower| child(borrower) == first);
            match first {
                Child::Own => break,
                Child::Role(role) => at = role,
            }
        }
        borrowers.into_iter().min_by_key(|borrower| clients[*borrower].held.grants)
    }

    pub(crate) fn map(&mut self, borrower: ClientSlot, client: ClientSlot) {
        if borrower.index() >= self.clients.len() {
            self.clients.resize(borrower.index() + 1, client);
        }
        self.clients[borrower.index()] = client;
        if client.index() >= self.slots.len() {
            self.slots.resize(client.index() + 1, None);
        }
        self.slots[client.index()] = Some(borrower);
    }

    pub(crate) fn unmap(&mut self, client: ClientSlot) {
        self.slots[client.index()] = None;
    }
}
