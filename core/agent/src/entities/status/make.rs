//! Status updates that the agent makes itself.

use alloc::string::String;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{ExecutorId, FrameworkId, TaskId, lost_as};

use crate::agent::Agent;

/// Content of an update made by the agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) state: TaskState,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: Option<String>,
    /// The resources whose limit was reached.
    pub(crate) limited: alloc::vec::Vec<pb::Resource>,
}

impl Verdict {
    pub(crate) fn new(state: TaskState, reason: Reason, message: impl Into<String>) -> Self {
        Self { state, reason: Some(reason), message: Some(message.into()), limited: Default::default() }
    }

    /// The task stays in the state that it is in.
    pub(crate) fn note(state: TaskState, message: impl Into<String>) -> Self {
        Self { state, reason: None, message: Some(message.into()), limited: Default::default() }
    }
}

/// The precise state of a lost task if its framework supports it, TASK_LOST otherwise.
pub(crate) fn lost(agent: &Agent, framework: &FrameworkId, precise: TaskState) -> TaskState {
    let aware = agent.state.framework(framework).is_some_and(|framework| framework.is_partition_aware());
    lost_as(aware, precise)
}

pub(super) fn status(
    agent: &mut Agent,
    now: Now,
    executor: Option<&ExecutorId>,
    task: &TaskId,
    verdict: &Verdict,
) -> pb::TaskStatus {
    pb::TaskStatus {
        task_id: task.to_proto().into(),
        state: verdict.state,
        source: Some(Source::SOURCE_AGENT),
        reason: verdict.reason,
        message: verdict.message.clone(),
        agent_id: agent.id_proto().into(),
        executor_id: executor.map(ExecutorId::to_proto).into(),
        timestamp: Some(now.wall.as_secs_f64()),
        uuid: Some(agent.rng.uuid().into()),
        limitation: limitation(&verdict.limited).into(),
        ..Default::default()
    }
}

/// Names the resources whose limit was reached, if any.
pub(super) fn limitation(limited: &[pb::Resource]) -> Option<pb::TaskResourceLimitation> {
    let resources = || limited.to_vec();
    (!limited.is_empty()).then(|| pb::TaskResourceLimitation { resources: resources(), ..Default::default() })
}
