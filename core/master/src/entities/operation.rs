//! The life of an offer operation: sent to its agent, reported by it, acknowledged by its framework.
//!
//! Operations without an id of the framework's are acknowledged by the master itself, and so are those of frameworks
//! that are gone for good.

use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::tepui::agent::v1::event::ApplyOperation;
use tepui_types::{AgentId, FrameworkId};

use crate::master::{Master, Out};
use crate::state::transition::Transition;
use crate::state::{Operation, OperationUuid};
use crate::values::event::{to_agent, to_scheduler};
use crate::values::timers::Timer;

/// Time for which the operations of an unknown framework wait for it to subscribe.
pub(crate) const ORPHAN_OPERATIONS_WAIT: Duration = Duration::from_secs(600);

pub(crate) fn is_terminal(state: pb::OperationState) -> bool {
    use pb::OperationState as S;
    match state {
        S::OPERATION_FINISHED
        | S::OPERATION_FAILED
        | S::OPERATION_ERROR
        | S::OPERATION_DROPPED
        | S::OPERATION_GONE_BY_OPERATOR => true,
        S::OPERATION_UNSUPPORTED
        | S::OPERATION_PENDING
        | S::OPERATION_UNREACHABLE
        | S::OPERATION_RECOVERING
        | S::OPERATION_UNKNOWN => false,
    }
}

/// A status made by the master: it has no uuid and needs no acknowledgement.
pub(crate) fn status(
    id: Option<&pb::OperationID>,
    state: pb::OperationState,
    message: Option<String>,
) -> pb::OperationStatus {
    pb::OperationStatus { operation_id: id.cloned().into(), state, message, ..Default::default() }
}

/// Reports to a framework that one of its operations was rejected; only possible with an operation id.
pub(crate) fn reject(
    master: &mut Master,
    framework_id: &FrameworkId,
    info: &offer::Operation,
    why: String,
    out: &mut Out,
) {
    let kind = info.r#type.unwrap_or(OperationType::UNKNOWN);
    master.count_operation_end(kind, pb::OperationState::OPERATION_ERROR);
    let operation_id = info.id.as_option().map(|id| id.value.clone());
    let rejected = Transition::OperationRejected {
        framework_id: framework_id.clone(),
        operation_id,
        kind,
        reason: why.clone(),
    };
    Master::log(rejected, out);
    if let Some(id) = info.id.as_option() {
        let status = status(Some(id), pb::OperationState::OPERATION_ERROR, Some(why));
        master.send_to_framework(framework_id, to_scheduler::update_operation_status(status), out);
    }
}

/// Sends an operation to its agent, in the form it is carried out there, and waits for its end. Those of operators have
/// no framework.
pub(crate) fn apply(
    master: &mut Master,
    framework_id: Option<&FrameworkId>,
    agent_id: &AgentId,
    info: offer::Operation,
    for_agent: offer::Operation,
    out: &mut Out,
) {
    let uuid = master.rng.uuid();
    let apply = ApplyOperation {
        framework_id: framework_id.map(|id| id.to_proto()).into(),
        operation_uuid: to_proto(&uuid).into(),
        operation: for_agent.into(),
        ..Default::default()
    };
    master.send_to_agent(agent_id, to_agent::apply_operation(apply), out);
    let operation = pb::Operation {
        framework_id: framework_id.map(|id| id.to_proto()).into(),
        agent_id: agent_id.to_proto().into(),
        latest_status: status(info.id.as_option(), pb::OperationState::OPERATION_PENDING, None).into(),
        info: info.into(),
        uuid: to_proto(&uuid).into(),
        ..Default::default()
    };
    add(master, agent_id, uuid, operation);
    if let Some(operation) = master.agent(agent_id).and_then(|agent| agent.operations.get(&uuid)).cloned() {
        let state = pb::OperationState::OPERATION_PENDING;
        Master::log(Transition::OperationUpdated { operation, state, message: None }, out);
    }
}

/// Books an operation on its agent.
pub(crate) fn add(master: &mut Master, agent_id: &AgentId, uuid: OperationUuid, operation: pb::Operation) {
    let framework_id = operation.framework_id.as_option().map(FrameworkId::from);
    let operation = Operation { uuid, framework_id, agent_id: agent_id.clone(), operation };
    master.operations.insert(&operation);
    if let Some(agent) = master.agent_mut(agent_id) {
        agent.operations.insert_mut(uuid, Arc::new(operation));
    }
}

