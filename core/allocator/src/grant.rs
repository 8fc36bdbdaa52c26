//! What one call of `allocate` decides, and whom agents are shown to meanwhile.

use alloc::vec::Vec;

use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId};

/// Free resources of an agent that are now offered to a framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub framework: FrameworkId,
    pub role: Role,
    pub agent: AgentId,
    /// Allocated to `role`.
    pub resources: Resources,
}

/// A framework that is to be asked to leave an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InverseGrant {
    pub framework: FrameworkId,
    pub agent: AgentId,
}

/// What one call of `allocate` decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    pub grants: Vec<Grant>,
    pub inverse: Vec<InverseGrant>,
}

/// Whom agents are shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Roles with a guarantee that is not met.
    Guarantees,
    Everyone,
}

/// Which clients a walk meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Only those that are fresh in this run.
    Fresh,
}
