//! Completed tasks, executors and frameworks as they are recorded.

use alloc::boxed::Box;

use tepui_proto::tepui::agent::v1 as stored;

/// What is kept of something that is over, and its number.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    pub number: u64,
    pub entry: Box<stored::StoredHistory>,
}
