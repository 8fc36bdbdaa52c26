//! The service spec: what `parse` makes of a YAML file, checked.
//!
//! Names follow the keys of the file. Order of pods, tasks, phases and steps is the order of the file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod external;
mod placement;
mod served;

pub use external::{ExternalVolume, Sharing, VolumeMode};
pub(crate) use external::{PORTWORX_PLUGIN, REXRAY_PLUGIN, size_is_in_gb};
pub use placement::{Constraint, Operator, Subject};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpec {
    pub name: String,
    pub web_url: Option<String>,
    pub principal: String,
    pub user: String,
    pub zookeeper: String,
    pub replacement: Option<ReplacementPolicy>,
    pub pods: Vec<PodSpec>,
    /// Empty if the file has no `plans`; a deploy plan is generated then.
    pub plans: Vec<PlanSpec>,
}

impl ServiceSpec {
    pub fn pod(&self, name: &str) -> Option<&PodSpec> {
        self.pods.iter().find(|pod| pod.name == name)
    }

    pub fn plan(&self, name: &str) -> Option<&PlanSpec> {
        self.plans.iter().find(|plan| plan.name == name)
    }
}

/// When failed pods are replaced without an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementPolicy {
    pub permanent_failure_timeout_secs: u64,
    pub min_replace_delay_secs: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodSpec {
    pub name: String,
    pub count: u32,
    pub allow_decommission: bool,
    pub image: Option<String>,
    pub uris: Vec<String>,
    pub placement: Vec<Constraint>,
    pub networks: Vec<Network>,
    pub rlimits: Vec<RLimit>,
    pub volumes: Vec<Volume>,
    pub host_volumes: Vec<HostVolume>,
    pub external_volumes: Vec<ExternalVolume>,
    pub secrets: Vec<Secret>,
    pub pre_reserved_role: String,
    pub share_pid_namespace: bool,
    pub seccomp: Seccomp,
    pub ipc_mode: Option<IpcMode>,
    pub shm_size_mb: Option<u64>,
    /// Those of the file and the implicit ones of tasks without `resource-set`.
    pub resource_sets: Vec<ResourceSet>,
    pub tasks: Vec<TaskSpec>,
}

impl PodSpec {
    pub fn task(&self, name: &str) -> Option<&TaskSpec> {
        self.tasks.iter().find(|task| task.name == name)
    }

    pub fn resource_set(&self, id: &str) -> Option<&ResourceSet> {
        self.resource_sets.iter().find(|set| set.id == id)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    pub name: String,
    pub goal: Goal,
    pub essential: bool,
    pub cmd: String,
    /// `env` of the file with the `TASKCFG_` variables over it.
    pub env: BTreeMap<String, String>,
    pub labels: Vec<(String, String)>,
    pub configs: Vec<ConfigTemplate>,
    /// Id of a resource set of the pod.
    pub resource_set: String,
    pub health_check: Option<HealthCheck>,
    pub readiness_check: Option<ReadinessCheck>,
    pub discovery: Option<Discovery>,
    pub kill_grace_period_secs: u64,
    pub ipc_mode: Option<IpcMode>,
    pub shm_size_mb: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Goal {
    Running,
    /// Runs to its end once for every configuration.
    Finish,
    /// Runs to its end once, whatever the configuration.
    Once,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigTemplate {
    pub name: String,
    pub dest: String,
    pub content: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthCheck {
    pub cmd: String,
    pub interval_secs: u64,
    pub grace_period_secs: u64,
    pub max_consecutive_failures: u32,
    pub delay_secs: u64,
    pub timeout_secs: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessCheck {
    pub cmd: String,
    pub interval_secs: u64,
    pub delay_secs: u64,
    pub timeout_secs: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovery {
    pub prefix: Option<String>,
    pub visibility: Visibility,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    Framework,
    Cluster,
    External,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceSet {
    pub id: String,
    pub cpus: Option<f64>,
    pub gpus: Option<f64>,
    pub memory_mb: Option<u64>,
    pub ports: Vec<Port>,
    pub volumes: Vec<Volume>,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Limits {
    pub cpus: Option<Limit>,
    pub memory_mb: Option<Limit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Limit {
    Unlimited,
    Amount(f64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub name: String,
    /// 0 is any free port.
    pub port: u16,
    pub env_key: Option<String>,
    pub advertise: bool,
    pub vip: Option<Vip>,
    /// First and last of each range that a free port is chosen from; empty is all.
    pub ranges: Vec<(u16, u16)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vip {
    pub prefix: String,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub path: String,
    pub kind: VolumeKind,
    pub size_mb: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeKind {
    Root,
    /// A disk of its own; with profiles, one of those.
    Mount {
        profiles: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostVolume {
    pub host_path: String,
    pub container_path: String,
    pub mode: VolumeMode,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    pub secret: String,
    pub env_key: Option<String>,
    pub file: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub name: String,
    /// Host port and container port.
    pub port_mappings: Vec<(u16, u16)>,
    pub labels: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RLimit {
    pub name: String,
    /// Soft and hard; `None` is unlimited.
    pub values: Option<(u64, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seccomp {
    Default,
    Unconfined,
    Profile(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpcMode {
    Private,
    ShareParent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSpec {
    pub name: String,
    pub parallel: bool,
    pub phases: Vec<PhaseSpec>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpec {
    pub name: String,
    pub pod: String,
    pub parallel: bool,
    pub canary: bool,
    /// `None` is one step of all tasks for every instance.
    pub steps: Option<StepsSpec>,
}

/// Groups of tasks in the order of their launch; the tasks of a group are launched together.
pub type Groups = Vec<Vec<String>>;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StepsSpec {
    pub by_index: BTreeMap<u32, Groups>,
    pub default: Option<Groups>,
}

impl StepsSpec {
    pub fn groups(&self, index: u32) -> Option<&Groups> {
        self.by_index.get(&index).or(self.default.as_ref())
    }
}
