//! The built-in executors: `command` runs one command, `container` holds the resources of a Docker container that clients
//! start themselves, `docker` runs one command in a Docker container, `default` runs task groups in nested containers of
//! the agent.
//!
//! Each is a pure machine (events in, effects out) and an I/O part that performs the effects. They use the
//! client library and the v1 API of the agent only. The machines are public for the simulator.
#![forbid(unsafe_code)]

mod activity;
pub mod checks;
pub mod command;
pub mod container;
pub mod default;
pub mod docker;
mod exit;
mod kill;
pub mod machine;
mod process;
mod runner;
mod status;
#[cfg(test)]
mod testing;
mod tls;
