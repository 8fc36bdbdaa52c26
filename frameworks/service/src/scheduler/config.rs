//! Settings of a scheduler that are not part of the service spec.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::backoff::BackoffPolicy;

#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the service; the records of another service are rejected.
    pub service: String,
    /// Role of the framework, parent of the roles of pods with a pre-reserved role.
    pub role: String,
    /// Principal of the framework and its reservations; that of the spec if none.
    pub principal: Option<String>,
    pub backoff: BackoffPolicy,
    pub executor: ExecutorOverhead,
    /// Scheme, host and port of the HTTP API, as tasks reach it: for artifacts and the environment of tasks.
    pub api_scheme: &'static str,
    pub api_host: String,
    pub api_port: u16,
    /// Domain of task names, `SERVICE_TLD`.
    pub service_tld: String,
    /// Domain of virtual addresses, `VIP_TLD`.
    pub vip_tld: String,
    /// Region that pods are bound to unless their placement names a region.
    pub region: Option<String>,
    /// Command of paused tasks.
    pub pause_command: String,
    /// Environment that `TASKCFG_` variables of the scheduler add is part of the spec; this is for all tasks besides.
    pub environment: BTreeMap<String, String>,
    /// Install the service again although the framework of this id was uninstalled.
    pub reinstall: Option<String>,
    pub timing: Timing,
}

/// Resources of the default executor of each pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExecutorOverhead {
    pub cpus: f64,
    pub mem_mb: f64,
    pub disk_mb: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long an offer is held while there is work.
    pub hold_offers: Duration,
    /// How long an offer that fits no step is not offered again.
    pub refuse_unfit: Duration,
    /// How long any offer is not offered again while there is nothing to do.
    pub refuse_idle: Duration,
    /// How long the rest of an accepted offer is not offered again.
    pub refuse_rest: Duration,
    /// Least time between two revives.
    pub revive_interval: Duration,
    /// Time between two kills of the same task.
    pub kill_retry: Duration,
    /// Time between two explicit reconciliations of tasks without an answer, at first and at most.
    pub reconcile_initial: Duration,
    pub reconcile_max: Duration,
    /// Time between two implicit reconciliations.
    pub reconcile_implicit: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            hold_offers: Duration::from_secs(5),
            refuse_unfit: Duration::from_secs(30),
            refuse_idle: Duration::from_secs(3600),
            refuse_rest: Duration::ZERO,
            revive_interval: Duration::from_secs(5),
            kill_retry: Duration::from_secs(5),
            reconcile_initial: Duration::from_secs(8),
            reconcile_max: Duration::from_secs(30),
            reconcile_implicit: Duration::from_secs(3600),
        }
    }
}

impl Default for ExecutorOverhead {
    fn default() -> Self {
        Self { cpus: 0.1, mem_mb: 32.0, disk_mb: 256.0 }
    }
}

/// The role of a service without one of its own: `<name>-role`, with folders as `__`.
pub fn default_role(service: &str) -> String {
    format!("{}-role", service.trim_start_matches('/').replace('/', "__"))
}

impl Config {
    /// Defaults for a service.
    pub fn new(service: &str) -> Config {
        Config {
            service: service.to_owned(),
            role: default_role(service),
            principal: None,
            backoff: BackoffPolicy::default(),
            executor: ExecutorOverhead::default(),
            api_scheme: "http",
            api_host: "localhost".to_owned(),
            api_port: 0,
            service_tld: "autoip.dcos.thisdcos.directory".to_owned(),
            vip_tld: "l4lb.thisdcos.directory".to_owned(),
            region: None,
            pause_command: PAUSE_COMMAND.to_owned(),
            environment: BTreeMap::new(),
            reinstall: None,
            timing: Timing::default(),
        }
    }
}

/// Keeps a paused task running without its own command.
const PAUSE_COMMAND: &str = "echo This task is PAUSED; while sleep 3600; do :; done";
