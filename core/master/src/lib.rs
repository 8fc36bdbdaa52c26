//! The master: which frameworks and agents there are, who is offered what, and what became of every task.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, registry operations and [`Effect`]s out. One file per
//! call under `call/` (schedulers) and `agent/` (agents). Readers get a [`State`], which is a snapshot and cheap to
//! clone.
//!
//! Never here: sockets, HTTP, JSON, clocks, threads.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod effect;
mod input;
mod state;

pub use config::Config;
pub use effect::Effect;
pub use input::Input;
pub use state::{Agent, AgentLink, Executor, Framework, FrameworkLink, Offer, Operation, State, Task};
