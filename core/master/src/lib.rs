//! The master: which frameworks and agents there are, who is offered what, and what became of every task.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, registry operations and [`Effect`]s out. One file per
//! call under `call/` (schedulers), `op/` (operations of an ACCEPT), `agent/` (agents) and `operator/`. Readers get a
//! [`State`], which is a snapshot and cheap to clone.
//!
//! Never here: sockets, HTTP, JSON, clocks, threads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod accepted;
mod agent;
mod authorization;
mod books;
mod boot;
mod call;
mod checks;
mod config;
mod counters;
mod counting;
mod disk_pressure;
mod drain;
mod effect;
mod ends;
mod event;
mod excluded;
mod executor;
pub mod explain;
mod framework;
mod garbage;
mod input;
mod inquiry;
mod inverse;
mod isolations;
mod limits;
mod liveness;
mod machine;
mod maintenance;
mod master;
mod normalize;
mod notice;
mod offer;
mod op;
mod operation;
mod operator;
mod quota;
mod reachability;
mod rejection;
mod removal;
mod revocable;
mod role_config;
mod show;
mod slack;
mod state;
mod status;
mod task;
#[cfg(test)]
mod tests;
mod timers;
mod transition;
mod validate;

pub use config::Config;
pub use counters::{Counter, Counters, FrameworkCounters, OfferFate, Tally, TaskEnd};
pub use effect::Effect;
pub use event::HEARTBEAT_INTERVAL;
pub use excluded::excluded_agents;
pub use input::Input;
pub use inverse::message as inverse_offer_message;
pub use limits::Limits;
pub use maintenance::cluster_status;
pub use master::Master;
pub use notice::{agent_entry, framework_entry};
pub use offer::message as offer_message;
pub use state::{
    Agent, AgentLink, AgentTally, Drain, Executor, Framework, FrameworkLink, FrameworkTally, InverseOffer,
    Map, Offer, Operation, OperationUuid, Recent, Set, State, Tallies, Task, TaskCounts, event_seen,
};
pub use tepui_allocator::Sorter;
pub use transition::{AgentRemoval, FrameworkRemoval, Registration, TaskUpdate, Transition};
