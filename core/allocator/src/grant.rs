//! Decisions of one call of `allocate`, and the clients to which agents are shown meanwhile.

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

/// A framework that receives an inverse offer.
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

/// The clients to which agents are shown.
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
