//! Pending work of recovery.

use alloc::string::String;
use alloc::vec::Vec;

/// What recovery still has to do once the agent runs.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// The machine was restarted: no container of before lives, whatever its number says.
    pub(crate) rebooted: bool,
    /// Records to be dropped: unreadable, or of nothing that exists.
    pub(crate) discard: Vec<String>,
    /// The directory of an identity that was given up.
    pub(crate) former: Option<String>,
    /// The agent was told to end before it knew which of its containers live.
    pub(crate) leaving: bool,
}
