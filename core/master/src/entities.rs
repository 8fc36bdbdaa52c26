//! Transitions of frameworks, agents, tasks, executors, offers and operations, with their consequences.

pub(crate) mod agent_expiry;
pub(crate) mod disk_pressure;
pub(crate) mod drain;
pub(crate) mod executor;
pub(crate) mod explanations;
pub(crate) mod framework;
pub(crate) mod inverse;
pub(crate) mod liveness;
pub(crate) mod maintenance;
pub(crate) mod offer;
pub(crate) mod operation;
pub(crate) mod quota;
pub(crate) mod reachability;
pub(crate) mod removal;
pub(crate) mod slack;
pub(crate) mod task;
