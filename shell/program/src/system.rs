//! The machine a program runs on: its load, processors and memory, as v1 shows them.

use nix::unistd::{SysconfVar, sysconf};
use tepui_http::Metrics;
use tepui_proto::json::JsonWriter;

/// Current values of the system. Unavailable ones are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct System {
    pub load: Option<[f64; 3]>,
    pub cpus_total: Option<f64>,
    pub mem_total_bytes: Option<f64>,
    pub mem_free_bytes: Option<f64>,
}

impl System {
    pub fn now() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpus = sysconf(SysconfVar::_NPROCESSORS_ONLN).ok().flatten();
        Self {
            cpus_total: cpus.map(|count| count as f64),
            ..Self::from_texts(&read("/proc/loadavg"), &read("/proc/meminfo"))
        }
    }

    fn from_texts(loadavg: &str, meminfo: &str) -> Self {
        let mut loads = loadavg.split_whitespace().map_while(|word| word.parse().ok());
        let bytes = |name: &str| -> Option<f64> {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().strip_suffix("kB")?.trim().parse().ok().map(|kilobytes: f64| kilobytes * 1024.0)
        };
        Self {
            load: loads
                .next()
                .zip(loads.next())
                .zip(loads.next())
                .map(|((one, five), fifteen)| [one, five, fifteen]),
            cpus_total: None,
            mem_total_bytes: bytes("MemTotal"),
            mem_free_bytes: bytes("MemFree"),
        }
    }

    /// `system/…` of the metrics.
    pub fn add_to(&self, metrics: &mut Metrics) {
        for (at, name) in
            ["system/load_1min", "system/load_5min", "system/load_15min"].into_iter().enumerate()
        {
            if let Some(load) = self.load {
                metrics.gauge(name, load[at]);
            }
        }
        for (name, value) in [
            ("system/cpus_total", self.cpus_total),
            ("system/mem_total_bytes", self.mem_total_bytes),
            ("system/mem_free_bytes", self.mem_free_bytes),
        ] {
            if let Some(value) = value {
                metrics.gauge(name, value);
            }
        }
    }

    /// The document of `/system/stats.json`.
    pub fn document(&self) -> Vec<u8> {
        let load = |at: usize| self.load.map(|load| load[at]);
        let mut w = JsonWriter::new();
        w.object(|w| {
            w.optional_field("avg_load_15min", load(2).as_ref());
            w.optional_field("avg_load_1min", load(0).as_ref());
            w.optional_field("avg_load_5min", load(1).as_ref());
            w.optional_field("cpus_total", self.cpus_total.as_ref());
            w.optional_field("mem_free_bytes", self.mem_free_bytes.as_ref());
            w.optional_field("mem_total_bytes", self.mem_total_bytes.as_ref());
        });
        w.into_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_memory_are_parsed_from_proc() {
        let system = System::from_texts("0.50 1.25 2.00 1/234 5678\n", "MemTotal: 16 kB\nMemFree:   4 kB\n");
        assert_eq!(
            String::from_utf8(system.document()).unwrap(),
            r#"{"avg_load_15min":2.0,"avg_load_1min":0.5,"avg_load_5min":1.25,"mem_free_bytes":4096.0,"mem_total_bytes":16384.0}"#
        );
        assert_eq!(System::from_texts("", "garbage"), System::default());
        assert!(System::now().cpus_total.is_some_and(|cpus| cpus >= 1.0));
    }
}
