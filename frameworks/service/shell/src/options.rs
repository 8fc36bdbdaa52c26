//! Settings of a scheduler.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tepui_client::Credential;
use tepui_http::{Authentication, BrowserPolicy, ClientTls, Tls};
use tepui_service::scheduler::Config;
use tepui_service::spec::ServiceSpec;
use tepui_store::etcd::EtcdAddress;

/// Where the records of a service are.
#[derive(Clone, Debug)]
pub enum StoreAt {
    /// A file in this directory, for one scheduler.
    WorkDir(PathBuf),
    /// etcd, for several schedulers of which one is active.
    Etcd(EtcdAddress),
}

/// Files of a service that a client sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    /// Name of the spec, for messages.
    pub file: String,
    /// Text of the spec.
    pub spec: String,
    /// Config templates by their path in the spec.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
    /// Options of the service, JSON; without, those of the scheduler's command line.
    #[serde(default)]
    pub options: Option<String>,
}

/// Reads a spec with the environment of the scheduler: that of its files, or an uploaded one.
pub type ReadSpec = dyn Fn(Option<&Upload>) -> Result<ServiceSpec, String> + Send + Sync;

/// Reads the spec again: the spec, or all that is wrong with it.
#[derive(Clone)]
pub struct Reload(Arc<ReadSpec>);

impl Reload {
    pub fn new(
        read: impl Fn(Option<&Upload>) -> Result<ServiceSpec, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn read(&self, upload: Option<&Upload>) -> Result<ServiceSpec, String> {
        (self.0)(upload)
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reload")
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub spec: ServiceSpec,
    pub reload: Reload,
    /// `api_host` and `api_port` are filled in.
    pub config: Config,
    /// `host:port`, several separated by commas, or `etcd://host:port/prefix`.
    pub masters: String,
    /// Sent to masters and agents.
    pub credential: Option<Credential>,
    pub store: StoreAt,
    pub etcd_tls: Option<ClientTls>,
    /// How long an active scheduler may be silent before another takes over.
    pub leader_lease: Duration,
    pub ip: IpAddr,
    /// 0 is any free port.
    pub port: u16,
    /// Name or address under which tasks and operators reach the API.
    pub hostname: Option<String>,
    /// Credentials of operators; without, the API asks for none.
    pub authentication: Option<Authentication>,
    /// Whether specs may be uploaded without authentication.
    pub allow_insecure: bool,
    pub browsers: BrowserPolicy,
    pub tls: Option<Tls>,
}
