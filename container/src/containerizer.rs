//! The containerizer: takes the agent's operations, gives each container a task of its own, and answers with events.
//!
//! One task owns the table of containers and never waits for any of them, so that a slow download or a process that
//! does not die holds up nothing but its own container. Operations on one container are done in order.
//! Never here: decisions about tasks or executors; whatever an operation names that does not exist is answered or
//! ignored, never an error of ours.

mod command_line;
mod container;
mod fault;
mod in_docker;
mod isolate;
mod memory;
mod options;
mod paths;
mod provision;
mod recovery;
mod restore;
mod session;
mod update;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tepui_types::{
    ContainerEvent, ContainerId, ContainerOp, LaunchSpec, LaunchStage, RecoveredContainer, Termination,
};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use self::container::{Command, Container, LaunchDependencies};
use self::fault::AdmissionFault;
pub use self::options::{ContainerizerFault, Options};
use self::paths::Paths;
use self::recovery::State;
use self::update::Update;
use crate::cgroups::machine::MachineMemory;
use crate::cgroups::oom_watch::OomSources;
use crate::docker::Docker;
use crate::docker_volume::DockerVolumes;
use crate::fetcher::{Fetcher, FetcherCounts, Settings};
use crate::host::background::{Panics, blocking};
use crate::images::{ImageFault, Images};
use crate::isolators::watcher::Watching;
use crate::launcher::linux::{self, Linux};
use crate::pulls::{Pull, Pulls};
use crate::runtime_dir::{self, RuntimeDir};
use crate::stdio::attach;
use crate::stdio::{AttachFault, Input, Output};

/// How many containers may be between Launch and Launched at once; others wait their turn.
const LAUNCHES_AT_ONCE_MAX: usize = 32;

/// How many ended containers leave their exit status on disk, in case the agent crashes before it has recorded it.
const ENDED_KEPT_MAX: usize = 1000;

/// What the containerizer has counted since it was started, and has now.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub fetcher: FetcherCounts,
    /// Images that came into our own store.
    pub stored: Vec<Pull>,
    /// Images pulled by the Docker engine.
    pub brought_by_engine: Vec<Pull>,
    /// Containers with a root file system of their own, where there may be any.
    pub rootfses: Option<usize>,
}

/// A handle. Containers go on when the last one is dropped; they are found again by Recover.
#[derive(Clone, Debug)]
pub struct Containerizer {
    messages: mpsc::UnboundedSender<Message>,
    fetcher: Arc<Fetcher>,
    runtime: RuntimeDir,
    linux: Option<Linux>,
    counts_memory: bool,
    images: Option<Images>,
    engine_pulls: Pulls,
    panics: Panics,
}

