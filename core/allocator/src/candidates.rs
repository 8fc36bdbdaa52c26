//! The possible offers of an agent to each kind of client, computed once per kind.
//!
//! Clients with the same capabilities and the same visible reservations are of one kind. Made when an agent is shown
//! and again after each grant; in between, checking a client costs a few comparisons of numbers and no memory.

use alloc::vec::Vec;

use tepui_resources::{Quantities, Resource, Resources};

use crate::MinAllocatable;
use crate::agent::Agent;
use crate::bits::Bits;
use crate::filters::Group;
use crate::marks::{ClientTraits, Names, Traits};
use crate::slab::{ClientSlot, NodeSlot, Slot};
use crate::tally::{is_plain, plain_quantities};
use crate::tree::Tree;

#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// What a client must have to be offered anything of this agent, and what it must not.
    needed: Traits,
    unfit: Traits,
    /// Everything that is free is reserved.
    pub(crate) all_reserved: bool,
    /// Roles with free reservations; and the role of each free resource.
    owners: Vec<NodeSlot>,
    reserved: Vec<For>,
    kinds: Vec<Kind>,
    /// Sets that are not in use, kept for the memory they have.
    spare: Vec<Bits<ClientSlot>>,
    /// The topmost roles above them.
    owner_tops: Vec<NodeSlot>,
    /// What the last node sees of the reservations; clients of one role come together.
    last_view: Option<(NodeSlot, View)>,
    /// Names of which headroom leaves nothing to any client.
    pub(crate) short_of: Names,
    /// By names: whether what is unreserved is enough for an offer without what quota keeps back of them.
    enough_without: [Option<bool>; Names::COUNT],
}

/// The clients that may have a free resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    AnyRole,
    Role(NodeSlot),
    /// It is reserved for a role that is not in the tree, and so has no clients, nor has any below it.
    NoRole,
}

/// Which of the owners' reservations a role may have, one bit each; if there are too many, every role is its own.
pub(crate) type View = u64;

/// What clients of one kind could have.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    traits: Traits,
    view: View,
    /// `None`: everything that is free.
    pub(crate) fit: Option<Resources>,
    pub(crate) quantities: Quantities,
    /// The part that quota is about, if there is any.
    pub(crate) plain: Quantities,
    /// Enough for an offer, by the cluster's measure.
    pub(crate) enough: bool,
    /// Clients that refuse all of it.
    pub(crate) refused_by: Bits<ClientSlot>,
}

impl Kind {
    pub(crate) fn is_empty(&self) -> bool {
        self.fit.as_ref().is_some_and(Resources::is_empty)
    }
}

impl Candidates {
    /// Clears the last result.
    pub(crate) fn begin(&mut self, agent: &mut Agent, tree: &Tree, filter_gpus: bool) {
        self.spare.extend(self.kinds.drain(..).map(|kind| kind.refused_by));
        self.owners.clear();
        self.reserved.clear();
        self.last_view = None;
        self.owner_tops.clear();
        let needs_gpus = agent.has_gpus && filter_gpus;
        self.needed = Traits::sum([(needs_gpus, Traits::GPUS), (agent.remote, Traits::REGION)]);
        let can = &agent.spec.capabilities;
        let cannot = [(!can.multi_role, Traits::MULTI_ROLE), (!can.hierarchical_role, Traits::NESTED_ROLE)];
        self.unfit = Traits::sum(cannot);
        if tree.has_quota() {
            self.enough_without.fill(None);
            let required = tree.required();
            self.short_of =
                if required.is_empty() { Names::default() } else { Names::lacking(&tree.surplus()) };
        }
        let Agent { ledger, owners, .. } = agent;
        for resource in ledger.free().distinct() {
            let owner = resource.reservation_role().map(|role| owners.node(tree, role));
            self.reserved.push(match owner {
                None => For::AnyRole,
                Some(None) => For::NoRole,
                Some(Some(owner)) => For::Role(owner),
            });
            if let Some(Some(owner)) = owner
                && !self.owners.contains(&owner)
            {
                self.owners.push(owner);
                self.owner_tops.push(tree.top_of(owner));
            }
        }
        self.all_reserved = !self.reserved.contains(&For::AnyRole);
    }

    /// Roles with free reservations that may have clients.
    pub(crate) fn owners(&self) -> &[NodeSlot] {
        &self.owners
    }

