//! The executors that come with the cluster: `command` runs one command, `docker` runs one in a container of a Docker
//! engine, `default` runs groups of tasks in nested containers of the agent.
//!
//! Each is a pure machine (events and happenings in, effects out) with hands that do processes and HTTP. They are
//! ordinary users of the client library and know nothing of the agent beyond its v1 API.
//! The machines are public for tests that drive them over other hands.
#![forbid(unsafe_code)]

mod activity;
pub mod checks;
pub mod command;
pub mod default;
pub mod docker;
mod ending;
mod kill;
pub mod machine;
mod process;
mod rim;
mod status;
#[cfg(test)]
mod testing;
mod tls;
