//! What an operator set, as far as the shell needs it; the machine's own part is [`Config`].

use std::path::PathBuf;
use std::time::Duration;

use tepui_container::{
    CgroupOptions, ContainerLogger, DockerOptions, DockerVolumeOptions, ImageOptions, Isolation,
    IsolatorOptions, Launcher,
};
use tepui_core_agent::Config;
use tepui_http::auth::Credential;
use tepui_program::ProcessOptions;

use crate::access::Access;
use crate::image_gc::ImageGc;

/// Everything an agent is started with.
#[derive(Clone, Debug)]
pub struct Options {
    pub process: ProcessOptions,
    /// `host:port`, several separated by commas, or `etcd://host:port,host:port/prefix`.
    pub master: String,
    pub work_dir: PathBuf,
    pub runtime_dir: PathBuf,
    /// Our own program: it runs built-in executors and supervises containers.
    pub program: PathBuf,
    /// As in `--resources`, also as `file:///path`. What it does not name is detected.
    pub resources: Option<String>,
    pub default_role: String,
    /// As in `--attributes`.
    pub attributes: Option<String>,
    pub launcher: Launcher,
    pub isolation: Isolation,
    /// `policed_ports` is what the agent offers if `check_agent_port_range_only` is set.
    pub isolators: IsolatorOptions,
    pub check_agent_port_range_only: bool,
    /// `enable_cfs` is taken from `config`.
    pub cgroups: CgroupOptions,
    pub fetcher_cache_dir: PathBuf,
    pub fetcher_cache_size_bytes: u64,
    pub fetcher_stall_timeout: Duration,
    /// What fetching may leave in the sandbox of a container that has no `disk`, archives unpacked.
    pub fetcher_sandbox_bytes_max: u64,
    pub frameworks_home: Option<PathBuf>,
    pub container_logger: ContainerLogger,
    pub images: ImageOptions,
    /// Unset: images are removed only on request of an operator.
    pub image_gc: Option<ImageGc>,
    pub docker_volumes: DockerVolumeOptions,
    /// Whether containers that are not for a Docker engine are run at all.
    pub mesos: bool,
    /// Without it, containers of type DOCKER are refused.
    pub docker: Option<DockerOptions>,
    /// Heartbeat interval of attached container streams.
    pub http_heartbeat_interval: Duration,
    /// How often the disk is looked at.
    pub disk_watch_interval: Duration,
    /// What the machine is set to. Addresses, directories, `isolation`, `agent_info`, `boot_id` and `seed` are filled in by
    /// `run`.
    pub config: Config,
    pub access: Access,
    /// What the agent shows to the master.
    pub credential: Option<Credential>,
}

impl Default for Options {
    /// The defaults of the v1 flags. `work_dir`, `runtime_dir` and `program` have none.
    fn default() -> Self {
        Self {
            process: ProcessOptions::on_port(5051),
            master: String::new(),
            work_dir: PathBuf::new(),
            runtime_dir: PathBuf::new(),
            program: PathBuf::new(),
            resources: None,
            default_role: "*".to_owned(),
            attributes: None,
            launcher: Launcher::Auto,
            isolation: Isolation::default(),
            isolators: IsolatorOptions::default(),
            check_agent_port_range_only: false,
            cgroups: CgroupOptions::default(),
            fetcher_cache_dir: PathBuf::from("/tmp/tepui/fetch"),
            fetcher_cache_size_bytes: 2 * 1024 * 1024 * 1024,
            fetcher_stall_timeout: Duration::from_secs(60),
            fetcher_sandbox_bytes_max: 10 << 30,
            frameworks_home: None,
            container_logger: ContainerLogger::default(),
            images: ImageOptions::default(),
            image_gc: None,
            docker_volumes: DockerVolumeOptions::default(),
            mesos: true,
            docker: None,
            http_heartbeat_interval: Duration::from_secs(30),
            disk_watch_interval: Duration::from_secs(60),
            config: Config::default(),
            access: Access::default(),
            credential: None,
        }
    }
}
