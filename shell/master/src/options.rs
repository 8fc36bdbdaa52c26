//! What an operator set, as far as the shell needs it; the machine's own part is [`Config`].

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use tepui_core_master::Config;
use tepui_http::{Authentication, BrowserPolicy, ClientTls, ServerLimits, StreamLimits, Tls};
use tepui_program::{Firewall, Logging};
use tepui_proto::mesos::v1 as pb;
use tepui_store::Headroom;
use tepui_store::etcd::EtcdAddress;

use crate::throttle::Throttle;

/// Where the registry is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryAt {
    /// In one file below the work directory.
    WorkDir(PathBuf),
    /// Nowhere; for tests.
    Memory,
    /// In etcd, shared with other masters, of which one leads.
    Etcd(EtcdAddress),
}

/// Who must prove who they are, and how often they may call. What they may do is in [`Config`].
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub authentication: Authentication,
    /// Documents and other reads.
    pub readonly: bool,
    /// Operators' calls and changes.
    pub readwrite: bool,
    pub frameworks: bool,
    pub agents: bool,
    pub throttle: Throttle,
    /// Endpoints that nobody may use.
    pub firewall: Firewall,
}

impl Access {
    /// Whether every realm is closed.
    pub fn authenticates_all_realms(&self) -> bool {
        self.readonly && self.readwrite && self.frameworks && self.agents
    }
}

/// Everything a master is started with.
#[derive(Clone, Debug)]
pub struct Options {
    pub ip: IpAddr,
    /// 0: any free one.
    pub port: u16,
    pub advertise_ip: Option<IpAddr>,
    pub advertise_port: Option<u16>,
    /// As shown to people and in redirects.
    pub hostname: Option<String>,
    pub registry: RegistryAt,
    /// Whom to trust when the registry is in an etcd over TLS.
    pub etcd_tls: Option<ClientTls>,
    /// Whether changes that wait share one commit; see [`tepui_runtime::Limits`].
    pub registry_group_commit: bool,
    /// What is kept free for changes of a registry in a work directory.
    pub headroom: Headroom,
    /// How long a leader may be silent before another takes its place.
    pub leader_lease: Duration,
    /// The cluster's name, shown in documents.
    pub cluster: Option<String>,
    pub domain: Option<pb::DomainInfo>,
    /// What the machine is set to. `master_info` and `seed` are filled in by `run`.
    pub config: Config,
    /// A file of the hosts whose agents are offered, one on a line; followed while the master runs.
    pub whitelist: Option<PathBuf>,
    /// Where somebody else writes our log to; shown to operators.
    pub external_log_file: Option<PathBuf>,
    /// Where we write it to ourselves; shown if there is no other.
    pub own_log_file: Option<PathBuf>,
    /// A file that gets an entry for every call that changes something, and for refused ones.
    pub audit_log: Option<PathBuf>,
    /// Every flag that has a value, as `/flags` shows it.
    pub flags: Vec<(String, String)>,
    /// The level of the log, which operators may change.
    pub logging: Logging,
    /// Whether metrics of each framework are shown.
    pub publish_per_framework_metrics: bool,
    pub access: Access,
    /// The certificate to show; without one, plain HTTP.
    pub tls: Option<Tls>,
    pub streams: StreamLimits,
    pub server: ServerLimits,
    /// What requests of browsers may do; `run` adds the master's own names.
    pub browsers: BrowserPolicy,
    /// Inputs that may wait for the machine; with more, their senders wait.
    pub mailbox_inputs_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 5050,
            advertise_ip: None,
            advertise_port: None,
            hostname: None,
            registry: RegistryAt::Memory,
            etcd_tls: None,
            registry_group_commit: true,
            headroom: Headroom::default(),
            leader_lease: Duration::from_secs(10),
            cluster: None,
            domain: None,
            config: Config::default(),
            whitelist: None,
            external_log_file: None,
            own_log_file: None,
            audit_log: None,
            flags: Vec::new(),
            logging: Logging::default(),
            publish_per_framework_metrics: true,
            access: Access::default(),
            tls: None,
            streams: StreamLimits::default(),
            server: ServerLimits::default(),
            browsers: BrowserPolicy::default(),
            mailbox_inputs_max: 4096,
        }
    }
}
