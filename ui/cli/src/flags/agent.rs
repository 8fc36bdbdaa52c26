//! The flags of `tepui agent`, named and defaulted as in v1.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::ArgPredicate;

use super::both::{AddressFlags, LoggingFlags};
use super::disk::DiskFlags;
use super::eviction::EvictionFlags;
use super::images::ImageFlags;
use super::isolators::IsolatorFlags;
use super::logger::LoggerFlags;
use super::oversubscription::OversubscriptionFlags;
use super::value;

/// With an id the command shows an agent: no flags are required.
const SHOWS_AGENT: ArgPredicate = ArgPredicate::IsPresent;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AgentFlags {
    /// Master to register with: `host:port`, several separated by commas, or `etcd://host:port/prefix`.
    #[arg(
        long,
        required = false,
        required_unless_present = "id",
        default_value_if("id", SHOWS_AGENT, "127.0.0.1:5050")
    )]
    pub master: String,
    #[command(flatten)]
    pub address: AddressFlags,
    /// Port to listen on; 0 selects a free port.
    #[arg(long, default_value_t = 5051)]
    pub port: u16,
    /// Directory of sandboxes, persistent volumes and checkpoints.
    #[arg(long, required = false, required_unless_present = "id", default_value_if("id", SHOWS_AGENT, "."))]
    pub work_dir: PathBuf,
    /// Directory of the state of running containers; need not survive a reboot.
    #[arg(long)]
    pub runtime_dir: Option<PathBuf>,
    /// Resources of the agent, as JSON or `cpus:4;mem:1024;ports:[31000-32000]`; those not given are
    /// detected.
    #[arg(long)]
    pub resources: Option<String>,
    /// Attributes of the agent, as in `rack:r1;zone:a`.
    #[arg(long)]
    pub attributes: Option<String>,
    /// Role of resources in --resources that name none.
    #[arg(long, default_value = "*")]
    pub default_role: String,
    /// Fault domain of the agent, as JSON.
    #[arg(long)]
    pub domain: Option<String>,
    /// Launcher of containers: `linux` (requires root and cgroups) or `posix` [default: linux if possible].
    #[arg(long, value_parser = ["linux", "posix"])]
    pub launcher: Option<String>,
    /// Isolators (comma-separated), as in `cgroups/cpu,cgroups/mem,cgroups/pids`; `cgroups/all` selects every
    /// controller.
    #[arg(long, default_value = "posix/cpu,posix/mem")]
    pub isolation: String,
    /// Root cgroup of all containers.
    #[arg(long, default_value = "mesos")]
    pub cgroups_root: PathBuf,
    /// Limit the cpu time of containers without a cpu limit to their request.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub cgroups_enable_cfs: bool,
    /// Apply memory limits to memory and swap together.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub cgroups_limit_swap: bool,
    /// Run containers with revocable cpus at the lowest cpu priority.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub revocable_cpu_low_priority: bool,
    #[command(flatten)]
    pub isolators: IsolatorFlags,
    #[command(flatten)]
    pub logger: LoggerFlags,
    /// Heartbeat interval of attached container streams.
    #[arg(long, value_parser = value::duration, default_value = "30secs")]
    pub http_heartbeat_interval: Duration,
    #[command(flatten)]
    pub docker: super::docker::DockerFlags,
    /// Recovery after a restart: `reconnect` to running executors, or `cleanup` (kill them and exit).
    #[arg(long, default_value = "reconnect", value_parser = ["reconnect", "cleanup"])]
    pub recover: String,
    /// Exit on a corrupt checkpoint instead of skipping it.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub strict: bool,
    /// Changes of resources and attributes that keep the agent ID: `equal` (none) or `additive`.
    #[arg(long, default_value = "equal", value_parser = ["equal", "additive"])]
    pub reconfiguration_policy: String,
    /// Time for which executors wait for a restarted agent before they terminate.
    #[arg(long, value_parser = value::duration, default_value = "15mins")]
    pub recovery_timeout: Duration,
    /// Time within which a new executor must subscribe.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub executor_registration_timeout: Duration,
    /// Time within which running executors must resubscribe after an agent restart.
    #[arg(long, value_parser = value::duration, default_value = "2secs")]
    pub executor_reregistration_timeout: Duration,
    /// Grace period of an executor after a shutdown request.
    #[arg(long, value_parser = value::duration, default_value = "5secs")]
    pub executor_shutdown_grace_period: Duration,
    /// Time after a task's grace period at which the agent itself kills a task that a built-in executor has
    /// not killed.
    #[arg(long, value_parser = value::duration, default_value = "10secs")]
    pub executor_kill_margin: Duration,
    /// Environment of executors, as a JSON object of strings.
    #[arg(long, value_parser = value::string_map)]
    pub executor_environment_variables: Option<std::collections::BTreeMap<String, String>>,
    /// ContainerInfo (type MESOS) of executors without one, including those of command tasks, as JSON or a
    /// file.
    #[arg(long)]
    pub default_container_info: Option<String>,
    /// Capabilities to advertise, as JSON: `{"capabilities":[{"type":"MULTI_ROLE"},…]}` [default: all
    /// supported].
    #[arg(long)]
    pub agent_features: Option<String>,
    /// Maximum delay before the first registration attempt; doubled after every failure.
    #[arg(long, value_parser = value::duration, default_value = "1secs")]
    pub registration_backoff_factor: Duration,
    /// Time for which sandboxes of terminated executors are kept.
    #[arg(long, value_parser = value::duration, default_value = "1weeks")]
    pub gc_delay: Duration,
    /// Fraction of the disk to keep free, 0.0 to 1.0.
    #[arg(long, default_value_t = 0.1)]
    pub gc_disk_headroom: f64,
    /// Interval at which disk usage is checked for garbage collection.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub disk_watch_interval: Duration,
    /// Number of completed executors to keep in memory per framework.
    #[arg(long, default_value_t = 150)]
    pub max_completed_executors_per_framework: usize,
    /// Run tasks as the user of the task or framework instead of the agent's user.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub switch_user: bool,
    /// Prefix of relative URIs.
    #[arg(long, default_value = "")]
    pub frameworks_home: String,
    /// Directory of the fetcher cache.
    #[arg(long)]
    pub fetcher_cache_dir: Option<PathBuf>,
    /// Maximum size of the fetcher cache.
    #[arg(long, value_parser = value::bytes, default_value = "2GB")]
    pub fetcher_cache_size: u64,
    /// Time without progress after which a download fails.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub fetcher_stall_timeout: Duration,
    /// Maximum size of fetched and extracted files in sandboxes of containers without a `disk` resource.
    #[arg(long, value_parser = value::bytes, default_value = "10GB")]
    pub fetcher_max_size: u64,
    /// Accepted for compatibility: command executors always use the HTTP API.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub http_command_executor: bool,
    /// Accepted for compatibility: helper programs are part of this binary.
    #[arg(long)]
    pub launcher_dir: Option<PathBuf>,
    /// Require authentication for read-only endpoints.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readonly: bool,
    /// Require authentication for endpoints that change state.
    #[arg(long, alias = "authenticate_http", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readwrite: bool,
    /// Require executors to authenticate with the token issued by the agent.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_executors: bool,
    /// Authenticator for operators; only `basic` is supported.
    #[arg(long)]
    pub http_authenticators: Option<String>,
    /// File with principals and secrets of operators: {"credentials":[{"principal":"...","secret":"..."}]}.
    #[arg(long)]
    pub http_credentials: Option<PathBuf>,
    /// File with the key that signs executor tokens.
    #[arg(long, alias = "executor_secret_key")]
    pub jwt_secret_key: Option<PathBuf>,
    /// File with the credential of the agent: {"principal":"...","secret":"..."}.
    #[arg(long)]
    pub credential: Option<PathBuf>,
    /// Access control lists, as JSON or a file [default: permit everything].
    #[arg(long)]
    pub acls: Option<String>,
    /// Disabled endpoints, as JSON or a file: `{"disabled_endpoints":{"paths":["/slave(1)/state"]}}`.
    #[arg(long)]
    pub firewall_rules: Option<String>,
    #[command(flatten)]
    pub browsers: super::both::BrowserFlags,
    #[command(flatten)]
    pub images: ImageFlags,
    #[command(flatten)]
    pub oversubscription: OversubscriptionFlags,
    #[command(flatten)]
    pub eviction: EvictionFlags,
    #[command(flatten)]
    pub disk: DiskFlags,
    /// Run tasks without cpus or mem on idle resources, with the lowest priority and the highest OOM score.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub best_effort_tasks: bool,
    /// Enforce the limits of task groups, given as labels `tepui.limits.cpus` and `tepui.limits.mem` of their
    /// executors.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub task_group_limits: bool,
    #[command(flatten)]
    pub tls: super::tls::TlsFlags,
    #[command(flatten)]
    pub etcd: super::etcd::EtcdFlags,
    #[command(flatten)]
    pub audit: super::both::AuditFlags,
    #[command(flatten)]
    pub logging: LoggingFlags,
}
