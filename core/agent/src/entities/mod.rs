//! Transitions of frameworks, executors, tasks, operations and the link, and their consequences (`reconcile`).

pub(crate) mod draining;
pub(crate) mod lifecycle;
pub(crate) mod link;
pub(crate) mod operations;
pub(crate) mod oversubscription;
pub(crate) mod reconcile;
pub(crate) mod slack;
pub(crate) mod status;
