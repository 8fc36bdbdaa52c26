//! What the agent does about overdue tasks: their executor is destroyed if it has no others, else their containers are;
//! a task that runs in no container is reported as killed.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{ContainerId, ContainerOp, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use super::kill::kill_task;
use super::shutdown::destroy;
use crate::agent::{Agent, Out};
use crate::entities::status::{self, Verdict};
use crate::rules::overdue::{Place, cause, is_nested, named_container, overdue, place, runs};
use crate::state::{Cause, Executor};

/// Containers of tasks that are over which executors have named and not launched yet; an executor may name any.
const NEVER_LAUNCHED_MAX: usize = 10_000;
/// Tasks of one executor that are over and of which it has not named a container.
const UNNAMED_MAX: usize = 1000;

/// The executor, unless it ends anyway.
pub(crate) fn at_work<'a>(
    agent: &'a Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
) -> Option<&'a Executor> {
    agent.state.executor(framework, id).filter(|executor| !executor.is_ending())
}

/// Reports overdue tasks that run in no container, as far as is known now.
pub(crate) fn report_overdue_tasks(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = at_work(agent, framework, id) else { return };
    let over = executor.live_tasks().filter(|task| {
        cause(executor, task).is_some() && matches!(place(agent, executor, task), Place::Nowhere)
    });
    let over: Vec<TaskId> = over.map(|task| task.id.clone()).collect();
    for task in over {
        report_overdue_task(agent, now, framework, id, &task, out);
    }
}

/// Reports a task as killed in the executor's stead, and kills those that terminate with it.
fn report_overdue_task(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
    out: &mut Out,
) {
    let Some(Cause { state, reason, message }) = overdue(agent, framework, id, task) else { return };
    let verdict = Verdict::new(state, reason, message);
    // Its launch may have been interrupted, and is repeated by an executor that did not receive the answer.
    let executor = at_work(agent, framework, id);
    let nested = executor.and_then(|it| named_container(it.tasks.get(task)?).filter(|id| is_nested(it, id)));
    let top = executor.map(|it| it.container_id.clone());
    match (nested, top) {
        (Some(container), _) => never_launch(agent, container),
        (None, Some(top)) => expect_name(agent, top, task.clone()),
        (None, None) => (),
    }
    status::from_agent(agent, now, framework, Some(id), task, &verdict, out);
    let Some(executor) = at_work(agent, framework, id) else { return };
    let Some(delivery) = executor.tasks.get(task).map(|task| task.delivery).filter(|(_, group)| *group)
    else {
        return;
    };
    let mates =
        executor.live_tasks().filter(|mate| mate.delivery == delivery && !mate.stage.kill().is_requested());
    let mates: Vec<TaskId> = mates.map(|mate| mate.id.clone()).collect();
    for mate in mates {
        kill_task(agent, now, framework, &mate, None, out);
    }
}

/// An executor that works again may have started a task that is terminal by now, or be about to.
pub(crate) fn end_leftover(
    agent: &mut Agent,
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
    let Some(id) = id.filter(|id| is_over && is_nested(executor, id)) else { return };
    if let Some(unnamed) = agent.unnamed_tasks.get_mut(id.top()) {
        unnamed.remove(&task);
    }
    if runs(agent, &id) {
        agent.container(ContainerOp::Destroy { id }, out);
    } else {
        never_launch(agent, id);
    }
}

fn never_launch(agent: &mut Agent, id: ContainerId) {
    if agent.never_launched.len() < NEVER_LAUNCHED_MAX {
        agent.never_launched.insert(id);
    }
}

/// The executor may still receive the task, and launch its container before the agent can match the two.
fn expect_name(agent: &mut Agent, executor: ContainerId, task: TaskId) {
    let unnamed = agent.unnamed_tasks.entry(executor).or_default();
    if unnamed.len() < UNNAMED_MAX {
        unnamed.insert(task);
    }
}

/// Destroys an executor that has only overdue tasks left.
pub(crate) fn end_if_overdue(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let Some(executor) = at_work(agent, framework, id) else { return };
    let causes: Option<Vec<Cause>> = executor.live_tasks().map(|task| cause(executor, task)).collect();
    if let Some(cause) = causes.and_then(|causes| causes.into_iter().next()) {
        destroy(agent, now, framework, id, cause, out);
    }
}
