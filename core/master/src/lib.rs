//! The master: frameworks and agents, offers, and the state of every task.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, registry operations and [`Effect`]s out. One file per
//! call under `handlers/`. Readers get a [`State`], which is a snapshot and cheap to clone. Absent: sockets, HTTP,
//! JSON, clocks, threads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod counting;
mod entities;
mod handlers;
mod interface;
mod machine;
mod master;
mod rules;
mod state;
#[cfg(test)]
mod tests;
mod validate;
mod values;

pub use entities::inverse::message as inverse_offer_message;
pub use entities::maintenance::cluster_status;
pub use entities::offer::message as offer_message;
pub use interface::config::Config;
pub use interface::effect::Effect;
pub use interface::input::Input;
pub use master::Master;
pub use rules::offer_constraints::excluded_agents;
pub use state::notice::{agent_entry, framework_entry};
pub use state::transition::{AgentRemoval, FrameworkRemoval, Registration, TaskUpdate, Transition};
pub use state::{
    Agent, AgentLink, AgentTally, Drain, Executor, Framework, FrameworkLink, FrameworkTally, InverseOffer,
    Map, Offer, Operation, OperationUuid, Recent, Set, State, Tallies, Task, TaskCounts, event_seen,
};
pub use tepui_allocator::Sorter;
pub use values::counters::{Counter, Counters, FrameworkCounters, OfferFate, Tally, TaskEnd};
pub use values::event::HEARTBEAT_INTERVAL;
pub use values::explain;
pub use values::limits::Limits;
