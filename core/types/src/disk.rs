//! Room on the disk of a program, and the lack of it.

use core::fmt;

use tepui_fsm::Wall;

const BYTES_PER_MB: u64 = 1024 * 1024;

/// The room that the file system of a program's records has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Nothing should be begun that needs room.
    pub is_short: bool,
    pub available_bytes: u64,
}

/// The disk is short of space: operations that need space are rejected until there is more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPressure {
    pub since: Wall,
    /// As much as was left then.
    pub available_bytes: u64,
}

impl DiskPressure {
    /// The pressure that follows from the available space, if any.
    pub fn found(room: DiskRoom, now: Wall) -> Option<Self> {
        room.is_short.then_some(Self { since: now, available_bytes: room.available_bytes })
    }
}

impl fmt::Display for DiskPressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk pressure ({}MB available)", self.available_bytes / BYTES_PER_MB)
    }
}
