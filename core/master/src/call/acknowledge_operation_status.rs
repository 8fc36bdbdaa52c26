//! ACKNOWLEDGE_OPERATION_STATUS: the framework has taken the status of an operation in.

use tepui_proto::mesos::v1::scheduler::call::AcknowledgeOperationStatus;
use tepui_types::{AgentId, FrameworkId};

use crate::master::{Master, Out};
use crate::operation;

pub(super) fn acknowledge_operation_status(
    master: &mut Master,
    from: &FrameworkId,
    call: AcknowledgeOperationStatus,
    out: &mut Out,
) {
    let Some((agent_id, uuid)) = master.operations.find(from, &call.operation_id.value) else { return };
    let Some(agent) = master.agent(&agent_id) else { return };
    if agent_id != AgentId::from(&*call.agent_id) || agent.conn().is_none() {
        return;
    }
    let Some(operation) = agent.operations.get(&uuid).cloned() else { return };
    let acknowledged = operation.operation.statuses.iter().find(|status| status.uuid.value == call.uuid);
    if let Some(status) = acknowledged {
        operation::acknowledge(master, &agent_id, &uuid, status, out);
    }
}
