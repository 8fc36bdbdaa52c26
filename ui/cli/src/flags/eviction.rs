//! The flags of `tepui agent` about what happens when memory or the disk runs short. v1 has none of them.

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_agent::{Config, Eviction};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct EvictionFlags {
    /// With less memory left than this, the task farthest over its memory request is ended: `512MB`.
    #[arg(long, value_parser = value::bytes)]
    pub eviction_memory_available: Option<u64>,
    /// The same if something waits for memory at least this part of the time, in percent.
    #[arg(long)]
    pub eviction_pressure: Option<f64>,
    /// Kill the container with the largest sandbox when less than this is available on the disk of --work_dir: `1GB`.
    #[arg(long, value_parser = value::bytes)]
    pub eviction_disk_available: Option<u64>,
}

impl EvictionFlags {
    /// Sets what the flags say. Whether this host can measure it is checked when the agent starts.
    pub fn set(&self, config: &mut Config) -> Result<()> {
        let eviction = Eviction {
            available_bytes: self.eviction_memory_available,
            pressure: self.eviction_pressure,
            disk_available_bytes: self.eviction_disk_available,
        };
        if let Some(pressure) = eviction.pressure.filter(|percent| !(0.0..=100.0).contains(percent)) {
            bail!("--eviction_pressure={pressure} is not a percentage; write 0 to 100");
        }
        config.eviction = eviction;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_a_percentage() {
        let set = |available, pressure| {
            let flags = EvictionFlags {
                eviction_memory_available: available,
                eviction_pressure: pressure,
                eviction_disk_available: None,
            };
            let mut config = Config::default();
            flags.set(&mut config).map(|()| config.eviction.watches_memory())
        };
        assert_eq!(set(None, None).ok(), Some(false));
        assert_eq!(set(Some(1), Some(100.0)).ok(), Some(true));
        assert_eq!(set(None, Some(0.0)).ok(), Some(true));
        for pressure in [100.5, -1.0, f64::NAN] {
            let said = set(None, Some(pressure)).expect_err("rejected").to_string();
            assert!(said.contains("is not a percentage"), "{said}");
        }
    }
}
