//! Descriptions of frameworks, as the master passes them.

use alloc::collections::{BTreeMap, BTreeSet};

use tepui_resources::Role;
use tepui_types::FrameworkId;

use crate::{MinAllocatable, OfferConstraints};

/// A framework as it subscribes or changes.
#[derive(Clone, Debug)]
pub struct FrameworkSpec {
    pub id: FrameworkId,
    pub roles: BTreeSet<Role>,
    /// A subset of `roles`.
    pub suppressed: BTreeSet<Role>,
    pub capabilities: FrameworkCapabilities,
    pub constraints: OfferConstraints,
    /// Instead of the cluster's, for these roles.
    pub min_allocatable: BTreeMap<Role, MinAllocatable>,
    /// Connected: an inactive framework is offered nothing.
    pub active: bool,
}

impl FrameworkSpec {
    /// An active framework in one role, able to do everything.
    pub fn new(id: FrameworkId, role: Role) -> Self {
        Self {
            id,
            roles: [role].into(),
            suppressed: BTreeSet::new(),
            capabilities: FrameworkCapabilities::ALL,
            constraints: OfferConstraints::default(),
            min_allocatable: BTreeMap::new(),
            active: true,
        }
    }
}

/// What a framework can handle; the rest is kept from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameworkCapabilities {
    pub gpu_resources: bool,
    pub revocable_resources: bool,
    pub shared_resources: bool,
    pub reservation_refinement: bool,
    pub multi_role: bool,
    pub region_aware: bool,
}

impl FrameworkCapabilities {
    pub const ALL: Self = Self {
        gpu_resources: true,
        revocable_resources: true,
        shared_resources: true,
        reservation_refinement: true,
        multi_role: true,
        region_aware: true,
    };
}
