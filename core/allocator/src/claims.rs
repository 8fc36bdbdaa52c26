//! What a role claims of the cluster: its quota, and what follows from it.

use tepui_resources::{Limits, Quantities};

/// Of scalars only. A name that has no guarantee is not guaranteed, one that has no limit is not limited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub guarantees: Quantities,
    pub limits: Limits,
}

/// What a role claims of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    pub(crate) quota: Quota,
    /// Reserved to this very role on all agents.
    pub(crate) reserved: Quantities,
    /// By all of the subtree.
    pub(crate) consumed: Quantities,
    /// What must be kept for the subtree.
    pub(crate) required: Quantities,
    /// What the children require, in sum.
    pub(crate) required_below: Quantities,
}

impl Quota {
    pub fn is_default(&self) -> bool {
        self.guarantees.is_empty() && self.limits.is_empty()
    }
}
