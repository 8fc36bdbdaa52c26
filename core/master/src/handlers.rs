//! One file per call or event: `call/` of schedulers, `op/` operations of an ACCEPT, `agent/` of agents, `operator/`.

pub(crate) mod agent;
pub(crate) mod call;
mod op;
pub(crate) mod operator;
