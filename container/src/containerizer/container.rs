//! One container: from Launch to its one Exited, as one task.
//!
//! Fed by the table through an inbox; until the command is started, any command but an update cancels the launch. If
//! the table is dropped the task ends without an event; the container keeps running.

use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tepui_types::{ContainerEvent, ContainerId, LaunchSpec, LaunchStage, Termination, Volume};
use tokio::sync::{mpsc, oneshot, watch};

use super::command_line::command_line;
use super::fault::{ContainerFault, DockerFault};
use super::isolate::isolate;
use super::memory::{Limited, MemoryWatch};
use super::provision;
use super::update::Update;
use super::{Context, Message, in_docker, session};
use crate::cgroups::destroy;
use crate::host::background::{Interrupted, blocking};
use crate::host::beneath;
use crate::host::open_files;
use crate::host::process::Process;
use crate::host::user::Identity;
use crate::isolators::watcher::{Watched, Watcher, watched_resources};
use crate::launcher::remount::{self, Remount};
use crate::launcher::{InitSpec, supervisor, tree};
use crate::plan::Plan;
use crate::runtime_dir::{Claim, ContainerDir, Mounted};
use crate::sandbox::{self, Sandbox, SandboxFault};
use crate::secrets;
use crate::stdio::plan;
use crate::stdio::switchboard::FINISH_MAX;

/// `PATH` of a command whose environment has none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Limit of the supervisor's report after its command was killed.
const SUPERVISOR_LAST_WORDS_MAX: Duration = FINISH_MAX.saturating_add(Duration::from_secs(1));

/// Commands of the table to a container.
#[derive(Debug)]
pub(super) enum Command {
    Update(Update),
    /// Check for OOM kills.
    Examine,
    /// Report to a nested container that this one is launched and has completed its earlier commands. `child` closes
    /// when that container has terminated.
    Settled {
        done: oneshot::Sender<()>,
        child: watch::Receiver<()>,
    },
    Signal(i32),
    /// It is about to be ended; this is why.
    Explain(Termination),
    /// End, after those nested in it: each of `first` closes when one of them has ended.
    Destroy {
        first: Vec<watch::Receiver<()>>,
    },
}

/// Prerequisites of a launch that concern other containers.
pub(super) struct LaunchDependencies {
    /// The parent's.
    pub sandbox: Option<PathBuf>,
    /// The parent is launched and has completed its earlier commands.
    pub ready: Option<oneshot::Receiver<()>>,
    /// Each closes when a path that is in the way is gone.
    pub paths_ready: Vec<watch::Receiver<()>>,
}

pub(super) struct Container {
    context: Arc<Context>,
    id: ContainerId,
    sandbox: PathBuf,
    inbox: mpsc::UnboundedReceiver<Command>,
    /// Held until the container has ended; nothing is ever sent.
    _life: watch::Sender<()>,
}

/// Why a launch did not come to its end.
enum Stop {
    Failed {
        stage: LaunchStage,
        message: String,
    },
    /// The table is gone.
    Abandoned,
}

/// What came in while the container was launched.
#[derive(Default)]
struct Waiting {
    update: Option<Update>,
    first: Vec<watch::Receiver<()>>,
    /// Launches of nested containers: an executor may ask for them before its own launch is reported.
    children: Vec<(oneshot::Sender<()>, watch::Receiver<()>)>,
}

impl Stop {
    fn failed(stage: LaunchStage, fault: ContainerFault) -> Stop {
        match fault.is_going_down() {
            true => Stop::Abandoned,
            false => Stop::Failed { stage, message: fault.to_string() },
        }
    }
}

impl Container {
    pub fn new(
        context: Arc<Context>,
        id: ContainerId,
        sandbox: PathBuf,
        inbox: mpsc::UnboundedReceiver<Command>,
        life: watch::Sender<()>,
    ) -> Container {
        Container { context, id, sandbox, inbox, _life: life }
    }

