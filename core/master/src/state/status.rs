//! Task statuses made by the master. They carry no uuid and are not acknowledged.

use alloc::string::String;

use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::{Reason, Source};

use crate::state::Task;

/// Content of a status made by the master.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) state: pb::TaskState,
    pub(crate) reason: Reason,
    pub(crate) message: String,
    /// Since when its agent is unreachable, if that is the point.
    pub(crate) unreachable: Option<Wall>,
}

impl Verdict {
    pub(crate) fn new(state: pb::TaskState, reason: Reason, message: impl Into<String>) -> Self {
        Self { state, reason, message: message.into(), unreachable: None }
    }

    pub(crate) fn unreachable_since(self, since: Wall) -> Self {
        Self { unreachable: Some(since), ..self }
    }

    /// The status of a task that may be unknown.
    pub(crate) fn on(
        &self,
        now: Now,
        task_id: &pb::TaskID,
        agent_id: Option<&pb::AgentID>,
    ) -> pb::TaskStatus {
        pb::TaskStatus {
            task_id: task_id.clone().into(),
            state: self.state,
            message: (!self.message.is_empty()).then(|| self.message.clone()),
            source: Some(Source::SOURCE_MASTER),
            reason: Some(self.reason),
            agent_id: agent_id.cloned().into(),
            timestamp: Some(now.wall.as_secs_f64()),
            unreachable_time: self.unreachable.map(time).into(),
            ..Default::default()
        }
    }

    /// The status of a known task.
    pub(crate) fn on_task(&self, now: Now, task: &Task) -> pb::TaskStatus {
        pb::TaskStatus {
            executor_id: task.executor_id.as_ref().map(|id| id.to_proto()).into(),
            ..self.on(now, &task.id.to_proto(), Some(&task.agent_id.to_proto()))
        }
    }
}

/// The last known status of a task, repeated.
pub(crate) fn latest(now: Now, task: &Task) -> pb::TaskStatus {
    let heard = task.task.statuses.last();
    let state = task.task.status_update_state.unwrap_or(task.task.state);
    let verdict = Verdict::new(state, Reason::REASON_RECONCILIATION, "Reconciliation: Latest task state");
    let status = verdict.on_task(now, task);
    match heard {
        None => status,
        Some(heard) => pb::TaskStatus {
            executor_id: match status.executor_id.is_set() {
                true => status.executor_id,
                false => heard.executor_id.clone(),
            },
            healthy: heard.healthy,
            check_status: heard.check_status.clone(),
            container_status: heard.container_status.clone(),
            ..status
        },
    }
}

/// A moment as v1 writes it.
pub(crate) fn time(at: Wall) -> pb::TimeInfo {
    pb::TimeInfo { nanoseconds: at.as_nanos_i64(), ..Default::default() }
}
