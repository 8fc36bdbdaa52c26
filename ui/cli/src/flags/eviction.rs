//! Flags of `tepui agent` for eviction under memory and disk pressure. v1 has none of them.

use anyhow::{Result, bail};
use clap::Args;
use tepui_shell_agent::{Config, Eviction};

use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct EvictionFlags {
    /// Evict the task that most exceeds its memory request when less than this is available, as in `512MB`
    /// [default: none].
    #[arg(long, value_parser = value::bytes)]
    pub eviction_memory_available: Option<u64>,
    /// Evict likewise when tasks stall on memory for at least this percentage of the time (PSI) [default:
    /// none].
    #[arg(long)]
    pub eviction_pressure: Option<f64>,
    /// Kill the container with the largest sandbox when less than this is available on the disk of
    /// --work_dir, as in `1GB` [default: none].
    #[arg(long, value_parser = value::bytes)]
    pub eviction_disk_available: Option<u64>,
}

impl EvictionFlags {
    /// Sets the options. Whether the host can measure pressure is checked when the agent starts.
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
            let error = set(None, Some(pressure)).expect_err("rejected").to_string();
            assert!(error.contains("is not a percentage"), "{error}");
        }
    }
}