    pub async fn launch(mut self, spec: LaunchSpec, around: LaunchDependencies) {
        let mut waiting = Waiting::default();
        let started = self.start(&spec, around, &mut waiting).await;
        match started {
            Ok(process) => {
                let (id, pid) = (self.id.clone(), process.pid.unsigned_abs());
                tracing::debug!(container = %id, pid, "container launched");
                self.context.emit(ContainerEvent::Launched { id, pid }).await;
                let mut volumes = spec.volumes;
                if let Some(update) = waiting.update {
                    self.update(&mut volumes, update).await;
                }
                waiting.children.into_iter().for_each(|(done, _)| done.send(()).unwrap_or_default());
                self.watch(process, volumes).await;
            }
            Err(Stop::Failed { stage, message }) => {
                // Nested launches fail first: the table removes them with this container.
                let children = waiting.children.into_iter().map(|(_, child)| child).collect();
                closed(children).await;
                closed(waiting.first).await;
                provision::remove(&self.context, &self.id).await;
                tracing::debug!(container = %self.id, ?stage, message, "container failed to launch");
                let id = self.id.clone();
                self.context.emit(ContainerEvent::LaunchFailed { id, stage, message }).await;
                self.context.send(Message::Ended { id: self.id, launched: false });
            }
            Err(Stop::Abandoned) => (),
        }
    }

    async fn start(
        &mut self,
        spec: &LaunchSpec,
        around: LaunchDependencies,
        waiting: &mut Waiting,
    ) -> Result<Process, Stop> {
        let context = self.context.clone();
        let failed = |fault: ContainerFault| Stop::failed(LaunchStage::Start, fault);
        let secret_dir = context.options.isolators.secret_dir.as_deref();
        let resolving =
            async { secrets::resolve(secret_dir, spec).await.map_err(|fault| failed(fault.into())) };
        let resolved = self.unless_stopped(LaunchStage::Start, waiting, resolving).await?;
        let spec = resolved.as_ref().unwrap_or(spec);
        let docker = in_docker::choose(&context, spec).map_err(failed)?;
        let (original, spec) = (spec, docker.as_ref().map_or(spec, |docker| &docker.host));
        let mounted = docker.is_some() || context.options.isolation.mounts();
        let parent_sandbox = around.sandbox.clone();
        let provisioning = async { provision::provision(&context, spec).await.map_err(failed) };
        let mut provisioned = self.unless_stopped(LaunchStage::Start, waiting, provisioning).await?;
        let (spec, user) = (&*provisioned.complete(spec).map_err(failed)?, provisioned.user.take());
        let preparing = async {
            closed(around.paths_ready).await;
            if let Some(ready) = around.ready {
                ready.await.map_err(|_| failed(ContainerFault::ParentNotRunning))?;
            }
            let _turn = context.launches.acquire().await;
            prepare(&context, spec, user, around.sandbox, mounted).await
        };
        let identity = self.unless_stopped(LaunchStage::Sandbox, waiting, preparing).await?;
        let mut init = init_spec(&context, spec, identity).map_err(failed)?;
        if spec.is_session {
            session::join(&context, &spec.id, parent_sandbox.as_deref(), &mut init).await.map_err(failed)?;
        }
        let fetching = fetch(&context, spec, init.identity.as_ref());
        self.unless_stopped(LaunchStage::Fetch, waiting, fetching).await?;
        self.runtime().make().map_err(|err| failed(ContainerFault::RuntimeDirectory(err)))?;
        if let Some(docker) = &docker {
            let pulling = async {
                let pulled = docker.docker.pull(original).await;
                pulled.map_err(|fault| failed(DockerFault::from(fault).into()))
            };
            self.unless_stopped(LaunchStage::Fetch, waiting, pulling).await?;
            init.identity = None; // The client of the engine needs the agent's rights; the container has users of its own.
        }
        let turn = async { Ok(context.launches.acquire().await) };
        let _turn = self.unless_stopped(LaunchStage::Start, waiting, turn).await?;
        let isolated = match &docker {
            Some(docker) => in_docker::keep(&context, spec, docker),
            None => isolate(&context, spec, provisioned, parent_sandbox.as_deref(), &mut init).await,
        };
        let started = match isolated {
            Ok(()) => supervisor::start(&context.options.program, &spec.id.to_string(), &init)
                .await
                .map_err(ContainerFault::from),
            Err(fault) => Err(fault),
        };
        if started.is_err() {
            self.destroy_claimed().await;
        }
        started.map_err(failed)
    }

    /// A supervisor that claimed the container but could not report it must stop, and its cgroups must be removed.
    async fn destroy_claimed(&self) {
        if let Ok(Claim::Supervisor(process)) = self.runtime().claimed() {
            tree::destroy(process, self.sandbox.clone()).await;
        }
        let cgroups = self.runtime().cgroups();
        destroy::kill(&cgroups).await;
        destroy::remove(&cgroups).await;
    }

