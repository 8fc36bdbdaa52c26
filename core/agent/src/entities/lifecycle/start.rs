//! Starting an executor: its identity, its sandbox, its environment, its container.

use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rpds::{QueueSync, RedBlackTreeMapSync};
use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_resources::{Format, Resources};
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, LaunchSpec, TaskId, command_user};

use crate::agent::{Agent, Out};
use crate::rules::checkpoint::record_executor;
use crate::rules::limits::limits;
use crate::rules::{environment, generated_executor};
use crate::state::bookkeeping::Timer;
use crate::state::paths;
use crate::state::transition::Transition;
use crate::state::volumes::volumes;
use crate::state::{Executor, ExecutorEvent, ExecutorPhase, Task, TaskStage};

/// Makes the executor known, with an identity of its own. Its container is requested by [`launch`].
pub(crate) fn add(
    agent: &mut Agent,
    framework: &FrameworkId,
    (info, own): (pb::ExecutorInfo, Resources),
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
        own,
        generated,
        container_id,
        sandbox: sandbox.into(),
        user,
        no_root,
        pid: None,
        phase: ExecutorPhase::Pending,
        added,
        delivered: false,
        deliveries: 0,
        applied: None,
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

/// The executor's user, else the framework's; none unless users may be switched.
fn user_of(agent: &Agent, framework: &FrameworkId, info: &pb::ExecutorInfo) -> Option<Arc<str>> {
    if !agent.config.switch_user {
        return None;
    }
    let framework = agent.state.framework(framework)?;
    let user = command_user(&info.command).unwrap_or(&framework.info.user);
    (!user.is_empty()).then(|| Arc::from(user))
}

/// Requests the executor's container. From now on it has to subscribe in time.
pub(crate) fn launch(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(spec) = launch_spec(agent, framework, id) else { return };
    if let Some(executor) = agent.state.executor_mut(framework, id) {
        executor.applied = Some((executor.resources(), spec.limits.clone()));
    }
    log_launch(agent, framework, id, out);
    let deadline = now.mono + agent.config.executor_registration_timeout;
    agent.timers.set(Timer::Registration(framework.clone(), id.clone()), deadline);
    agent.launching.insert(spec.id.clone(), None);
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
    if !executor.apply(ExecutorEvent::Started) {
        return agent.touched.executor(framework, id); // It has a container: what is queued can be delivered.
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
    let framework_state = agent.state.framework(framework)?;
    let environment = environment::of_executor(config, &agent.id(), framework_state, executor);
    let secrets = environment::secrets_of_executor(framework_state, executor, &environment);
    let resources = executor.resources();
    Some(LaunchSpec {
        id: executor.container_id.clone(),
        command,
        environment,
        secrets,
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
pub(crate) fn new_task(
    agent: &Agent,
    framework: &FrameworkId,
    info: pb::TaskInfo,
    resources: Resources,
) -> Task {
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
        resources,
        info: Arc::new(info),
        task,
        stage: TaskStage::Queued { held_back: false },
        delivery: (0, false),
        history: None,
    }
}
