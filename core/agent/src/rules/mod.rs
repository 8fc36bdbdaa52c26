//! Rules over the state: authorization, limits, users, history, garbage collection, eviction; no rule starts or ends an executor.

pub(crate) mod authorization;
pub(crate) mod checkpoint;
pub(crate) mod disk_pressure;
pub(crate) mod drain;
pub(crate) mod environment;
pub(crate) mod eviction;
pub(crate) mod gc;
pub(crate) mod generated_executor;
pub(crate) mod history;
pub(crate) mod limits;
pub(crate) mod nested;
pub(crate) mod overdue;
pub(crate) mod users;
