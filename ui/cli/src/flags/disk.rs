//! Flags of both programs about disks that are short of room. v1 has none of them.

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_agent::Headroom;

use super::value;

/// Less holds no record of a task.
const RESERVE_BYTES_MIN: u64 = 64 * 1024;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct DiskFlags {
    /// Disk space reserved for records of terminating tasks on a full disk; 0 disables the reserve.
    #[arg(long, value_parser = value::bytes, default_value = "4MB")]
    pub disk_reserve: u64,
    /// Available disk space below which the disk is under pressure and new work is rejected; pressure ends at
    /// twice this value.
    #[arg(long, value_parser = value::bytes, default_value = "16MB")]
    pub disk_pressure_available: u64,
}

impl DiskFlags {
    pub fn headroom(&self) -> Result<Headroom> {
        let reserve_bytes = self.disk_reserve;
        if (1..RESERVE_BYTES_MIN).contains(&reserve_bytes) {
            bail!(
                "--disk_reserve={reserve_bytes}B is too small to hold a record; use at least 64KB, or 0 for no reserve"
            );
        }
        Ok(Headroom { reserve_bytes, available_bytes_min: self.disk_pressure_available })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_reserve_is_zero_or_above_the_minimum() {
        for (disk_reserve, is_valid) in [(0, true), (1, false), (64 * 1024 - 1, false), (64 * 1024, true)] {
            let found = DiskFlags { disk_reserve, disk_pressure_available: 1 }.headroom();
            assert_eq!(found.is_ok(), is_valid, "{disk_reserve}: {found:?}");
        }
    }
}
