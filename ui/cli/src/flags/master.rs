//! The flags of `tepui master`, named and defaulted as in v1.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::both::{AddressFlags, LoggingFlags};
use super::value;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct MasterFlags {
    #[command(flatten)]
    pub address: AddressFlags,
    /// Port to listen on; 0 selects a free port.
    #[arg(long, default_value_t = 5050)]
    pub port: u16,
    /// Directory of the registry.
    #[arg(long)]
    pub work_dir: Option<PathBuf>,
    /// Storage of the registry: `replicated_log` (a durable file in --work_dir), `in_memory` (not durable) or
    /// `etcd://host:2379,host:2379/prefix` (shared by several masters with leader election); `etcds://…` uses
    /// TLS, `user:password@` before the hosts authenticates with etcd.
    #[arg(long, default_value = "replicated_log")]
    pub registry: String,
    #[command(flatten)]
    pub disk: super::disk::DiskFlags,
    /// Time without renewal after which a leading master is replaced (registry in etcd).
    #[arg(long, value_parser = value::duration, default_value = "10secs")]
    pub leader_lease: Duration,
    /// Human-readable name of the cluster.
    #[arg(long)]
    pub cluster: Option<String>,
    /// Fault domain of the master, as JSON.
    #[arg(long)]
    pub domain: Option<String>,
    /// Permitted roles (comma-separated) [default: all].
    #[arg(long)]
    pub roles: Option<String>,
    /// Initial weights of roles, `role=weight,…`; ignored once the registry exists.
    #[arg(long)]
    pub weights: Option<String>,
    /// Rescind offers that are neither accepted nor declined within this time [default: none].
    #[arg(long, value_parser = value::duration)]
    pub offer_timeout: Option<Duration>,
    /// Interval of batch allocations: how long declined resources wait before they are offered again.
    #[arg(long, value_parser = value::duration, default_value = "1secs")]
    pub allocation_interval: Duration,
    /// Smallest amount of resources worth offering: alternatives separated by `|`, resources by `;`.
    #[arg(long, default_value = "cpus:0.01|mem:32")]
    pub min_allocatable_resources: String,
    /// Resources not considered in fair sharing (comma-separated).
    #[arg(long)]
    pub fair_sharing_excluded_resource_names: Option<String>,
    /// Offer agents with GPUs only to frameworks with the capability GPU_RESOURCES.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub filter_gpu_resources: bool,
    /// File with the hostnames of agents to offer, one per line, or `*` for all; re-read every 5 seconds.
    #[arg(long)]
    pub whitelist: Option<PathBuf>,
    /// Accept tasks without cpus or mem; agents need the same flag to run them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub best_effort_tasks: bool,
    /// Validate the limits of task groups, given as labels of their executors; agents need the same flag to
    /// enforce them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub task_group_limits: bool,
    /// Order of roles: `drf` (weighted dominant share) or `random` (weighted random).
    #[arg(long, alias = "user_sorter", default_value = "drf", value_parser = ["drf", "random"])]
    pub role_sorter: String,
    /// Order of the frameworks in a role: `drf` or `random`.
    #[arg(long, default_value = "drf", value_parser = ["drf", "random"])]
    pub framework_sorter: String,
    /// With quota set, fraction of known agents that must re-register before a new master makes offers.
    #[arg(long, default_value_t = 0.8)]
    pub allocator_agent_recovery_factor: f64,
    /// Time after which a new master makes offers regardless of --allocator_agent_recovery_factor.
    #[arg(long, value_parser = value::duration, default_value = "10mins")]
    pub allocator_recovery_timeout: Duration,
    /// Lend reserved but idle resources as revocable resources until their owner uses them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub allocation_slack: bool,
    /// Roles whose reservations, including those of their subroles, are never lent (comma-separated).
    #[arg(long)]
    pub allocation_slack_opt_out: Option<String>,
    /// Permit frameworks to run tasks as root.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub root_submissions: bool,
    /// Time within which an agent must answer a ping.
    #[arg(long, alias = "slave_ping_timeout", value_parser = value::duration, default_value = "15secs")]
    pub agent_ping_timeout: Duration,
    /// Number of consecutive unanswered pings after which an agent is unreachable.
    #[arg(long, alias = "max_slave_ping_timeouts", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_agent_ping_timeouts: u32,
    /// Time within which known agents must re-register after a master failover.
    #[arg(long, alias = "slave_reregister_timeout", value_parser = value::duration, default_value = "10mins")]
    pub agent_reregister_timeout: Duration,
    /// Rate at which agents may be marked unreachable, as in `1/20mins` [default: none].
    #[arg(long, alias = "slave_removal_rate_limit", value_parser = value::rate)]
    pub agent_removal_rate_limit: Option<(u32, Duration)>,
    /// Share of known agents that may be missing after a failover; if more are missing, the master exits.
    #[arg(long, alias = "recovery_slave_removal_limit", value_parser = value::percentage, default_value = "100%")]
    pub recovery_agent_removal_limit: f64,
    /// Reject agents without a fault domain.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub require_agent_domain: bool,
    /// Number of completed frameworks to keep in memory.
    #[arg(long, default_value_t = 50)]
    pub max_completed_frameworks: usize,
    /// Number of completed tasks to keep in memory per framework.
    #[arg(long, default_value_t = 1000)]
    pub max_completed_tasks_per_framework: usize,
    /// Number of unreachable tasks to keep in memory per framework.
    #[arg(long, default_value_t = 1000)]
    pub max_unreachable_tasks_per_framework: usize,
    /// Maximum number of subscribers of the operator event stream.
    #[arg(long, default_value_t = 1000)]
    pub max_operator_event_stream_subscribers: usize,
    /// Publish metrics per framework.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub publish_per_framework_metrics: bool,
    /// Interval of garbage collection in the registry.
    #[arg(long, value_parser = value::duration, default_value = "15mins")]
    pub registry_gc_interval: Duration,
    /// Time for which unreachable and gone agents stay in the registry.
    #[arg(long, value_parser = value::duration, default_value = "2weeks")]
    pub registry_max_agent_age: Duration,
    /// Maximum number of unreachable, and of gone, agents in the registry.
    #[arg(long, default_value_t = 102_400)]
    pub registry_max_agent_count: usize,
    /// Require authentication for read-only endpoints.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readonly: bool,
    /// Require authentication for endpoints that change state.
    #[arg(long, alias = "authenticate_http", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readwrite: bool,
    /// Require authentication of frameworks.
    #[arg(long, alias = "authenticate_frameworks", alias = "authenticate", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_frameworks: bool,
    /// Require authentication of agents.
    #[arg(long, alias = "authenticate_slaves", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_agents: bool,
    /// Authenticator for operators; only `basic` is supported.
    #[arg(long)]
    pub http_authenticators: Option<String>,
    /// Authenticator for frameworks; only `basic` is supported.
    #[arg(long)]
    pub http_framework_authenticators: Option<String>,
    /// File with principals and secrets: {"credentials":[{"principal":"...","secret":"..."}]}.
    #[arg(long)]
    pub credentials: Option<PathBuf>,
    /// Access control lists, as JSON or a file [default: permit everything].
    #[arg(long)]
    pub acls: Option<String>,
    /// Disabled endpoints, as JSON or a file: `{"disabled_endpoints":{"paths":["/master/state"]}}`.
    #[arg(long)]
    pub firewall_rules: Option<String>,
    #[command(flatten)]
    pub browsers: super::both::BrowserFlags,
    /// Rate limits per principal, as JSON or a file.
    #[arg(long)]
    pub rate_limits: Option<String>,
    #[command(flatten)]
    pub tls: super::tls::TlsFlags,
    #[command(flatten)]
    pub etcd: super::etcd::EtcdFlags,
    #[command(flatten)]
    pub limits: super::limits::LimitFlags,
    #[command(flatten)]
    pub audit: super::both::AuditFlags,
    #[command(flatten)]
    pub logging: LoggingFlags,
}
