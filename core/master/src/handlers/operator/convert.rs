//! RESERVE_RESOURCES, UNRESERVE_RESOURCES, CREATE_VOLUMES, DESTROY_VOLUMES, GROW_VOLUME, SHRINK_VOLUME: operators
//! change unused resources. Offers of them are rescinded first; the agent applies the change.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_allocator::Holder;
use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::offer::Operation as Message;
use tepui_proto::mesos::v1::offer::operation::{self, Type as Kind};
use tepui_proto::wire;
use tepui_resources::{Operation, Resources, validate};
use tepui_types::{AgentId, Answer, Rejection, Status};

use super::Done;
use crate::entities::offer;
use crate::master::{Master, Out};
use crate::rules::checks;
use crate::values::normalize;

pub(super) fn convert(
    master: &mut Master,
    now: Now,
    principal: Option<&str>,
    call: &Call,
    out: &mut Out,
) -> Done {
    let Some((id, mut message)) = operation_of(call) else {
        return Err(Rejection::bad_request("It does not change resources"));
    };
    wire::check_size(&message, master.config.limits.operation)
        .map_err(|why| Rejection::bad_request(format!("The operation {why} (--max_operation_size)")))?;
    let Some(agent) = master.agent(&id) else {
        return Err(Rejection::bad_request("No agent found with specified ID"));
    };
    let on = format!("agent {id} at {} ({})", agent.pid, agent.info.hostname);
    let operation = check(master, &id, principal, &mut message).map_err(|why| {
        let kind = message.r#type.unwrap_or(Kind::UNKNOWN);
        Rejection::bad_request(format!("Invalid {kind:?} operation on {on}: {why}"))
    })?;
    free_up(master, now, &id, &operation, out)?;
    let (consumed, converted) = (operation.consumed(), operation.converted());
    if !master.allocator.convert(&id, Holder::Free, &consumed, &converted) {
        return Err(Rejection::new(Status::Conflict, format!("{consumed} is not free on {on}")));
    }
    let total = master.allocator.total(&id).cloned();
    if let (Some(agent), Some(total)) = (master.agent_mut(&id), total) {
        agent.total = total;
    }
    crate::entities::operation::apply(master, None, &id, message.clone(), message, out);
    Ok(Answer::Accepted)
}

/// The agent and the operation that a call is about.
fn operation_of(call: &Call) -> Option<(AgentId, Message)> {
    let of = |r#type| Message { r#type: Some(r#type), ..Default::default() };
    let (id, message) = match call.r#type? {
        Type::RESERVE_RESOURCES => {
            let (source, resources) =
                (call.reserve_resources.source.clone(), call.reserve_resources.resources.clone());
            let reserve = operation::Reserve { source, resources, ..Default::default() };
            (&*call.reserve_resources.agent_id, Message { reserve: reserve.into(), ..of(Kind::RESERVE) })
        }
        Type::UNRESERVE_RESOURCES => {
            let resources = call.unreserve_resources.resources.clone();
            let unreserve = operation::Unreserve { resources, ..Default::default() };
            (
                &*call.unreserve_resources.agent_id,
                Message { unreserve: unreserve.into(), ..of(Kind::UNRESERVE) },
            )
        }
        Type::CREATE_VOLUMES => {
            let create =
                operation::Create { volumes: call.create_volumes.volumes.clone(), ..Default::default() };
            (&*call.create_volumes.agent_id, Message { create: create.into(), ..of(Kind::CREATE) })
        }
        Type::DESTROY_VOLUMES => {
            let destroy =
                operation::Destroy { volumes: call.destroy_volumes.volumes.clone(), ..Default::default() };
            (&*call.destroy_volumes.agent_id, Message { destroy: destroy.into(), ..of(Kind::DESTROY) })
        }
        Type::GROW_VOLUME => {
            let (volume, addition) = (call.grow_volume.volume.clone(), call.grow_volume.addition.clone());
            let grow = operation::GrowVolume { volume, addition, ..Default::default() };
            (&*call.grow_volume.agent_id, Message { grow_volume: grow.into(), ..of(Kind::GROW_VOLUME) })
        }
        Type::SHRINK_VOLUME => {
            let (volume, subtract) = (call.shrink_volume.volume.clone(), call.shrink_volume.subtract.clone());
            let shrink = operation::ShrinkVolume { volume, subtract, ..Default::default() };
            (
                &*call.shrink_volume.agent_id,
                Message { shrink_volume: shrink.into(), ..of(Kind::SHRINK_VOLUME) },
            )
        }
        _ => return None,
    };
    Some((AgentId::from(id), message))
}

/// The operation, if it can be carried out at all.
fn check(
    master: &Master,
    id: &AgentId,
    principal: Option<&str>,
    message: &mut Message,
) -> Result<Operation, String> {
    for resource in normalize::resources(message) {
        validate::resource(resource).map_err(|why| why.to_string())?;
    }
    let operation = checks::parse(message)?;
    if let Some(resource) = operation.resources().find(|resource| resource.allocation().is_some()) {
        return Err(format!("Resource {resource} is allocated; only unallocated resources can be changed"));
    }
    checks::operators_operation(master, id, principal, &operation)?;
    Ok(operation)
}

/// Takes back offers until what the operation needs is free, if that can be; frameworks do not get it back at once.
fn free_up(
    master: &mut Master,
    now: Now,
    id: &AgentId,
    operation: &Operation,
    out: &mut Out,
) -> Result<(), Rejection> {
    let needed = operation.consumed();
    let offers: Vec<_> = master.offers.on(id);
    let offered = |master: &Master, offer| -> Resources {
        let offer = master.state.offers.get(offer);
        offer.map_or_else(Resources::new, |offer| offer.resources.clone().unallocate())
    };
    let mut at_hand = master.allocator.free(id).cloned().unwrap_or_default();
    offers.iter().for_each(|offer| at_hand += &offered(master, offer).non_shared());
    if !at_hand.contains(&needed) {
        return Err(Rejection::new(Status::Conflict, format!("{needed} does not exist or is in use")));
    }
    for offer in &offers {
        let lacking = &needed - master.allocator.free(id).unwrap_or(&Resources::new());
        let held = offered(master, offer);
        // A shared volume is free though it is offered; it must not be offered when it goes.
        let shared = !held.shared().intersect(&needed).is_empty();
        if shared || !held.intersect(&lacking).is_empty() {
            offer::rescind_for_a_while(master, now, offer, out);
        }
    }
    Ok(())
}
