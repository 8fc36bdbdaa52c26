//! Timers of the master. `machine::due` runs them.

use tepui_types::{AgentId, ConnId, FrameworkId, OfferId};

/// A pending timer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A scheduler's stream has been quiet for long enough.
    Heartbeat(ConnId),
    OperatorHeartbeat,
    /// Time to ask an agent whether it lives.
    Ping(AgentId),
    /// An agent whose link broke has not come back.
    Reregister(AgentId),
    /// The rate limit lets this agent be marked unreachable.
    Unreachable(AgentId),
    /// Agents known from the registry have not come back to this master.
    RecoveredAgents,
    /// A framework has been away for too long.
    Failover(FrameworkId),
    /// Nobody answered an offer.
    Offer(OfferId),
    /// Nobody answered a request to leave an agent.
    InverseOffer(OfferId),
    /// Operations of frameworks nobody has heard of since this agent came.
    OrphanOperations(AgentId),
    RegistryGc,
}
