//! Operations on the agent's resources: applied to its totals, recorded, reported until acknowledged.
//!
//! An operation has one outcome, so its stream of updates is that outcome repeated with growing patience.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::OperationState;
use tepui_proto::tepui::agent::v1 as api;
use tepui_resources::{Format, Operation, Resource};
use tepui_types::{ContainerOp, FrameworkId};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::entities::slack;
use crate::rules::checkpoint::is_kept;
use crate::rules::{disk_pressure, drain};
use crate::state::bookkeeping::{RETRY_MAX, RETRY_MIN};
use crate::state::bookkeeping::{Timer, Uuid};
use crate::state::transition::Transition;
use crate::state::volumes::volume_path;

/// Carries an operation out. Repeated ones are not carried out again.
pub(crate) fn apply(
    agent: &mut Agent,
    now: Now,
    framework: Option<FrameworkId>,
    uuid: Uuid,
    info: pb::offer::Operation,
    out: &mut Out,
) {
    if agent.state.operations.contains_key(&uuid) {
        return;
    }
    let outcome = applied(agent, &info);
    let (state, message) = match &outcome {
        Ok(_) => (OperationState::OPERATION_FINISHED, None),
        Err(why) => (OperationState::OPERATION_FAILED, Some(why.clone())),
    };
    let kept = outcome.as_ref().ok().map(|(_, total)| total.filter(is_kept).to_proto(Format::Post));
    add(agent, framework, uuid, info, (state, message), kept, out);
    let failed = outcome.is_err();
    let mut changed = None;
    if let Ok((operation, total)) = outcome {
        agent.state.total = total;
        change_volumes(agent, &operation, out);
        changed = Some(operation);
    }
    forward(agent, now, uuid, RETRY_MIN, out);
    if failed {
        // After the outcome: until it is known, the master counts the operation as under way.
        send_total(agent, out);
    }
    if let Some(operation) = changed {
        slack::reservations_changed(agent, now, &operation, out);
    }
}

/// The master waits for operations that never arrived.
pub(crate) fn missing(agent: &mut Agent, now: Now, mut uuids: Vec<Uuid>, out: &mut Out) {
    uuids.retain(|uuid| !agent.state.operations.contains_key(uuid));
    for uuid in &uuids {
        let message = Some("Operation unknown to the agent".to_string());
        let outcome = (OperationState::OPERATION_DROPPED, message);
        add(agent, None, *uuid, pb::offer::Operation::default(), outcome, None, out);
        forward(agent, now, *uuid, RETRY_MIN, out);
    }
    if !uuids.is_empty() {
        send_total(agent, out);
    }
}

fn applied(
    agent: &Agent,
    info: &pb::offer::Operation,
) -> Result<(Operation, tepui_resources::Resources), String> {
    let operation = Operation::from_proto(info).map_err(|err| err.to_string())?;
    let operation = operation.ok_or("Unknown kind of operation")?.unallocate();
    if let Some(why) = disk_pressure::rejection(agent, "an operation").filter(|_| !gives_back(&operation)) {
        return Err(why);
    }
    let total = agent.state.total.apply(&operation).map_err(|err| err.to_string())?;
    Ok((operation, total))
}

/// Whether it makes room, or at least takes none.
fn gives_back(operation: &Operation) -> bool {
    match operation {
        Operation::Unreserve { .. } | Operation::Destroy { .. } | Operation::ShrinkVolume { .. } => true,
        Operation::Reserve { .. } | Operation::Create { .. } | Operation::GrowVolume { .. } => false,
    }
}

fn add(
    agent: &mut Agent,
    framework: Option<FrameworkId>,
    uuid: Uuid,
    info: pb::offer::Operation,
    (state, message): (OperationState, Option<String>),
    kept: Option<Vec<pb::Resource>>,
    out: &mut Out,
) {
    let status = pb::OperationStatus {
        operation_id: info.id.clone(),
        state,
        message,
        uuid: pb::UUID { value: agent.rng.uuid().into(), ..Default::default() }.into(),
        agent_id: agent.id_proto().into(),
        ..Default::default()
    };
    let operation = pb::Operation {
        framework_id: framework.map(|framework| framework.to_proto()).into(),
        agent_id: agent.id_proto().into(),
        info: info.into(),
        latest_status: status.clone().into(),
        statuses: Vec::from([status]),
        uuid: pb::UUID { value: uuid.into(), ..Default::default() }.into(),
        ..Default::default()
    };
    let stored = api::StoredOperation { operation: operation.clone().into(), ..Default::default() };
    out.record(Record::Operation { uuid, operation: stored.into(), kept });
    let operation = Arc::new(operation);
    Agent::log(Transition::OperationUpdated { operation: Arc::clone(&operation) }, out);
    agent.state.operations.insert_mut(uuid, operation);
    agent.state.touch();
}

