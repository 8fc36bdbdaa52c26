//! One term of a leading master: the machine on its registry, and what requests need of it.
//!
//! A term ends with the process, or with the leadership; the next one begins from the registry, with a new id.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tepui_core_master::{Config, Input, Master};
use tepui_http::{Ended, Exchanges, Renderings};
use tepui_program::{Process, ProcessFault, disk_room, pass_ended};
use tepui_proto::mesos::v1 as pb;
use tepui_registry::Registry;
use tepui_runtime::{Clock, Limits, Running, RuntimeFault, entropy, mailbox, pass_room};
use tepui_store::etcd::Leadership;
use tepui_store::{Store, StoreFault};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::documents::Documents;
use crate::effects::Effects;
use crate::fault::MasterFault;
use crate::metered::{AllocationTimes, Metered};
use crate::metrics::Sensors;
use crate::options::{Options, RegistryAt};
use crate::program::{Kind, Program};
use crate::whitelist;

/// File of the registry in the work directory.
pub(crate) const REGISTRY_FILE: &str = "registry.redb";

/// A running state machine and its tasks.
#[derive(Debug)]
pub(crate) struct Term {
    pub program: Arc<Program>,
    running: Running,
    exchanges: Exchanges<Kind>,
    /// They send inputs to the machine, and cannot panic.
    helpers: Vec<JoinHandle<()>>,
    /// Delivers operator events; ends after the machine, when everything is delivered.
    delivery: JoinHandle<()>,
    /// Why this process must exit, by the machine.
    halt: watch::Receiver<Option<String>>,
}

impl Term {
    /// Starts the machine with the content of the store. Without a leadership there are no other candidates.
    pub async fn begin(
        options: &Options,
        process: &Process,
        info: pb::MasterInfo,
        store: Store,
        leadership: Option<Leadership>,
    ) -> Result<Self, MasterFault> {
        let fetching = Instant::now();
        let (store, records) = load(store).await?;
        let registry_fetch = fetching.elapsed();
        let registry = Registry::load(records).map_err(|err| MasterFault::Registry(err.to_string()))?;
        let config = config(options, info)?;
        let whitelist = config.whitelist.clone();
        log_ignored_weights(&config, &registry);

        let clock = Clock::start();
        let allocations = Arc::new(AllocationTimes::default());
        let master = Master::new(config, registry, clock.now());
        let machine = Metered { master, clock, times: allocations.clone() };
        let (publisher, states) = watch::channel(Arc::new(machine.state().clone()));
        let (exchanges, ended) = Exchanges::new(options.process.streams);
        let (handle, inputs) = mailbox(options.process.mailbox_inputs_max);
        let authorizer = options.config.authorizer.clone();
        let (halting, halt) = watch::channel(None);
        let renderings = Renderings::new();
        let (mut effects, delivery) = Effects::start(
            exchanges.clone(),
            publisher,
            authorizer.clone(),
            renderings.clone(),
            allocations.clone(),
            halting,
            process.audit.clone(),
        )
        .map_err(ProcessFault::Thread)?;
        let leads = leadership.clone();
        // Effects of a master that may have been replaced are dropped.
        let sink = move |released| {
            if leads.as_ref().is_none_or(Leadership::holds) {
                effects.make_visible(released);
            }
        };
        let running = tepui_runtime::start("master", machine, inputs, store, clock, Limits::default(), sink)?;
        let mut helpers = vec![
            tokio::spawn(pass_ended(ended, handle.clone(), closed)),
            tokio::spawn(pass_room(running.commits(), handle.clone(), |room| {
                Input::DiskRoom(disk_room(room))
            })),
        ];
        if let (Some(path), Some(hosts)) = (options.whitelist.clone(), whitelist) {
            helpers.push(tokio::spawn(whitelist::follow(path, hosts, handle.clone())));
        }
        let (process, cluster) = (process.clone(), options.cluster.clone());
        let documents = Documents { states, process: process.clone(), cluster, renderings, authorizer };
        let sensors = Sensors {
            commits: running.commits(),
            turns: running.turns(),
            allocations,
            registry_fetch,
            registry_file: registry_file(&options.registry),
            per_framework: options.publish_per_framework_metrics,
        };
        let exchanged = exchanges.clone();
        let program = Program { handle, exchanges: exchanged, documents, process, sensors, leadership };
        Ok(Self { program: Arc::new(program), running, exchanges, helpers, delivery, halt })
    }

    /// Waits until the machine terminates, or requests to. Cancel safe.
    pub async fn ended(&mut self) {
        tokio::select! {
            () = self.running.ended() => (),
            Ok(_) = self.halt.wait_for(Option::is_some) => (),
        }
    }

