//! Ends that take too long: of tasks that were killed, and of those whose `max_completion_time` is over.
//!
//! An executor of ours may live in the cgroups of its tasks, and one of these may leave it neither processor time nor
//! memory. So what such an executor has not ended some time after it should have is ended from outside. A framework's
//! own executor may take as long as it likes: only its framework knows what a kill means to it.
//!
//! The wish to kill is recorded with the task, hence the time begins anew when the agent does.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Mono, Now};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use super::{destroy, shutdown_grace};
use crate::Config;
use crate::agent::{Agent, Out, Timer};
use crate::master::kill_task;
use crate::state::{Cause, Executor, ExecutorPhase, Task, TaskStage};
use crate::status::{self, Verdict};

/// Between SIGTERM and SIGKILL, if nobody says otherwise: as our executors count it.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// A kill was asked for: from now on the executor's time runs.
pub(crate) fn await_kill(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) {
    let Some(at) = deadline(agent, now, framework, id, task) else { return };
    agent.timers.set(Timer::Kill(framework.clone(), task.clone()), at);
}

/// It was asked for again, which can only shorten that time.
pub(crate) fn await_kill_again(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) {
    let timer = Timer::Kill(framework.clone(), task.clone());
    let Some(before) = agent.timers.get(&timer) else { return };
    let Some(at) = deadline(agent, now, framework, id, task) else { return };
    agent.timers.set(timer, before.min(at));
}

/// After a restart: what was to be killed still is, and what may not take for ever still may not.
pub(crate) fn await_kills(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let asked = executor.live_tasks().filter(|task| task.kill.is_some());
    let asked: Vec<TaskId> = asked.map(|task| task.id.clone()).collect();
    let handed_over = executor.live_tasks().filter(|task| task.stage == TaskStage::Launched);
    let handed_over: Vec<TaskId> = handed_over.map(|task| task.id.clone()).collect();
    for task in asked {
        await_kill(agent, now, framework, id, &task);
    }
    for task in handed_over {
        await_completion(agent, now, framework, id, &task);
    }
}

/// A task is handed over: from now on its own time runs.
pub(super) fn await_completion(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) {
    let executor = agent.state.executor(framework, id).filter(|executor| executor.is_built_in());
    let known = executor.and_then(|executor| executor.tasks.get(task));
    if let Some(longest) = known.and_then(|task| longest(task)) {
        let patience = longest.saturating_add(agent.config.executor_kill_margin);
        agent.timers.set(Timer::Completion(framework.clone(), task.clone()), now.mono + patience);
    }
}

/// How long a task may take; it cannot take no time at all.
fn longest(task: &Task) -> Option<Duration> {
    let longest = task.info.max_completion_time.as_option()?;
    u64::try_from(longest.nanoseconds).ok().filter(|longest| *longest > 0).map(Duration::from_nanos)
}

/// When the agent ends what the executor has not; `None`: never.
fn deadline(
    agent: &Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) -> Option<Mono> {
    let executor = agent.state.executor(framework, id).filter(|executor| executor.is_built_in())?;
    let task = executor.tasks.get(task)?;
    Some(now.mono + patience(&agent.config, executor, task))
}

/// The executor, unless it ends anyway.
fn at_work<'a>(agent: &'a Agent, framework: &FrameworkId, id: &ExecutorId) -> Option<&'a Executor> {
    agent.state.executor(framework, id).filter(|executor| !executor.is_ending())
}

/// The executor had its time. It ends if nobody else needs it, else what it runs the task in; a task that runs in nothing
/// is over.
pub(crate) fn time_over(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    let Some(id) = agent.state.executor_of(framework, task).map(|executor| executor.id.clone()) else {
        return;
    };
    end_if_overdue(agent, now, framework, &id, out);
    let Some(executor) = at_work(agent, framework, &id) else { return };
    let Some(known) = executor.live_tasks().find(|known| known.id == *task) else { return };
    match place(agent, executor, known) {
        Place::Container(id) => agent.container(ContainerOp::Destroy { id }, out),
        Place::Nowhere => say_over(agent, now, framework, &id, task, out),
        Place::Executor => (), // With that, when it ends.
    }
}

/// A container ended that may have been that of a task whose executor did not end it, and may not say so either.
pub(crate) fn container_over(agent: &mut Agent, now: Now, container: &ContainerId, out: &mut Out) {
    if let Some((framework, id)) = agent.executors_by_container.get(container.top()).cloned() {
        say_what_is_over(agent, now, &framework, &id, out);
    }
}

/// Ends the tasks that are overdue and run in nothing, as far as is known now.
pub(crate) fn say_what_is_over(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = at_work(agent, framework, id) else { return };
    let over = executor.live_tasks().filter(|task| {
        cause(agent, executor, task).is_some() && matches!(place(agent, executor, task), Place::Nowhere)
    });
    let over: Vec<TaskId> = over.map(|task| task.id.clone()).collect();
    for task in over {
        say_over(agent, now, framework, id, &task, out);
    }
}

/// Says in the executor's stead that a task is over, and ends those that end with it.
fn say_over(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
    out: &mut Out,
) {
    let Some(Cause { state, reason, message }) = overdue(agent, framework, id, task) else { return };
    let verdict = Verdict::new(state, reason, message);
    status::from_agent(agent, now, framework, Some(id), task, &verdict, out);
    let Some(executor) = at_work(agent, framework, id) else { return };
    let Some(delivery) = executor.tasks.get(task).map(|task| task.delivery).filter(|(_, group)| *group)
    else {
        return;
    };
    let mates = executor.live_tasks().filter(|mate| mate.delivery == delivery && mate.kill.is_none());
    let mates: Vec<TaskId> = mates.map(|mate| mate.id.clone()).collect();
    for mate in mates {
        kill_task(agent, now, framework, &mate, None, out);
    }
}

