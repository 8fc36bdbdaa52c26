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
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 5050)]
    pub port: u16,
    /// Where the registry lives.
    #[arg(long)]
    pub work_dir: Option<PathBuf>,
    /// `replicated_log` (one durable file under --work_dir), `in_memory` (forgotten at the end) or
    /// `etcd://host:2379,host:2379/prefix` (shared by several masters, of which one leads); over TLS as `etcds://…`, and
    /// with `user:password@` before the hosts if etcd asks.
    #[arg(long, default_value = "replicated_log")]
    pub registry: String,
    /// Let changes of the registry that come together share one write to the disk, or to etcd; without, each is one of its
    /// own, which is slower and no safer.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub registry_group_commit: bool,
    #[command(flatten)]
    pub disk: super::disk::DiskFlags,
    /// How long a leading master may be silent before another takes its place (with a registry in etcd).
    #[arg(long, value_parser = value::duration, default_value = "10secs")]
    pub leader_lease: Duration,
    /// Name of the cluster, for people.
    #[arg(long)]
    pub cluster: Option<String>,
    /// Fault domain of the master, as JSON.
    #[arg(long)]
    pub domain: Option<String>,
    /// Only these roles may be used (comma list).
    #[arg(long)]
    pub roles: Option<String>,
    /// Weights of roles at the very first start: `role=weight,...`.
    #[arg(long)]
    pub weights: Option<String>,
    /// Take offers back that were neither accepted nor declined for so long.
    #[arg(long, value_parser = value::duration)]
    pub offer_timeout: Option<Duration>,
    /// How often everything is offered anew.
    #[arg(long, value_parser = value::duration, default_value = "1secs")]
    pub allocation_interval: Duration,
    /// The least worth offering: alternatives by `|`, conditions by `;`.
    #[arg(long, default_value = "cpus:0.01|mem:32")]
    pub min_allocatable_resources: String,
    /// Resources that do not count for fairness (comma list).
    #[arg(long)]
    pub fair_sharing_excluded_resource_names: Option<String>,
    /// Offer agents with GPUs only to frameworks that know GPUs.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub filter_gpu_resources: bool,
    /// A file of the hosts whose agents are offered, one on a line; read again every 5 seconds. `*`: all.
    #[arg(long)]
    pub whitelist: Option<PathBuf>,
    /// Take tasks that ask for no cpus or memory; agents need the same flag to run them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub best_effort_tasks: bool,
    /// Check the limits of whole task groups that labels of their executors say; agents need the same flag to keep them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub task_group_limits: bool,
    /// How roles are put in order: by weighted dominant shares or by weighted lot.
    #[arg(long, alias = "user_sorter", default_value = "drf", value_parser = ["drf", "random"])]
    pub role_sorter: String,
    /// How the frameworks of a role are put in order.
    #[arg(long, default_value = "drf", value_parser = ["drf", "random"])]
    pub framework_sorter: String,
    /// With quota set, a new master offers nothing before this part of the known agents is back.
    #[arg(long, default_value_t = 0.8)]
    pub allocator_agent_recovery_factor: f64,
    /// ... or so much time has passed.
    #[arg(long, value_parser = value::duration, default_value = "10mins")]
    pub allocator_recovery_timeout: Duration,
    /// Lend what is reserved but idle, as revocable resources, until its owner wants it back.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub allocation_slack: bool,
    /// Roles whose reservations are never lent, nor those of roles below them (comma list).
    #[arg(long)]
    pub allocation_slack_opt_out: Option<String>,
    /// Whether frameworks may run as root.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub root_submissions: bool,
    /// How long an agent may take to answer a ping.
    #[arg(long, alias = "slave_ping_timeout", value_parser = value::duration, default_value = "15secs")]
    pub agent_ping_timeout: Duration,
    /// How many pings may go unanswered until an agent is unreachable.
    #[arg(long, alias = "max_slave_ping_timeouts", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_agent_ping_timeouts: u32,
    /// How long a known agent may stay away after a master start.
    #[arg(long, alias = "slave_reregister_timeout", value_parser = value::duration, default_value = "10mins")]
    pub agent_reregister_timeout: Duration,
    /// How many agents may be called unreachable in what time: `1/20mins`.
    #[arg(long, alias = "slave_removal_rate_limit", value_parser = value::rate)]
    pub agent_removal_rate_limit: Option<(u32, Duration)>,
    /// If a larger part of the known agents stays away after a master start, the master ends instead of giving them up.
    #[arg(long, alias = "recovery_slave_removal_limit", value_parser = value::percentage, default_value = "100%")]
    pub recovery_agent_removal_limit: f64,
    /// Take in agents with a fault domain only.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub require_agent_domain: bool,
    /// How many ended frameworks are remembered.
    #[arg(long, default_value_t = 50)]
    pub max_completed_frameworks: usize,
    /// How many ended tasks of each framework are remembered.
    #[arg(long, default_value_t = 1000)]
    pub max_completed_tasks_per_framework: usize,
    /// How many unreachable tasks of each framework are remembered.
    #[arg(long, default_value_t = 1000)]
    pub max_unreachable_tasks_per_framework: usize,
    /// How many operators may follow the event stream.
    #[arg(long, default_value_t = 1000)]
    pub max_operator_event_stream_subscribers: usize,
    /// Whether metrics of each framework are shown.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub publish_per_framework_metrics: bool,
    /// How often old agents are forgotten.
    #[arg(long, value_parser = value::duration, default_value = "15mins")]
    pub registry_gc_interval: Duration,
    /// How long unreachable and gone agents are remembered.
    #[arg(long, value_parser = value::duration, default_value = "2weeks")]
    pub registry_max_agent_age: Duration,
    /// How many unreachable and how many gone agents are remembered.
    #[arg(long, default_value_t = 102_400)]
    pub registry_max_agent_count: usize,
    /// Whether readers of documents must authenticate.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readonly: bool,
    /// Whether operators who change something must authenticate.
    #[arg(long, alias = "authenticate_http", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readwrite: bool,
    /// Whether frameworks must authenticate.
    #[arg(long, alias = "authenticate_frameworks", alias = "authenticate", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_frameworks: bool,
    /// Whether agents must authenticate.
    #[arg(long, alias = "authenticate_slaves", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_agents: bool,
    /// How operators authenticate; `basic` is what there is.
    #[arg(long)]
    pub http_authenticators: Option<String>,
    /// How frameworks authenticate; `basic` is what there is.
    #[arg(long)]
    pub http_framework_authenticators: Option<String>,
    /// Names and secrets: a file with {"credentials":[{"principal":"...","secret":"..."}]}.
    #[arg(long)]
    pub credentials: Option<PathBuf>,
    /// Who may do what: JSON, or a file of it.
    #[arg(long)]
    pub acls: Option<String>,
    /// Endpoints that nobody may use, `{"disabled_endpoints":{"paths":["/master/state"]}}`: as JSON or a file of it.
    #[arg(long)]
    pub firewall_rules: Option<String>,
    #[command(flatten)]
    pub browsers: super::both::BrowserFlags,
    /// How often each principal may call: JSON, or a file of it.
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
