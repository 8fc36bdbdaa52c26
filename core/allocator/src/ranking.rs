//! Ranking: the order of clients by weighted shares.
//!
//! A share is the largest fraction of the cluster's total that is held of any resource, divided by the weight.
//! Siblings are ordered by share, then by number of grants, then by lot. The frameworks of a role compete with its
//! child roles as one more child of weight 1. Only roles and frameworks that can be offered something are in the
//! order. The key of a single entry is not needed: it is computed when the second one is added.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Scalar};

use crate::options::Sorter;
use crate::order::Key;
use crate::share::{Share, Weight};
use crate::slab::{ClientSlot, NodeSlot};
use crate::tree::{Child, Client, Node, Tree};

impl Tree {
    /// Brings the order up to date with the bookings.
    pub(crate) fn settle_order(&mut self) {
        while let Some(node) = self.joined.pop() {
            // It may have left the tree with its last new entry.
            if self.nodes.get(node).is_some() {
                self.nodes[node].clients.settle();
                self.nodes[node].children.settle();
            }
        }
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
        if amount.is_empty() {
            return Share::ZERO;
        }
        let mut dominant = (0, 1);
        let mut consider = |part: Scalar, whole: Scalar| {
            let (part, whole) = (part.thousandths(), whole.thousandths());
            // part / whole > dominant, without dividing.
            if whole > 0
                && i128::from(part) * i128::from(dominant.1) > i128::from(dominant.0) * i128::from(whole)
            {
                dominant = (part, whole);
            }
        };
        let usual = amount.usual().iter().zip(self.totals.usual()).zip(self.excluded.usual);
        usual.filter(|(_, excluded)| !excluded).for_each(|((part, whole), _)| consider(*part, *whole));
        for (name, whole) in self.totals.others().iter().filter(|(name, _)| !self.excluded.has(name)) {
            consider(amount.get(name), *whole);
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
        let (at, active, node) = (client.node, client.active, &self.nodes[client.node]);
        let (among_others, has_siblings) =
            (node.clients.len() > 1, node.clients.len() > 0 && node.children.len() > 1);
        if active && among_others {
            let (old, new) = self.rekey_client(slot);
            self.nodes[at].clients.replace(old, new, slot);
        }
        if has_siblings {
            let (old, new) = self.rekey_child(at, Child::Own);
            self.nodes[at].children.replace(old, new, Child::Own);
        }
        self.move_node(at);
    }

    fn move_node(&mut self, slot: NodeSlot) {
        let node = &self.nodes[slot];
        let Some(parent) = node.parent else { return };
        if node.active > 0 && self.nodes[parent].children.len() > 1 {
            let (old, new) = self.rekey_child(parent, Child::Role(slot));
            self.nodes[parent].children.replace(old, new, Child::Role(slot));
        }
        self.move_node(parent);
    }

    /// The order must be settled afterwards.
    pub(crate) fn insert_client(&mut self, slot: ClientSlot) {
        let at = self.clients[slot].node;
        if let (1, Some(only)) = (self.nodes[at].clients.len(), self.nodes[at].clients.get(0)) {
            let (old, new) = self.rekey_client(only);
            self.nodes[at].clients.replace(old, new, only);
        }
        let (_, key) = self.rekey_client(slot);
        if self.nodes[at].clients.join(key, slot) {
            self.joined.push(at);
        }
    }

    /// The order must be settled afterwards.
    pub(crate) fn insert_child(&mut self, at: NodeSlot, child: Child) {
        if let (1, Some(only)) = (self.nodes[at].children.len(), self.nodes[at].children.get(0)) {
            let (old, new) = self.rekey_child(at, only);
            self.nodes[at].children.replace(old, new, only);
        }
        let (_, key) = self.rekey_child(at, child);
        if self.nodes[at].children.join(key, child) {
            self.joined.push(at);
        }
    }

    /// The key it had, and the one it has now.
    fn rekey_client(&mut self, slot: ClientSlot) -> (Key, Key) {
        let new = self.client_key(&self.clients[slot]);
        (core::mem::replace(&mut self.clients[slot].key, new), new)
    }

    fn rekey_child(&mut self, at: NodeSlot, child: Child) -> (Key, Key) {
        match child {
            Child::Own => {
                let new = self.own_key(&self.nodes[at]);
                (core::mem::replace(&mut self.nodes[at].own_key, new), new)
            }
            Child::Role(role) => {
                let new = self.node_key(&self.nodes[role]);
                (core::mem::replace(&mut self.nodes[role].key, new), new)
            }
        }
    }

    fn sort_everything(&mut self) {
        let clients: Vec<_> =
            self.clients.iter().map(|(slot, client)| (slot, self.client_key(client))).collect();
        for (slot, key) in clients {
            self.clients[slot].key = key;
        }
        let nodes: Vec<NodeSlot> = self.nodes.iter().map(|(slot, _)| slot).collect();
        for slot in nodes {
            self.nodes[slot].own_key = self.own_key(&self.nodes[slot]);
            self.nodes[slot].key = self.node_key(&self.nodes[slot]);
        }
        self.sort_by_keys();
    }

    /// Moves all entries to the places of their keys.
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
