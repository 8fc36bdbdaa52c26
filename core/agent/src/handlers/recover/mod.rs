//! From records to an agent, and from a started process to one that connects to its master.
//!
//! The containerizer reports which containers are alive; executors from before the restart have some time to
//! resubscribe; only then is the master contacted.

mod load;
mod rebuild;
mod reconfigure;
mod resources;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::{Deadlines, Now, Rng, Wall};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::Format;
use tepui_types::{
    ContainerId, ContainerOp, ExecutorId, FrameworkId, KnownContainer, RecoveredContainer, Termination,
    duration_text,
};

use crate::agent::{Agent, Out};
use crate::entities::reconcile::reconcile;
use crate::entities::status;
use crate::entities::{draining, lifecycle, link, operations, oversubscription, slack};
use crate::handlers::operator;
use crate::rules::{environment, gc, overdue};
use crate::state::bookkeeping::{Recovery, Streams, Timer};
use crate::state::key::Key;
use crate::state::{Cause, ContainerStage, Counters, Executor, ExecutorPhase, Phase, State};
use crate::state::{paths, volumes};
use crate::{Config, Record, Recover};
use load::Loaded;

/// Why an agent cannot go on from what it recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoverError {
    /// A value that cannot be read.
    Unreadable { key: String, why: String },
    /// The agent was started with other flags than before.
    Reconfigured { why: String },
    /// Reservations or volumes that the agent's resources no longer hold.
    Resources { why: String },
    /// The resources the agent was started with make no sense.
    Config { why: String },
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoverError::Unreadable { key, why } => write!(
                f,
                "cannot read the record '{key}': {why}; put the work directory back as it was, or start with \
                 --no-strict to go on without this record"
            ),
            RecoverError::Reconfigured { why } => write!(
                f,
                "this agent is not the one that used the work directory: {why}; start it as it was, allow additions \
                 with --reconfiguration_policy=additive, or run it once with --recover=cleanup to end what it ran \
                 and join as a new agent"
            ),
            RecoverError::Resources { why } => write!(
                f,
                "the resources do not hold what was reserved on this agent: {why}; start it with at least the \
                 resources it had, or run it once with --recover=cleanup to join as a new agent"
            ),
            RecoverError::Config { why } => write!(f, "invalid agent resources: {why}"),
        }
    }
}

impl Agent {
    /// An agent as its records left it; without any, a new one.
    pub fn new(
        config: Config,
        stored: impl IntoIterator<Item = (String, Vec<u8>)>,
        now: Now,
    ) -> Result<Agent, RecoverError> {
        let mut loaded = load::load(stored, config.strict)?;
        let mut agent = fresh(config, now)?;
        agent.state.counters.recovery_errors = loaded.unreadable.len() as u64;
        agent.gc = loaded.paths.iter().map(|(path, kept)| (path.clone(), since(kept))).collect();
        agent.recovery.rebooted = loaded.boot_id.as_ref().is_some_and(|old| *old != agent.config.boot_id);
        let Some((former, former_total)) = loaded.agent.take() else {
            // Nothing can belong to an agent without a name.
            agent.recovery.discard = all_keys(loaded);
            return Ok(agent);
        };
        let info = former.info.into_option().unwrap_or_default();
        let additive = agent.config.reconfiguration_additive;
        let id = info.id.clone();
        let (old, new) = ((&info, &former_total), (&*agent.state.info, &agent.state.total));
        match reconfigure::problem(old, new, additive) {
            Some(_) if agent.recovery.rebooted => {
                agent.recovery.former = Some(paths::agent_directory(&agent.config.work_dir, &id.value));
                agent.recovery.discard = all_keys(loaded);
                agent.recovery.discard.push(Key::Agent.text());
                return Ok(agent);
            }
            Some(why) if agent.config.recover == Recover::Reconnect => {
                return Err(RecoverError::Reconfigured { why });
            }
            Some(_) | None => (),
        }
        Arc::make_mut(&mut agent.state.info).id = id;
        resources::restore(&mut agent, loaded.resources.take())?;
        agent.recovery.discard = rebuild::rebuild(&mut agent, loaded);
        Ok(agent)
    }
}

