//! The time that an executor has to kill a task, and a task to complete.
//!
//! A requested kill is recorded with its task, so these times begin anew when the agent does.

use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Mono, Now};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ExecutorId, FrameworkId, TaskId};

use crate::Config;
use crate::agent::Agent;
use crate::rules::environment::shutdown_grace;
use crate::rules::overdue::longest;
use crate::state::bookkeeping::Timer;
use crate::state::{Executor, Kill, Task};

/// Default time between SIGTERM and SIGKILL, as in the built-in executors.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// A kill was requested: from now on the executor has limited time.
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

/// A repeated kill can only shorten that time.
pub(crate) fn await_kill_again(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
) {
    let timer = Timer::Kill(framework.clone(), task.clone());
    let Some(at) = deadline(agent, now, framework, id, task) else { return };
    let is_overdue = |task: &Task| matches!(task.stage.kill(), Kill::Overdue { .. });
    if agent.state.task(framework, id, task).is_some_and(is_overdue) {
        return;
    }
    agent.timers.set(timer.clone(), agent.timers.get(&timer).map_or(at, |before| before.min(at)));
}

/// After a restart: what was to be killed still is, and what may not take for ever still may not.
pub(crate) fn await_kills(agent: &mut Agent, now: Now, framework: &FrameworkId, id: &ExecutorId) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let asked = executor.live_tasks().filter(|task| task.stage.kill().is_requested());
    let asked: Vec<TaskId> = asked.map(|task| task.id.clone()).collect();
    let handed_over = executor.live_tasks().filter(|task| task.stage.is_launched());
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

/// What the task has to end by itself, and its executor to see and to report that.
fn patience(config: &Config, executor: &Executor, task: &Task) -> Duration {
    let grace = |policy: &pb::KillPolicy| {
        let grace = policy.grace_period.as_option()?;
        Some(Duration::from_nanos(u64::try_from(grace.nanoseconds).unwrap_or(0)))
    };
    let asked = task.stage.kill().policy().and_then(grace);
    let own = || task.info.kill_policy.as_option().and_then(grace);
    // Executors differ in what they take for granted; this is the longest of it.
    let usual = || KILL_GRACE.max(shutdown_grace(config, executor)).max(config.docker_stop_timeout);
    asked.or_else(own).unwrap_or_else(usual).saturating_add(config.executor_kill_margin)
}