    /// Why the process must exit, by the machine.
    pub fn halted(&self) -> Option<MasterFault> {
        self.halt.borrow().clone().map(MasterFault::Halted)
    }

    /// Ends it in order. The machine goes first, so that it does not take our closing of its peers' streams for
    /// their leaving.
    pub async fn end(self) -> Result<(), RuntimeFault> {
        let result = self.running.stop().await;
        self.helpers.iter().for_each(JoinHandle::abort);
        if let Err(err) = self.delivery.await {
            tracing::error!(%err, "operator event thread has exited");
        }
        self.exchanges.close_all();
        result
    }

    /// As `end`, for a master that has lost its leadership: its peers are disconnected first.
    pub async fn abandon(self) -> Result<(), RuntimeFault> {
        self.helpers.iter().for_each(JoinHandle::abort);
        self.exchanges.close_all();
        let result = self.running.stop().await;
        self.exchanges.close_all();
        result
    }
}

fn config(options: &Options, master_info: pb::MasterInfo) -> Result<Config, MasterFault> {
    let config = Config {
        master_info,
        seed: entropy().map_err(ProcessFault::Entropy)?,
        whitelist: options.whitelist.as_deref().map(read_whitelist).transpose()?,
        ..options.config.clone()
    };
    config.check().map_err(MasterFault::Config)?;
    Ok(config)
}

/// Logs the values of `--weights` that an existing registry overrides.
fn log_ignored_weights(config: &Config, registry: &Registry) {
    let ignored = config.ignored_weights(registry);
    let ignored: Vec<String> =
        ignored.map(|(role, flag, known)| format!("{role}={flag} (it is {known})")).collect();
    if !ignored.is_empty() {
        tracing::warn!(
            ignored = ignored.join(", "),
            "--weights applies to the first start only; change weights with `tepui weights set`"
        );
    }
}

/// Reading may wait for the network.
async fn load(store: Store) -> Result<(Store, Vec<(String, Vec<u8>)>), StoreFault> {
    let loading = tokio::task::spawn_blocking(move || store.load().map(|records| (store, records)));
    loading.await.expect("loading does not panic: stores guard themselves")
}

fn read_whitelist(path: &Path) -> Result<BTreeSet<String>, MasterFault> {
    whitelist::read(path).map_err(|err| MasterFault::Whitelist { path: path.to_path_buf(), err })
}

/// The input for an exchange that its peer ended.
fn closed(Ended { conn, kind }: Ended<Kind>) -> Input {
    match kind {
        Kind::Scheduler => Input::SchedulerClosed { conn },
        Kind::Agent => Input::AgentClosed { conn },
        Kind::Operator => Input::OperatorClosed { conn },
    }
}

fn registry_file(registry: &RegistryAt) -> Option<PathBuf> {
    match registry {
        RegistryAt::Memory | RegistryAt::Etcd(_) => None,
        RegistryAt::WorkDir(dir) => Some(dir.join(REGISTRY_FILE)),
    }
}

/// The MasterInfo. Its id is new with every term, so that ids made of it are.
pub(crate) fn master_info(options: &Options, bound: SocketAddr) -> Result<pb::MasterInfo, MasterFault> {
    use std::net::IpAddr;

    use pb::master_info::Capability;
    use pb::master_info::capability::Type;
    use tepui_fsm::Rng;
    use tepui_program::classic::API_VERSION;

    let advertised = options.process.advertised(bound);
    let (ip, port) = (advertised.ip(), u32::from(advertised.port()));
    let hostname = options.process.advertised_hostname(advertised);
    let id = Rng::seeded(entropy().map_err(ProcessFault::Entropy)?).uuid_text();
    let address = pb::Address {
        hostname: Some(hostname.clone()),
        ip: Some(ip.to_string()),
        port: port as i32,
        ..Default::default()
    };
    // IPv4 as v1 writes it: network order, read as a little-endian word. IPv6 does not fit and is 0.
    let word = match ip {
        IpAddr::V4(ip) => u32::from_le_bytes(ip.octets()),
        IpAddr::V6(_) => 0,
    };
    let capabilities = [Type::AGENT_UPDATE, Type::AGENT_DRAINING, Type::QUOTA_V2];
    Ok(pb::MasterInfo {
        id,
        ip: word,
        port,
        pid: Some(format!("master@{advertised}")),
        hostname: Some(hostname),
        version: Some(API_VERSION.to_owned()),
        address: address.into(),
        domain: options.process.domain.clone().into(),
        capabilities: capabilities.map(|kind| Capability { r#type: Some(kind), ..Default::default() }).into(),
        ..Default::default()
    })
}
