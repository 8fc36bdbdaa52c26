//! ACKNOWLEDGE_OPERATION_STATUS: the framework has taken the status of an operation in.

use tepui_proto::mesos::v1::OperationStatus;
use tepui_proto::mesos::v1::scheduler::call::AcknowledgeOperationStatus;
use tepui_types::{AgentId, FrameworkId};

use crate::entities::operation;
use crate::master::{Master, Out};
use crate::state::OperationUuid;
use crate::values::counters::Counter;

pub(super) fn acknowledge_operation_status(
    master: &mut Master,
    from: &FrameworkId,
    call: AcknowledgeOperationStatus,
    out: &mut Out,
) {
    let counter = match acknowledged(master, from, &call) {
        Some((agent_id, uuid, status)) => {
            operation::acknowledge(master, &agent_id, &uuid, &status, out);
            Counter::ValidOperationStatusUpdateAcknowledgements
        }
        None => Counter::InvalidOperationStatusUpdateAcknowledgements,
    };
    master.count(counter);
}

/// The status in question, if its agent is connected.
fn acknowledged(
    master: &Master,
    from: &FrameworkId,
    call: &AcknowledgeOperationStatus,
) -> Option<(AgentId, OperationUuid, OperationStatus)> {
    let (agent_id, uuid) = master.operations.find(from, &call.operation_id.value)?;
    let agent = master.agent(&agent_id).filter(|agent| agent.conn().is_some())?;
    if agent_id != AgentId::from(&*call.agent_id) {
        return None;
    }
    let statuses = &agent.operations.get(&uuid)?.operation.statuses;
    let status = statuses.iter().find(|status| status.uuid.value == call.uuid)?.clone();
    Some((agent_id, uuid, status))
}
