//! The agent: frameworks, executors and tasks of one machine, and every status update until it is acknowledged.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, [`Record`]s and [`Effect`]s out. One file per event of
//! the master under `master/`, one per executor call under `executor/`, one per operator call under `operator/`; what
//! they have in common is under `lifecycle/` and `status/`.
//!
//! Never here: sockets, HTTP, JSON, files, processes, clocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod agent;
mod config;
mod containers;
mod disk_pressure;
mod drain;
mod effect;
mod environment;
mod eviction;
mod executor;
mod gc;
mod generated_executor;
mod history;
mod input;
mod key;
mod lifecycle;
mod link;
mod master;
mod operations;
mod operator;
mod oversubscription;
mod paths;
mod record;
mod recover;
mod show;
mod slack;
mod state;
mod status;
mod transition;
mod users;

pub use agent::Agent;
pub use config::{Config, Recover};
pub use effect::Effect;
pub use eviction::{Eviction, MachineMemory, MemoryUse, SandboxUse};
pub use history::Kept;
pub use input::{Caller, Input, LinkId};
pub use lifecycle::volume_path;
pub use oversubscription::{Estimator, Load, QosController, Used};
pub use record::Record;
pub use recover::RecoverError;
pub use state::{
    Cause, Container, ContainerStage, Counters, Delivery, Drain, Executor, ExecutorPhase, Framework, Phase,
    State, Task, TaskStage,
};
pub use transition::{Disconnection, TaskUpdate, Transition};

#[cfg(test)]
mod tests;