fn fresh(config: Config, now: Now) -> Result<Agent, RecoverError> {
    let total = tepui_resources::Resources::from_proto(&config.agent_info.resources)
        .map_err(|err| RecoverError::Config { why: err.to_string() })?;
    let state = State {
        version: 1,
        started_at: now.wall,
        phase: Phase::Recovering,
        info: Arc::new(config.agent_info.clone()),
        capabilities: Arc::new(config.capabilities.clone()),
        total,
        oversubscribed: Default::default(),
        master: None,
        frameworks: RedBlackTreeMapSync::new_sync(),
        completed_frameworks: QueueSync::new_sync(),
        containers: RedBlackTreeMapSync::new_sync(),
        operations: RedBlackTreeMapSync::new_sync(),
        drain: None,
        disk_pressure: None,
        executor_directory_max_allowed_age: config.gc_delay,
        path_removals_pending: 0,
        container_waits_pending: 0,
        recovery_time: None,
        counters: Counters::default(),
    };
    Ok(Agent {
        // With the time in it, a seed that is given again does not bring the same ids again.
        rng: Rng::seeded(config.seed ^ now.wall.0.rotate_left(32)),
        config,
        state,
        link: Default::default(),
        streams: Streams::new(),
        timers: Deadlines::new(),
        conns: BTreeMap::new(),
        launching: BTreeMap::new(),
        executors_by_container: BTreeMap::new(),
        waiting_updates: BTreeMap::new(),
        never_launched: Default::default(),
        unnamed_tasks: Default::default(),
        requests: Default::default(),
        gc: BTreeMap::new(),
        operation_patience: BTreeMap::new(),
        recovery: Recovery::default(),
        history_newest: 0,
        slack: Default::default(),
        touched: Default::default(),
        oversubscription: Default::default(),
        evicting: Default::default(),
        releasing: Default::default(),
        ended: false,
        published: 0,
    })
}

/// Everything that was recorded under an identity, besides the identity.
fn all_keys(loaded: Loaded) -> Vec<String> {
    let resources = loaded.resources.map(|_| Key::Resources);
    let keys = resources
        .into_iter()
        .chain(loaded.drain.map(|_| Key::Drain))
        .chain(loaded.frameworks.into_keys().map(Key::Framework))
        .chain(loaded.executors.into_keys().map(|(framework, id)| Key::Executor(framework, id)))
        .chain(loaded.tasks.into_keys().map(|(framework, executor, id)| Key::Task(framework, executor, id)))
        .chain(loaded.updates.into_keys().map(|(framework, task, seq)| Key::Update(framework, task, seq)))
        .chain(loaded.operations.into_keys().map(Key::Operation))
        .chain(loaded.containers.into_keys().map(|id| Key::Container(id.to_string())))
        .chain(loaded.history.into_keys().map(Key::History));
    keys.map(|key| key.text()).chain(loaded.unreadable).collect()
}

fn since(path: &stored::StoredPath) -> Wall {
    Wall(u64::try_from(path.unused_since.nanoseconds).unwrap_or(0))
}

/// The first thing: ask which of the recorded containers still live. All others of ours are orphans.
pub(crate) fn start(agent: &mut Agent, now: Now, out: &mut Out) {
    let keys = core::mem::take(&mut agent.recovery.discard);
    if !keys.is_empty() {
        out.record(Record::Discarded { keys });
    }
    if let Some(former) = agent.recovery.former.take() {
        gc::schedule(agent, now, former, out);
    }
    gc::arm(agent, now);
    let executors = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    let mut known: Vec<KnownContainer> = executors
        .filter(|executor| executor.has_container())
        .map(|executor| {
            let resources = executor.resources();
            KnownContainer {
                id: executor.container_id.clone(),
                sandbox: executor.sandbox.to_string(),
                volumes: volumes::volumes(&agent.config.work_dir, &resources),
                resources: resources.to_proto(Format::Post),
            }
        })
        .collect();
    let live = agent.state.containers.values().filter(|container| !container.is_ended());
    known.extend(live.map(|container| KnownContainer {
        id: container.id.clone(),
        sandbox: container.sandbox.to_string(),
        resources: Vec::new(),
        volumes: Vec::new(),
    }));
    agent.container(ContainerOp::Recover { known }, out);
}

/// The containers answered.
pub(crate) fn recovered(agent: &mut Agent, now: Now, containers: Vec<RecoveredContainer>, out: &mut Out) {
    if agent.state.phase != Phase::Recovering {
        return;
    }
    agent.state.phase = Phase::Reconnecting;
    let took = now.wall.0.saturating_sub(agent.state.started_at.0);
    agent.state.recovery_time = Some(Duration::from_nanos(took));
    agent.state.touch();
    slack::restore(agent, now);
    let mut found: BTreeMap<ContainerId, RecoveredContainer> =
        containers.into_iter().map(|container| (container.id.clone(), container)).collect();
    let rebooted = agent.recovery.rebooted;
    let mut fate = |id: &ContainerId| match found.remove(id) {
        Some(container) if !rebooted => container.ended.map_or(Ok(container.pid), Err),
        Some(_) => Err(abnormal("the machine was restarted")),
        None => Err(abnormal("unknown container")),
    };
    for id in live_containers(agent) {
        match fate(&id) {
            Ok(pid) => operator::found_alive(agent, &id, pid),
            Err(termination) => operator::ended(agent, now, &id, termination, out),
        }
    }
    for (framework, id, container) in live_executors(agent) {
        match fate(&container) {
            Ok(pid) => await_executor(agent, now, &framework, &id, pid),
            Err(termination) => {
                lifecycle::executor_ended(agent, now, &framework, &id, termination, None, out);
            }
        }
    }
    end_idle_pending(agent, now, out);
    clear_leftovers(agent, out);
    reconcile(agent, now, out);
    if agent.config.recover == Recover::Cleanup || agent.recovery.leaving {
        return lifecycle::end_everything(agent, now, out);
    }
    agent.timers.set(Timer::Reregistration, now.mono + agent.config.executor_reregistration_timeout);
    executor_is_back(agent, now, out);
}

