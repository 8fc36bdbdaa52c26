//! REACTIVATE_AGENT: an agent is used again. A drain cannot be called off: its tasks are being killed.

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::call::ReactivateAgent;
use tepui_types::{AgentId, Rejection};

use super::deactivate_agent::check_known;
use crate::master::{Master, Out};

pub(super) fn reactivate_agent(
    master: &mut Master,
    call: &ReactivateAgent,
    out: &mut Out,
) -> Result<(), Rejection> {
    let id = AgentId::from(&*call.agent_id);
    check_known(master, &id)?;
    let Some(deactivation) = master.registry.deactivated.get(&id) else {
        return Err(Rejection::bad_request("Agent is not deactivated"));
    };
    if deactivation.drain.as_ref().is_some_and(|drain| drain.state == pb::DrainState::DRAINING) {
        return Err(Rejection::bad_request("Agent is still in the DRAINING state"));
    }
    let record = master.registry.reactivate(&id);
    master.record(record, out);
    if let Some(agent) = master.agent_mut(&id) {
        agent.deactivated = false;
        agent.drain = None;
        if agent.is_offered() {
            master.allocator.activate_agent(&id);
        }
    }
    Ok(())
}
