//! Starting and ending a master.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tepui_core_master::{Config, Input, Master, State};
use tepui_fsm::Rng;
use tepui_http::classic::API_VERSION;
use tepui_http::files::Attached;
use tepui_http::{Ended, Exchanges, Listening, Server, advertised_ip, default_hostname};
use tepui_proto::mesos::v1 as pb;
use tepui_registry::Registry;
use tepui_runtime::{Clock, Handle, Limits, Running, RuntimeFault, entropy, mailbox};
use tepui_store::{Store, StoreFault};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::document::About;
use crate::documents::Documents;
use crate::effects::Effects;
use crate::metered::{AllocationTimes, Metered};
use crate::metrics::Sensors;
use crate::options::{Options, RegistryAt};
use crate::routes::{Kind, Program};

/// The registry's file below the work directory.
const REGISTRY_FILE: &str = "registry.redb";

/// Under what name the master's log is shown.
const LOG: &str = "/master/log";

/// Why a master could not be started.
#[derive(Debug, thiserror::Error)]
pub enum MasterFault {
    #[error("cannot make the work directory {path}")]
    WorkDir {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("cannot open the registry")]
    Store(#[from] StoreFault),
    #[error("the registry cannot be understood: {0}")]
    Registry(String),
    #[error("a flag is wrong: {0}")]
    Config(String),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        err: std::io::Error,
    },
    #[error("cannot read random bytes")]
    Entropy(#[source] std::io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}

/// A master that runs. Dropping it leaves it running; end it with `stop`.
#[derive(Debug)]
pub struct RunningMaster {
    address: SocketAddr,
    hostname: String,
    running: Running,
    listening: Listening,
    exchanges: Exchanges<Kind>,
    closings: JoinHandle<()>,
    states: watch::Receiver<Arc<State>>,
}

/// Starts a master. Must be called inside a tokio runtime.
pub async fn run(options: Options) -> Result<RunningMaster, MasterFault> {
    let store = open_store(&options.registry)?;
    let fetching = Instant::now();
    let records = store.load()?;
    let registry_fetch = fetching.elapsed();
    let registry = Registry::load(records).map_err(|err| MasterFault::Registry(err.to_string()))?;
    let listen = SocketAddr::new(options.ip, options.port);
    let server = Server::bind(listen).map_err(|err| MasterFault::Listen { address: listen, err })?;
    let master_info = master_info(&options, server.address())?;
    let hostname = master_info.hostname.clone().unwrap_or_default();
    let seed = entropy().map_err(MasterFault::Entropy)?;
    let config = Config { master_info, seed, ..options.config };
    config.check().map_err(MasterFault::Config)?;
    if !registry.is_new() && !config.weights.is_empty() {
        tracing::warn!(
            "--weights is ignored: the registry has the weights since the first start; use PUT /weights"
        );
    }

    let clock = Clock::start();
    let allocations = Arc::new(AllocationTimes::default());
    let master = Master::new(config, registry, clock.now());
    let machine = Metered { master, clock, times: allocations.clone() };
    let (publisher, states) = watch::channel(Arc::new(machine.state().clone()));
    let (exchanges, ended) = Exchanges::new(options.streams);
    let (handle, inputs) = mailbox(options.mailbox_inputs_max);
    let mut effects = Effects::new(exchanges.clone(), publisher);
    let sink = move |released| effects.make_visible(released);
    let running = tepui_runtime::start("master", machine, inputs, store, clock, Limits::default(), sink)?;
    let closings = tokio::spawn(tell_closings(ended, handle.clone()));
    let external_log_file = options.external_log_file.as_ref().map(|file| file.display().to_string());
    let attached = external_log_file.iter().map(|file| Attached { path: LOG.to_owned(), real: file.clone() });
    let attached: Vec<Attached> = attached.collect();
    let about = About { flags: options.flags.clone(), cluster: options.cluster, external_log_file };
    let documents = Documents::start(states.clone(), about).map_err(MasterFault::Thread)?;
    let sensors = Sensors {
        commits: running.commits(),
        allocations,
        registry_fetch,
        registry_file: registry_file(&options.registry),
        per_framework: options.publish_per_framework_metrics,
    };
    let program = Program {
        handle,
        exchanges: exchanges.clone(),
        documents,
        flags: options.flags,
        logging: options.logging,
        sensors,
        attached,
    };
    let address = server.address();
    let listening = server.serve(Arc::new(program), options.server);
    tracing::info!(%address, "master serves");
    Ok(RunningMaster { address, hostname, running, listening, exchanges, closings, states })
}

impl RunningMaster {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn hostname(&self) -> &str {
        &self.hostname
    }

    /// The newest published state.
    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// Waits until the master ends by itself; `stop` then says why. Cancel safe.
    pub async fn ended(&mut self) {
        self.running.ended().await;
    }

    /// Ends it in order. The machine goes first, so that it does not take our closing of its peers' streams for
    /// their leaving.
    pub async fn stop(self) -> Result<(), RuntimeFault> {
        let result = self.running.stop().await;
        self.closings.abort();
        self.exchanges.close_all();
        self.listening.stop().await;
        result
    }
}

/// Tells the machine about streams that ended from the outside.
async fn tell_closings(mut ended: mpsc::UnboundedReceiver<Ended<Kind>>, handle: Handle<Input>) {
    while let Some(Ended { conn, kind }) = ended.recv().await {
        let input = match kind {
            Kind::Scheduler => Input::SchedulerClosed { conn },
            Kind::Agent => Input::AgentClosed { conn },
            Kind::Operator => Input::OperatorClosed { conn },
        };
        if handle.send(input).await.is_err() {
            return;
        }
    }
}

fn registry_file(registry: &RegistryAt) -> Option<PathBuf> {
    match registry {
        RegistryAt::Memory => None,
        RegistryAt::WorkDir(dir) => Some(dir.join(REGISTRY_FILE)),
    }
}

fn open_store(registry: &RegistryAt) -> Result<Store, MasterFault> {
    match registry {
        RegistryAt::Memory => Ok(Store::memory()),
        RegistryAt::WorkDir(dir) => {
            std::fs::create_dir_all(dir).map_err(|err| MasterFault::WorkDir { path: dir.clone(), err })?;
            Ok(Store::open(&dir.join(REGISTRY_FILE))?)
        }
    }
}

/// What the master says about itself. Its id is new with every start.
fn master_info(options: &Options, bound: SocketAddr) -> Result<pb::MasterInfo, MasterFault> {
    use pb::master_info::Capability;
    use pb::master_info::capability::Type;

    let ip = options.advertise_ip.unwrap_or_else(|| advertised_ip(bound.ip()));
    let port = u32::from(options.advertise_port.unwrap_or(bound.port()));
    let hostname = options.hostname.clone().unwrap_or_else(|| default_hostname(ip));
    let id = Rng::seeded(entropy().map_err(MasterFault::Entropy)?).uuid_text();
    let address = pb::Address {
        hostname: Some(hostname.clone()),
        ip: Some(ip.to_string()),
        port: port as i32,
        ..Default::default()
    };
    let capabilities = [Type::AGENT_UPDATE, Type::AGENT_DRAINING, Type::QUOTA_V2];
    Ok(pb::MasterInfo {
        id,
        ip: ip_as_word(ip),
        port,
        pid: Some(format!("master@{}", SocketAddr::new(ip, port as u16))),
        hostname: Some(hostname),
        version: Some(API_VERSION.to_owned()),
        address: address.into(),
        domain: options.domain.clone().into(),
        capabilities: capabilities.map(|kind| Capability { r#type: Some(kind), ..Default::default() }).into(),
        ..Default::default()
    })
}

/// IPv4 as v1 writes it: network order, read as a little-endian word. IPv6 does not fit and is 0.
fn ip_as_word(ip: IpAddr) -> u32 {
    match ip {
        IpAddr::V4(ip) => u32::from_le_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    }
}
