//! Ranking: who comes next by weighted shares.
//!
//! A share is the largest fraction of the cluster's total that is held of any resource, divided by the weight. Siblings
//! are ordered by share, then by how often they were given something, then by lot. The frameworks of a role compete with
//! its child roles as one more child of weight 1. Only roles and frameworks that can be offered something are in order.

use alloc::vec::Vec;

use tepui_resources::Quantities;

use crate::options::Sorter;
use crate::order::Key;
use crate::share::{Share, Weight};
use crate::slab::{ClientSlot, NodeSlot};
use crate::tree::{Child, Client, Node, Tree};

impl Tree {
    /// Brings the order up to date with the bookings.
    pub(crate) fn settle_order(&mut self) {
        let mut touched = core::mem::take(&mut self.touched);
        touched.iter().for_each(|client| self.clients[*client].touched = false);
        self.version += u64::from(self.stale || !touched.is_empty());
        if self.stale {
            self.stale = false;
            self.sort_everything();
        } else {
            touched.iter().for_each(|client| self.move_client(*client));
        }
        touched.clear();
        self.touched = touched;
    }

    /// The largest fraction of the total, divided by the weight.
    pub(crate) fn share(&self, amount: &Quantities, weight: Weight) -> Share {
        let mut dominant = (0, 1);
        for (name, total) in self.totals.iter().filter(|(name, _)| !self.excluded.contains(name)) {
            let (part, whole) = (amount.get(name).thousandths(), total.thousandths());
            // part / whole > dominant, without dividing.
            if i128::from(part) * i128::from(dominant.1) > i128::from(dominant.0) * i128::from(whole) {
                dominant = (part, whole);
            }
        }
        Share::of(dominant.0, dominant.1, weight)
    }

    fn client_key(&self, client: &Client) -> Key {
        if self.sorters.frameworks == Sorter::Random {
            return client.key;
        }
        client.key.with(self.share(&client.held.amount, Weight::ONE), client.held.grants)
    }

    fn own_key(&self, node: &Node) -> Key {
        if self.sorters.roles == Sorter::Random {
            return node.own_key;
        }
        node.own_key.with(self.share(&node.own.amount, Weight::ONE), node.own.grants)
    }

    fn node_key(&self, node: &Node) -> Key {
        if self.sorters.roles == Sorter::Random {
            return node.key;
        }
        node.key.with(self.share(&node.subtree.amount, node.weight), node.subtree.grants)
    }

    fn move_client(&mut self, slot: ClientSlot) {
        let client = &self.clients[slot];
        let (at, active, old, new) = (client.node, client.active, client.key, self.client_key(client));
        self.clients[slot].key = new;
        let (own, own_new) = (self.nodes[at].own_key, self.own_key(&self.nodes[at]));
        let node = &mut self.nodes[at];
        node.own_key = own_new;
        if active {
            node.clients.replace(old, new, slot);
        }
        if node.clients.len() > 0 {
            node.children.replace(own, own_new, Child::Own);
        }
        self.move_node(at);
    }

    fn move_node(&mut self, slot: NodeSlot) {
        let node = &self.nodes[slot];
        let Some(parent) = node.parent else { return };
        let (active, old, new) = (node.active > 0, node.key, self.node_key(node));
        self.nodes[slot].key = new;
        if active {
            self.nodes[parent].children.replace(old, new, Child::Role(slot));
        }
        self.move_node(parent);
    }

    fn sort_everything(&mut self) {
        let clients: Vec<_> =
            self.clients.iter().map(|(slot, client)| (slot, self.client_key(client))).collect();
        for (slot, key) in clients {
            self.clients[slot].key = key;
        }
        let keys = |(slot, node): (NodeSlot, &Node)| (slot, self.node_key(node), self.own_key(node));
        let nodes: Vec<_> = self.nodes.iter().map(keys).collect();
        for (slot, key, own_key) in nodes {
            self.nodes[slot].key = key;
            self.nodes[slot].own_key = own_key;
        }
        self.sort_by_keys();
    }

    /// Puts everybody where their keys say.
    pub(crate) fn sort_by_keys(&mut self) {
        let nodes: Vec<NodeSlot> = self.nodes.iter().map(|(slot, _)| slot).collect();
        for slot in nodes {
            let node = &mut self.nodes[slot];
            let own_key = node.own_key;
            let (mut clients, mut children) =
                (core::mem::take(&mut node.clients), core::mem::take(&mut node.children));
            clients.sort_by(|client| self.clients[client].key);
            children.sort_by(|child| match child {
                Child::Own => own_key,
                Child::Role(role) => self.nodes[role].key,
            });
            self.nodes[slot].clients = clients;
            self.nodes[slot].children = children;
        }
    }
}
