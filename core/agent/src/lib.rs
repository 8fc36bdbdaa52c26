//! The agent: frameworks, executors and tasks of one machine, and every status update until it is acknowledged.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, [`Record`]s and [`Effect`]s out. Folders
//! are layers, each using those before it: `state`, `interface`, `agent` (everything it owns), `rules`, `entities` (lives and
//! their consequences), `handlers` (one file per event of the master, call of an executor or operator), `machine`.
//!
//! Never here: sockets, HTTP, JSON, files, processes, clocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod agent;
mod entities;
mod handlers;
mod interface;
mod machine;
mod rules;
mod state;

pub use agent::Agent;
pub use handlers::recover::RecoverError;
pub use interface::config::{Config, Recover};
pub use interface::effect::Effect;
pub use interface::input::{Caller, Input, Peer, Principal, Sender};
pub use interface::record::Record;
pub use rules::authorization::{authorize_operator, container_of, executor_claims, needs_known_user};
pub use state::bookkeeping::{
    Estimator, Eviction, HistoryEntry, LinkId, Load, MachineMemory, MemoryUse, QosController, SandboxUse,
    Used,
};
pub use state::transition::{Disconnection, TaskUpdate, Transition};
pub use state::visible::Look;
pub use state::volumes::volume_path;
pub use state::{
    Cause, Completion, Container, ContainerStage, Counters, Delivery, Drain, Executor, ExecutorPhase,
    Framework, Kill, Phase, State, Task, TaskStage,
};

#[cfg(test)]
mod tests;
