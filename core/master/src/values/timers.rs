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
    /// An agent whose link broke has not re-registered.
    Reregister(AgentId),
    /// The rate limit lets this agent be marked unreachable.
    Unreachable(AgentId),
    /// Recovered agents have not re-registered with this master.
    RecoveredAgents,
    /// A framework has been away for too long.
    Failover(FrameworkId),
    /// An offer without an answer.
    Offer(OfferId),
    /// An inverse offer without an answer.
    InverseOffer(OfferId),
    /// Operations of frameworks that have not subscribed since this agent registered.
    OrphanOperations(AgentId),
    RegistryGc,
}
