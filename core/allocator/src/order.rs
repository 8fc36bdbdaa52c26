//! Siblings in the order in which they are served, and the walk over a whole tree of them.

use alloc::vec::Vec;
use core::cmp::Ordering;

use tepui_fsm::Rng;

use crate::cycle::Stage;
use crate::share::Share;
use crate::slab::{ClientSlot, NodeSlot};
use crate::tree::{Child, Tree};

/// What siblings are ordered by: the smallest share first, then who was given least often, then by lot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Key {
    share: Share,
    grants: u64,
    lot: u64,
}

impl Key {
    pub(crate) fn drawn(rng: &mut Rng) -> Self {
        Self { share: Share::ZERO, grants: 0, lot: rng.next_u64() }
    }

    pub(crate) fn with(self, share: Share, grants: u64) -> Self {
        Self { share, grants, ..self }
    }

    /// What decides between equal shares.
    #[cfg(test)]
    pub(crate) fn tie(&self) -> (u64, u64) {
        (self.grants, self.lot)
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let shares = self.share.cmp(&other.share);
        shares.then(self.grants.cmp(&other.grants)).then(self.lot.cmp(&other.lot))
    }
}

/// Sorted by key. The caller remembers each item's key.
#[derive(Clone, Debug)]
pub(crate) struct Order<T> {
    items: Vec<(Key, T)>,
}

impl<T: Copy + PartialEq> Order<T> {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.items.get(index).map(|(_, item)| *item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, T)> + '_ {
        self.items.iter().copied()
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.items.is_sorted_by(|(a, _), (b, _)| a.cmp(b).is_le())
    }

    pub(crate) fn insert(&mut self, key: Key, item: T) {
        let at = self.items.partition_point(|(own, _)| own.cmp(&key).is_lt());
        self.items.insert(at, (key, item));
    }

    pub(crate) fn remove(&mut self, key: Key, item: T) {
        let from = self.items.partition_point(|(own, _)| own.cmp(&key).is_lt());
        let offset = self.items[from..].iter().position(|(_, own)| *own == item);
        self.items.remove(from + offset.expect("an item is found under the key it was inserted with"));
    }

    pub(crate) fn replace(&mut self, old: Key, new: Key, item: T) {
        if old != new {
            self.remove(old, item);
            self.insert(new, item);
        }
    }

    pub(crate) fn sort_by(&mut self, key: impl Fn(T) -> Key) {
        for (own, item) in &mut self.items {
            *own = key(*item);
        }
        self.items.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

/// Which clients a walk meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Only those that are fresh in this run.
    Fresh(u64),
}

/// A walk over all clients in order, the whole subtree of the first role before the next. The order must stand still.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// Nodes on the way down, with the next child of each.
    path: Vec<(NodeSlot, usize)>,
    /// The role whose own clients are being met, with the next of them.
    own: Option<(NodeSlot, usize)>,
}

impl Walk {
    pub(crate) fn restart(&mut self, tree: &Tree) {
        self.path.clear();
        self.path.push((tree.root, 0));
        self.own = None;
    }

    pub(crate) fn next(&mut self, tree: &Tree, scope: Scope, stage: Stage) -> Option<ClientSlot> {
        loop {
            if let Some((node, index)) = &mut self.own {
                let client = tree.nodes[*node].clients.get(*index);
                *index += 1;
                match client {
                    Some(client) if scope.meets_client(tree, client) => return Some(client),
                    Some(_) => continue,
                    None => self.own = None,
                }
            }
            let (node, index) = self.path.last_mut()?;
            let (at, child) = (*node, tree.nodes[*node].children.get(*index));
            *index += 1;
            match child {
                Some(Child::Own) => self.own = Some((at, 0)),
                Some(Child::Role(role))
                    if scope.meets_node(tree, role) && stage.meets_node(tree, at, role) =>
                {
                    self.path.push((role, 0));
                }
                Some(Child::Role(_)) => (),
                None => drop(self.path.pop()),
            }
        }
    }
}

impl Scope {
    fn meets_client(self, tree: &Tree, client: ClientSlot) -> bool {
        match self {
            Scope::All => true,
            Scope::Fresh(run) => tree.clients[client].is_fresh(run),
        }
    }

    fn meets_node(self, tree: &Tree, node: NodeSlot) -> bool {
        match self {
            Scope::All => true,
            Scope::Fresh(run) => tree.nodes[node].is_fresh(run),
        }
    }
}

impl Stage {
    /// What is required below a role is required by the topmost role above it.
    fn meets_node(self, tree: &Tree, parent: NodeSlot, node: NodeSlot) -> bool {
        match self {
            Stage::Guarantees => parent != tree.root || !tree.nodes[node].claims.required.is_empty(),
            Stage::Everyone => true,
        }
    }
}
