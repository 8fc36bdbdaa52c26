//! Properties of clients and roles for the inner loop, packed so that thousands of them fit into the nearest cache.
//!
//! Kept by `tree` and `quota`. Only hints: clients that pass are checked in full.

use tepui_resources::{Name, Quantities, Role, Scalar};

use crate::FrameworkCapabilities;
use crate::slab::NodeSlot;

/// What a client is like, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits(u8);

impl Traits {
    pub(crate) const GPUS: Traits = Traits(1);
    pub(crate) const REGION: Traits = Traits(1 << 1);
    pub(crate) const MULTI_ROLE: Traits = Traits(1 << 2);
    pub(crate) const NESTED_ROLE: Traits = Traits(1 << 3);
    pub(crate) const REVOCABLE: Traits = Traits(1 << 4);
    pub(crate) const SHARED: Traits = Traits(1 << 5);
    pub(crate) const REFINED: Traits = Traits(1 << 6);
    /// What decides which resources it can have; the others decide about whole agents.
    pub(crate) const OF_RESOURCES: Traits = Traits(Self::REVOCABLE.0 | Self::SHARED.0 | Self::REFINED.0);

    pub(crate) fn of(can: &FrameworkCapabilities, role: &Role) -> Self {
        Self::sum([
            (can.gpu_resources, Self::GPUS),
            (can.region_aware, Self::REGION),
            (can.multi_role, Self::MULTI_ROLE),
            (role.is_nested(), Self::NESTED_ROLE),
            (can.revocable_resources, Self::REVOCABLE),
            (can.shared_resources, Self::SHARED),
            (can.reservation_refinement, Self::REFINED),
        ])
    }

    pub(crate) fn sum<const N: usize>(traits: [(bool, Traits); N]) -> Self {
        traits.iter().filter(|(has, _)| *has).fold(Self(0), |sum, (_, one)| Self(sum.0 | one.0))
    }

    pub(crate) fn has_all(self, others: Traits) -> bool {
        others.0 & !self.0 == 0
    }

    pub(crate) fn has_any(self, others: Traits) -> bool {
        others.0 & self.0 != 0
    }

    pub(crate) fn with(self, others: Traits) -> Self {
        Self(self.0 | others.0)
    }

    pub(crate) fn only(self, others: Traits) -> Self {
        Self(self.0 & others.0)
    }
}

/// Summary of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientTraits {
    pub(crate) node: NodeSlot,
    /// The topmost role above it.
    pub(crate) top: NodeSlot,
    pub(crate) traits: Traits,
    /// Has a smallest offer of its own.
    pub(crate) own_least: bool,
}

/// Some of the five usual names, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(u8);

impl Names {
    pub(crate) const COUNT: usize = 1 << Self::USUAL.len();
    const USUAL: [Name; 5] = [Name::Cpus, Name::Mem, Name::Disk, Name::Gpus, Name::Ports];

    /// Those of which there is nothing.
    pub(crate) fn lacking(amounts: &Quantities) -> Self {
        let none = Self::USUAL.iter().enumerate().filter(|(_, name)| amounts.get(name).is_zero());
        Self(none.map(|(at, _)| 1 << at).sum())
    }

    pub(crate) fn insert(&mut self, name: &Name) {
        if let Some(at) = Self::USUAL.iter().position(|usual| usual == name) {
            self.0 |= 1 << at;
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The amounts without these names.
    pub(crate) fn removed_from(self, amounts: &Quantities) -> Quantities {
        let mut rest = amounts.clone();
        for (at, name) in Self::USUAL.iter().enumerate() {
            if self.0 & (1 << at) != 0 {
                rest.set(name, Scalar::ZERO);
            }
        }
        rest
    }
}

/// Summary of the quota of a role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Names of which its own limit lets it have no more.
    pub(crate) full: Names,
    needy: bool,
    /// So many roles at and below it have a quota.
    pub(crate) quotas: u32,
    /// Quota limited the subtree: when more is available, it must be served again.
    pub(crate) cut: bool,
}

impl Marks {
    /// Something is required for it.
    pub(crate) fn is_needy(self) -> bool {
        self.needy
    }

    pub(crate) fn set(&mut self, full: Names, needy: bool) {
        self.full = full;
        self.needy = needy;
    }
}
