//! UPDATE_RESOURCES: the agent has more or less than before. What is offered of it is taken back first.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::call::UpdateResources;
use tepui_types::AgentId;

use super::closed;
use super::report::resources;
use crate::master::{Master, Out};
use crate::{books, offer};

pub(super) fn update_resources(
    master: &mut Master,
    now: Now,
    from: &AgentId,
    call: &UpdateResources,
    out: &mut Out,
) {
    let total = resources("total_resources", &call.total_resources);
    let oversubscribed = resources("oversubscribed_resources", &call.oversubscribed_resources);
    let Ok(total) = total.and_then(|total| Ok(total + &oversubscribed?)).map(|total| total.unallocate())
    else {
        // It makes no sense. A new SUBSCRIBE will, or will be refused with the reason.
        return closed::hang_up(master, now, from, out);
    };
    if master.agent(from).is_none_or(|agent| agent.total == total) {
        return;
    }
    offer::rescind_all_on(master, from, out);
    let Some(agent) = master.agent_mut(from) else { return };
    agent.total = total;
    let spec = books::agent(agent);
    master.allocator.update_agent(from, spec);
}