    /// Does a part of the launch that can be given up half way.
    async fn unless_stopped<T>(
        &mut self,
        stage: LaunchStage,
        waiting: &mut Waiting,
        work: impl Future<Output = Result<T, Stop>>,
    ) -> Result<T, Stop> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                command = self.inbox.recv() => match command {
                    None => return Err(Stop::Abandoned),
                    Some(Command::Update(update)) => waiting.update = Some(update),
                    Some(Command::Examine) => self.report_examined(None).await,
                    Some(Command::Settled { done, child }) => waiting.children.push((done, child)),
                    Some(Command::Explain(_)) => (), // A cancelled launch reports itself.
                    Some(Command::Signal(_)) => return Err(destroyed(stage)),
                    Some(Command::Destroy { first }) => {
                        waiting.first = first;
                        return Err(destroyed(stage));
                    }
                },
            }
        }
    }

    /// Follows a running container to its end.
    pub async fn watch(mut self, process: Process, mut volumes: Vec<Volume>) {
        let context = self.context.clone();
        let mut gone = false;
        let mut ended = pin!(process.ended());
        let mut memory = MemoryWatch::start(&context, &self.id);
        let mut limitation = None;
        let mut watcher = self.watcher(process);
        if self.runtime().is_ending() {
            self.context.send(Message::Ending(self.id.clone())); // An agent before us began with it.
        }
        let first = loop {
            tokio::select! {
                limited = memory.next(&context, &self.id), if limitation.is_none() && !gone => {
                    limitation = self.limited(limited);
                }
                found = watcher.next(), if limitation.is_none() && !gone => {
                    limitation = self.limited((self.id.clone(), found));
                }
                () = &mut ended, if !gone => {
                    gone = true;
                    let limited = memory.judge(&context, &self.id, self.runtime().status());
                    limitation = limitation.or_else(|| limited.and_then(|limited| self.limited(limited)));
                    self.context.send(Message::Ending(self.id.clone()));
                }
                command = self.inbox.recv() => match command {
                    None => return,
                    Some(Command::Update(update)) => {
                        self.update(&mut volumes, update).await;
                        memory.follow_request(&context, &self.id);
                        watcher.apply(self.runtime().given());
                    }
                    Some(Command::Examine) => {
                        let limited = memory.judge(&context, &self.id, None);
                        limitation = limitation.or_else(|| limited.and_then(|limited| self.limited(limited)));
                        self.report_examined(limitation.clone()).await;
                    }
                    Some(Command::Settled { done, .. }) => done.send(()).unwrap_or_default(),
                    Some(Command::Signal(signal)) => self.signal(process, signal).await,
                    Some(Command::Explain(why)) if !gone => limitation = limitation.or(Some(why)),
                    Some(Command::Explain(_)) => (), // It ended by itself before.
                    Some(Command::Destroy { first }) => break first,
                },
            }
        };
        closed(first).await;
        self.end(process, ended, gone, limitation, memory).await;
    }

    /// Lets a container be destroyed for a reason. Returns the reason.
    fn limited(&self, (id, why): Limited) -> Option<Termination> {
        self.context.send(Message::Limited { id, why: why.clone() });
        Some(why)
    }

    /// Ends everything of a container; those nested in it have ended. `gone`: its supervisor has ended.
    async fn end(
        mut self,
        process: Process,
        mut ended: Pin<&mut impl Future<Output = ()>>,
        mut gone: bool,
        limitation: Option<Termination>,
        mut memory: MemoryWatch,
    ) {
        if let Err(err) = self.runtime().write_ending() {
            tracing::debug!(container = %self.id, %err, "cannot persist the termination of a container");
        }
        let cgroups = self.runtime().cgroups();
        let emptied = destroy::kill(&cgroups).await;
        if !gone && self.runtime().is_moved() {
            // Attached clients receive the remaining output.
            session::kill_below(process).await;
            gone = tokio::time::timeout(SUPERVISOR_LAST_WORDS_MAX, &mut ended).await.is_ok();
        }
        // No process outlives its cgroup, so the supervisor is about to report; reading all processes would cost more
        // with each container.
        if !gone && emptied {
            gone = tokio::time::timeout(SUPERVISOR_LAST_WORDS_MAX, &mut ended).await.is_ok();
        }
        // A supervisor that exited by itself left no process behind, and its status says so.
        if !gone || self.runtime().status().is_none() {
            tree::destroy(process, self.sandbox.clone()).await;
        }
        in_docker::end(&self.context, &self.id).await;
        // Without a status the supervisor itself was killed, and its command with it.
        let status = self.runtime().status().unwrap_or(libc::SIGKILL);
        let killed = limitation.or_else(|| {
            let (_, why) = memory.judge(&self.context, &self.id, Some(status))?;
            Some(why)
        });
        self.answer_late(&killed).await;
        let termination = Termination { status: Some(status), ..killed.unwrap_or_default() };
        destroy::remove(&cgroups).await;
        provision::remove(&self.context, &self.id).await;
        tracing::debug!(container = %self.id, status, why = termination.message, "container terminated");
        self.context.emit(ContainerEvent::Exited { id: self.id.clone(), termination }).await;
        self.context.send(Message::Ended { id: self.id, launched: true });
    }

    /// Looks for what no kernel limits.
    fn watcher(&self, supervisor: Process) -> Watcher {
        let (runtime, cgroups) = (self.runtime(), self.runtime().cgroups());
        let watched = Watched { id: self.id.clone(), supervisor, cgroups, runtime };
        self.context.watching.follow(watched, self.runtime().given())
    }

    async fn report_examined(&self, killed: Option<Termination>) {
        self.context.emit(ContainerEvent::Examined { id: self.id.clone(), killed }).await;
    }

    /// Requests from just before the end are answered here; later ones by the table.
    async fn answer_late(&mut self, killed: &Option<Termination>) {
        self.inbox.close();
        while let Some(command) = self.inbox.recv().await {
            match command {
                Command::Examine => self.report_examined(killed.clone()).await,
                Command::Update(_)
                | Command::Settled { .. }
                | Command::Signal(_)
                | Command::Explain(_)
                | Command::Destroy { .. } => (),
            }
        }
    }

    /// The supervisor passes on whatever it can catch; the rest is done for it.
    async fn signal(&self, process: Process, signal: i32) {
        let sent = match signal {
            libc::SIGKILL => {
                self.context.send(Message::Ending(self.id.clone()));
                return;
            }
            libc::SIGSTOP | libc::SIGCONT => {
                let all = blocking(move || tree::signal_below(process, signal)).await;
                all.unwrap_or_else(|fault| Err(fault.into()))
            }
            signal => process.signal(signal).map(drop),
        };
        if let Err(err) = sent {
            tracing::info!(container = %self.id, signal, %err, "cannot signal the container");
        }
    }

    async fn update(&self, volumes: &mut Vec<Volume>, update: Update) {
        if let Some(in_docker) = self.runtime().docker() {
            let updated = in_docker::update(&self.context, &self.id, in_docker, update).await;
            return self.report_updated(updated).await;
        }
        let Update { resources, limits, volumes: after } = update;
        let given = watched_resources(&self.sandbox.to_string_lossy(), &resources, &after);
        if let Err(err) = self.runtime().write_given(&given) {
            tracing::warn!(container = %self.id, %err, "cannot persist the resources of a container");
        }
        let resized = match &self.context.linux {
            Some(linux) => linux.update(&self.id, &resources, &limits).await,
            None => Ok(()), // Requests and limits mean nothing to the posix launcher.
        };
        let changed = match resized {
            Ok(()) => self.update_volumes(volumes, after).await,
            Err(fault) => Err(fault.into()),
        };
        self.report_updated(changed).await;
    }

    async fn report_updated(&self, updated: Result<(), ContainerFault>) {
        if let Err(fault) = updated {
            let message = fault.to_string();
            self.context.emit(ContainerEvent::UpdateFailed { id: self.id.clone(), message }).await;
        }
    }

    async fn update_volumes(
        &self,
        volumes: &mut Vec<Volume>,
        after: Vec<Volume>,
    ) -> Result<(), ContainerFault> {
        if self.context.options.isolation.mounts() {
            return self.remount_volumes(after).await;
        }
        if *volumes == after {
            return Ok(());
        }
        let before = std::mem::replace(volumes, after.clone());
        let (context, sandbox) = (self.context.clone(), self.sandbox.display().to_string());
        let change = move || sandbox::update_volumes(&context.options.work_dir, &sandbox, &before, &after);
        Ok(blocking(change).await??)
    }

    /// Changes what is mounted in the container. What is written down is what is there.
    async fn remount_volumes(&self, after: Vec<Volume>) -> Result<(), ContainerFault> {
        let (before, wanted) =
            (self.runtime().volumes(), after.iter().map(Mounted::from).collect::<Vec<_>>());
        let Some(init) = self.runtime().init().filter(|_| before != wanted) else { return Ok(()) };
        let (context, sandbox) = (self.context.clone(), self.sandbox.display().to_string());
        let given = move || sandbox::set_volume_owners(&context.options.work_dir, &sandbox, &after);
        blocking(given).await??;
        let missing_in = |others: &[Mounted]| {
            let others = others.to_vec();
            move |one: &Mounted| !others.contains(one)
        };
        let what = Remount {
            process: init.process,
            sandbox: init.sandbox.unwrap_or_else(|| self.sandbox.clone()),
            gone: before.iter().filter(|one| missing_in(&wanted)(one)).cloned().collect(),
            new: wanted.iter().filter(|one| missing_in(&before)(one)).cloned().collect(),
        };
        remount::request(&self.context.options.program, &what).await?;
        self.runtime().write_volumes(&wanted).map_err(ContainerFault::persist("volumes"))
    }

    fn runtime(&self) -> ContainerDir {
        self.context.runtime.container(&self.id)
    }
}

