//! Estimators and controllers with their samples, and what is known of containers' use.

use alloc::collections::BTreeMap;
use core::time::Duration;

use tepui_fsm::Mono;
use tepui_resources::Resources;
use tepui_types::ContainerId;

/// How much is offered again (`--resource_estimator`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Estimator {
    /// Nothing.
    #[default]
    Noop,
    /// Always this.
    Fixed(Resources),
    /// Allocated resources beyond the recent peak usage; by default only cpus, because without a cpu a task is slow,
    /// and without memory it dies.
    Usage {
        compressible_only: bool,
        /// How long a container is watched before anything of it is offered again.
        watch: Duration,
    },
}

/// When revocable executors go (`--qos_controller`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum QosController {
    /// Never.
    #[default]
    Noop,
    /// All of them, while the load average of five or fifteen minutes is above its threshold.
    Load { five_minutes: Option<f64>, fifteen_minutes: Option<f64> },
    /// The youngest, again and again, while the share of time in which something waits for cpu or memory, in percent,
    /// is above its threshold.
    Pressure { cpu: f64, memory: f64 },
}

/// What one container used so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    pub id: ContainerId,
    /// Since its start.
    pub cpu_time: Duration,
    pub mem_bytes: u64,
}

/// How busy the machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    pub five_minutes: f64,
    pub fifteen_minutes: f64,
    /// Percent of the time with stalls on a cpu, or on memory; none if the kernel does not report it.
    pub cpu_pressure: Option<f64>,
    pub memory_pressure: Option<f64>,
}

#[derive(Debug, Default)]
pub(crate) struct Oversubscription {
    pub(crate) watched: BTreeMap<ContainerId, Watched>,
    /// The next correction comes no earlier.
    pub(crate) corrected_until: Mono,
}

/// A container's use over time: the last sample, and the smoothed high-water marks.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    pub(crate) since: Mono,
    pub(crate) at: Mono,
    pub(crate) cpu_time: Duration,
    pub(crate) cpus: f64,
    pub(crate) megabytes: f64,
}
