//! Starting and ending an agent.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tepui_container::{CgroupOptions, Containerizer, ContainerizerFault, Meter};
use tepui_core_agent::{Agent, Config, Input, RecoverError, State};
use tepui_http::{Ended, Exchanges, Listening, Renderings};
use tepui_program::classic::API_VERSION;
use tepui_program::{Process, ProcessFault, disk_room, pass_ended};
use tepui_proto::mesos::v1 as pb;
use tepui_runtime::{Clock, Handle, Limits, Running, RuntimeFault, entropy, mailbox, pass_room};
use tepui_store::{Store, StoreFault, limit_mode, private_directory, reserve_path};
use tepui_types::ContainerEvent;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::attached;
use crate::containers::{EVENTS_WAITING_MAX, pass_events};
use crate::detect;
use crate::effects::{AgentEnd, Effects};
use crate::image_gc;
use crate::link::Links;
use crate::log;
use crate::modes;
use crate::options::Options;
use crate::program::{Kind, Program};
use crate::samples;
use crate::statistics::Measuring;
use crate::target::Targets;

/// The records' file below the work directory.
const RECORDS_FILE: &str = "meta/agent.redb";

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum AgentFault {
    #[error("cannot create the directory {path}")]
    Directory {
        path: PathBuf,
        #[source]
        err: std::io::Error,
    },
    #[error("a flag is wrong: {0}")]
    Flag(String),
    #[error("cannot open the agent's records")]
    Store(#[from] StoreFault),
    #[error("the agent's records in {path} are invalid: {err}; move them away to start as a new agent")]
    Records { path: PathBuf, err: RecoverError },
    #[error("cannot run containers")]
    Containers(#[from] ContainerizerFault),
    #[error(transparent)]
    Process(#[from] ProcessFault),
    #[error(transparent)]
    Runtime(#[from] RuntimeFault),
}

/// An agent that runs. Dropping it leaves it running; end it with `stop`.
#[derive(Debug)]
pub struct RunningAgent {
    address: SocketAddr,
    running: Running,
    handle: Handle<Input>,
    server: Listening,
    exchanges: Exchanges<Kind>,
    tasks: Vec<JoinHandle<()>>,
    states: watch::Receiver<Arc<State>>,
    exit: watch::Receiver<Option<AgentEnd>>,
    containers: Containerizer,
    process: Process,
}

/// Starts an agent. Must be called inside a tokio runtime.
pub async fn run(options: Options) -> Result<RunningAgent, AgentFault> {
    let targets =
        Targets::parse(&options.master, options.process.etcd_tls.clone()).map_err(AgentFault::Flag)?;
    let masters = targets.named().to_vec();
    let work_dir = make_directory(&options.work_dir)?;
    let store = open_store(&work_dir, &options)?;
    let process = Process::open("agent", attached::LOG, &options.process)?;
    if !options.access.readwrite {
        tepui_http::peer::warn_unless_supported("local container calls are rejected");
    }
    let server = options.process.bind()?;
    let address = server.address();
    let config = config(&options, &work_dir, address)?;

    let clock = Clock::start();
    let machine = Agent::new(config.clone(), store.load()?, clock.now())
        .map_err(|err| AgentFault::Records { path: work_dir.join(RECORDS_FILE), err })?;
    let (events_sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
    let containerizer = start_containerizer(&options, &config, events_sender)?;
    let (publisher, states) = watch::channel(Arc::new(machine.state().clone()));
    let (exit_sender, exit) = watch::channel(None);
    let (exchanges, ended) = Exchanges::new(options.process.streams);
    let (handle, inputs) = mailbox(options.process.mailbox_inputs_max);
    let mut effects = Effects {
        exchanges: exchanges.clone(),
        links: Links::new(handle.clone(), targets, options.credential.clone(), &options.process),
        containerizer: containerizer.clone(),
        publisher,
        exit: exit_sender,
        access: options.access.clone(),
        log: log::start().map_err(ProcessFault::Thread)?,
    };
    let sink = move |released| effects.make_visible(released);
    let running = tepui_runtime::start("agent", machine, inputs, store, clock, Limits::default(), sink)?;
    // Each ends when the state machine has terminated, or is aborted by `stop`; none has anything to fail by.
    let mut tasks = vec![
        tokio::spawn(pass_events(events, handle.clone())),
        tokio::spawn(pass_ended(ended, handle.clone(), closed)),
        tokio::spawn(watch_disk(work_dir, options.disk_watch_interval, handle.clone())),
        tokio::spawn(pass_room(running.commits(), handle.clone(), |room| Input::DiskRoom(disk_room(room)))),
    ];
    // Fails only if the state machine has terminated already, which `ended` reports.
    let _ = handle.send(Input::Start).await;
    let runtime_dir = PathBuf::from(&config.runtime_dir);
    let meter = Meter::open(&runtime_dir).map_err(|err| AgentFault::Directory { path: runtime_dir, err })?;
    tasks.extend(samples::start(&config, &meter, &containerizer, &states, &handle));
    tasks.extend(watch_images(&options, &containerizer));
    let program = Program {
        handle: handle.clone(),
        exchanges: exchanges.clone(),
        process: process.clone(),
        pid: config.pid.as_str().into(),
        states: states.clone(),
        commits: running.commits(),
        masters,
        containerizer: containerizer.clone(),
        measuring: Measuring { meter, work_dir: config.work_dir.as_str().into() },
        renderings: Renderings::new(),
        access: options.access.clone(),
        image_gc: options.image_gc.clone(),
        http_heartbeat_interval: options.http_heartbeat_interval,
        docker_volumes: options.docker_volumes.clone(),
    };
    let server = options.process.serve(server, Arc::new(program));
    tracing::info!(%address, "agent listening");
    let containers = containerizer;
    Ok(RunningAgent { address, running, handle, server, exchanges, tasks, states, exit, containers, process })
}

impl RunningAgent {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The newest published state.
    pub fn state(&self) -> Arc<State> {
        self.states.borrow().clone()
    }

    /// Waits until the agent terminates: because it was told to, or because it failed (then there is no reason here
    /// and `stop` returns it). Cancel safe.
    pub async fn ended(&mut self) -> Option<AgentEnd> {
        tokio::select! {
            () = self.running.ended() => (),
            // Cannot fail before the state machine has terminated: it holds the sender.
            _ = self.exit.wait_for(Option::is_some) => (),
            () = self.containers.panicked() => (),
        }
        self.exit.borrow().clone()
    }

    /// Leaves the cluster: notifies the master and kills all tasks; `ended` resolves when the last one has
    /// terminated.
    pub async fn unregister(&self) {
        // Fails only if the state machine has terminated already, which `ended` reports.
        let _ = self.handle.send(Input::Unregister).await;
    }

    /// Ends the agent in order and leaves its containers running, for the next start to find. The machine goes first, so
    /// that it does not take our closing of its peers' streams for their leaving.
    pub async fn stop(self) -> Result<(), RuntimeFault> {
        let panic = self.containers.panic();
        let result = self.running.stop().await;
        self.tasks.iter().for_each(JoinHandle::abort);
        self.exchanges.close_all();
        self.server.stop().await;
        self.process.flush();
        let panicked = |what| RuntimeFault::Panicked { name: "agent".into(), thread: "containerizer", what };
        result.and(panic.map_or(Ok(()), |what| Err(panicked(what))))
    }
}

/// The input for an exchange that its peer ended.
fn closed(Ended { conn, kind }: Ended<Kind>) -> Input {
    match kind {
        Kind::Executor => Input::ExecutorClosed { conn },
        Kind::Operator => Input::OperatorClosed { conn },
    }
}

/// Sends the disk usage to the machine.
async fn watch_disk(work_dir: PathBuf, interval: Duration, handle: Handle<Input>) {
    let mut ticks = tokio::time::interval(interval.max(Duration::from_secs(1)));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let used = match detect::disk_usage(&work_dir) {
            Ok(used) => used,
            Err(err) => {
                tracing::warn!(%err, path = %work_dir.display(), "cannot read disk usage");
                continue;
            }
        };
        if handle.send(Input::DiskUsage { used }).await.is_err() {
            return;
        }
    }
}

/// Removes unused images when their disk fills up, if configured.
fn watch_images(options: &Options, containerizer: &Containerizer) -> Option<JoinHandle<()>> {
    let gc = options.image_gc.clone().filter(|_| options.images.docker)?;
    let store = options.images.docker_store_dir.clone();
    Some(tokio::spawn(image_gc::watch(containerizer.clone(), gc, store)))
}

/// Makes a directory and gives its absolute path.
fn make_directory(path: &Path) -> Result<PathBuf, AgentFault> {
    let make = || {
        std::fs::DirBuilder::new().recursive(true).mode(0o711).create(path)?;
        path.canonicalize()
    };
    make().map_err(|err| AgentFault::Directory { path: path.to_path_buf(), err })
}

/// Opens the records. Damaged ones are refused, or put aside if the agent need not be strict: it is a new agent then.
fn open_store(work_dir: &Path, options: &Options) -> Result<Store, AgentFault> {
    let path = work_dir.join(RECORDS_FILE);
    let meta = path.parent().expect("the file lies in a directory");
    private_directory(meta).map_err(|err| AgentFault::Directory { path: meta.to_path_buf(), err })?;
    match Store::open(&path, options.process.headroom) {
        Err(fault @ StoreFault::Corrupt { .. }) if !options.config.strict => {
            let aside = path.with_extension("redb.damaged");
            tracing::warn!(%fault, kept = %aside.display(), "starting without the agent's records");
            // What is in the reserve belongs to them.
            for (from, to) in [(reserve_path(&path), reserve_path(&aside)), (path.clone(), aside)] {
                quarantine(&from, &to)?;
            }
            Ok(Store::open(&path, options.process.headroom)?)
        }
        opened => {
            let store = opened?;
            limit_mode(&path, 0o600).map_err(|err| AgentFault::Directory { path, err })?;
            Ok(store)
        }
    }
}

fn quarantine(from: &Path, to: &Path) -> Result<(), StoreFault> {
    match std::fs::rename(from, to) {
        Err(err) if err.kind() != ErrorKind::NotFound => {
            Err(StoreFault::Io { doing: "put aside", path: from.to_path_buf(), err })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn config(options: &Options, work_dir: &Path, bound: SocketAddr) -> Result<Config, AgentFault> {
    let endpoint = options.process.advertised(bound);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let runtime_dir = make_directory(&options.runtime_dir)?;
    let resources = options.resources.as_deref();
    let resources = detect::resources(resources, &options.default_role, work_dir)
        .map_err(|err| AgentFault::Flag(format!("--resources: {err}")))?;
    let attributes = detect::attributes(options.attributes.as_deref())
        .map_err(|err| AgentFault::Flag(format!("--attributes: {err}")))?;
    let agent_info = pb::AgentInfo {
        hostname: options.process.advertised_hostname(endpoint),
        port: Some(i32::from(endpoint.port())),
        resources,
        attributes,
        domain: options.process.domain.clone().into(),
        ..Default::default()
    };
    Ok(Config {
        agent_info,
        pid: format!("slave(1)@{endpoint}"),
        speaks_tls: options.process.tls.is_some(),
        endpoint: endpoint.to_string(),
        version: API_VERSION.to_owned(),
        work_dir: text(work_dir),
        runtime_dir: text(&runtime_dir),
        executor_program: text(&options.program),
        isolation: options.isolation.names().map(str::to_owned).collect(),
        seed: entropy().map_err(ProcessFault::Entropy)?,
        boot_id: detect::boot_id(),
        authorizer: options.access.authorizer.clone(),
        ..options.config.clone()
    })
}

fn start_containerizer(
    options: &Options,
    config: &Config,
    events: mpsc::Sender<ContainerEvent>,
) -> Result<Containerizer, AgentFault> {
    let containerizer = Containerizer::start(container_options(options, config), events)?;
    samples::check(config, &containerizer).map_err(AgentFault::Flag)?;
    modes::limit(Path::new(&config.work_dir), Path::new(&config.runtime_dir));
    Ok(containerizer)
}

fn container_options(options: &Options, config: &Config) -> tepui_container::Options {
    let mut isolators = options.isolators.clone();
    if options.check_agent_port_range_only {
        isolators.policed_ports = Some(tepui_container::ports(&config.agent_info.resources));
    }
    tepui_container::Options {
        work_dir: PathBuf::from(&config.work_dir),
        runtime_dir: PathBuf::from(&config.runtime_dir),
        program: options.program.clone(),
        switch_user: config.switch_user,
        fetcher_cache_dir: options.fetcher_cache_dir.clone(),
        fetcher_cache_size_bytes: options.fetcher_cache_size_bytes,
        fetcher_stall_timeout: options.fetcher_stall_timeout,
        fetcher_sandbox_bytes_max: options.fetcher_sandbox_bytes_max,
        frameworks_home: options.frameworks_home.clone(),
        launcher: options.launcher,
        isolation: options.isolation.clone(),
        isolators,
        cgroups: CgroupOptions { enable_cfs: config.cgroups_enable_cfs, ..options.cgroups.clone() },
        container_logger: options.container_logger.clone(),
        images: options.images.clone(),
        docker_volumes: options.docker_volumes.clone(),
        mesos: options.mesos,
        docker: options.docker.clone(),
    }
}
