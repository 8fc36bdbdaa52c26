//! What an operator set, as far as the shell needs it; the machine's own part is [`Config`].

use std::path::PathBuf;
use std::time::Duration;

use tepui_core_master::Config;
use tepui_http::Authentication;
use tepui_program::{Firewall, ProcessOptions};
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

/// Authentication, and rate limits of principals. Authorization is in [`Config`].
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
    /// Disabled endpoints.
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
    pub process: ProcessOptions,
    pub registry: RegistryAt,
    /// How long a leader may be silent before another takes its place.
    pub leader_lease: Duration,
    /// The cluster's name, shown in documents.
    pub cluster: Option<String>,
    /// What the machine is set to. `master_info` and `seed` are filled in by `run`.
    pub config: Config,
    /// A file of the hosts whose agents are offered, one on a line; reread while the master runs.
    pub whitelist: Option<PathBuf>,
    /// Whether metrics of each framework are shown.
    pub publish_per_framework_metrics: bool,
    pub access: Access,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            process: ProcessOptions::on_port(5050),
            registry: RegistryAt::Memory,
            leader_lease: Duration::from_secs(10),
            cluster: None,
            config: Config::default(),
            whitelist: None,
            publish_per_framework_metrics: true,
            access: Access::default(),
        }
    }
}
