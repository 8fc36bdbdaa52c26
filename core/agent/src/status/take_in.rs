//! How one status update is taken in: completed, checked against the task, applied, and put on its stream.
//!
//! An executor's update is acknowledged to it whatever becomes of it, but never before it is recorded.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use super::make::{self, Verdict};
use crate::agent::{Agent, Out, Timer};
use crate::environment::agent_ip;
use crate::state::{ContainerStage, Counters, Task, TaskStage};
use crate::{lifecycle, slack};

const UUID_BYTES: usize = 16;

/// An update that an executor sent: checked, recorded, acknowledged.
pub(crate) fn from_executor(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: &ExecutorId,
    mut status: pb::TaskStatus,
    out: &mut Out,
) {
    if !is_sound(agent, &status) {
        agent.state.counters.invalid_status_updates += 1;
        return agent.state.touch();
    }
    if status.state == TaskState::TASK_STAGING {
        return lifecycle::shutdown_executor(agent, now, framework, executor, out);
    }
    status.source = Some(Source::SOURCE_EXECUTOR);
    status.executor_id = executor.to_proto().into();
    status.agent_id = agent.id_proto().into();
    status.timestamp.get_or_insert(now.wall.as_secs_f64());
    let task = TaskId::from(&*status.task_id);
    let uuid = status.uuid.clone().unwrap_or_default();
    if is_news(agent, framework, executor, &task, &status) {
        agent.state.counters.valid_status_updates += 1;
        status.container_status = container_status(agent, framework, executor, &status).into();
        take_in(agent, now, framework, executor, status, out);
        lifecycle::say_what_is_over(agent, now, framework, executor, out);
    } else {
        agent.state.counters.invalid_status_updates += 1;
        agent.state.touch();
        lifecycle::end_leftover(agent, framework, executor, &status, out);
    }
    let acknowledged =
        executor_api::event::Acknowledged { task_id: task.to_proto().into(), uuid, ..Default::default() };
    let event = executor_api::Event {
        r#type: Some(executor_api::event::Type::ACKNOWLEDGED),
        acknowledged: acknowledged.into(),
        ..Default::default()
    };
    let conn = agent.state.executor(framework, executor).and_then(|executor| executor.conn());
    agent.tell_executor(conn, event, out);
}

/// Whether an update can be told apart from others and is about this agent.
fn is_sound(agent: &Agent, status: &pb::TaskStatus) -> bool {
    let other = status.agent_id.as_option().is_some_and(|id| Some(id) != agent.state.info.id.as_option());
    status.uuid.as_ref().is_some_and(|uuid| uuid.len() == UUID_BYTES) && !other
}

/// An update that the agent makes about a task it knows, or about one that never came to be.
pub(crate) fn from_agent(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: Option<&ExecutorId>,
    task: &TaskId,
    verdict: &Verdict,
    out: &mut Out,
) {
    if agent.state.framework(framework).is_none_or(|framework| framework.terminating) {
        return;
    }
    let mut status = make::status(agent, now, executor, task, verdict);
    match executor {
        Some(executor) if agent.state.task(framework, executor, task).is_some() => {
            if was_reported(agent, framework, executor, task) {
                status.container_status = container_status(agent, framework, executor, &status).into();
            }
            take_in(agent, now, framework, executor, status, out);
        }
        _ => super::push(agent, now, framework, status, out),
    }
}

/// Whether its executor has said anything about the task: then it had a container.
fn was_reported(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, task: &TaskId) -> bool {
    agent.state.task(framework, executor, task).is_some_and(|task| !task.task.statuses.is_empty())
}

/// An update about a task of which only the master knows; so may be its framework.
pub(crate) fn about_missing(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: Option<&ExecutorId>,
    task: &TaskId,
    verdict: &Verdict,
    out: &mut Out,
) {
    let status = make::status(agent, now, executor, task, verdict);
    super::push(agent, now, framework, status, out);
}

