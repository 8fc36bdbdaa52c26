//! Timeouts of executors and tasks.

use alloc::format;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ContainerOp, ExecutorId, FrameworkId, TaskId, duration_text};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle::{at_work, destroy};
use crate::entities::reconcile::reconcile;
use crate::rules::overdue::{Place, place};
use crate::state::{Cause, ExecutorPhase, TaskEvent};

/// The executor did not subscribe in time.
pub(crate) fn registration(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    out: &mut Out,
) {
    let waited = duration_text(agent.config.executor_registration_timeout);
    let cause = Cause {
        state: TaskState::TASK_FAILED,
        reason: Reason::REASON_EXECUTOR_REGISTRATION_TIMEOUT,
        message: format!("Executor did not register within {waited}"),
    };
    destroy(agent, now, framework, id, cause, out);
}

/// The executor did not terminate within its grace period.
pub(crate) fn shutdown(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    match executor.phase {
        ExecutorPhase::Terminating { .. } => {
            agent.container(ContainerOp::Destroy { id: executor.container_id.clone() }, out);
        }
        ExecutorPhase::Pending
        | ExecutorPhase::Registering
        | ExecutorPhase::Running { .. }
        | ExecutorPhase::Terminated { .. } => (),
    }
}

/// The executor did not kill the task in time.
pub(crate) fn kill(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    overdue(agent, now, framework, task, TaskEvent::KillTimedOut, out);
}

/// The task did not complete in time, and its executor did not kill it for that.
pub(crate) fn completion(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    overdue(agent, now, framework, task, TaskEvent::CompletionTimedOut, out);
}

/// If the executor has other tasks it keeps running, and only the task's own container is destroyed.
fn overdue(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    task: &TaskId,
    event: TaskEvent,
    out: &mut Out,
) {
    let Some(id) = agent.state.executor_of(framework, task).map(|executor| executor.id.clone()) else {
        return;
    };
    if let Some(task) = agent.state.task_mut(framework, &id, task) {
        task.apply(event);
    }
    agent.touched.executor(framework, &id);
    reconcile(agent, now, out);
    let Some(executor) = at_work(agent, framework, &id) else { return };
    let Some(known) = executor.live_tasks().find(|known| known.id == *task) else { return };
    match place(agent, executor, known) {
        Place::Container(id) => agent.container(ContainerOp::Destroy { id }, out),
        Place::Nowhere | Place::Executor => (), // Reported above, or destroyed with its executor.
    }
}
