//! Containers on this machine. One binary: each one more would link the whole crate again.
#![allow(clippy::unwrap_used)]

mod common;

mod cgroups;
mod crashes;
mod docker;
mod docker_volume;
mod fetcher;
mod hosts;
mod images;
mod isolators;
mod launcher;
mod lives;
mod paths;
mod prune;
mod recovery;
mod stdio;
mod usage;