impl Containerizer {
    /// Starts to serve. Must be called within a tokio runtime.
    pub fn start(
        options: Options,
        events: mpsc::Sender<ContainerEvent>,
    ) -> Result<Containerizer, ContainerizerFault> {
        let directory = |path: &Path| {
            let path = path.to_owned();
            move |err| ContainerizerFault::Directory { path, err }
        };
        options.check()?;
        std::fs::create_dir_all(&options.work_dir).map_err(directory(&options.work_dir))?;
        let runtime = RuntimeDir::open(&options.runtime_dir).map_err(directory(&options.runtime_dir))?;
        let devices = &options.isolators.allowed_devices;
        let (cgroups, work_dir) = (&options.cgroups, &options.work_dir);
        let linux = linux::choose(options.launcher, &options.isolation, cgroups, devices, &runtime, work_dir);
        let linux = linux?;
        let images = options.open_images()?;
        let has_drivers = options.isolation.has("docker/volume");
        let volumes = has_drivers.then(|| DockerVolumes::open(&options.docker_volumes, &options.runtime_dir));
        let volumes = volumes.transpose().map_err(directory(&options.runtime_dir))?;
        let docker = options.open_docker()?;
        // Unbounded, because an operation is already decided and durable: to drop it would break the agent's word. There
        // are never more than a few for each container the agent has admitted.
        let (messages, inbox) = mpsc::unbounded_channel();
        let settings = Settings {
            program: options.program.clone(),
            work_dir: options.work_dir.clone(),
            stall_timeout: options.fetcher_stall_timeout,
            sandbox_bytes_max: options.fetcher_sandbox_bytes_max,
            frameworks_home: options.frameworks_home.clone(),
        };
        let fetcher = Fetcher::new(settings, &options.fetcher_cache_dir, options.fetcher_cache_size_bytes);
        let fetcher = Arc::new(fetcher.map_err(directory(&options.fetcher_cache_dir))?);
        let handle = Containerizer {
            messages: messages.clone(),
            fetcher: fetcher.clone(),
            runtime: runtime.clone(),
            linux: linux.clone(),
            counts_memory: options.mesos && linux.as_ref().is_some_and(Linux::counts_memory),
            images: images.clone(),
            engine_pulls: docker.as_ref().map(Docker::pulls).unwrap_or_default(),
            panics: Panics::default(),
        };
        let context = Arc::new(Context {
            watching: Watching::new(&options.isolation, &options.isolators),
            oom_sources: OomSources::open(),
            fetcher: fetcher.clone(),
            options,
            runtime,
            linux,
            images,
            volumes,
            docker,
            events,
            launches: Semaphore::new(LAUNCHES_AT_ONCE_MAX),
            messages: messages.downgrade(),
            panics: handle.panics.clone(),
        });
        let dispatcher = Dispatcher {
            paths: Paths::new(&context),
            context,
            entries: BTreeMap::new(),
            ended: VecDeque::new(),
        };
        handle.panics.watch(tokio::spawn(dispatcher.run(inbox))); // Ends with the last handle.
        Ok(handle)
    }

    /// Resolves when a task of the containerizer has panicked: its container is followed no more, and only the next agent
    /// finds it. Cancel safe.
    pub async fn panicked(&self) {
        self.panics.occurred().await;
    }

    /// The message of that panic.
    pub fn panic(&self) -> Option<String> {
        self.panics.first()
    }

    pub fn counts(&self) -> Counts {
        let images = self.images.as_ref();
        Counts {
            fetcher: self.fetcher.counts(),
            stored: images.map(Images::pulls).unwrap_or_default(),
            brought_by_engine: self.engine_pulls.kept(),
            rootfses: images.map(Images::rootfses),
        }
    }

    /// The memory that is left for containers; unknown where they are not in cgroups. Reads files of the kernel.
    pub fn machine_memory(&self) -> MachineMemory {
        self.linux.as_ref().map(Linux::machine_memory).unwrap_or_default()
    }

    /// Whether the memory of our own containers is counted by cgroups.
    pub fn counts_memory(&self) -> bool {
        self.counts_memory
    }

    /// Removes images that no container uses, but for those of these names (see [`crate::image_names`]).
    pub async fn prune_images(&self, wanted: BTreeSet<String>) -> Result<(), ImageFault> {
        match &self.images {
            Some(images) => images.prune(wanted).await,
            None => Ok(()), // There are none.
        }
    }

    /// What a container writes from now on. Only for containers with a terminal and for sessions.
    pub async fn attach_output(&self, id: &ContainerId) -> Result<Output, AttachFault> {
        attach::output(&self.runtime.container(id)).await
    }

    /// Connects to the input of a container, unless it is in use.
    pub async fn attach_input(&self, id: &ContainerId) -> Result<Input, AttachFault> {
        attach::input(&self.runtime.container(id)).await
    }

    /// Hands over an operation; never waits.
    pub fn submit(&self, op: ContainerOp) {
        // The receiver lives as long as any handle, unless the runtime has ended: then no caller is left.
        self.messages.send(Message::Op(op)).ok();
    }
}

/// Messages to the table.
#[derive(Debug)]
pub(crate) enum Message {
    Op(ContainerOp),
    /// A container must be destroyed because its first process ended.
    Ending(ContainerId),
    /// A container must be destroyed for this reason.
    Limited {
        id: ContainerId,
        why: Termination,
    },
    /// A container has terminated and reported it. Without `launched` it never started.
    Ended {
        id: ContainerId,
        launched: bool,
    },
}

