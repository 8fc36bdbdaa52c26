//! The offers of one ACCEPT while its operations run.

use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId};

/// Accepted offers: still booked as offered, and no longer outstanding.
#[derive(Debug)]
pub(crate) struct AcceptedOffers {
    pub(crate) framework_id: FrameworkId,
    pub(crate) agent_id: AgentId,
    pub(crate) role: Role,
    /// Resources of all offers.
    pub(crate) offered: Resources,
    /// Resources available to the next operation.
    pub(crate) pool: Resources,
    /// Resources made by operations that later ones must not use.
    pub(crate) withheld: Resources,
}