/// Removes an operation.
pub(crate) fn remove(master: &mut Master, agent_id: &AgentId, uuid: &OperationUuid) {
    let Some(operation) = master.agent(agent_id).and_then(|agent| agent.operations.get(uuid)).cloned() else {
        return;
    };
    master.operations.remove(&operation);
    if let Some(agent) = master.agent_mut(agent_id) {
        agent.operations.remove_mut(uuid);
    }
}

/// Confirms a status to the agent; after a terminal one nothing more will be heard.
pub(crate) fn acknowledge(
    master: &mut Master,
    agent_id: &AgentId,
    uuid: &OperationUuid,
    status: &pb::OperationStatus,
    out: &mut Out,
) {
    if let Some(status_uuid) = status.uuid.as_option() {
        let event = to_agent::acknowledge_operation(uuid, status_uuid.value.clone());
        master.send_to_agent(agent_id, event, out);
    }
    if is_terminal(status.state) {
        remove(master, agent_id, uuid);
    }
}

/// Its agent is lost: no status will arrive.
pub(crate) fn end_all_on(master: &mut Master, agent_id: &AgentId, state: pb::OperationState, out: &mut Out) {
    let Some(agent) = master.agent(agent_id).cloned() else { return };
    master.timers.clear(&Timer::OrphanOperations(agent_id.clone()));
    for (uuid, operation) in agent.operations.iter() {
        if !is_terminal(operation.operation.latest_status.state) {
            let operation = Arc::clone(operation);
            Master::log(Transition::OperationUpdated { operation, state, message: None }, out);
        }
        if is_terminal(state) && !is_terminal(operation.operation.latest_status.state) {
            let kind = operation.operation.info.r#type.unwrap_or(OperationType::UNKNOWN);
            master.count_operation_end(kind, state);
        }
        if let (Some(framework_id), Some(id)) =
            (&operation.framework_id, operation.operation.info.id.as_option())
        {
            let status =
                pb::OperationStatus { agent_id: agent_id.to_proto().into(), ..status(Some(id), state, None) };
            master.send_to_framework(framework_id, to_scheduler::update_operation_status(status), out);
        }
        remove(master, agent_id, uuid);
    }
}

/// Its framework is gone for good: what has ended already is acknowledged in its place.
pub(crate) fn orphan_all_of(master: &mut Master, framework_id: &FrameworkId, out: &mut Out) {
    for (agent_id, uuid) in master.operations.of(framework_id) {
        acknowledge_if_ended(master, &agent_id, &uuid, out);
    }
}

/// Whether operations on the agent still wait for their unknown frameworks to subscribe.
pub(crate) fn awaits_frameworks(master: &Master, agent_id: &AgentId) -> bool {
    master.timers.get(&Timer::OrphanOperations(agent_id.clone())).is_some()
}

/// The time of these operations' frameworks to subscribe is over.
pub(crate) fn acknowledge_orphans(master: &mut Master, agent_id: &AgentId, out: &mut Out) {
    let Some(agent) = master.agent(agent_id).cloned() else { return };
    for (uuid, operation) in agent.operations.iter() {
        if operation.framework_id.as_ref().is_some_and(|id| master.framework(id).is_none()) {
            acknowledge_if_ended(master, agent_id, uuid, out);
        }
    }
}

fn acknowledge_if_ended(master: &mut Master, agent_id: &AgentId, uuid: &OperationUuid, out: &mut Out) {
    let Some(operation) = master.agent(agent_id).and_then(|agent| agent.operations.get(uuid)).cloned() else {
        return;
    };
    let latest = &operation.operation.latest_status;
    if is_terminal(latest.state) {
        acknowledge(master, agent_id, uuid, latest, out);
    }
}

pub(crate) fn to_proto(uuid: &OperationUuid) -> pb::UUID {
    pb::UUID { value: uuid.to_vec(), ..Default::default() }
}

/// The uuid in a message; `None` if it is not one.
pub(crate) fn from_proto(uuid: &pb::UUID) -> Option<OperationUuid> {
    OperationUuid::try_from(uuid.value.as_slice()).ok()
}
