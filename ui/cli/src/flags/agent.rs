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

/// With an id the command only looks: nothing is started, so nothing is required.
const IS_LOOK: ArgPredicate = ArgPredicate::IsPresent;

#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case")]
pub struct AgentFlags {
    /// The master, or several by comma: `host:port`.
    #[arg(
        long,
        required = false,
        required_unless_present = "id",
        default_value_if("id", IS_LOOK, "127.0.0.1:5050")
    )]
    pub master: String,
    #[command(flatten)]
    pub address: AddressFlags,
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 5051)]
    pub port: u16,
    /// Where sandboxes, volumes and checkpoints live.
    #[arg(long, required = false, required_unless_present = "id", default_value_if("id", IS_LOOK, "."))]
    pub work_dir: PathBuf,
    /// Where running containers are kept track of; need not survive a reboot.
    #[arg(long)]
    pub runtime_dir: Option<PathBuf>,
    /// What the agent has: `cpus:4;mem:1024;ports:[31000-32000]` or JSON; what is not named is detected.
    #[arg(long)]
    pub resources: Option<String>,
    /// What the agent is like: `rack:r1;zone:a`.
    #[arg(long)]
    pub attributes: Option<String>,
    /// Role for which resources without a role are reserved.
    #[arg(long, default_value = "*")]
    pub default_role: String,
    /// Fault domain of the agent, as JSON.
    #[arg(long)]
    pub domain: Option<String>,
    /// How containers are started: `linux` (root, cgroups) or `posix`; the first that works if not given.
    #[arg(long, value_parser = ["linux", "posix"])]
    pub launcher: Option<String>,
    /// What is isolated: a comma list such as `cgroups/cpu,cgroups/mem,cgroups/pids`, or `cgroups/all`.
    #[arg(long, default_value = "posix/cpu,posix/mem")]
    pub isolation: String,
    /// The cgroup below which those of containers are made.
    #[arg(long, default_value = "mesos")]
    pub cgroups_root: PathBuf,
    /// Let no container use more processor time than it asked for, unless it has a limit of its own.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub cgroups_enable_cfs: bool,
    /// Memory limits hold for memory and swap together.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub cgroups_limit_swap: bool,
    /// Containers with revocable processors come after all others.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub revocable_cpu_low_priority: bool,
    #[command(flatten)]
    pub isolators: IsolatorFlags,
    #[command(flatten)]
    pub logger: LoggerFlags,
    /// How often those who listen to a container hear that they still do.
    #[arg(long, value_parser = value::duration, default_value = "30secs")]
    pub http_heartbeat_interval: Duration,
    #[command(flatten)]
    pub docker: super::docker::DockerFlags,
    /// After a restart: `reconnect` with running executors, or `cleanup` (end them and exit).
    #[arg(long, default_value = "reconnect", value_parser = ["reconnect", "cleanup"])]
    pub recover: String,
    /// Refuse to start on a corrupt checkpoint instead of skipping it.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub strict: bool,
    /// Which changes of resources and attributes keep the agent's id: `equal` or `additive`.
    #[arg(long, default_value = "equal", value_parser = ["equal", "additive"])]
    pub reconfiguration_policy: String,
    /// How long executors wait for the agent to come back.
    #[arg(long, value_parser = value::duration, default_value = "15mins")]
    pub recovery_timeout: Duration,
    /// How long a new executor may take to subscribe.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub executor_registration_timeout: Duration,
    /// How long running executors may take to come back after a restart.
    #[arg(long, value_parser = value::duration, default_value = "2secs")]
    pub executor_reregistration_timeout: Duration,
    /// How long an executor may take to shut down.
    #[arg(long, value_parser = value::duration, default_value = "5secs")]
    pub executor_shutdown_grace_period: Duration,
    /// How long after a task's grace period the agent's own executors may take to end a killed task; then the agent does.
    #[arg(long, value_parser = value::duration, default_value = "10secs")]
    pub executor_kill_margin: Duration,
    /// Environment of executors, as a JSON object of strings.
    #[arg(long, value_parser = value::string_map)]
    pub executor_environment_variables: Option<std::collections::BTreeMap<String, String>>,
    /// The container of executors that name none, also of command tasks: a ContainerInfo of type MESOS as JSON, or a
    /// file of it.
    #[arg(long)]
    pub default_container_info: Option<String>,
    /// What the agent says that it can do, as JSON: `{"capabilities":[{"type":"MULTI_ROLE"},…]}`; all that it can if not given.
    #[arg(long)]
    pub agent_features: Option<String>,
    /// The longest first wait before subscribing with the master.
    #[arg(long, value_parser = value::duration, default_value = "1secs")]
    pub registration_backoff_factor: Duration,
    /// How long sandboxes of ended executors are kept.
    #[arg(long, value_parser = value::duration, default_value = "1weeks")]
    pub gc_delay: Duration,
    /// Part of the disk to keep free, 0.0 to 1.0.
    #[arg(long, default_value_t = 0.1)]
    pub gc_disk_headroom: f64,
    /// How often the disk is looked at.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub disk_watch_interval: Duration,
    /// How many ended executors of each framework are remembered.
    #[arg(long, default_value_t = 150)]
    pub max_completed_executors_per_framework: usize,
    /// Run tasks as the user they name.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub switch_user: bool,
    /// Put before relative URIs.
    #[arg(long, default_value = "")]
    pub frameworks_home: String,
    /// Where fetched files are cached.
    #[arg(long)]
    pub fetcher_cache_dir: Option<PathBuf>,
    /// How much may be cached.
    #[arg(long, value_parser = value::bytes, default_value = "2GB")]
    pub fetcher_cache_size: u64,
    /// How long a download may stand still.
    #[arg(long, value_parser = value::duration, default_value = "1mins")]
    pub fetcher_stall_timeout: Duration,
    /// What fetching may leave in the sandbox of a container that has no `disk`, archives unpacked; one that has some may
    /// fill that.
    #[arg(long, value_parser = value::bytes, default_value = "10GB")]
    pub fetcher_max_size: u64,
    /// Accepted for compatibility: command executors always use the HTTP API.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    pub http_command_executor: bool,
    /// Accepted for compatibility: helpers are part of this binary.
    #[arg(long)]
    pub launcher_dir: Option<PathBuf>,
    /// Whether readers of documents must authenticate.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readonly: bool,
    /// Whether operators who change something must authenticate.
    #[arg(long, alias = "authenticate_http", value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_readwrite: bool,
    /// Whether executors must show the token that the agent gives them.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub authenticate_http_executors: bool,
    /// How operators authenticate; `basic` is what there is.
    #[arg(long)]
    pub http_authenticators: Option<String>,
    /// Names and secrets of operators: a file with {"credentials":[{"principal":"...","secret":"..."}]}.
    #[arg(long)]
    pub http_credentials: Option<PathBuf>,
    /// The key of executors' tokens: a file.
    #[arg(long, alias = "executor_secret_key")]
    pub jwt_secret_key: Option<PathBuf>,
    /// What the agent shows to the master: a file with {"principal":"...","secret":"..."}.
    #[arg(long)]
    pub credential: Option<PathBuf>,
    /// Who may do what: JSON, or a file of it.
    #[arg(long)]
    pub acls: Option<String>,
    /// Endpoints that nobody may use, `{"disabled_endpoints":{"paths":["/slave(1)/state"]}}`: as JSON or a file of it.
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
    /// Let tasks that ask for no cpus or memory use what others leave, and be the first to go.
    #[arg(long, value_parser = value::boolean, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    pub best_effort_tasks: bool,
    /// Keep the limits of whole task groups: the labels `tepui.limits.cpus` and `tepui.limits.mem` of their executors.
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
