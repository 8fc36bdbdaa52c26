//! ACKNOWLEDGE_OPERATION: the status of an operation was received.

use tepui_proto::tepui::agent::v1::event::AcknowledgeOperation;

use crate::agent::{Agent, Out};
use crate::entities::operations;

pub(super) fn acknowledge_operation(agent: &mut Agent, event: AcknowledgeOperation, out: &mut Out) {
    let Ok(uuid) = event.operation_uuid.value.as_slice().try_into() else { return };
    operations::acknowledge(agent, uuid, &event.status_uuid, out);
}
