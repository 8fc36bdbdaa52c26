//! What an operator set when starting the agent. Names follow the flags.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_authz::Authorizer;
use tepui_proto::mesos::v1 as pb;

use crate::{Estimator, Eviction, QosController};

/// What to do with executors found after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recover {
    /// Let executors resubscribe.
    Reconnect,
    /// End them all, then end the process.
    Cleanup,
}

#[derive(Clone, Debug)]
pub struct Config {
    /// hostname, port, resources, attributes, domain; `id` unset.
    pub agent_info: pb::AgentInfo,
    pub capabilities: Vec<pb::agent_info::capability::Type>,
    /// "slave(1)@ip:port".
    pub pid: String,
    /// Whether the agent is reached by https.
    pub speaks_tls: bool,
    /// "ip:port", as executors reach the agent.
    pub endpoint: String,
    pub version: String,
    /// Absolute.
    pub work_dir: String,
    /// Absolute; not expected to survive a reboot.
    pub runtime_dir: String,
    /// The program that runs built-in executors: our own binary.
    pub executor_program: String,
    pub executor_environment_variables: Option<BTreeMap<String, String>>,
    /// The container of executors that name none.
    pub default_container_info: Option<pb::ContainerInfo>,
    pub executor_registration_timeout: Duration,
    pub executor_reregistration_timeout: Duration,
    pub executor_shutdown_grace_period: Duration,
    /// How long after a task's grace period an executor of ours may take to report its end (`--executor_kill_margin`).
    pub executor_kill_margin: Duration,
    /// As the docker executor has it, for tasks without a kill policy.
    pub docker_stop_timeout: Duration,
    /// Grace period of borrowers whose resources are reclaimed.
    pub slack_eviction_grace: Duration,
    pub estimator: Estimator,
    /// How often an estimate is made.
    pub oversubscribed_resources_interval: Duration,
    pub qos_controller: QosController,
    /// How far corrections are apart at least.
    pub qos_correction_interval_min: Duration,
    /// When tasks above their memory request are evicted.
    pub eviction: Eviction,
    pub registration_backoff_factor: Duration,
    pub recover: Recover,
    pub recovery_timeout: Duration,
    pub strict: bool,
    pub switch_user: bool,
    /// Rules of `--acls`. Users of launches are authorized here again, by `run_tasks`.
    pub authorizer: Authorizer,
    pub gc_delay: Duration,
    pub gc_disk_headroom: f64,
    pub max_completed_executors_per_framework: usize,
    /// The names given by `--isolation`.
    pub isolation: Vec<String>,
    /// Cpu requests are also upper limits (`--cgroups_enable_cfs`).
    pub cgroups_enable_cfs: bool,
    /// Tasks without a cpu or memory request are best effort (`--best_effort_tasks`).
    pub best_effort_tasks: bool,
    /// Labels of an executor may limit it with all its tasks (`--task_group_limits`).
    pub task_group_limits: bool,
    /// Accept changed resources or attributes that only add (`--reconfiguration_policy=additive`).
    pub reconfiguration_additive: bool,
    /// Seed, together with the time of the start, of everything random: ids, backoff.
    pub seed: u64,
    /// The machine's boot id; another one than recorded means a reboot.
    pub boot_id: String,
}

impl Default for Config {
    /// The defaults of the v1 flags.
    fn default() -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        Self {
            agent_info: pb::AgentInfo::default(),
            capabilities: default_capabilities(),
            pid: String::new(),
            speaks_tls: false,
            endpoint: String::new(),
            version: String::new(),
            work_dir: String::new(),
            runtime_dir: String::new(),
            executor_program: String::new(),
            executor_environment_variables: None,
            default_container_info: None,
            executor_registration_timeout: 60 * SECOND,
            executor_reregistration_timeout: 2 * SECOND,
            executor_shutdown_grace_period: 5 * SECOND,
            executor_kill_margin: 10 * SECOND,
            docker_stop_timeout: Duration::ZERO,
            slack_eviction_grace: 5 * SECOND,
            estimator: Estimator::Noop,
            oversubscribed_resources_interval: 15 * SECOND,
            qos_controller: QosController::Noop,
            qos_correction_interval_min: Duration::ZERO,
            eviction: Eviction::default(),
            registration_backoff_factor: SECOND,
            recover: Recover::Reconnect,
            recovery_timeout: 900 * SECOND,
            strict: true,
            switch_user: true,
            authorizer: Authorizer::default(),
            gc_delay: 7 * 24 * 3600 * SECOND,
            gc_disk_headroom: 0.1,
            max_completed_executors_per_framework: 150,
            isolation: Vec::new(),
            cgroups_enable_cfs: false,
            best_effort_tasks: false,
            task_group_limits: false,
            reconfiguration_additive: false,
            seed: 0,
            boot_id: String::new(),
        }
    }
}

fn default_capabilities() -> Vec<pb::agent_info::capability::Type> {
    use pb::agent_info::capability::Type;
    Vec::from([
        Type::MULTI_ROLE,
        Type::HIERARCHICAL_ROLE,
        Type::RESERVATION_REFINEMENT,
        Type::RESOURCE_PROVIDER,
        Type::RESIZE_VOLUME,
        Type::AGENT_OPERATION_FEEDBACK,
        Type::AGENT_DRAINING,
        Type::TASK_RESOURCE_LIMITS,
    ])
}
