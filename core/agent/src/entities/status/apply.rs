//! The way of an update into its task: completed with the agent's data, applied, and appended to its stream.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use super::make::{self, Verdict};
use crate::agent::{Agent, Out};
use crate::rules::environment::agent_ip;
use crate::rules::overdue::overdue;
use crate::state::bookkeeping::Timer;
use crate::state::{ContainerStage, Counters, Delivery, Task, TaskEvent};

/// An update made by the agent about a known task, or about one that was dropped.
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
                status.container_status = merged_container_status(agent, framework, executor, &status).into();
            }
            apply_update(agent, now, framework, executor, status, out);
        }
        _ => super::push(agent, now, framework, status, out),
    }
}

/// Whether its executor has sent an update about the task: then it had a container.
fn was_reported(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, task: &TaskId) -> bool {
    agent.state.task(framework, executor, task).is_some_and(|task| !task.task.statuses.is_empty())
}

/// An update about a task, and possibly a framework, that only the master has.
pub(crate) fn report_missing(
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

/// Applies an update to its task and puts it on its stream.
pub(crate) fn apply_update(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    executor: &ExecutorId,
    mut status: pb::TaskStatus,
    out: &mut Out,
) {
    set_preempted(agent, framework, executor, &mut status);
    set_evicted(agent, framework, executor, &mut status);
    set_overdue(agent, framework, executor, &mut status);
    set_draining(agent, framework, &mut status);
    let task = TaskId::from(&*status.task_id);
    let terminal = status.state.is_terminal();
    if let Some(known) = agent.state.task_mut(framework, executor, &task) {
        restore(known, &status);
    }
    if terminal {
        count(&mut agent.state.counters, status.state);
        unqueue(agent, framework, executor, &task);
        for timer in [Timer::Kill, Timer::Completion] {
            agent.timers.clear(&timer(framework.clone(), task.clone()));
        }
    }
    super::push(agent, now, framework, status, out);
    if terminal {
        agent.touched.executor(framework, executor);
        agent.touched.slack = true;
    }
}

/// Takes a task out of what waits to be handed over.
fn unqueue(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, task: &TaskId) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    if !executor.queue.iter().any(|delivery| delivery.tasks().contains(task)) {
        return;
    }
    let executor = agent.state.executor_mut(framework, id).expect("it was found above");
    executor.queue.retain_mut(|delivery| match delivery {
        Delivery::Task(waiting) => waiting != task,
        Delivery::Group(waiting) => {
            waiting.retain(|waiting| waiting != task);
            !waiting.is_empty()
        }
    });
}

/// Keeps the task's state current. Of consecutive updates with the same state the last is kept.
pub(crate) fn restore(task: &mut Task, status: &pb::TaskStatus) {
    task.task.state = status.state;
    if task.task.statuses.last().is_some_and(|last| last.state == status.state) {
        task.task.statuses.pop();
    }
    task.task.statuses.push(status.clone());
    if status.state.is_terminal() {
        task.apply(TaskEvent::Terminated);
    }
}

/// A preempted executor reports its termination as a kill or a failure.
fn set_preempted(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
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
fn set_evicted(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
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
fn set_overdue(agent: &Agent, framework: &FrameworkId, executor: &ExecutorId, status: &mut pb::TaskStatus) {
    if status.state == TaskState::TASK_FAILED
        && let Some(cause) = overdue(agent, framework, executor, &TaskId::from(&*status.task_id))
    {
        status.state = cause.state;
        status.reason = Some(cause.reason);
        status.message = Some(cause.message);
    }
}

/// While the agent is draining, its kills have the reason of the drain.
fn set_draining(agent: &Agent, framework: &FrameworkId, status: &mut pb::TaskStatus) {
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

/// The agent's data about the container of the task, added to the executor's update. Of a terminated container the
/// data of the previous update.
pub(crate) fn merged_container_status(
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
