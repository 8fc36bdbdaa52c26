//! From decisions of the scheduler to messages of the v1 API.

use std::time::Duration;

use tepui_client::Credential;
use tepui_client::scheduler::calls;
use tepui_proto::mesos::v1::scheduler::{Call, call};
use tepui_proto::mesos::v1::{self as pb, FrameworkInfo};
use tepui_service::scheduler::Accept;
use tepui_types::{AgentId, OfferId, TaskId};

/// The label of the framework that names the address of the API.
pub const API_LABEL: &str = "tepui.service.api";

/// What a framework announces besides its spec.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    /// A master that authenticates frameworks rejects a principal that is not the one of the credential.
    principal: Option<String>,
    /// URL of the API.
    api: String,
}

impl Announced {
    pub fn new(credential: Option<&Credential>, api: String) -> Self {
        let principal = match credential {
            Some(Credential::Basic { principal, .. }) => Some(principal.clone()),
            _ => None,
        };
        Self { principal, api }
    }

    pub fn complete(&self, mut info: FrameworkInfo) -> FrameworkInfo {
        info.principal = self.principal.clone().or(info.principal);
        info.webui_url = info.webui_url.or_else(|| Some(self.api.clone()));
        let value = Some(self.api.clone());
        let label = pb::Label { key: API_LABEL.to_owned(), value, ..Default::default() };
        info.labels = pb::Labels { labels: vec![label], ..Default::default() }.into();
        info
    }
}

pub(crate) fn accept(accept: &Accept) -> Call {
    let offers = accept.offers.iter().map(OfferId::to_proto);
    calls::accept(offers, accept.operations.clone(), Some(filters(accept.refuse)))
}

pub(crate) fn decline(offers: &[OfferId], refuse: Duration) -> Call {
    calls::decline(offers.iter().map(OfferId::to_proto), Some(filters(refuse)))
}

fn filters(refuse: Duration) -> pb::Filters {
    pb::Filters { refuse_seconds: Some(refuse.as_secs_f64()), ..Default::default() }
}

pub(crate) fn acknowledge(agent: &AgentId, task: &TaskId, uuid: Vec<u8>) -> Call {
    let acknowledge = call::Acknowledge {
        agent_id: agent.to_proto().into(),
        task_id: task.to_proto().into(),
        uuid,
        ..Default::default()
    };
    Call { r#type: Some(call::Type::ACKNOWLEDGE), acknowledge: acknowledge.into(), ..Default::default() }
}

pub(crate) fn acknowledge_operation(agent: Option<AgentId>, operation: String, uuid: Vec<u8>) -> Call {
    let acknowledge = call::AcknowledgeOperationStatus {
        agent_id: agent.map(|agent| agent.to_proto()).into(),
        operation_id: pb::OperationID { value: operation, ..Default::default() }.into(),
        uuid,
        ..Default::default()
    };
    Call {
        r#type: Some(call::Type::ACKNOWLEDGE_OPERATION_STATUS),
        acknowledge_operation_status: acknowledge.into(),
        ..Default::default()
    }
}

pub(crate) fn reconcile_operations(operations: &[(String, AgentId)]) -> Call {
    let operation = |(id, agent): &(String, AgentId)| call::reconcile_operations::Operation {
        operation_id: pb::OperationID { value: id.clone(), ..Default::default() }.into(),
        agent_id: agent.to_proto().into(),
        ..Default::default()
    };
    calls::reconcile_operations(operations.iter().map(operation).collect())
}

/// Ids of the tasks that an accept launches.
pub(crate) fn launched(accept: &Accept) -> Vec<pb::TaskID> {
    let of = |operation: &pb::offer::Operation| -> Vec<pb::TaskInfo> {
        let group = operation.launch_group.as_option().and_then(|launch| launch.task_group.as_option());
        let group = group.map(|group| group.tasks.clone()).unwrap_or_default();
        let single = operation.launch.as_option().map(|launch| launch.task_infos.clone()).unwrap_or_default();
        group.into_iter().chain(single).collect()
    };
    accept.operations.iter().flat_map(of).map(|task| (*task.task_id).clone()).collect()
}

/// A status that a task gets because its launch did not reach the master.
pub(crate) fn not_launched(
    task: pb::TaskID,
    agent: &AgentId,
    state: pb::TaskState,
    message: String,
) -> pb::TaskStatus {
    pb::TaskStatus {
        task_id: task.into(),
        agent_id: agent.to_proto().into(),
        state,
        source: Some(pb::task_status::Source::SOURCE_MASTER),
        reason: Some(pb::task_status::Reason::REASON_INVALID_OFFERS),
        message: Some(message),
        ..Default::default()
    }
}
