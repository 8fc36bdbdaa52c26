//! Starting an executor: its identity, its sandbox, its environment, its container.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::tepui::agent::v1 as stored;
use tepui_resources::{Format, Resources};
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, LaunchSpec, TaskId, command_user};

use super::deliver;
use super::limits::limits;
use super::volumes::volumes;
use crate::agent::{Agent, Out, Timer};
use crate::state::{Executor, ExecutorPhase, Task, TaskStage};
use crate::transition::Transition;
use crate::{Record, environment, generated_executor, paths};

/// Makes the executor known, with an identity of its own. Its container is asked for by [`launch`].
pub(super) fn add(
    agent: &mut Agent,
    framework: &FrameworkId,
    info: pb::ExecutorInfo,
    (generated, no_root): (bool, bool),
    added: Wall,
) -> ExecutorId {
    let id = ExecutorId::from(&*info.executor_id);
    let container_id = ContainerId::root(agent.rng.uuid_text());
    let sandbox = paths::sandbox(&agent.config.work_dir, &agent.id(), framework, &id, &container_id);
    let user = user_of(agent, framework, &info);
    let executor = Executor {
        id: id.clone(),
        framework_id: framework.clone(),
        info: Arc::new(info),
        generated,
        container_id,
        sandbox: sandbox.into(),
        user,
        no_root,
        pid: None,
        phase: ExecutorPhase::Registering,
        added,
        started: true,
        delivered: false,
        deliveries: 0,
        applied: None,
        cause: None,
        tasks: RedBlackTreeMapSync::new_sync(),
        queue: Vec::new(),
        completed_tasks: QueueSync::new_sync(),
        history: None,
    };
    let key = (framework.clone(), id.clone());
    agent.executors_by_container.insert(executor.container_id.clone(), key);
    if let Some(framework) = agent.state.framework_mut(framework) {
        framework.executors.insert_mut(id.clone(), Arc::new(executor));
    }
    id
}

/// The executor's user, else the framework's; nobody in particular unless users may be switched.
fn user_of(agent: &Agent, framework: &FrameworkId, info: &pb::ExecutorInfo) -> Option<Arc<str>> {
    if !agent.config.switch_user {
        return None;
    }
    let framework = agent.state.framework(framework)?;
    let user = command_user(&info.command).unwrap_or(&framework.info.user);
    (!user.is_empty()).then(|| Arc::from(user))
}

/// Asks for the executor's container. From now on it has to subscribe in time.
pub(super) fn launch(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(spec) = launch_spec(agent, framework, id) else { return };
    if let Some(executor) = agent.state.executor_mut(framework, id) {
        executor.applied = Some((executor.resources(), spec.limits.clone()));
    }
    log_launch(agent, framework, id, out);
    let deadline = now.mono + agent.config.executor_registration_timeout;
    agent.timers.set(Timer::Registration(framework.clone(), id.clone()), deadline);
    agent.container(ContainerOp::Launch(spec.into()), out);
}

fn log_launch(agent: &Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let transition = Transition::ExecutorLaunched {
        framework_id: framework.clone(),
        executor_id: id.clone(),
        container_id: executor.container_id.clone(),
        user: executor.user.clone(),
        sandbox: Arc::clone(&executor.sandbox),
    };
    Agent::log(transition, out);
}

/// There is room now for what had to wait.
pub(crate) fn start_waiting(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor_mut(framework, id) else { return };
    if core::mem::replace(&mut executor.started, true) {
        return deliver(agent, now, framework, id, out);
    }
    record_executor(agent, framework, id, out);
    launch(agent, now, framework, id, out);
}

fn launch_spec(agent: &Agent, framework: &FrameworkId, id: &ExecutorId) -> Option<LaunchSpec> {
    let config = &agent.config;
    let executor = agent.state.executor(framework, id)?;
    let command = match executor.info.r#type {
        Some(pb::executor_info::Type::DEFAULT) => pb::CommandInfo {
            user: executor.info.command.user.clone(),
            ..generated_executor::built_in(&config.executor_program, "default")
        },
        Some(pb::executor_info::Type::CUSTOM | pb::executor_info::Type::UNKNOWN) | None => {
            (*executor.info.command).clone()
        }
    };
    let environment =
        environment::of_executor(config, &agent.id(), agent.state.framework(framework)?, executor);
    let resources = executor.resources();
    Some(LaunchSpec {
        id: executor.container_id.clone(),
        command,
        environment,
        sandbox: executor.sandbox.to_string(),
        latest_link: Some(paths::latest_link(&config.work_dir, &agent.id(), framework, id)),
        user: executor.user.as_ref().map(|user| user.to_string()),
        no_root: executor.no_root,
        container: executor.info.container.as_option().or(config.default_container_info.as_ref()).cloned(),
        limits: limits(executor, config),
        volumes: volumes(&config.work_dir, &resources),
        resources: resources.to_proto(Format::Post),
        of_task: executor.generated,
        holds_tasks: holds_tasks(executor),
        task: task_command(executor),
        is_session: false,
    })
}