fn abnormal(why: &str) -> Termination {
    let message = Some(format!("Abnormal executor termination: {why}"));
    Termination { message, ..Default::default() }
}

fn live_containers(agent: &Agent) -> Vec<ContainerId> {
    let live = agent.state.containers.values().filter(|container| !container.is_ended());
    live.map(|container| container.id.clone()).collect()
}

fn live_executors(agent: &Agent) -> Vec<(FrameworkId, ExecutorId, ContainerId)> {
    let executors = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    let live = executors.filter(|executor| executor.has_container());
    live.map(|executor| (executor.framework_id.clone(), executor.id.clone(), executor.container_id.clone()))
        .collect()
}

/// A live executor: it resubscribes by itself, or it never subscribed and still has its registration timeout.
fn await_executor(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, pid: Option<u32>) {
    let registration = now.mono + agent.config.executor_registration_timeout;
    let Some(executor) = agent.state.executor_mut(framework, id) else { return };
    executor.pid = pid;
    match executor.phase {
        ExecutorPhase::Registering if executor.delivered => lifecycle::await_kills(agent, now, framework, id),
        ExecutorPhase::Registering => {
            agent.timers.set(Timer::Registration(framework.clone(), id.clone()), registration);
        }
        ExecutorPhase::Terminating { .. } => {
            let grace = environment::shutdown_grace(&agent.config, executor);
            agent.timers.set(Timer::Shutdown(framework.clone(), id.clone()), now.mono + grace);
        }
        ExecutorPhase::Pending | ExecutorPhase::Running { .. } | ExecutorPhase::Terminated { .. } => (),
    }
}

/// A crash may have come between the record of an executor that waits for resources and those of its tasks: nothing would
/// ever start or end it.
fn end_idle_pending(agent: &mut Agent, now: Now, out: &mut Out) {
    let executors = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    let idle = executors.filter(|it| it.phase == ExecutorPhase::Pending && it.live_tasks().next().is_none());
    let idle: Vec<_> = idle.map(|it| (it.framework_id.clone(), it.id.clone())).collect();
    for (framework, id) in idle {
        lifecycle::shutdown_executor(agent, now, &framework, &id, out);
    }
}

/// Entities that were complete before the restart and not yet removed.
fn clear_leftovers(agent: &mut Agent, out: &mut Out) {
    let frameworks: Vec<FrameworkId> = agent.state.frameworks.keys().cloned().collect();
    for framework in frameworks {
        // A crash may have come between the record that it ends and those of what ends with it.
        if agent.state.framework(&framework).is_some_and(|framework| framework.terminating) {
            status::close_all(agent, &framework, out);
        }
        let executors = agent.state.framework(&framework).map(|framework| framework.executors.clone());
        for executor in executors.iter().flat_map(|executors| executors.keys()) {
            agent.touched.executor(&framework, executor);
        }
        agent.touched.framework(&framework);
    }
}

/// Continues when no executor is awaited.
pub(crate) fn executor_is_back(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.state.phase == Phase::Reconnecting && awaited(agent).is_empty() {
        finish(agent, now, out);
    }
}

/// Executors that did not resubscribe in time are destroyed.
pub(crate) fn reregistration_over(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.state.phase != Phase::Reconnecting {
        return; // The agent began to terminate meanwhile.
    }
    let waited = duration_text(agent.config.executor_reregistration_timeout);
    for (framework, executor) in awaited(agent) {
        let message = format!("Executor did not reregister within {waited}");
        let known = agent.state.executor(&framework, &executor);
        let cause = match known.is_some_and(Executor::is_shutdown_requested) {
            true => overdue::killed(message),
            false => Cause {
                state: status::lost(agent, &framework, TaskState::TASK_GONE),
                reason: Reason::REASON_EXECUTOR_REREGISTRATION_TIMEOUT,
                message,
            },
        };
        lifecycle::destroy(agent, now, &framework, &executor, cause, out);
    }
    finish(agent, now, out);
}

/// Executors that had tasks and have not subscribed since the restart.
fn awaited(agent: &Agent) -> Vec<(FrameworkId, ExecutorId)> {
    let executors = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    let silent =
        executors.filter(|executor| executor.phase == ExecutorPhase::Registering && executor.delivered);
    silent.map(|executor| (executor.framework_id.clone(), executor.id.clone())).collect()
}

fn finish(agent: &mut Agent, now: Now, out: &mut Out) {
    agent.timers.clear(&Timer::Reregistration);
    agent.state.phase = Phase::Running;
    agent.state.touch();
    out.record(Record::BootId(agent.config.boot_id.clone()));
    operations::repeat_volumes(agent, out);
    slack::recovered(agent, now, out);
    oversubscription::due(agent, now, out);
    draining::resume(agent, now, out);
    link::connect_later(agent, now);
}

impl crate::state::Container {
    pub fn is_ended(&self) -> bool {
        matches!(self.stage, ContainerStage::Ended(_))
    }
}
