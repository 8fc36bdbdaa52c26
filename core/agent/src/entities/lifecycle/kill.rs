//! Kills: a queued task terminates here; a launched one is killed by its executor.

use alloc::boxed::Box;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{ConnId, ExecutorId, FrameworkId, TaskId};

use super::deadlines::{await_kill, await_kill_again};
use super::shutdown::shutdown_executor;
use crate::Effect;
use crate::agent::{Agent, Out};
use crate::entities::status::{self, Verdict};
use crate::rules::checkpoint::record_task;
use crate::state::transition::Transition;
use crate::state::{ExecutorPhase, TaskEvent, TaskStage};

pub(crate) fn kill_task(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    task: &TaskId,
    policy: Option<pb::KillPolicy>,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor_of(framework, task) else {
        return unknown(agent, now, framework, task, out);
    };
    let (id, is_ending) = (executor.id.clone(), executor.is_ending());
    let Some(known) = executor.tasks.get(task).filter(|_| !is_ending) else { return }; // It terminates anyway.
    match &known.stage {
        TaskStage::Queued { .. } => kill_queued(agent, now, framework, &id, task, out),
        TaskStage::Launched { kill, .. } => {
            let is_repeated = kill.is_requested();
            record_kill(agent, framework, &id, task, policy, out);
            send(agent, framework, &id, task, out);
            match is_repeated {
                false => await_kill(agent, now, framework, &id, task),
                true => await_kill_again(agent, now, framework, &id, task),
            }
        }
        TaskStage::Terminated => (),
    }
}

/// Recorded, so that neither a restart nor an executor that is away just now makes the task live on.
fn record_kill(
    agent: &mut Agent,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
    policy: Option<pb::KillPolicy>,
    out: &mut Out,
) {
    let Some(known) = agent.state.task_mut(framework, id, task) else { return };
    if known.apply(TaskEvent::KillRequested { policy }) {
        Agent::log(Transition::TaskKill { framework_id: framework.clone(), task_id: task.clone() }, out);
        record_task(agent, framework, id, task, out);
    }
}

/// No executor has the task, so no other update about it can come.
fn unknown(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    if agent.streams.contains_key(&(framework.clone(), task.clone())) {
        return; // What became of it is on its way.
    }
    let state = status::lost(agent, framework, TaskState::TASK_DROPPED);
    let verdict = Verdict::new(state, Reason::REASON_EXECUTOR_TERMINATED, "Cannot find executor");
    status::from_agent(agent, now, framework, None, task, &verdict, out);
}

/// Ends a task that waits, and those that would have been handed over with it.
fn kill_queued(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    id: &ExecutorId,
    task: &TaskId,
    out: &mut Out,
) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    let delivery = executor.queue.iter().find(|delivery| delivery.tasks().contains(task));
    let together: Vec<TaskId> = delivery.map(|delivery| delivery.tasks().to_vec()).unwrap_or_default();
    let message = match together.len() {
        0 | 1 => "Killed before delivery to the executor",
        _ => "A task within the task group was killed before delivery to the executor",
    };
    let reason = Reason::REASON_TASK_KILLED_DURING_LAUNCH;
    let verdict = Verdict::new(TaskState::TASK_KILLED, reason, message);
    for task in together {
        status::from_agent(agent, now, framework, Some(id), &task, &verdict, out);
    }
    let executor = agent.state.executor(framework, id);
    let Some(executor) = executor.filter(|executor| executor.is_pointless()) else { return };
    match executor.phase {
        ExecutorPhase::Pending | ExecutorPhase::Running { .. } => {
            shutdown_executor(agent, now, framework, id, out);
        }
        // It is shut down when it subscribes.
        ExecutorPhase::Registering | ExecutorPhase::Terminating { .. } | ExecutorPhase::Terminated { .. } => {
        }
    }
}

/// Repeats kills that an executor may have missed while its stream was down.
pub(crate) fn resend_kills(agent: &Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let Some(executor) = agent.state.executor(framework, id) else { return };
    for task in executor.live_tasks().filter(|task| task.stage.kill().is_requested()) {
        send(agent, framework, id, &task.id, out);
    }
}

fn send(agent: &Agent, framework: &FrameworkId, id: &ExecutorId, task: &TaskId, out: &mut Out) {
    let conn: Option<ConnId> = agent.state.executor(framework, id).and_then(|executor| executor.conn());
    let known = agent.state.task(framework, id, task);
    let policy = known.and_then(|task| task.stage.kill().policy()).cloned();
    let kill = executor_api::event::Kill {
        task_id: task.to_proto().into(),
        kill_policy: policy.into(),
        ..Default::default()
    };
    let event = executor_api::Event {
        r#type: Some(executor_api::event::Type::KILL),
        kill: kill.into(),
        ..Default::default()
    };
    let is_reported = known.is_some_and(|task| task.task.state != TaskState::TASK_STAGING);
    match conn {
        Some(conn) if is_reported => out.effect(Effect::Kill { conn, event: Box::new(event) }),
        conn => agent.send_to_executor(conn, event, out),
    }
}
