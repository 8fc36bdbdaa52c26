//! Authorization, and checks of a peer's input against the master's state. Changes nothing.

pub(crate) mod allocator_spec;
pub(crate) mod authorization;
pub(crate) mod checks;
pub(crate) mod offer_constraints;
pub(crate) mod rejection;
pub(crate) mod revocable;
pub(crate) mod role_config;
