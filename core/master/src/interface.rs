//! What enters and leaves the state machine: configuration, inputs, effects, and how a script prints them.

pub(crate) mod config;
pub(crate) mod effect;
pub(crate) mod input;
mod show;
