//! RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME, SHRINK_VOLUME: a conversion of the accepted resources, assumed to
//! succeed on the agent and therefore booked at once.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_allocator::Holder;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_resources::{Operation, Resource, Resources};

use super::AcceptedOffers;
use crate::entities::{offer, operation};
use crate::master::{Master, Out};
use crate::rules::checks::CheckedConversion;
use crate::values::normalize;

pub(super) fn convert(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    conversion: CheckedConversion,
    out: &mut Out,
) {
    let (message, operation) = conversion.into_parts();
    if let Err(why) = book(master, accepted, &operation, out) {
        return operation::reject(master, &accepted.framework_id, &message, why, out);
    }
    master.count_operation(&accepted.framework_id, message.r#type.unwrap_or(Type::UNKNOWN));
    let for_agent = normalize::without_allocation(message.clone());
    operation::apply(master, Some(&accepted.framework_id), &accepted.agent_id, message, for_agent, out);
}

/// Converts the pool of the ACCEPT, the books of the allocator, and what readers see of the agent.
fn book(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    operation: &Operation,
    out: &mut Out,
) -> Result<(), String> {
    let pool = accepted.pool.apply(operation).map_err(|why| why.to_string())?;
    if let Operation::Destroy { volumes } = operation {
        rescind_shared(master, accepted, volumes, out);
    }
    let (consumed, converted): (Resources, Resources) = (operation.consumed(), operation.converted());
    let holder = Holder::Offered(&accepted.framework_id);
    if !master.allocator.convert(&accepted.agent_id, holder, &consumed, &converted) {
        return Err(alloc::format!("{consumed} is not in the offers"));
    }
    let total = master.allocator.total(&accepted.agent_id).cloned();
    if let (Some(agent), Some(total)) = (master.agent_mut(&accepted.agent_id), total) {
        agent.total = total;
    }
    accepted.pool = pool;
    if is_deferred(operation) {
        accepted.pool -= &converted;
        accepted.withheld += converted;
    }
    Ok(())
}

/// A shared volume may be offered to several frameworks at once; no offer may contain it once it is destroyed.
fn rescind_shared(master: &mut Master, accepted: &AcceptedOffers, volumes: &[Resource], out: &mut Out) {
    let shared = volumes.iter().filter(|volume| volume.is_shared());
    let shared: Vec<Resource> = shared.map(|volume| volume.clone().with_allocation(None)).collect();
    if shared.is_empty() {
        return;
    }
    for id in master.offers.on(&accepted.agent_id) {
        let offered = master.state.offers.get(&id).map(|offer| offer.resources.clone().unallocate());
        if offered.is_some_and(|offered| shared.iter().any(|volume| offered.contains_resource(volume))) {
            offer::rescind(master, &id, out);
        }
    }
}

/// A resized volume is not usable by later operations of the same call; it is offered again.
fn is_deferred(operation: &Operation) -> bool {
    match operation {
        Operation::GrowVolume { .. } | Operation::ShrinkVolume { .. } => true,
        Operation::Reserve { .. }
        | Operation::Unreserve { .. }
        | Operation::Create { .. }
        | Operation::Destroy { .. } => false,
    }
}
