//! Owners of an agent's reservations, by number instead of by name.
//!
//! Role names are shared rather than made anew, so that the same name mostly has the same address. An agent stores
//! such addresses and the roles of the tree that they name: a cycle compares addresses, and reads a name only when it
//! is new or roles were added to the tree or removed.

use alloc::vec::Vec;

use tepui_resources::Role;

use crate::slab::NodeSlot;
use crate::tree::Tree;

/// Limit of stored names; at the limit all are dropped.
const KNOWN_MAX: usize = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    /// Kept alive, so that no other name comes to lie there. `None`: a role that is not in the tree.
    known: Vec<(Role, Option<NodeSlot>)>,
    /// The state of the tree's roles that these are of.
    of: u64,
    /// Where a search begins: names are looked up in the same order again.
    next: usize,
}

impl Owners {
    /// The role of the tree, if it is there.
    pub(crate) fn node(&mut self, tree: &Tree, role: &Role) -> Option<NodeSlot> {
        if self.of != tree.roles_version {
            self.known.clear();
            self.of = tree.roles_version;
        }
        let at = self.find(role).unwrap_or_else(|| {
            if self.known.len() == KNOWN_MAX {
                self.known.clear();
            }
            self.known.push((role.clone(), tree.node(role)));
            self.known.len() - 1
        });
        self.next = at + 1;
        self.known[at].1
    }

    fn find(&self, role: &Role) -> Option<usize> {
        let (before, after) = self.known.split_at(self.next.min(self.known.len()));
        let is_it = |(known, _): &(Role, Option<NodeSlot>)| known.is_same(role);
        let later = after.iter().position(is_it).map(|at| before.len() + at);
        later.or_else(|| before.iter().position(is_it))
    }

    /// How many names were read since the tree's roles last changed.
    #[cfg(test)]
    pub(crate) fn names_read(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use tepui_fsm::{Mono, unlimited};

    use crate::Options;
    use crate::allocator::tests::Script;
    use crate::slab::{AgentSlot, Slot};

    #[test]
    fn repeated_offers_share_interned_reservation_names() {
        let mut script = Script::new(Options { allocation_slack: true, ..Options::default() });
        for line in [
            "framework F role=web/shop",
            "framework G role=db",
            "agent A cpus:1 cpus(web):1 cpus(web/shop):1 mem(db):64 ports(web):1-9 disk(nobody):5",
        ] {
            script.line(line);
        }
        let allocator = &mut script.allocator;
        let names_read = [1, 2, 3].map(|seconds| {
            let grants = allocator.allocate(Mono(seconds * 1_000_000_000), &mut unlimited).grants;
            assert!(!grants.is_empty());
            for grant in grants {
                allocator.decline(&grant.agent, &grant.framework, &grant.resources, None);
            }
            (allocator.tree.roles_version, allocator.agents[AgentSlot::new(0)].owners.names_read())
        });
        assert_eq!((names_read[1], names_read[2]), (names_read[0], names_read[0]));
        assert_eq!(names_read[0].1, 5, "each name of a reservation once");
        script.line("framework H role=nobody");
        let grants = script.allocator.allocate(Mono(9_000_000_000), &mut unlimited).grants;
        assert!(grants.iter().any(|grant| grant.role.as_str() == "nobody"), "a role that came is seen");
    }
}