/// Waits until each of the channels has closed.
async fn closed(channels: Vec<watch::Receiver<()>>) {
    for mut channel in channels {
        while channel.changed().await.is_ok() {}
    }
}

fn destroyed(stage: LaunchStage) -> Stop {
    let while_ = match stage {
        LaunchStage::Sandbox => "preparing",
        LaunchStage::Fetch => "fetching",
        LaunchStage::Start => "starting",
    };
    Stop::Failed { stage, message: format!("Container destroyed while {while_}") }
}

/// Finds the user, unless the image names one, and creates the sandbox.
async fn prepare(
    context: &Arc<Context>,
    spec: &LaunchSpec,
    user: Option<Identity>,
    parent: Option<PathBuf>,
    mounted: bool,
) -> Result<Option<Identity>, Stop> {
    let (context, copy) = (context.clone(), spec.clone());
    let work = move || {
        let identity = match user {
            Some(user) => Some(user).filter(|user| !user.is_ours()),
            None => sandbox::identity(copy.user.as_deref(), context.options.switch_user)?,
        };
        if copy.no_root {
            sandbox::not_root(identity.as_ref())?;
        }
        let sandbox = Sandbox::new(&context.options.work_dir, &copy.sandbox, identity.as_ref())?;
        sandbox.prepare(&copy, parent.as_deref(), mounted)?;
        Ok(identity)
    };
    let done: Result<_, SandboxFault> = match blocking(work).await {
        Ok(done) => done,
        Err(Interrupted::GoingDown) => return Err(Stop::Abandoned),
        Err(fault @ Interrupted::Panicked(_)) => {
            return Err(Stop::Failed { stage: LaunchStage::Sandbox, message: fault.to_string() });
        }
    };
    done.map_err(|fault| {
        let (stage, message) = match &fault {
            SandboxFault::Unsupported(_) => (LaunchStage::Start, fault.to_string()),
            _ => {
                let kind = if spec.id.parent().is_none() { "executor directory" } else { "sandbox" };
                (LaunchStage::Sandbox, format!("Failed to create {kind} '{}': {fault}", spec.sandbox))
            }
        };
        Stop::Failed { stage, message }
    })
}