/// Whether the update tells something: the task is known, not over, and this was not said before.
fn is_news(
    agent: &Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    task: &TaskId,
    status: &pb::TaskStatus,
) -> bool {
    if agent.state.framework(framework).is_none_or(|framework| framework.terminating) {
        return false;
    }
    let Some(known) = agent.state.task(framework, executor, task) else { return false };
    let repeated = agent
        .streams
        .get(&(framework.clone(), task.clone()))
        .is_some_and(|stream| stream.knows(status.uuid.as_deref().unwrap_or_default()));
    let is_earlier = agent.state.executor(framework, executor).is_some_and(|executor| {
        let ended = executor.completed_tasks.iter().filter(|ended| ended.id == *task);
        ended.flat_map(|ended| &ended.task.statuses).any(|said| said.uuid == status.uuid)
    });
    if is_earlier {
        return false;
    }
    match known.stage {
        TaskStage::Terminated => false,
        TaskStage::Queued => status.state.is_terminal() && !repeated,
        TaskStage::Launched => !repeated,
    }
}

fn take_in(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: &ExecutorId,
    mut status: pb::TaskStatus,
    out: &mut Out,
) {
    say_preempted(agent, framework, executor, &mut status);
    say_evicted(agent, framework, executor, &mut status);
    say_overdue(agent, framework, executor, &mut status);
    say_draining(agent, framework, &mut status);
    let task = TaskId::from(&*status.task_id);
    let terminal = status.state.is_terminal();
    if let Some(known) = agent.state.task_mut(framework, executor, &task) {
        apply(known, &status);
    }
    if terminal {
        count(&mut agent.state.counters, status.state);
        lifecycle::unqueue(agent, framework, executor, &task);
        for timer in [Timer::Kill, Timer::Completion] {
            agent.timers.clear(&timer(framework.clone(), task.clone()));
        }
    }
    super::push(agent, now, framework, status, out);
    if terminal {
        lifecycle::resize(agent, framework, executor, out);
        lifecycle::end_if_overdue(agent, now, framework, executor, out);
        slack::settle(agent, now, out);
    }
}

/// Keeps the task's state current. Of consecutive updates with the same state the last is kept.
pub(crate) fn apply(task: &mut Task, status: &pb::TaskStatus) {
    task.task.state = status.state;
    if task.task.statuses.last().is_some_and(|last| last.state == status.state) {
        task.task.statuses.pop();
    }
    task.task.statuses.push(status.clone());
    if status.state.is_terminal() {
        task.stage = TaskStage::Terminated;
    }
}

/// An executor that is told to go because somebody needs what it holds calls that a kill or a failure.
fn say_preempted(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
    let executor = agent.state.executor(framework, executor);
    if let Some(cause) = executor.and_then(|executor| executor.preempted())
        && matches!(status.state, TaskState::TASK_KILLED | TaskState::TASK_FAILED)
    {
        status.state = cause.state;
        status.reason = Some(cause.reason);
        status.message = Some(cause.message.clone());
        status.source = Some(Source::SOURCE_AGENT);
    }
}

/// A task that is evicted ends by the agent's decision, whether its executor outlives it or not.
fn say_evicted(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
    let container = agent.state.executor(framework, executor).map(|executor| &executor.container_id);
    if let Some(why) = container.and_then(|container| agent.evicting.cause(container))
        && matches!(status.state, TaskState::TASK_KILLED | TaskState::TASK_FAILED)
    {
        status.state = why.state.unwrap_or(status.state);
        status.reason = why.reason;
        status.message.clone_from(&why.message);
        status.limitation = make::limitation(&why.limited).into();
        status.source = Some(Source::SOURCE_AGENT);
    }
    if status.reason == Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED) {
        status.source = Some(Source::SOURCE_AGENT);
    }
}

