//! Benchmarks: the numbers of `SPECIFICATION.md`, each by one command that prints a table and JSON.
//!
//! `program` starts real masters and agents from the built binary; `fleet` is thousands of simulated agents in this
//! process, each with a real link; `framework` loads a master through the public client library; `allocator` runs the
//! allocator alone. One file per benchmark beside these.
//!
//! Never here: asserts on time. A benchmark fails only if the work was not done.
#![forbid(unsafe_code)]

mod agent;
pub mod allocator;
mod bare;
mod client_runtime;
pub mod containers;
#[path = "../../../container/docker/tests/common/mod.rs"]
mod dockerd;
pub mod end_to_end;
mod engine;
mod etcd;
pub mod failover;
mod fleet;
mod framework;
pub mod idle;
mod isolated;
pub mod launch;
pub mod long_running;
pub mod memory;
pub mod metrics;
pub mod operators;
mod program;
mod readers;
pub mod reading;
pub mod registry;
mod report;
pub mod service;
mod spread;
pub mod state;
pub mod swarm;
pub mod swarm_front;
pub mod swarm_run;
pub mod takeover;
mod web;
pub mod weights;

pub use program::binary;
pub use report::Report;
