//! APPLY_OPERATION: reservations and volumes on this agent's resources.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::ApplyOperation;
use tepui_types::FrameworkId;

use crate::agent::{Agent, Out};
use crate::entities::operations;

pub(super) fn apply_operation(agent: &mut Agent, now: Now, event: ApplyOperation, out: &mut Out) {
    let Ok(uuid) = event.operation_uuid.value.as_slice().try_into() else { return };
    let framework = event.framework_id.as_option().map(FrameworkId::from);
    let operation = event.operation.into_option().unwrap_or_default();
    operations::apply(agent, now, framework, uuid, operation, out);
}
