//! Descriptions of agents, as the master passes them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_resources::Resources;

/// An agent as it registers or changes.
#[derive(Clone, Debug, Default)]
pub struct AgentSpec {
    pub hostname: Arc<str>,
    pub attributes: Vec<Attribute>,
    pub domain: Option<Domain>,
    pub capabilities: AgentCapabilities,
    /// All its resources, including revocable ones; unallocated.
    pub total: Resources,
}

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    pub region: Arc<str>,
    pub zone: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    pub name: Arc<str>,
    pub value: AttributeValue,
}

/// Constraints compare texts only; of other types only their presence counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    Text(Arc<str>),
    NotText,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCapabilities {
    pub multi_role: bool,
    pub hierarchical_role: bool,
    pub reservation_refinement: bool,
}

impl AgentCapabilities {
    pub const ALL: Self = Self { multi_role: true, hierarchical_role: true, reservation_refinement: true };
}
