//! The room for records, and the threshold of disk pressure.

use std::io;
use std::path::Path;

const MB: u64 = 1024 * 1024;

/// The headroom for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Preallocated for records written while the disk is full; 0 disables it.
    pub reserve_bytes: u64,
    /// With less than this left the disk is short; with twice as much no longer.
    pub available_bytes_min: u64,
}

impl Default for Headroom {
    fn default() -> Self {
        Self { reserve_bytes: 4 * MB, available_bytes_min: 16 * MB }
    }
}

/// The available room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Nothing should be begun that needs room.
    pub is_short: bool,
    pub available_bytes: u64,
    pub reserve_bytes: u64,
    pub reserve_used_bytes: u64,
}

/// Space that a user other than root may still use on the file system of a path.
pub fn available_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    // Some file systems in memory have no size.
    Ok(if stat.f_blocks == 0 { u64::MAX } else { stat.f_bavail.saturating_mul(stat.f_frsize) })
}

impl Headroom {
    /// Whether the disk is short of room; `was`: the previous state. It stays short until the reserve is refilled.
    pub(crate) fn is_short(&self, was: bool, available: u64, is_reserve_whole: bool) -> bool {
        let enough = self.available_bytes_min.saturating_mul(if was { 2 } else { 1 });
        !is_reserve_whole || available < enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_pressure_clears_at_twice_the_threshold() {
        let headroom = Headroom { reserve_bytes: 1, available_bytes_min: 100 };
        for (was, available, is_whole, is_short) in [
            (false, 100, true, false),
            (false, 99, true, true),
            (false, 1000, false, true),
            (true, 100, true, true),
            (true, 199, true, true),
            (true, 200, true, false),
            (true, 200, false, true),
        ] {
            assert_eq!(headroom.is_short(was, available, is_whole), is_short, "{was} {available} {is_whole}");
        }
    }
}