/// An executor that finds a task ended which the agent had to kill in its stead calls that a failure.
fn say_overdue(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
    if status.state == TaskState::TASK_FAILED
        && let Some(cause) = lifecycle::overdue(agent, framework, executor, &TaskId::from(&*status.task_id))
    {
        status.state = cause.state;
        status.reason = Some(cause.reason);
        status.message = Some(cause.message);
    }
}

/// While the agent is being emptied, its kills say so.
fn say_draining(agent: &Agent, framework: &FrameworkId, status: &mut pb::TaskStatus) {
    let Some(drain) = &agent.state.drain else { return };
    if !matches!(status.state, TaskState::TASK_KILLING | TaskState::TASK_KILLED) {
        return;
    }
    status.reason = Some(Reason::REASON_AGENT_DRAINING);
    let aware = agent.state.framework(framework).is_some_and(|framework| framework.is_partition_aware());
    if drain.config.mark_gone == Some(true) && aware && status.state == TaskState::TASK_KILLED {
        status.state = TaskState::TASK_GONE_BY_OPERATOR;
    }
}

/// What the agent knows about the container of the task, added to what the executor said. Of a container that has ended,
/// what was said before.
fn container_status(
    agent: &Agent,
    framework: &FrameworkId,
    executor: &ExecutorId,
    status: &pb::TaskStatus,
) -> Option<pb::ContainerStatus> {
    let task = agent.state.task(framework, executor, &TaskId::from(&*status.task_id));
    let last = task.and_then(|task| task.task.statuses.last()?.container_status.as_option());
    let executor = agent.state.executor(framework, executor)?;
    let mut merged = status.container_status.as_option().cloned().unwrap_or_default();
    let id = merged.container_id.as_option().or_else(|| last?.container_id.as_option());
    let id = id.map_or_else(|| executor.container_id.clone(), ContainerId::from);
    merged.container_id = id.to_proto().into();
    merged.executor_pid = match agent.state.containers.get(&id).map(|container| &container.stage) {
        Some(ContainerStage::Running { pid }) => *pid,
        None if id == executor.container_id => executor.pid,
        Some(ContainerStage::Launching | ContainerStage::Ended(_)) | None => {
            last.and_then(|last| last.executor_pid).or(executor.pid)
        }
    };
    if merged.network_infos.is_empty() {
        merged.network_infos = last.map(|last| last.network_infos.clone()).unwrap_or_default();
    }
    if merged.network_infos.is_empty() {
        merged.network_infos = host_network(agent);
    }
    Some(merged)
}

/// A container on the host's network has the agent's address.
fn host_network(agent: &Agent) -> Vec<pb::NetworkInfo> {
    let ip = agent_ip(&agent.config);
    let protocol =
        if ip.contains(':') { pb::network_info::Protocol::IPv6 } else { pb::network_info::Protocol::IPv4 };
    let address = pb::network_info::IPAddress {
        protocol: Some(protocol),
        ip_address: Some(ip.to_string()),
        ..Default::default()
    };
    vec![pb::NetworkInfo { ip_addresses: vec![address], ..Default::default() }]
}

fn count(counters: &mut Counters, state: TaskState) {
    match state {
        TaskState::TASK_FINISHED => counters.tasks_finished += 1,
        TaskState::TASK_FAILED => counters.tasks_failed += 1,
        TaskState::TASK_KILLED => counters.tasks_killed += 1,
        TaskState::TASK_LOST => counters.tasks_lost += 1,
        TaskState::TASK_GONE | TaskState::TASK_GONE_BY_OPERATOR => counters.tasks_gone += 1,
        TaskState::TASK_ERROR
        | TaskState::TASK_DROPPED
        | TaskState::TASK_STAGING
        | TaskState::TASK_STARTING
        | TaskState::TASK_RUNNING
        | TaskState::TASK_KILLING
        | TaskState::TASK_UNREACHABLE
        | TaskState::TASK_UNKNOWN => (),
    }
}
