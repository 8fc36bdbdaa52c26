//! RESERVE, UNRESERVE, CREATE, DESTROY, GROW_VOLUME, SHRINK_VOLUME: a conversion of the accepted resources, assumed to
//! succeed on the agent and therefore booked at once.

use alloc::string::{String, ToString};

use tepui_allocator::Holder;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_resources::{Operation, Resources};

use super::AcceptedOffers;
use crate::entities::operation;
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
    if let Err(why) = book(master, accepted, &operation) {
        return operation::reject(master, &accepted.framework_id, &message, why, out);
    }
    master.count_operation(&accepted.framework_id, message.r#type.unwrap_or(Type::UNKNOWN));
    let for_agent = normalize::without_allocation(message.clone());
    operation::apply(master, Some(&accepted.framework_id), &accepted.agent_id, message, for_agent, out);
}

/// Converts the pool of the ACCEPT, the books of the allocator, and what readers see of the agent.
fn book(master: &mut Master, accepted: &mut AcceptedOffers, operation: &Operation) -> Result<(), String> {
    let pool = accepted.pool.apply(operation).map_err(|why| why.to_string())?;
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
        accepted.set_aside += converted;
    }
    Ok(())
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
