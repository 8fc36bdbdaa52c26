//! Quota: guarantees and limits of a role, for itself and all roles below it.
//!
//! A role consumes every reservation made for it, held or not, and its unreserved, non-revocable holdings; what a
//! role consumes all roles above it consume too. The unmet part of guarantees is *required*: a role requires its own
//! or that of its children, whichever is more, so that a guarantee of a child counts towards its parent's. As long as
//! anything is required, only the *surplus* goes to others: available minus required. Updated by every booking.
//! Absent: the order of clients, agents.

use tepui_resources::{Quantities, Resources, Role};

use crate::Allocator;
use crate::claims::{Claims, Quota};
use crate::grant::Stage;
use crate::marks::Names;
use crate::slab::NodeSlot;
use crate::tally::Booking;
use crate::tree::Tree;

/// How much of something a role may have, and what kept it from more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) amount: Quantities,
    pub(crate) limited: bool,
    pub(crate) short_of_headroom: bool,
}

impl Allocator {
    /// What a role, with all below it, must be able to get and must not pass; the default quota takes it away. Takes
    /// effect with the next batch. Offers that break it are the caller's to take back.
    pub fn set_quota(&mut self, role: &Role, quota: Quota) {
        self.tree.set_quota(role, quota);
    }

    pub fn quota(&self, role: &Role) -> Option<&Quota> {
        let quota = &self.tree.nodes[self.tree.node(role)?].claims.quota;
        Some(quota).filter(|quota| !quota.is_default())
    }

    /// What counts towards the quota of a role: reservations for it and all below it, and what is offered and used there
    /// that is neither reserved nor revocable.
    pub fn consumed(&self, role: &Role) -> Quantities {
        self.tree.node(role).map_or(Quantities::new(), |node| self.tree.nodes[node].claims.consumed.clone())
    }
}

impl Tree {
    pub(crate) fn set_quota(&mut self, role: &Role, quota: Quota) {
        if quota.is_default() && self.node(role).is_none() {
            return;
        }
        let node = self.ensure_node(role);
        let (had, has) = (!self.nodes[node].claims.quota.is_default(), !quota.is_default());
        if has && !had {
            self.add_use(node);
            self.each_above(node, |tree, at| tree.marks_mut(at).quotas += 1);
        }
        self.nodes[node].claims.quota = quota;
        self.version += 1;
        self.each_above(node, Self::count_required);
        self.marks_mut(node).cut = true;
        self.ease(node);
        if had && !has {
            self.each_above(node, |tree, at| tree.marks_mut(at).quotas -= 1);
            self.drop_use(node);
        }
    }

    /// Reservations on agents came, or went.
    pub(crate) fn book_reservations(&mut self, resources: &Resources, way: Booking) {
        let mut last: Option<(&Role, Quantities)> = None;
        for resource in resources.iter().filter(|resource| !resource.is_revocable()) {
            let (Some(role), Some(amount)) = (resource.reservation_role(), resource.amount()) else {
                continue;
            };
            match &mut last {
                Some((of, sum)) if *of == role => sum.increase(resource.name(), amount),
                Some(_) | None => {
                    let next = (role, Quantities::from_iter([(resource.name().clone(), amount)]));
                    if let Some((of, sum)) = last.replace(next) {
                        self.book_reservation(of, &sum, way);
                    }
                }
            }
        }
        if let Some((of, sum)) = last {
            self.book_reservation(of, &sum, way);
        }
    }

    fn book_reservation(&mut self, role: &Role, amount: &Quantities, way: Booking) {
        let node = self.ensure_node(role);
        let reserved = &mut self.nodes[node].claims.reserved;
        let had = !reserved.is_empty();
        way.apply(reserved, amount);
        let has = !reserved.is_empty();
        if !had && has {
            self.add_use(node);
        }
        self.version += 1;
        self.consume(node, amount, way);
        if had && !has {
            self.drop_use(node);
        }
    }