fn change_volumes(agent: &Agent, operation: &Operation, out: &mut Out) {
    let path = |volume: &Resource| volume_path(&agent.config.work_dir, volume);
    match operation {
        Operation::Create { volumes } => {
            for path in volumes.iter().filter_map(path) {
                agent.container(ContainerOp::CreateVolume { path }, out);
            }
        }
        Operation::Destroy { volumes } => {
            for path in volumes.iter().filter_map(path) {
                agent.container(ContainerOp::DestroyVolume { path }, out);
            }
        }
        Operation::Reserve { .. }
        | Operation::Unreserve { .. }
        | Operation::GrowVolume { .. }
        | Operation::ShrinkVolume { .. } => (),
    }
}

/// After a restart: directories of volumes that may not have been made or removed before it.
pub(crate) fn repeat_volumes(agent: &Agent, out: &mut Out) {
    let paths = |total: &tepui_resources::Resources| -> Vec<String> {
        total.iter().filter_map(|volume| volume_path(&agent.config.work_dir, volume)).collect()
    };
    let present = paths(&agent.state.total.persistent_volumes());
    for operation in agent.state.operations.values() {
        if let Ok(Some(Operation::Destroy { volumes })) = Operation::from_proto(&operation.info)
            && operation.latest_status.state == OperationState::OPERATION_FINISHED
        {
            let gone = volumes.iter().filter_map(|volume| volume_path(&agent.config.work_dir, volume));
            for path in gone.filter(|path| !present.contains(path)) {
                agent.container(ContainerOp::DestroyVolume { path }, out);
            }
        }
    }
    for path in present {
        agent.container(ContainerOp::CreateVolume { path }, out);
    }
}

/// What the master believes about the totals is wrong.
pub(crate) fn send_total(agent: &Agent, out: &mut Out) {
    let total_resources = agent.state.total.to_proto(Format::Post);
    let call = api::Call {
        r#type: Some(api::call::Type::UPDATE_RESOURCES),
        update_resources: api::call::UpdateResources {
            total_resources,
            oversubscribed_resources: agent.state.oversubscribed.to_proto(Format::Post),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    };
    agent.send_to_master(call, out);
}

/// Sends the outcome to the master, and again after `patience` without an acknowledgement.
pub(crate) fn forward(agent: &mut Agent, now: Now, uuid: Uuid, patience: Duration, out: &mut Out) {
    if agent.link.subscribed().is_none() {
        return;
    }
    let Some(operation) = agent.state.operations.get(&uuid).cloned() else { return };
    let update = api::call::UpdateOperation {
        framework_id: operation.framework_id.clone(),
        operation_uuid: operation.uuid.clone().into_option().into(),
        status: operation.latest_status.clone(),
        latest_state: operation.latest_status.state,
        ..Default::default()
    };
    let call = api::Call {
        r#type: Some(api::call::Type::UPDATE_OPERATION),
        update_operation: update.into(),
        ..Default::default()
    };
    agent.send_to_master(call, out);
    agent.timers.set(Timer::RetryOperation(uuid), now.mono + patience);
    agent.operation_patience.insert(uuid, patience);
}

pub(crate) fn retry(agent: &mut Agent, now: Now, uuid: Uuid, out: &mut Out) {
    let patience = agent.operation_patience.get(&uuid).map_or(RETRY_MIN, |patience| *patience * 2);
    forward(agent, now, uuid, patience.min(RETRY_MAX), out);
}

/// The link is back.
pub(crate) fn resume(agent: &mut Agent, now: Now, out: &mut Out) {
    let all: Vec<Uuid> = agent.state.operations.keys().copied().collect();
    for uuid in all {
        forward(agent, now, uuid, RETRY_MIN, out);
    }
}

/// The link is gone.
pub(crate) fn pause(agent: &mut Agent) {
    for uuid in agent.state.operations.keys() {
        agent.timers.clear(&Timer::RetryOperation(*uuid));
    }
}

/// The outcome was seen: the operation is history.
pub(crate) fn acknowledge(agent: &mut Agent, uuid: Uuid, status: &[u8], out: &mut Out) {
    let known = agent.state.operations.get(&uuid);
    if known.is_none_or(|operation| operation.latest_status.uuid.value != status) {
        return; // Repeated, or about something else.
    }
    agent.state.operations.remove_mut(&uuid);
    agent.state.touch();
    agent.timers.clear(&Timer::RetryOperation(uuid));
    agent.operation_patience.remove(&uuid);
    out.record(Record::OperationRemoved { uuid });
    drain::end_if_empty(agent, out);
}