async fn fetch(context: &Context, spec: &LaunchSpec, identity: Option<&Identity>) -> Result<(), Stop> {
    let fetched = context.fetcher.fetch(spec, identity).await;
    fetched.map_err(|why| Stop::Failed {
        stage: LaunchStage::Fetch,
        message: format!("Failed to fetch all URIs for container '{}': {why}", spec.id),
    })
}

/// Parameters of the supervisor.
fn init_spec(
    context: &Context,
    spec: &LaunchSpec,
    identity: Option<Identity>,
) -> Result<InitSpec, ContainerFault> {
    let work_dir = &context.options.work_dir;
    let sandbox = beneath::relative(work_dir, Path::new(&spec.sandbox));
    let (program, arguments) = command_line(&spec.command)?;
    let mut environment = spec.environment.clone();
    environment.entry(String::from("PATH")).or_insert_with(|| String::from(PATH));
    let has_nul = |text: &String| text.contains('\0');
    if has_nul(&program) || arguments.iter().any(has_nul) || environment.values().any(has_nul) {
        return Err(ContainerFault::NulCharacter);
    }
    if let Some(name) = environment.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        return Err(ContainerFault::VariableName(name.clone()));
    }
    let stdio = plan::plan(&context.options.container_logger, spec)?;
    Ok(InitSpec {
        runtime: context.runtime.container(&spec.id).path().to_owned(),
        work_dir: work_dir.clone(),
        sandbox: sandbox.ok_or(ContainerFault::SandboxOutside)?.to_owned(),
        directory: None,
        stdio,
        program,
        arguments,
        environment,
        identity,
        cgroups: Vec::new(),
        shortages_of: None,
        oom_score_adj: None,
        open_files: open_files::started_with(),
        plan: Plan::default(),
    })
}
