//! What reserving, unreserving and changing volumes have in common: a conversion of the accepted resources, assumed to
//! succeed on the agent and therefore booked at once.

use alloc::string::{String, ToString};

use tepui_allocator::Holder;
use tepui_proto::mesos::v1::offer::Operation as Message;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_resources::{Operation, Resources};

use super::{AcceptedOffers, normalize};
use crate::master::{Master, Out};
use crate::{checks, operation};

/// Whether later operations of the same call may use what this one makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    Usable,
    SetAside,
}

/// Converts, or says why not.
pub(super) fn convert(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    message: Message,
    result: Result,
    out: &mut Out,
) {
    match convert_checked(master, accepted, &message, result) {
        Ok(()) => {
            master.count_operation(&accepted.framework_id, message.r#type.unwrap_or(Type::UNKNOWN));
            let for_agent = normalize::without_allocation(message.clone());
            operation::apply(
                master,
                Some(&accepted.framework_id),
                &accepted.agent_id,
                message,
                for_agent,
                out,
            );
        }
        Err(why) => operation::reject(master, &accepted.framework_id, &message, why, out),
    }
}

fn convert_checked(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    message: &Message,
    result: Result,
) -> core::result::Result<(), String> {
    let operation = Operation::from_proto(message).map_err(|why| why.to_string())?;
    let operation = operation.ok_or("It does not convert resources")?;
    checks::operation(master, accepted, &operation)?;
    let pool = accepted.pool.apply(&operation).map_err(|why| why.to_string())?;
    book(master, accepted, &operation)?;
    accepted.pool = pool;
    if result == Result::SetAside {
        let converted = operation.converted();
        accepted.pool -= &converted;
        accepted.set_aside += converted;
    }
    Ok(())
}

/// Books the conversion with the allocator, and in what readers see of the agent.
fn book(
    master: &mut Master,
    accepted: &AcceptedOffers,
    operation: &Operation,
) -> core::result::Result<(), String> {
    let (consumed, converted): (Resources, Resources) = (operation.consumed(), operation.converted());
    let holder = Holder::Offered(&accepted.framework_id);
    if !master.allocator.convert(&accepted.agent_id, holder, &consumed, &converted) {
        return Err(alloc::format!("{consumed} is not in the offers"));
    }
    let total = master.allocator.total(&accepted.agent_id).cloned();
    if let (Some(agent), Some(total)) = (master.agent_mut(&accepted.agent_id), total) {
        agent.total = total;
    }
    Ok(())
}
