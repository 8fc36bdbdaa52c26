//! What reserving, unreserving and changing volumes have in common: a conversion of the deal's resources, assumed to
//! succeed on the agent and therefore booked at once.

use alloc::string::{String, ToString};

use tepui_allocator::Holder;
use tepui_proto::mesos::v1::offer::Operation as Message;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_resources::{Operation, Resources};

use super::{Deal, normalize};
use crate::master::{Master, Out};
use crate::{checks, operation};

/// Whether later operations of the same call may use what this one makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Result {
    Usable,
    SetAside,
}

/// Converts, or says why not.
pub(super) fn convert(master: &mut Master, deal: &mut Deal, message: Message, result: Result, out: &mut Out) {
    match convert_checked(master, deal, &message, result) {
        Ok(()) => {
            master.count_operation(&deal.framework_id, message.r#type.unwrap_or(Type::UNKNOWN));
            let for_agent = normalize::without_allocation(message.clone());
            operation::apply(master, Some(&deal.framework_id), &deal.agent_id, message, for_agent, out);
        }
        Err(why) => operation::refuse(master, &deal.framework_id, &message, why, out),
    }
}

fn convert_checked(
    master: &mut Master,
    deal: &mut Deal,
    message: &Message,
    result: Result,
) -> core::result::Result<(), String> {
    let operation = Operation::from_proto(message).map_err(|why| why.to_string())?;
    let operation = operation.ok_or("It does not convert resources")?;
    checks::operation(master, deal, &operation)?;
    let pool = deal.pool.apply(&operation).map_err(|why| why.to_string())?;
    book(master, deal, &operation)?;
    deal.pool = pool;
    if result == Result::SetAside {
        let converted = operation.converted();
        deal.pool -= &converted;
        deal.set_aside += converted;
    }
    Ok(())
}

/// Books the conversion with the allocator, and in what readers see of the agent.
fn book(master: &mut Master, deal: &Deal, operation: &Operation) -> core::result::Result<(), String> {
    let (consumed, converted): (Resources, Resources) = (operation.consumed(), operation.converted());
    let holder = Holder::Offered(&deal.framework_id);
    if !master.allocator.convert(&deal.agent_id, holder, &consumed, &converted) {
        return Err(alloc::format!("{consumed} is not in the offers"));
    }
    let total = master.allocator.total(&deal.agent_id).cloned();
    if let (Some(agent), Some(total)) = (master.agent_mut(&deal.agent_id), total) {
        agent.total = total;
    }
    Ok(())
}
