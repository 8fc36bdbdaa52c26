//! Booked amounts of a holder, and the part that quota limits.

use tepui_resources::{Quantities, Resource, Resources};

use crate::share::Weight;
use crate::slab::{ClientSlot, NodeSlot};

/// Amounts held, and how often something was given: a number, or virtual time (`Turns`).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) amount: Quantities,
    pub(crate) grants: u64,
}

/// What decides between equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// The number of grants.
    Counted,
    /// Virtual time, as in start-time fair queuing: a turn costs the inverse of the weight and begins no earlier than
    /// the last turn of any sibling, so that turns are shared by weight and none are saved up while absent.
    Weighted,
}

/// Virtual time among the siblings below a role: when the last turn began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clocks {
    pub(crate) clients: u64,
    pub(crate) children: u64,
}

/// The holders that count a shared resource once each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Client(ClientSlot),
    Own(NodeSlot),
    Subtree(NodeSlot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    In,
    Out,
}

impl Tally {
    pub(crate) fn book(&mut self, amount: &Quantities, way: Booking, grants: u64) {
        way.apply(&mut self.amount, amount);
        self.grants += grants;
    }

    pub(crate) fn take_turn(&mut self, clock: &mut u64, weight: Weight) {
        *clock = self.grants.max(*clock);
        self.grants = clock.saturating_add(weight.turn());
    }
}

impl Booking {
    pub(crate) fn apply(self, sum: &mut Quantities, amount: &Quantities) {
        match self {
            Booking::In => *sum += amount,
            Booking::Out => *sum -= amount,
        }
    }
}

/// Whether quota limits the use of this: unreserved and non-revocable.
pub(crate) fn is_plain(resource: &Resource) -> bool {
    resource.amount().is_some()
        && !resource.is_reserved()
        && !resource.is_revocable()
        && !resource.is_shared()
}

/// How much of these quota limits the use of.
pub(crate) fn plain_quantities(resources: &Resources) -> Quantities {
    let mut sum = Quantities::new();
    for resource in resources {
        if let Some(amount) = resource.amount().filter(|_| is_plain(resource)) {
            sum.increase(resource.name(), amount);
        }
    }
    sum
}
