//! Offers as a framework holds them, and what they add up to.

use tepui_resources::{Quantities, Resource, Resources, Role};
use tepui_types::OfferId;

use crate::Kind;

/// An offer of one agent, until it is accepted, declined or rescinded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldOffer {
    pub id: OfferId,
    /// As offered: allocated to one role of the framework.
    pub resources: Resources,
}

impl HeldOffer {
    /// The role that the offer is made to; `None` for a master that does not say.
    pub fn role(&self) -> Option<&Role> {
        self.resources.iter().find_map(Resource::allocation)
    }

    /// Whether some of its scalars are of this kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.resources.iter().any(|resource| resource.amount().is_some() && Kind::of(resource) == kind)
    }
}

/// The scalars of one kind in all offers that a task can use.
pub fn totals<'o>(offers: impl IntoIterator<Item = &'o HeldOffer>, kind: Kind) -> Quantities {
    let mut sum = Quantities::new();
    for offer in offers {
        sum += &offer.resources.quantities_of(|resource| is_usable(resource, kind));
    }
    sum
}

/// The scalars of one kind that a task may take a part of. Volumes and shared resources are asked for by their identity,
/// never as an amount.
pub(crate) fn usable(resources: &Resources, kind: Kind) -> Resources {
    resources.filter(|resource| is_usable(resource, kind))
}

fn is_usable(resource: &Resource, kind: Kind) -> bool {
    resource.amount().is_some()
        && Kind::of(resource) == kind
        && !resource.is_indivisible()
        && !resource.is_persistent_volume()
}