/// What the tasks of all containers share.
#[derive(Debug)]
pub(crate) struct Context {
    options: Options,
    runtime: RuntimeDir,
    /// None: the posix launcher.
    linux: Option<Linux>,
    /// None: containers have the root file system of the host.
    images: Option<Images>,
    /// None: containers have no volumes of drivers.
    volumes: Option<DockerVolumes>,
    docker: Option<Docker>,
    watching: Watching,
    oom_sources: OomSources,
    fetcher: Arc<Fetcher>,
    events: mpsc::Sender<ContainerEvent>,
    launches: Semaphore,
    /// Weak, so that the tasks do not keep the table alive after the last handle was dropped.
    messages: mpsc::WeakUnboundedSender<Message>,
    panics: Panics,
}

impl Context {
    async fn emit(&self, event: ContainerEvent) {
        self.events.send(event).await.ok(); // Closed: the agent is going down and will ask again after its restart.
    }

    fn send(&self, message: Message) {
        if let Some(messages) = self.messages.upgrade() {
            messages.send(message).ok();
        }
    }
}

/// One line of the table.
struct Entry {
    phase: Phase,
    sandbox: PathBuf,
    children: BTreeSet<ContainerId>,
}

enum Phase {
    /// `alive` closes when the container has ended.
    Live { inbox: mpsc::UnboundedSender<Command>, alive: watch::Receiver<()> },
    /// As before, but nothing may be nested in it any more.
    Destroying { inbox: mpsc::UnboundedSender<Command>, alive: watch::Receiver<()> },
    /// A nested container whose exit status is kept until it is removed or its root terminates.
    Ended,
}

struct Dispatcher {
    context: Arc<Context>,
    entries: BTreeMap<ContainerId, Entry>,
    /// Root containers that terminated, oldest first, whose runtime directory still exists.
    ended: VecDeque<ContainerId>,
    paths: Paths,
}