    /// Whether the agent as a whole is nothing for such a client.
    pub(crate) fn is_unfit_for(&self, traits: Traits) -> bool {
        !traits.has_all(self.needed) || traits.has_any(self.unfit)
    }

    /// Whether quota cannot leave enough for a client of the usual kind, whatever it can handle: without these names
    /// there is too little.
    pub(crate) fn is_hopeless(
        &mut self,
        top: NodeSlot,
        without: Names,
        free: &Resources,
        least: &MinAllocatable,
    ) -> bool {
        if without.is_empty() || self.owner_tops.contains(&top) {
            return false;
        }
        let enough = self.enough_without[without.index()].get_or_insert_with(|| {
            let plain = without.removed_from(&plain_quantities(free));
            let others = free.quantities_of(|resource| !resource.is_reserved() && !is_plain(resource));
            least.allows(&(plain + &others))
        });
        !*enough
    }

    /// The kind of a client, if it is known already.
    pub(crate) fn known_kind(&mut self, tree: &Tree, client: ClientTraits) -> Option<usize> {
        let view = self.view(tree, client.node);
        let traits = client.traits.only(Traits::OF_RESOURCES);
        self.kinds.iter().position(|kind| kind.traits == traits && kind.view == view)
    }

    /// Finds out what clients like this one could have of what is free, less what was shared with others in this run.
    pub(crate) fn add_kind(
        &mut self,
        tree: &Tree,
        client: ClientTraits,
        free: &Resources,
        shared: &Resources,
        filters: &[Group],
        least: &MinAllocatable,
    ) -> usize {
        let traits = client.traits;
        let is_for = |whom: For| match whom {
            For::AnyRole => true,
            For::Role(owner) => tree.is_at_or_below(client.node, owner),
            For::NoRole => false,
        };
        let is_fit = |(whom, resource): (&For, &Resource)| {
            is_for(*whom)
                && can_handle(traits, resource)
                && !(resource.is_shared() && shared.copies(resource) > 0)
        };
        let all_fit = self.reserved.iter().zip(free.distinct()).all(is_fit);
        let fit = (!all_fit).then(|| {
            let mut reserved = self.reserved.iter();
            free.filter(|resource| reserved.next().is_some_and(|whom| is_fit((whom, resource))))
        });
        let all = fit.as_ref().unwrap_or(free);
        let mut refused_by = self.spare.pop().unwrap_or_default();
        note_refusing(filters, all, &mut refused_by);
        let quantities = all.quantities();
        let view = self.view(tree, client.node);
        self.kinds.push(Kind {
            traits: traits.only(Traits::OF_RESOURCES),
            view,
            plain: if tree.has_quota() { plain_quantities(all) } else { Quantities::new() },
            enough: least.allows(&quantities),
            quantities,
            fit,
            refused_by,
        });
        self.kinds.len() - 1
    }

    pub(crate) fn kind(&self, kind: usize) -> &Kind {
        &self.kinds[kind]
    }

    pub(crate) fn take_fit(&mut self, kind: usize) -> Option<Resources> {
        self.kinds[kind].fit.take()
    }

    fn view(&mut self, tree: &Tree, node: NodeSlot) -> View {
        match self.last_view {
            Some((last, view)) if last == node => view,
            Some(_) | None => {
                let view = view(tree, &self.owners, node);
                self.last_view = Some((node, view));
                view
            }
        }
    }
}

/// Which of these owners' reservations a role may have.
pub(crate) fn view(tree: &Tree, owners: &[NodeSlot], node: NodeSlot) -> View {
    if owners.len() >= View::BITS as usize {
        return node.index() as View;
    }
    let seen = |(at, owner): (usize, &NodeSlot)| View::from(tree.is_at_or_below(node, *owner)) << at;
    owners.iter().enumerate().map(seen).sum()
}

/// Clients with filters for all of an offer.
pub(crate) fn note_refusing(filters: &[Group], offer: &Resources, clients: &mut Bits<ClientSlot>) {
    clients.clear();
    for group in filters.iter().filter(|group| group.refused.contains(offer)) {
        clients.unite(&group.clients);
    }
}

/// Whether a client with these traits supports such a resource.
pub(crate) fn can_handle(traits: Traits, resource: &Resource) -> bool {
    (traits.has_any(Traits::REVOCABLE) || !resource.is_revocable())
        && (traits.has_any(Traits::REFINED) || !resource.is_refined())
        && (traits.has_any(Traits::SHARED) || !resource.is_shared())
}
