//! What enters and leaves the agent: configuration, inputs, records, effects, and their text.

pub(crate) mod config;
pub(crate) mod effect;
pub(crate) mod input;
pub(crate) mod record;
pub(crate) mod show;
