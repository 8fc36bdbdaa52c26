//! The walk over all clients in their order, the whole subtree of the first role before the next.
//!
//! Visited clients are stored: as long as the order is unchanged, the next walk follows a list.

use alloc::vec::Vec;

use crate::grant::{Scope, Stage};
use crate::slab::{ClientSlot, NodeSlot};
use crate::tree::{Child, Tree};

#[derive(Clone, Debug)]
pub(crate) struct Walk {
    scope: Scope,
    /// What the list is of: the state of the order, the stage, and where it began.
    of: Option<(u64, Stage, Option<NodeSlot>)>,
    /// Those met so far, and the next of them in this walk.
    met: Vec<ClientSlot>,
    next: usize,
    /// Nodes on the way down from the root, with the next child of each.
    path: Vec<(NodeSlot, usize)>,
    /// The role whose own clients are being visited, with the next of them.
    own: Option<(NodeSlot, usize)>,
}

impl Walk {
    pub(crate) fn new(scope: Scope) -> Self {
        Self { scope, of: None, met: Vec::new(), next: 0, path: Vec::new(), own: None }
    }

    /// The order must be settled, and stand still until the next start.
    pub(crate) fn start(&mut self, tree: &Tree, stage: Stage) {
        self.begin(tree, stage, Some(tree.root));
    }

    /// The same over the clients at and below a role, or over none; for agents that are shown to all.
    pub(crate) fn start_below(&mut self, tree: &Tree, scope: Scope, role: Option<NodeSlot>) {
        if self.scope != scope {
            *self = Self::new(scope);
        }
        self.begin(tree, Stage::Everyone, role);
    }

    fn begin(&mut self, tree: &Tree, stage: Stage, top: Option<NodeSlot>) {
        self.next = 0;
        let of = Some((tree.version, stage, top));
        if self.of != of {
            self.of = of;
            self.met.clear();
            self.path.clear();
            self.path.extend(top.map(|top| (top, 0)));
            self.own = None;
        }
    }

    pub(crate) fn next(&mut self, tree: &Tree) -> Option<ClientSlot> {
        if self.next == self.met.len() {
            let client = self.advance(tree)?;
            self.met.push(client);
        }
        self.next += 1;
        Some(self.met[self.next - 1])
    }

    fn advance(&mut self, tree: &Tree) -> Option<ClientSlot> {
        loop {
            if let Some((node, index)) = &mut self.own {
                let client = tree.nodes[*node].clients.get(*index);
                *index += 1;
                match client {
                    Some(client) if self.meets_client(tree, client) => return Some(client),
                    Some(_) => continue,
                    None => self.own = None,
                }
            }
            let (node, index) = self.path.last_mut()?;
            let (at, child) = (*node, tree.nodes[*node].children.get(*index));
            *index += 1;
            match child {
                Some(Child::Own) => self.own = Some((at, 0)),
                Some(Child::Role(role)) if self.meets_node(tree, at, role) => self.path.push((role, 0)),
                Some(Child::Role(_)) => (),
                None => drop(self.path.pop()),
            }
        }
    }

    fn meets_client(&self, tree: &Tree, client: ClientSlot) -> bool {
        match self.scope {
            Scope::All => true,
            Scope::Fresh => tree.fresh_clients.contains(client),
        }
    }

    fn meets_node(&self, tree: &Tree, parent: NodeSlot, node: NodeSlot) -> bool {
        let meets = match self.scope {
            Scope::All => true,
            Scope::Fresh => tree.fresh_nodes.contains(node),
        };
        meets
            && match self.of {
                // What is required below a role is required by the topmost role above it.
                Some((_, Stage::Guarantees, _)) => parent != tree.root || tree.marks(node).is_needy(),
                Some((_, Stage::Everyone, _)) | None => true,
            }
    }
}
