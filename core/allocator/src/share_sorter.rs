//! The order of clients by their shares alone, without ledgers and offers: what other allocators call a sorter.
//!
//! For benchmarks that compare the two; the allocator itself uses the tree.

use alloc::vec::Vec;

use tepui_resources::{Resources, Role};

use crate::options::Sorter;
use crate::options::Sorters;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot, Slot};
use crate::tally::Booking;
use crate::tree::Tree;

#[derive(Clone, Debug)]
pub struct ShareSorter {
    tree: Tree,
    clients: Vec<ClientSlot>,
}

impl ShareSorter {
    /// A client in each of these roles, in a cluster that has `total`.
    pub fn new(roles: impl IntoIterator<Item = Role>, total: &Resources) -> Self {
        let sorters = Sorters { roles: Sorter::Drf, frameworks: Sorter::Drf };
        let mut tree = Tree::new(sorters, Vec::new(), 0);
        tree.change_totals(&Default::default(), &total.scalar_quantities());
        let add = |(number, role): (usize, Role)| {
            let client = tree.ensure_client(FrameworkSlot::new(number as u32), &role);
            tree.set_active(client, true);
            client
        };
        let clients = roles.into_iter().enumerate().map(add).collect();
        Self { tree, clients }
    }

    /// The client, by its number, holds more of an agent.
    pub fn allocated(&mut self, client: usize, agent: usize, resources: &Resources) {
        self.book(client, agent, resources, Booking::In);
    }

    /// It holds less.
    pub fn unallocated(&mut self, client: usize, agent: usize, resources: &Resources) {
        self.book(client, agent, resources, Booking::Out);
    }

    /// Brings the order up to date.
    pub fn sort(&mut self) {
        self.tree.settle_order();
    }

    fn book(&mut self, client: usize, agent: usize, resources: &Resources, way: Booking) {
        self.tree.book(self.clients[client], AgentSlot::new(agent as u32), resources, way);
    }
}
