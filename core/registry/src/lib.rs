//! The registry: the facts about a cluster that outlive its master.
//!
//! The master decides an [`Operation`], which is both applied in memory and, through
//! [`Durable`](tepui_fsm::Durable), written key by key; a new master gets the same [`Registry`] back from `load`.
//! Frameworks, tasks, offers and filters are not stored: agents and frameworks report them when they reconnect.
//!
//! Absent: one value that holds everything, a clock, a file.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod key;
mod load;
mod machine;
mod operation;
mod show;
mod state;

pub use load::LoadError;
pub use machine::Machine;
pub use operation::{AGENT_DRAINING, Deactivation, Operation, QUOTA_V2, SCHEMA_VERSION, WEIGHT_DEFAULT};
pub use state::Registry;
