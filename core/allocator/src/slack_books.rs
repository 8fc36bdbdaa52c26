//! Allocation slack: unused reservations are lent, and reclaimed when their owner needs them.
//!
//! Each agent's ledger keeps the optimistic books in addition to the ordinary ones: *total*, the reserved,
//! non-revocable resources without persistent volumes, marked as slack; *idle*, the part that no task or executor of
//! its owner uses (an offer to the owner is no use: that is the optimistic part); *lent*, the slack that borrowers
//! were offered or use. They follow every move, hence also RESERVE, UNRESERVE and agents' reports after a restart of
//! the master.
//!
//! Invariant: a loan never makes lent exceed idle. When the owner launches, a reservation is removed or an agent
//! shrinks, lent may exceed idle: `over_lent` is the amount to reclaim, first from offers. The agent preempts
//! borrowers before the owner's container starts.
//!
//! Slack is in no ordinary total, share or quota, and a role borrows nothing that is reserved for itself or a role
//! above it. The next borrower: `borrowers`, `lending`.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_resources::{Quantities, Resource, Resources, Revocable, Role};

use crate::held::Held;

/// The roles whose reservations are lent: all but these and the roles below them; `None`: no role's.
pub(crate) type SlackTerms = Option<Arc<BTreeSet<Role>>>;

/// The optimistic books of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SlackBooks {
    terms: SlackTerms,
    /// With the reservations, marked as slack.
    pub(crate) total: Resources,
    /// The roles with reservations in the total; known before the rest is computed.
    owners: Vec<Role>,
    /// The amounts in the total; known before the rest is counted.
    lendable: Quantities,
    /// Of the total, what its owners do not use.
    pub(crate) idle: Resources,
    /// As it is lent: unreserved, not allocated.
    lent: Resources,
    /// Lent, but not idle any more.
    pub(crate) over: Resources,
    /// Something idle is not lent yet.
    has_rest: bool,
}

impl SlackBooks {
    pub(crate) fn new(terms: SlackTerms) -> Self {
        Self { terms, ..Self::default() }
    }

    pub(crate) fn total(&self) -> &Resources {
        &self.total
    }

    pub(crate) fn idle(&self) -> &Resources {
        &self.idle
    }

    /// The roles with reservations that are lent if idle.
    pub(crate) fn owners(&self) -> &[Role] {
        &self.owners
    }

    pub(crate) fn lendable(&self) -> &Quantities {
        &self.lendable
    }

    pub(crate) fn lent(&self) -> &Resources {
        &self.lent
    }

    pub(crate) fn has_rest(&self) -> bool {
        self.has_rest
    }

    pub(crate) fn is_over(&self) -> bool {
        !self.over.is_empty()
    }

    /// Whether a change of these may change the books.
    pub(crate) fn is_affected_by(&self, changed: &Resources) -> bool {
        !self.owners.is_empty()
            || !self.total.is_empty()
            || !self.lent.is_empty()
            || changed.iter().any(|one| is_lendable(one) || is_slack(one))
    }

    /// The agent has this much now.
    pub(crate) fn note_total(&mut self, total: &Resources) {
        self.owners.clear();
        self.lendable = Quantities::new();
        if self.terms.is_none() {
            return;
        }
        for one in total.iter().filter(|one| is_lendable(one)) {
            let Some(owner) = one.reservation_role() else { continue };
            if self.owners.last() != Some(owner) && !self.owners.contains(owner) {
                if !self.lets_lend(one) {
                    continue;
                }
                self.owners.push(owner.clone());
            }
            self.lendable.increase(one.name(), one.amount().unwrap_or_default());
        }
    }

    /// From scratch: an agent has few holders.
    pub(crate) fn count<'h>(
        &mut self,
        total: &Resources,
        held: impl Iterator<Item = &'h Held> + Clone,
        owes: impl Fn(&Resource) -> bool,
    ) {
        self.lent = Resources::new();
        for part in held.clone().flat_map(|held| [&held.offered, &held.used]) {
            if part.iter().any(is_slack) {
                self.lent += part.filter(is_slack).unallocate();
            }
        }
        let lendable = total.filter(|one| is_lendable(one) && self.lets_lend(one));
        self.total = lendable.flatten(Revocable::AllocationSlack);
        self.idle = self.total.filter(|resource| !owes(resource));
        for held in held {
            if held.used.iter().any(is_lendable) {
                self.idle -= held.used.filter(is_lendable).unallocate().flatten(Revocable::AllocationSlack);
            }
        }
        if self.lent.is_empty() {
            (self.over, self.has_rest) = (Resources::new(), !self.idle.is_empty());
        } else {
            let idle = self.idle.allocation_slack(None);
            self.over = &self.lent - &idle;
            self.has_rest = !self.lent.contains(&idle);
        }
    }

    /// Whether the terms let it be lent.
    fn lets_lend(&self, resource: &Resource) -> bool {
        let (Some(opted_out), Some(owner)) = (&self.terms, resource.reservation_role()) else { return false };
        !opted_out.iter().any(|role| owner == role || owner.is_strict_subrole_of(role))
    }
}

/// Lent, because its owner does not use it.
pub(crate) fn is_slack(resource: &Resource) -> bool {
    resource.revocable() == Revocable::AllocationSlack
}

/// Reserved, and usable by other roles.
pub(crate) fn is_lendable(resource: &Resource) -> bool {
    resource.is_reserved()
        && !resource.is_revocable()
        && !resource.is_persistent_volume()
        && !resource.is_shared()
}