    /// The node and all above it consume more, or less.
    pub(crate) fn consume(&mut self, node: NodeSlot, amount: &Quantities, way: Booking) {
        self.each_above(node, |tree, at| {
            way.apply(&mut tree.nodes[at].claims.consumed, amount);
            if tree.has_quota() {
                tree.count_required(at);
                if way == Booking::Out {
                    tree.ease(at);
                }
            }
        });
    }

    /// What a node requires, and what its marks show of its quota.
    fn count_required(&mut self, at: NodeSlot) {
        let claims = &mut self.nodes[at].claims;
        let mut full = Names::default();
        for (name, limit) in claims.quota.limits.iter() {
            if claims.consumed.get(name) >= limit {
                full.insert(name);
            }
        }
        let [quota, below, now] = [&claims.quota.guarantees, &claims.required_below, &claims.required];
        if quota.is_empty() && below.is_empty() && now.is_empty() {
            self.marks_mut(at).set(full, false);
            return;
        }
        let lack = claims.quota.guarantees.clone() - &claims.consumed;
        let below_lack = claims.required_below.clone() - &lack;
        let required = lack + &below_lack;
        let needy = !required.is_empty();
        let old = core::mem::replace(&mut claims.required, required.clone());
        self.marks_mut(at).set(full, needy);
        // The current run has shown agents to clients with unmet guarantees, but not to this role.
        if self.in_run && self.is_top(at) && !old.contains(&required) && !self.eased.contains(&at) {
            self.eased.push(at);
        }
        if let Some(parent) = self.nodes[at].parent.filter(|_| old != required) {
            let below = &mut self.nodes[parent].claims.required_below;
            *below += &required;
            *below -= &old;
        }
    }

    /// There may be more for a role that quota kept something from.
    fn ease(&mut self, at: NodeSlot) {
        if core::mem::take(&mut self.marks_mut(at).cut) {
            self.eased.push(at);
        }
    }

    /// Quota kept something from this role.
    pub(crate) fn mark_cut(&mut self, node: NodeSlot) {
        self.each_above(node, |tree, at| {
            // What all roles together are short of is headroom, and watched by its surplus.
            let marks = tree.marks(at);
            tree.marks_mut(at).cut = marks.cut || marks.quotas > 0 && at != tree.root;
        });
    }

    /// Whether any role has a quota.
    pub(crate) fn has_quota(&self) -> bool {
        self.marks(self.root).quotas > 0
    }

    /// What must be kept for guarantees that are not met.
    pub(crate) fn required(&self) -> &Quantities {
        &self.nodes[self.root].claims.required
    }

    /// Available to any role.
    pub(crate) fn surplus(&self) -> Quantities {
        self.available.clone() - self.required()
    }

    /// How much this role can take towards guarantees of its own and of the roles above it, leaving what is required
    /// for others.
    pub(crate) fn guaranteed(&self, node: NodeSlot) -> Quantities {
        let mut for_others = self.nodes[node].claims.required_below.clone();
        let mut at = node;
        while let Some(parent) = self.nodes[at].parent.filter(|parent| *parent != self.root) {
            for_others += &self.nodes[parent].claims.required_below;
            for_others -= &self.nodes[at].claims.required;
            at = parent;
        }
        self.nodes[at].claims.required.clone() - &for_others
    }

    /// How much of `plain` this role may have now; nothing in the stage of guarantees if none of it helps one.
    pub(crate) fn allowance(&self, node: NodeSlot, plain: &Quantities, stage: Stage) -> Allowance {
        let mut amount = plain.clone();
        let mut next = Some(node);
        while let Some(at) = next {
            let Claims { quota, consumed, .. } = &self.nodes[at].claims;
            for (name, limit) in quota.limits.iter() {
                let left = limit.minus_or_zero(consumed.get(name));
                amount.set(name, amount.get(name).min(left));
            }
            next = self.nodes[at].parent;
        }
        let limited = amount != *plain;
        if self.required().is_empty() {
            return Allowance { amount, limited, short_of_headroom: false };
        }
        let mut headroom = self.surplus();
        if stage == Stage::Guarantees {
            headroom += &self.guaranteed(node);
        }
        let lack = amount.clone() - &headroom;
        amount -= &lack;
        Allowance { amount, limited, short_of_headroom: !lack.is_empty() }
    }
}
