//! MARK_AGENT_GONE: an agent is permanently gone. Recorded first: its id is never used again.

use alloc::format;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::call::MarkAgentGone;
use tepui_types::{AgentId, Rejection, Status};

use crate::entities::removal;
use crate::master::{Master, Out};

pub(super) fn mark_agent_gone(
    master: &mut Master,
    now: Now,
    call: &MarkAgentGone,
    out: &mut Out,
) -> Result<(), Rejection> {
    let id = AgentId::from(&*call.agent_id);
    let state = &master.state;
    if state.gone_agents.contains_key(&id) {
        return Ok(());
    }
    let here = state.agents.contains_key(&id) || state.recovered_agents.contains_key(&id);
    if !here && !state.unreachable_agents.contains_key(&id) {
        return Err(Rejection::new(Status::NotFound, format!("Agent '{id}' not found")));
    }
    removal::mark_gone(master, now, &id, out);
    Ok(())
}