/// Whether tasks run in the executor's own cgroups. The default executor itself is no task's: it must not go first.
fn holds_tasks(executor: &Executor) -> bool {
    let is_default = executor.info.r#type == Some(pb::executor_info::Type::DEFAULT);
    !is_default && executor.live_tasks().any(|task| !task.has_own_cgroups())
}

/// What the executor that was made for one task is to run.
fn task_command(executor: &Executor) -> Option<pb::CommandInfo> {
    let task = executor.tasks.values().next().filter(|_| executor.generated)?;
    Some((*task.info.command).clone())
}

/// A task as it is when it comes in.
pub(crate) fn new_task(agent: &Agent, framework: &FrameworkId, info: pb::TaskInfo) -> Task {
    let executor_id = info.executor.as_option().map(|executor| (*executor.executor_id).clone());
    let user = info.command.user.clone().or_else(|| info.executor.command.user.clone());
    let task = pb::Task {
        name: info.name.clone(),
        task_id: info.task_id.clone(),
        framework_id: framework.to_proto().into(),
        executor_id: executor_id.into(),
        agent_id: agent.id_proto().unwrap_or_default().into(),
        state: TaskState::TASK_STAGING,
        resources: info.resources.clone(),
        labels: info.labels.clone(),
        discovery: info.discovery.clone(),
        container: info.container.clone(),
        health_check: info.health_check.clone(),
        kill_policy: info.kill_policy.clone(),
        user,
        limits: info.limits.clone(),
        ..Default::default()
    };
    Task {
        id: TaskId::from(&*info.task_id),
        resources: Resources::from_proto(&info.resources).unwrap_or_default(),
        info: Arc::new(info),
        task,
        stage: TaskStage::Queued,
        delivery: (0, false),
        held_back: false,
        kill: None,
        history: None,
    }
}

/// Records a task as it is now.
pub(crate) fn record_task(
    agent: &Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    id: &TaskId,
    out: &mut Out,
) {
    if !agent.is_checkpointing(framework) {
        return;
    }
    let Some(task) = agent.state.task(framework, executor, id) else { return };
    let kill = |policy: &Option<pb::KillPolicy>| stored::StoredKill {
        policy: policy.clone().into(),
        ..Default::default()
    };
    let (delivery, group) = task.delivery;
    let task = stored::StoredTask {
        framework_id: framework.to_proto().into(),
        executor_id: executor.to_proto().into(),
        info: (*task.info).clone().into(),
        delivery,
        group: group.then_some(true),
        kill: task.kill.as_ref().map(kill).into(),
        held_back: task.held_back.then_some(true),
        ..Default::default()
    };
    out.record(Record::Task(task.into()));
}

/// Records the executor as it is now.
pub(crate) fn record_executor(agent: &Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    if !agent.is_checkpointing(framework) {
        return;
    }
    let Some(executor) = agent.state.executor(framework, id) else { return };
    out.record(Record::Executor(stored_executor(executor).into()));
}

pub(crate) fn stored_executor(executor: &Executor) -> stored::StoredExecutor {
    use stored::stored_executor::Phase;
    let cause = executor.cause.as_ref().map(|cause| stored::StoredCause {
        state: cause.state,
        reason: cause.reason,
        message: cause.message.clone(),
        ..Default::default()
    });
    let phase = match executor.phase {
        ExecutorPhase::Registering | ExecutorPhase::Running { .. } => Phase::LIVE,
        ExecutorPhase::Terminating { .. } => Phase::TERMINATING,
        ExecutorPhase::Terminated => Phase::TERMINATED,
    };
    stored::StoredExecutor {
        framework_id: executor.framework_id.to_proto().into(),
        info: (*executor.info).clone().into(),
        generated: executor.generated,
        container_id: executor.container_id.to_proto().into(),
        user: executor.user.as_ref().map(|user| user.to_string()),
        no_root: executor.no_root.then_some(true),
        phase,
        delivered: executor.delivered,
        cause: cause.into(),
        added: pb::TimeInfo { nanoseconds: executor.added.as_nanos_i64(), ..Default::default() }.into(),
        waiting: (!executor.started).then_some(true),
        ..Default::default()
    }
}
