//! RECONCILE_OPERATIONS: the master's statuses of the framework's operations. Answers have no uuid.

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call::ReconcileOperations;
use tepui_types::{AgentId, FrameworkId};

use crate::entities::operation;
use crate::master::{Master, Out};
use crate::state::OperationUuid;
use crate::values::event::to_scheduler;

pub(super) fn reconcile_operations(
    master: &Master,
    from: &FrameworkId,
    call: &ReconcileOperations,
    out: &mut Out,
) {
    if call.operations.is_empty() {
        for (agent_id, uuid) in master.operations.of(from) {
            answer(master, from, latest(master, &agent_id, &uuid), out);
        }
    }
    for asked in &call.operations {
        let known = master.operations.find(from, &asked.operation_id.value);
        let status =
            known.and_then(|(agent_id, uuid)| latest(master, &agent_id, &uuid)).unwrap_or_else(|| {
                let agent_id = asked.agent_id.as_option().map(AgentId::from);
                pb::OperationStatus {
                    agent_id: asked.agent_id.clone(),
                    resource_provider_id: asked.resource_provider_id.clone(),
                    ..operation::status(Some(&asked.operation_id), unknown(master, agent_id.as_ref()), None)
                }
            });
        answer(master, from, Some(status), out);
    }
}

fn answer(master: &Master, from: &FrameworkId, status: Option<pb::OperationStatus>, out: &mut Out) {
    if let Some(status) = status {
        let status = pb::OperationStatus { uuid: None.into(), ..status };
        master.send_to_framework(from, to_scheduler::update_operation_status(status), out);
    }
}

fn latest(master: &Master, agent_id: &AgentId, uuid: &OperationUuid) -> Option<pb::OperationStatus> {
    Some((*master.agent(agent_id)?.operations.get(uuid)?.operation.latest_status).clone())
}

/// The state of an operation that is not in the books.
fn unknown(master: &Master, agent_id: Option<&AgentId>) -> pb::OperationState {
    let state = &master.state;
    match agent_id {
        Some(id) if state.recovered_agents.contains_key(id) => pb::OperationState::OPERATION_RECOVERING,
        Some(id) if state.unreachable_agents.contains_key(id) => pb::OperationState::OPERATION_UNREACHABLE,
        Some(id) if state.gone_agents.contains_key(id) => pb::OperationState::OPERATION_GONE_BY_OPERATOR,
        Some(_) | None => pb::OperationState::OPERATION_UNKNOWN,
    }
}
