//! How one status update of an executor is taken in: checked against its task, applied, acknowledged.
//!
//! An update is acknowledged to its executor whatever becomes of it, but never before it is recorded.

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::mesos::v1::task_status::Source;
use tepui_types::{ExecutorId, FrameworkId, TaskId, TaskStateExt};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;
use crate::entities::status::{apply_update, merged_container_status};
use crate::state::TaskStage;

const UUID_BYTES: usize = 16;

/// An update that an executor sent: checked, recorded, acknowledged.
pub(super) fn ingest(
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
        status.container_status = merged_container_status(agent, framework, executor, &status).into();
        apply_update(agent, now, framework, executor, status, out);
        agent.touched.executor(framework, executor); // It may name the container of an overdue task.
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
    agent.send_to_executor(conn, event, out);
}

/// Whether an update is unique and about this agent.
fn is_sound(agent: &Agent, status: &pb::TaskStatus) -> bool {
    let other = status.agent_id.as_option().is_some_and(|id| Some(id) != agent.state.info.id.as_option());
    status.uuid.as_ref().is_some_and(|uuid| uuid.len() == UUID_BYTES) && !other
}

/// Whether the update is new: the task is known, not terminal, and the update was not received before.
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
        .is_some_and(|stream| stream.contains(status.uuid.as_deref().unwrap_or_default()));
    let is_earlier = agent.state.executor(framework, executor).is_some_and(|executor| {
        let ended = executor.completed_tasks.iter().filter(|ended| ended.id == *task);
        ended.flat_map(|ended| &ended.task.statuses).any(|said| said.uuid == status.uuid)
    });
    if is_earlier {
        return false;
    }
    match known.stage {
        TaskStage::Terminated => false,
        TaskStage::Queued { .. } => status.state.is_terminal() && !repeated,
        TaskStage::Launched { .. } => !repeated,
    }
}
