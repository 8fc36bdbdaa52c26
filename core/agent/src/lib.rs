//! The agent: frameworks, executors and tasks of one machine, and every status update until it is acknowledged.
//!
//! A single-threaded [`Fsm`](tepui_fsm::Fsm): [`Input`] in, [`Record`]s and [`Effect`]s out. One file per event of
//! the master under `master/`, one per executor call under `executor/`, one per operator call under `operator/`.
//!
//! Never here: sockets, HTTP, JSON, files, processes, clocks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod effect;
mod input;

pub use config::{Config, Recover};
pub use effect::Effect;
pub use input::{Input, LinkId};
