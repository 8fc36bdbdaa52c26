//! UPDATE_RESOURCES: the agent's total changed. Its offers are rescinded first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::call::UpdateResources;
use tepui_proto::wire;
use tepui_resources::{Operation, Resources};
use tepui_types::AgentId;

use super::closed;
use super::report::resources;
use crate::entities::offer;
use crate::master::{Master, Out};
use crate::rules::allocator_spec;
use crate::state::{Agent, OperationUuid};

pub(super) fn update_resources(
    master: &mut Master,
    now: Now,
    from: &AgentId,
    call: &UpdateResources,
    out: &mut Out,
) {
    if wire::size(call) > master.config.limits.agent_info {
        // A new SUBSCRIBE will be refused with the reason.
        return closed::hang_up(master, now, from, out);
    }
    let total = resources("total_resources", &call.total_resources);
    let oversubscribed = resources("oversubscribed_resources", &call.oversubscribed_resources);
    let Ok(total) = total.and_then(|total| Ok(total + &oversubscribed?)).map(|total| total.unallocate())
    else {
        // It makes no sense. A new SUBSCRIBE will, or will be refused with the reason.
        return closed::hang_up(master, now, from, out);
    };
    let Some(agent) = master.agent(from) else { return };
    let total = with_pending(agent, total, &BTreeSet::new());
    if agent.total == total {
        return;
    }
    match agent.total.non_revocable() == total.non_revocable() {
        true => offer::rescind_revocable_on(master, from, out),
        false => offer::rescind_all_on(master, from, out),
    }
    let Some(agent) = master.agent_mut(from) else { return };
    agent.total = total;
    let spec = allocator_spec::agent(agent);
    master.allocator.update_agent(from, spec);
}

/// Pending operations were not applied yet when the agent reported, except those it `named`. They stay booked, and so
/// do operations that depend on them, until the agent reports their outcome.
pub(super) fn with_pending(
    agent: &Agent,
    mut total: Resources,
    named: &BTreeSet<OperationUuid>,
) -> Resources {
    let unnamed = agent.operations.iter().filter(|(uuid, _)| !named.contains(*uuid));
    let pending = unnamed.map(|(_, operation)| &operation.operation);
    let pending = pending.filter(|it| it.latest_status.state == pb::OperationState::OPERATION_PENDING);
    let operations = pending.filter_map(|it| Operation::from_proto(&it.info).ok().flatten());
    let mut operations: Vec<Operation> = operations.map(Operation::unallocate).collect();
    // They may build on each other, and their order is not kept: whatever can be applied next is next.
    while let Some((at, applied)) =
        operations.iter().enumerate().find_map(|(at, next)| Some((at, total.apply(next).ok()?)))
    {
        operations.remove(at);
        total = applied;
    }
    total
}