impl Dispatcher {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Message>) {
        while let Some(message) = inbox.recv().await {
            match message {
                Message::Op(op) => self.perform(op).await,
                Message::Ending(id) => self.destroy(&id),
                Message::Limited { id, why } => {
                    self.explain(&id, &why);
                    self.destroy(&id);
                }
                Message::Ended { id, launched } => self.forget(&id, launched).await,
            }
        }
    }

    async fn perform(&mut self, op: ContainerOp) {
        match op {
            ContainerOp::Recover { known } => self.recover(known).await,
            ContainerOp::Launch(spec) => self.launch(*spec).await,
            ContainerOp::Update { id, resources, limits, volumes } => {
                self.pass(&id, Command::Update(Update { resources, limits, volumes }));
            }
            ContainerOp::Examine { id } => {
                if !self.pass(&id, Command::Examine) {
                    self.context.emit(ContainerEvent::Examined { id, killed: None }).await;
                }
            }
            ContainerOp::Signal { id, signal } => {
                if !self.pass(&id, Command::Signal(signal)) {
                    self.context.emit(ContainerEvent::NoSuchContainer { id }).await;
                }
            }
            ContainerOp::Destroy { id } => self.destroy(&id),
            ContainerOp::Evict { id, why } => {
                self.explain(&id, &why);
                self.destroy(&id);
            }
            ContainerOp::Remove { id, sandbox } => self.remove(id, sandbox).await,
            ContainerOp::RemovePath { path } => self.paths.remove(path),
            ContainerOp::CreateVolume { path } => self.paths.create_volume(path),
            ContainerOp::DestroyVolume { path } => self.paths.destroy_volume(path),
        }
    }

    /// Hands a command to a container's task. False if there is none.
    fn pass(&self, id: &ContainerId, command: Command) -> bool {
        match self.entries.get(id).map(|entry| &entry.phase) {
            Some(Phase::Live { inbox, .. } | Phase::Destroying { inbox, .. }) => inbox.send(command).is_ok(),
            Some(Phase::Ended) | None => false,
        }
    }

    async fn launch(&mut self, spec: LaunchSpec) {
        if let Err(fault) = self.admit(&spec.id) {
            let message = fault.to_string();
            let event = ContainerEvent::LaunchFailed { id: spec.id, stage: LaunchStage::Start, message };
            return self.context.emit(event).await;
        }
        // A directory around the sandbox may just be on its way out.
        let around = Path::new(&spec.sandbox).ancestors().filter_map(Path::to_str);
        let volumes = spec.volumes.iter().map(|volume| volume.source.as_str());
        let paths_ready = self.paths.pending(volumes.chain(around));
        let parent =
            spec.id.parent().and_then(|parent| self.entries.get(parent)).map(|entry| entry.sandbox.clone());
        let container = self.enter(&spec.id, PathBuf::from(&spec.sandbox));
        let parent_ready = self.parent_ready(&spec.id);
        let around = LaunchDependencies { sandbox: parent, ready: parent_ready, paths_ready };
        self.context.panics.watch(tokio::spawn(container.launch(spec, around))); // Reports its termination itself.
    }

    /// Resolves when the parent is launched and has completed its earlier commands: a nested container needs the
    /// parent's processes and increased limits.
    fn parent_ready(&self, id: &ContainerId) -> Option<oneshot::Receiver<()>> {
        let Phase::Live { alive, .. } = &self.entries.get(id)?.phase else { return None };
        let (done, ready) = oneshot::channel();
        self.pass(id.parent()?, Command::Settled { done, child: alive.clone() }).then_some(ready)
    }

    /// Whether a container may be launched now.
    fn admit(&self, id: &ContainerId) -> Result<(), AdmissionFault> {
        if !runtime_dir::is_valid(id) {
            return Err(AdmissionFault::InvalidId(id.clone()));
        }
        if self.entries.contains_key(id) || self.ended.contains(id) {
            return Err(AdmissionFault::AlreadyLaunched(id.clone()));
        }
        let Some(parent) = id.parent() else { return Ok(()) };
        match self.entries.get(parent).map(|entry| &entry.phase) {
            Some(Phase::Live { .. }) => Ok(()),
            Some(Phase::Destroying { .. }) => Err(AdmissionFault::ParentDestroyed(parent.clone())),
            Some(Phase::Ended) | None => Err(AdmissionFault::NoParent(parent.clone())),
        }
    }

    /// Adds a live container to the table and makes what its task needs.
    fn enter(&mut self, id: &ContainerId, sandbox: PathBuf) -> Container {
        let (inbox, commands) = mpsc::unbounded_channel(); // Bounded by the operations that name the container.
        let (life, alive) = watch::channel(());
        self.insert(id, sandbox.clone(), Phase::Live { inbox, alive });
        Container::new(self.context.clone(), id.clone(), sandbox, commands, life)
    }

    fn insert(&mut self, id: &ContainerId, sandbox: PathBuf, phase: Phase) {
        self.entries.insert(id.clone(), Entry { phase, sandbox, children: BTreeSet::new() });
        if let Some(parent) = id.parent().and_then(|parent| self.entries.get_mut(parent)) {
            parent.children.insert(id.clone());
        }
    }

    /// Sends the reason of the coming destruction to a container and all those nested in it.
    fn explain(&self, id: &ContainerId, why: &Termination) {
        self.pass(id, Command::Explain(why.clone()));
        for child in self.entries.get(id).iter().flat_map(|entry| &entry.children) {
            self.explain(child, why);
        }
    }

    /// Destroys a container and all those nested in it; each waits for its own children.
    fn destroy(&mut self, id: &ContainerId) {
        let Some(entry) = self.entries.get_mut(id) else { return };
        let phase = std::mem::replace(&mut entry.phase, Phase::Ended);
        let children = entry.children.clone();
        let inbox = match phase {
            Phase::Live { inbox, alive } => {
                entry.phase = Phase::Destroying { inbox: inbox.clone(), alive };
                inbox
            }
            phase @ (Phase::Destroying { .. } | Phase::Ended) => {
                entry.phase = phase;
                return;
            }
        };
        let mut first = Vec::new();
        for child in &children {
            self.destroy(child);
            if let Some(Phase::Destroying { alive, .. }) = self.entries.get(child).map(|entry| &entry.phase) {
                first.push(alive.clone());
            }
        }
        inbox.send(Command::Destroy { first }).ok(); // Its task is about to report its termination.
    }

    /// A container has ended.
    async fn forget(&mut self, id: &ContainerId, launched: bool) {
        if id.parent().is_some() && launched {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.phase = Phase::Ended;
            }
            return;
        }
        self.drop_entry(id);
        match launched {
            true => self.keep_status(id.clone()).await,
            false => self.remove_runtime(id.clone()).await,
        }
    }

    fn drop_entry(&mut self, id: &ContainerId) {
        let Some(entry) = self.entries.remove(id) else { return };
        for child in &entry.children {
            self.drop_entry(child);
        }
        if let Some(parent) = id.parent().and_then(|parent| self.entries.get_mut(parent)) {
            parent.children.remove(id);
        }
    }

    async fn keep_status(&mut self, id: ContainerId) {
        self.ended.push_back(id);
        if self.ended.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.remove_runtime(oldest).await;
        }
    }

    async fn remove_runtime(&self, id: ContainerId) {
        let runtime = self.context.runtime.clone();
        let removed = blocking(move || runtime.remove(&id)).await;
        if let Err(err) = removed.unwrap_or_else(|fault| Err(fault.into())) {
            tracing::warn!(%err, "cannot remove the runtime directory of a terminated container");
        }
    }

    /// Removes a terminated container and its sandbox.
    async fn remove(&mut self, id: ContainerId, sandbox: String) {
        match self.entries.get(&id).map(|entry| &entry.phase) {
            Some(Phase::Live { .. } | Phase::Destroying { .. }) => {
                let error = Some(format!("Container '{id}' is still running"));
                self.context.emit(ContainerEvent::PathDone { path: sandbox, error }).await;
            }
            Some(Phase::Ended) | None => {
                self.drop_entry(&id);
                if runtime_dir::is_valid(&id) {
                    self.remove_runtime(id).await;
                }
                self.paths.remove(sandbox);
            }
        }
    }

    /// Finds what a former agent left: see [`recovery`].
    async fn recover(&mut self, known: Vec<tepui_types::KnownContainer>) {
        // On a repeated call, containers in the table are not reported again.
        let known: Vec<_> = known.into_iter().filter(|known| !self.entries.contains_key(&known.id)).collect();
        let busy = self.entries.keys().cloned().collect();
        let found = match recovery::find_containers(&self.context, known, busy).await {
            Ok(found) => found,
            Err(fault) => {
                // Without an answer the agent stays in recovery and declares no container lost.
                tracing::error!(%fault, "cannot recover containers; restart the agent");
                return;
            }
        };
        let mut containers = Vec::new();
        let mut watched = Vec::new();
        for found in found.known {
            let (pid, ended) = match found.state {
                State::Alive(process) => {
                    watched.push((self.enter(&found.id, found.sandbox), process));
                    (process.is_alive().then_some(process.pid.unsigned_abs()), None)
                }
                State::Ended(termination) => {
                    // It may have been given cgroups and then never have begun.
                    tokio::spawn(recovery::remove_cgroups(self.context.clone(), found.id.clone()));
                    match found.id.parent() {
                        Some(_) => self.insert(&found.id, found.sandbox, Phase::Ended),
                        None => self.keep_status(found.id.clone()).await,
                    }
                    (None, Some(termination))
                }
            };
            containers.push(RecoveredContainer { id: found.id, pid, ended });
        }
        let alive = self.entries.iter().filter(|(_, entry)| !matches!(entry.phase, Phase::Ended));
        let kept = alive.map(|(id, _)| id).chain(&found.orphans).cloned().collect();
        provision::remove_forgotten(&self.context, kept).await;
        recovery::destroy_orphans(&self.context, found.orphans);
        if let Some(docker) = self.context.docker.clone() {
            tokio::spawn(docker.sweep(self.entries.keys().cloned().collect())); // Logs its failures.
        }
        self.context.emit(ContainerEvent::Recovered { containers }).await;
        for (container, process) in watched {
            self.context.panics.watch(tokio::spawn(container.watch(process, Vec::new()))); // As in `launch`.
        }
    }
}
