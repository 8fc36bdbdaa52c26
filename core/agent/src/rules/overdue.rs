//! Overdue tasks: killed tasks and tasks past their `max_completion_time` that their executor has not terminated.
//!
//! A built-in executor may live in the cgroups of its tasks, and one of these may leave it neither processor time nor
//! memory. So the agent kills from outside what such an executor has not killed in time. A framework's own executor
//! has unlimited time: only its framework defines what a kill means to it.

use alloc::string::String;
use core::time::Duration;

use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerId, ExecutorId, FrameworkId, TaskId};

use crate::agent::Agent;
use crate::state::{Cause, Completion, Executor, Kill, Task, TaskStage};

/// How long a task may take; it cannot take no time at all.
pub(crate) fn longest(task: &Task) -> Option<Duration> {
    let longest = task.info.max_completion_time.as_option()?;
    u64::try_from(longest.nanoseconds).ok().filter(|longest| *longest > 0).map(Duration::from_nanos)
}

/// Reason of a task that was killed from outside; its executor may report a failure.
pub(crate) fn overdue(
    agent: &Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) -> Option<Cause> {
    let executor = agent.state.executor(framework, id)?;
    let known = executor.tasks.get(task)?;
    cause(executor, known)
}

/// Why a task is to be killed from outside: its kill, or its own time, is overdue.
pub(crate) fn cause(executor: &Executor, task: &Task) -> Option<Cause> {
    if !executor.is_built_in() {
        return None;
    }
    let TaskStage::Launched { kill, completion } = &task.stage else { return None };
    let is_killed = match kill {
        Kill::NotRequested => false,
        Kill::Requested { .. } => executor.is_terminated(), // It had no more time.
        Kill::Overdue { .. } => true,
    };
    if is_killed {
        return Some(killed("Killed by the agent: the executor did not kill the task in time".into()));
    }
    // A task that terminates with its executor does not for this.
    let is_overdue = *completion == Completion::Overdue && !executor.is_terminated();
    is_overdue.then(|| Cause {
        state: TaskState::TASK_FAILED,
        reason: Reason::REASON_MAX_COMPLETION_TIME_REACHED,
        message: "Killed by the agent: the executor did not kill the task after its max_completion_time"
            .into(),
    })
}

/// An overdue task is terminated together with its executor.
pub(crate) fn killed(message: String) -> Cause {
    Cause { state: TaskState::TASK_KILLED, reason: Reason::REASON_EXECUTOR_TERMINATED, message }
}

/// What a task runs in.
pub(crate) enum Place {
    /// A container of its own.
    Container(ContainerId),
    /// The container of its executor, or one that is not known to be the task's.
    Executor,
    Nowhere,
}

pub(crate) fn place(agent: &Agent, executor: &Executor, task: &Task) -> Place {
    match named_container(task) {
        Some(id) if !is_nested(executor, &id) => Place::Executor,
        Some(id) if runs(agent, &id) => Place::Container(id),
        Some(_) => Place::Nowhere,
        None if has_unnamed(agent, executor) => Place::Executor,
        None => Place::Nowhere,
    }
}

/// The container that an executor runs one of its tasks in, by its own word.
pub(crate) fn named_container(task: &Task) -> Option<ContainerId> {
    let told = task.task.statuses.iter().rev();
    told.filter_map(|status| status.container_status.container_id.as_option()).next().map(ContainerId::from)
}

/// Whether a container that an executor launches may be that of a task that is over: the update that names the container
/// has another connection than its launch, which may be faster.
pub(crate) fn may_be_over(agent: &Agent, id: &ContainerId) -> bool {
    let Some(top) = id.parent() else { return false };
    if agent.unnamed_tasks.get(top).is_none_or(|unnamed| unnamed.is_empty()) {
        return false;
    }
    let owner = agent.executors_by_container.get(top);
    let executor = owner.and_then(|(framework, executor)| agent.state.executor(framework, executor));
    executor.is_some_and(|it| it.tasks.values().all(|task| named_container(task).as_ref() != Some(id)))
}

/// Whether an executor runs a container that it has not named yet.
fn has_unnamed(agent: &Agent, executor: &Executor) -> bool {
    let is_named =
        |id: &ContainerId| executor.tasks.values().any(|task| named_container(task).as_ref() == Some(id));
    let mut nested = agent.state.containers.keys().filter(|id| id.parent() == Some(&executor.container_id));
    nested.any(|id| runs(agent, id) && !is_named(id))
}

pub(crate) fn is_nested(executor: &Executor, id: &ContainerId) -> bool {
    *id != executor.container_id && *id.top() == executor.container_id
}

pub(crate) fn runs(agent: &Agent, id: &ContainerId) -> bool {
    agent.state.containers.get(id).is_some_and(|container| !container.is_ended())
}
