//! Kills that take too long.
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
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, TaskId};

use super::{destroy, shutdown_grace};
use crate::Config;
use crate::agent::{Agent, Out, Timer};
use crate::state::{Cause, Executor, Task};

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

/// After a restart: what was to be killed still is.
pub(crate) fn await_kills(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let asked = executor.live_tasks().filter(|task| task.kill.is_some());
    let asked: Vec<TaskId> = asked.map(|task| task.id.clone()).collect();
    for task in asked {
        await_kill(agent, now, framework, id, &task);
    }
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

/// The executor had its time. It ends if nobody else needs it, else what it runs the task in.
pub(crate) fn kill_over(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    let Some(id) = agent.state.executor_of(framework, task).map(|executor| executor.id.clone()) else {
        return;
    };
    end_if_overdue(agent, now, framework, &id, out);
    let Some(executor) = agent.state.executor(framework, &id).filter(|executor| !executor.is_ending()) else {
        return;
    };
    let known = executor.live_tasks().find(|known| known.id == *task);
    if let Some(id) = known.and_then(|task| own_container(agent, executor, task)) {
        agent.container(ContainerOp::Destroy { id }, out);
    }
}

/// Ends an executor that has only tasks left which it should have killed.
pub(crate) fn end_if_overdue(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id).filter(|executor| !executor.is_ending()) else {
        return;
    };
    let has_tasks = executor.live_tasks().next().is_some();
    if has_tasks && executor.live_tasks().all(|task| is_overdue(agent, executor, task)) {
        destroy(agent, now, framework, id, cause(), out);
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
    is_overdue(agent, executor, known).then(cause)
}

/// It was to be killed, and the time for that is over.
fn is_overdue(agent: &Agent, executor: &Executor, task: &Task) -> bool {
    let timer = Timer::Kill(executor.framework_id.clone(), task.id.clone());
    executor.is_built_in() && task.kill.is_some() && agent.timers.get(&timer).is_none()
}

fn cause() -> Cause {
    killed("Killed by the agent: the executor did not end it in time".into())
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

/// The container that an executor runs one of its tasks in, by its own word.
fn own_container(agent: &Agent, executor: &Executor, task: &Task) -> Option<ContainerId> {
    let told = task.task.statuses.iter().rev();
    let id = told.filter_map(|status| status.container_status.container_id.as_option()).next()?;
    let id = ContainerId::from(id);
    let runs = agent.state.containers.get(&id).is_some_and(|container| !container.is_ended());
    (runs && id != executor.container_id && *id.top() == executor.container_id).then_some(id)
}