/// An executor that comes to itself may have started what is over by now.
pub(crate) fn end_leftover(
    agent: &Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    status: &pb::TaskStatus,
    out: &mut Out,
) {
    let executor = agent.state.executor(framework, id).filter(|executor| executor.is_built_in());
    let Some(executor) = executor.filter(|_| !status.state.is_terminal()) else { return };
    let task = TaskId::from(&*status.task_id);
    let is_over = executor.live_tasks().all(|live| live.id != task);
    let id = status.container_status.container_id.as_option().map(ContainerId::from);
    if let Some(id) = id.filter(|id| is_over && is_nested(executor, id) && runs(agent, id)) {
        agent.container(ContainerOp::Destroy { id }, out);
    }
}

/// Ends an executor that has only tasks left which it should have ended.
pub(crate) fn end_if_overdue(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = at_work(agent, framework, id) else { return };
    let causes: Option<Vec<Cause>> = executor.live_tasks().map(|task| cause(agent, executor, task)).collect();
    if let Some(cause) = causes.and_then(|causes| causes.into_iter().next()) {
        destroy(agent, now, framework, id, cause, out);
    }
}

/// Why a task is over that was ended from outside, if it was; its executor may call that a failure.
pub(crate) fn overdue(
    agent: &Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) -> Option<Cause> {
    let executor = agent.state.executor(framework, id)?;
    let known = executor.tasks.get(task)?;
    cause(agent, executor, known)
}

/// Why a task is to be ended from outside: it was to be killed, or may not take any longer, and the time for that is over.
fn cause(agent: &Agent, executor: &Executor, task: &Task) -> Option<Cause> {
    let is_due = |timer: fn(FrameworkId, TaskId) -> Timer| {
        agent.timers.get(&timer(executor.framework_id.clone(), task.id.clone())).is_none()
    };
    if !executor.is_built_in() {
        return None;
    }
    if task.kill.is_some() && is_due(Timer::Kill) {
        return Some(killed("Killed by the agent: the executor did not end it in time".into()));
    }
    // What ends with its executor does not for this.
    let runs = executor.phase != ExecutorPhase::Terminated && task.stage == TaskStage::Launched;
    let is_limited = runs && longest(task).is_some();
    (is_limited && is_due(Timer::Completion)).then(|| Cause {
        state: TaskState::TASK_FAILED,
        reason: Reason::REASON_MAX_COMPLETION_TIME_REACHED,
        message: "Ended by the agent: the executor did not end it after its max_completion_time".into(),
    })
}

/// A task that was to be killed is ended together with its executor.
pub(crate) fn killed(message: String) -> Cause {
    Cause { state: TaskState::TASK_KILLED, reason: Reason::REASON_EXECUTOR_TERMINATED, message }
}

/// What the task has to end by itself, and its executor to see and to report that.
fn patience(config: &Config, executor: &Executor, task: &Task) -> Duration {
    let grace = |policy: &pb::KillPolicy| {
        let grace = policy.grace_period.as_option()?;
        Some(Duration::from_nanos(u64::try_from(grace.nanoseconds).unwrap_or(0)))
    };
    let asked = task.kill.as_ref().and_then(Option::as_ref).and_then(grace);
    let own = || task.info.kill_policy.as_option().and_then(grace);
    // Executors differ in what they take for granted; this is the longest of it.
    let usual = || KILL_GRACE.max(shutdown_grace(config, executor)).max(config.docker_stop_timeout);
    asked.or_else(own).unwrap_or_else(usual).saturating_add(config.executor_kill_margin)
}

/// What a task runs in.
enum Place {
    /// A container of its own.
    Container(ContainerId),
    /// The container of its executor, or one that nobody knows to be the task's.
    Executor,
    Nowhere,
}

fn place(agent: &Agent, executor: &Executor, task: &Task) -> Place {
    match named_container(task) {
        Some(id) if !is_nested(executor, &id) => Place::Executor,
        Some(id) if runs(agent, &id) => Place::Container(id),
        Some(_) => Place::Nowhere,
        None if has_unnamed(agent, executor) => Place::Executor,
        None => Place::Nowhere,
    }
}

/// The container that an executor runs one of its tasks in, by its own word.
fn named_container(task: &Task) -> Option<ContainerId> {
    let told = task.task.statuses.iter().rev();
    told.filter_map(|status| status.container_status.container_id.as_option()).next().map(ContainerId::from)
}

/// Whether an executor runs something of which it has not said yet what it is.
fn has_unnamed(agent: &Agent, executor: &Executor) -> bool {
    let is_named =
        |id: &ContainerId| executor.tasks.values().any(|task| named_container(task).as_ref() == Some(id));
    let mut nested = agent.state.containers.keys().filter(|id| id.parent() == Some(&executor.container_id));
    nested.any(|id| runs(agent, id) && !is_named(id))
}

fn is_nested(executor: &Executor, id: &ContainerId) -> bool {
    *id != executor.container_id && *id.top() == executor.container_id
}

fn runs(agent: &Agent, id: &ContainerId) -> bool {
    agent.state.containers.get(id).is_some_and(|container| !container.is_ended())
}
