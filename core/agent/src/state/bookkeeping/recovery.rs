//! Pending work of recovery.

use alloc::string::String;
use alloc::vec::Vec;

/// What recovery still has to do once the agent runs.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The machine was restarted: no earlier container is alive, even if its pid is in use.
    pub(crate) rebooted: bool,
    /// Records to be dropped: unreadable, or of nothing that exists.
    pub(crate) discard: Vec<String>,
    /// The directory of an identity that was given up.
    pub(crate) former: Option<String>,
    /// The agent began to terminate before it was known which of its containers are alive.
    pub(crate) leaving: bool,
}
