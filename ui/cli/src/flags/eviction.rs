//! The flags of `tepui agent` about what happens when memory runs short. v1 has none of them.

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
}

impl EvictionFlags {
    /// Sets what the flags say.
    pub fn set(&self, isolation: &[String], config: &mut Config) -> Result<()> {
        let eviction =
            Eviction { available_bytes: self.eviction_memory_available, pressure: self.eviction_pressure };
        if let Some(pressure) = eviction.pressure.filter(|percent| !(0.0..=100.0).contains(percent)) {
            bail!("--eviction_pressure={pressure} is not a percentage; write 0 to 100");
        }
        let counted = isolation.iter().any(|name| name == "cgroups/mem" || name == "cgroups/all");
        if eviction.is_on() && !counted {
            bail!("--eviction_memory_available and --eviction_pressure need cgroups/mem in --isolation");
        }
        config.eviction = eviction;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_refused() {
        let set = |available, pressure, isolation: &str| {
            let flags = EvictionFlags { eviction_memory_available: available, eviction_pressure: pressure };
            let mut config = Config::default();
            flags.set(&[isolation.to_string()], &mut config).map(|()| config.eviction.is_on())
        };
        assert_eq!(set(None, None, "posix/mem").ok(), Some(false));
        assert_eq!(set(Some(1), Some(100.0), "cgroups/mem").ok(), Some(true));
        assert_eq!(set(None, Some(0.0), "cgroups/all").ok(), Some(true));
        for (available, pressure, isolation, why) in [
            (Some(1), None, "posix/mem", "need cgroups/mem in --isolation"),
            (None, Some(100.5), "cgroups/mem", "is not a percentage"),
            (None, Some(-1.0), "cgroups/mem", "is not a percentage"),
            (None, Some(f64::NAN), "cgroups/mem", "is not a percentage"),
        ] {
            let said = set(available, pressure, isolation).expect_err("refused").to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
