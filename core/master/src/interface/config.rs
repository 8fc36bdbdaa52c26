//! What an operator set when starting the master. Names follow the flags.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_allocator::{MinAllocatable, MinAllocatableError, Sorter};
use tepui_authz::Authorizer;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::{Registry, WEIGHT_DEFAULT};

use crate::validate::weight;
use crate::values::limits::Limits;

#[derive(Clone, Debug)]
pub struct Config {
    /// id, hostname, ip, port, pid, version, address, capabilities, domain: what SUBSCRIBED and GET_MASTER show.
    pub master_info: pb::MasterInfo,
    /// Only these roles may be used; none: any.
    pub roles: Option<Vec<String>>,
    /// Used on the very first start only; afterwards the registry is the truth.
    pub weights: BTreeMap<String, f64>,
    pub root_submissions: bool,
    /// Agents without a fault domain are not taken in.
    pub require_agent_domain: bool,
    pub offer_timeout: Option<Duration>,
    pub allocation_interval: Duration,
    /// Alternatives of quantities, as `cpus:0.01|mem:32`; one must be met by an offer.
    pub min_allocatable_resources: String,
    pub fair_sharing_excluded_resource_names: Vec<String>,
    pub filter_gpu_resources: bool,
    /// Only agents on these hosts are offered; none: all. May change while the master runs.
    pub whitelist: Option<BTreeSet<String>>,
    /// Tasks need not ask for any cpus or memory (`--best_effort_tasks`).
    pub best_effort_tasks: bool,
    /// Labels of an executor may limit it with all its tasks (`--task_group_limits`).
    pub task_group_limits: bool,
    pub role_sorter: Sorter,
    pub framework_sorter: Sorter,
    /// With quota set, a new master offers nothing before this part of the known agents is back, or so much time has passed.
    pub allocator_agent_recovery_factor: f64,
    pub allocator_recovery_timeout: Duration,
    /// Lend what is reserved but idle, as revocable resources, to frameworks that take such.
    pub allocation_slack: bool,
    /// Roles whose reservations, and those of the roles below them, are not lent.
    pub allocation_slack_opt_out: Vec<String>,
    pub agent_ping_timeout: Duration,
    pub max_agent_ping_timeouts: u32,
    pub agent_reregister_timeout: Duration,
    /// How many agents may be marked unreachable per duration; none: no limit.
    pub agent_removal_rate_limit: Option<(u32, Duration)>,
    /// If a larger part of the recovered agents does not re-register in time, the fault is probably this master's,
    /// and it exits instead of removing them.
    pub recovery_agent_removal_limit: f64,
    pub max_completed_frameworks: usize,
    pub max_completed_tasks_per_framework: usize,
    pub max_unreachable_tasks_per_framework: usize,
    pub max_operator_event_stream_subscribers: usize,
    pub registry_gc_interval: Duration,
    pub registry_max_agent_age: Duration,
    pub registry_max_agent_count: usize,
    /// How much is kept of what frameworks and agents send.
    pub limits: Limits,
    /// Authorization rules.
    pub authorizer: Authorizer,
    /// Seed of everything random: ids, ties, order.
    pub seed: u64,
}

impl Config {
    /// What is wrong with a flag, so that a master is not started with it.
    pub fn check(&self) -> Result<(), String> {
        self.min_allocatable().map_err(|why| format!("--min_allocatable_resources: {why}"))?;
        if !(0.0..=1.0).contains(&self.allocator_agent_recovery_factor) {
            return Err(String::from("--allocator_agent_recovery_factor: it is a part, from 0 to 1"));
        }
        if !(0.0..=1.0).contains(&self.recovery_agent_removal_limit) {
            return Err(String::from("--recovery_agent_removal_limit: it is a part, from 0% to 100%"));
        }
        for (role, weight) in &self.weights {
            let valid = weight::role(role).and_then(|()| weight::value(*weight));
            valid.map_err(|why| format!("--weights: {role}={weight}: {why}"))?;
        }
        match self.agent_removal_rate_limit {
            Some((0, _)) => Err(String::from("--agent_removal_rate_limit: it lets no agent be removed")),
            Some(_) | None => Ok(()),
        }
    }

    /// Weights of the flag that do not count, because a registry that is not new has others: with these.
    pub fn ignored_weights<'a>(
        &'a self,
        registry: &'a Registry,
    ) -> impl Iterator<Item = (&'a str, f64, f64)> + 'a {
        let old = self.weights.iter().filter(|_| !registry.is_new());
        let known = |role: &String| registry.weights.get(role).copied().unwrap_or(WEIGHT_DEFAULT);
        old.map(move |(role, weight)| (role.as_str(), *weight, known(role)))
            .filter(|(_, flag, known)| flag != known)
    }

    pub(crate) fn min_allocatable(&self) -> Result<MinAllocatable, MinAllocatableError> {
        MinAllocatable::parse(&self.min_allocatable_resources)
    }
}

impl Default for Config {
    /// The defaults of the v1 flags.
    fn default() -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        Self {
            master_info: pb::MasterInfo::default(),
            roles: None,
            weights: BTreeMap::new(),
            root_submissions: true,
            require_agent_domain: false,
            offer_timeout: None,
            allocation_interval: SECOND,
            min_allocatable_resources: String::from("cpus:0.01|mem:32"),
            fair_sharing_excluded_resource_names: Vec::new(),
            filter_gpu_resources: true,
            whitelist: None,
            best_effort_tasks: false,
            task_group_limits: false,
            role_sorter: Sorter::Drf,
            framework_sorter: Sorter::Drf,
            allocator_agent_recovery_factor: 0.8,
            allocator_recovery_timeout: 600 * SECOND,
            allocation_slack: true,
            allocation_slack_opt_out: Vec::new(),
            agent_ping_timeout: 15 * SECOND,
            max_agent_ping_timeouts: 5,
            agent_reregister_timeout: 600 * SECOND,
            agent_removal_rate_limit: None,
            recovery_agent_removal_limit: 1.0,
            max_completed_frameworks: 50,
            max_completed_tasks_per_framework: 1000,
            max_unreachable_tasks_per_framework: 1000,
            max_operator_event_stream_subscribers: 1000,
            registry_gc_interval: 900 * SECOND,
            registry_max_agent_age: 14 * 24 * 3600 * SECOND,
            registry_max_agent_count: 102_400,
            limits: Limits::default(),
            authorizer: Authorizer::default(),
            seed: 0,
        }
    }
}
