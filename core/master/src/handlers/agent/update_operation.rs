//! UPDATE_OPERATION: what became of an operation.

use alloc::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::tepui::agent::v1::call::UpdateOperation;
use tepui_types::AgentId;

use crate::entities::operation;
use crate::master::{Master, Out};
use crate::state::transition::Transition;
use crate::state::{Operation, OperationUuid};
use crate::values::counters::Counter;
use crate::values::event::to_scheduler;

pub(super) fn update_operation(master: &mut Master, from: &AgentId, call: UpdateOperation, out: &mut Out) {
    let Some(uuid) = operation::from_proto(&call.operation_uuid) else { return };
    let mut status = call.status.into_option().unwrap_or_default();
    status.agent_id = from.to_proto().into();
    let Some(operation) = ingest_status(master, from, &uuid, &mut status, out) else {
        // Acknowledged before, but the agent did not receive that.
        master.count(Counter::InvalidOperationStatusUpdates);
        return operation::acknowledge(master, from, &uuid, &status, out);
    };
    master.count(Counter::ValidOperationStatusUpdates);
    let framework_id = match (&operation.framework_id, operation.operation.info.id.is_set()) {
        (Some(framework_id), true) => framework_id,
        (Some(_), false) | (None, _) => return operation::acknowledge(master, from, &uuid, &status, out),
    };
    if master.framework(framework_id).is_some() {
        master.send_to_framework(framework_id, to_scheduler::update_operation_status(status), out);
    } else if master.state.completed_frameworks.contains(framework_id)
        || !operation::awaits_frameworks(master, from)
    {
        operation::acknowledge(master, from, &uuid, &status, out);
    }
}

/// Keeps the newest status of an operation in the books.
fn ingest_status(
    master: &mut Master,
    from: &AgentId,
    uuid: &OperationUuid,
    status: &mut pb::OperationStatus,
    out: &mut Out,
) -> Option<Arc<Operation>> {
    let operation = Arc::make_mut(master.agent_mut(from)?.operations.get_mut(uuid)?);
    // An agent that never got the operation does not have its operation id.
    status.operation_id = operation.operation.info.id.clone();
    let before = operation.operation.latest_status.state;
    operation.operation.latest_status = status.clone().into();
    let statuses = &mut operation.operation.statuses;
    statuses.pop_if(|last| last.uuid == status.uuid);
    statuses.push(status.clone());
    let operation = Arc::new(operation.clone());
    if before != status.state {
        let (operation, message) = (Arc::clone(&operation), status.message.clone());
        Master::log(Transition::OperationUpdated { operation, state: status.state, message }, out);
    }
    if before != status.state && operation::is_terminal(status.state) {
        let kind = operation.operation.info.r#type.unwrap_or(OperationType::UNKNOWN);
        master.count_operation_end(kind, status.state);
    }
    Some(operation)
}
