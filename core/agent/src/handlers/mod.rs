//! One file per event of the master, call of an executor or operator, event of a container, and timeout.

pub(crate) mod containers;
pub(crate) mod executor;
pub(crate) mod master;
pub(crate) mod operator;
pub(crate) mod recover;
pub(crate) mod timeouts;
