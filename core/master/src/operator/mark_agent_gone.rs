//! MARK_AGENT_GONE: an agent that never comes back. Recorded first: its id is spent for ever.

use alloc::format;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::call::MarkAgentGone;
use tepui_registry::Operation as Record;
use tepui_types::{AgentId, Refusal, Status};

use crate::master::{Master, Out};
use crate::removal::{self, Loss};

pub(super) fn mark_agent_gone(
    master: &mut Master,
    now: Now,
    call: &MarkAgentGone,
    out: &mut Out,
) -> Result<(), Refusal> {
    let id = AgentId::from(&*call.agent_id);
    let state = &master.state;
    if state.gone_agents.contains_key(&id) {
        return Ok(());
    }
    let here = state.agents.contains_key(&id) || state.recovered_agents.contains_key(&id);
    if !here && !state.unreachable_agents.contains_key(&id) {
        return Err(Refusal::new(Status::NotFound, format!("Agent '{id}' not found")));
    }
    mark(master, now, &id, out);
    Ok(())
}

/// Marks an agent gone that is registered, recovered or unreachable.
pub(crate) fn mark(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    master.record(Record::MarkGone { id: id.clone(), at: now.wall }, out);
    master.state.unreachable_agents.remove_mut(id);
    master.state.gone_agents.insert_mut(id.clone(), now.wall);
    removal::end_unreachable_tasks(master, now, id, out);
    removal::remove(master, now, id, Loss::Gone, out);
}
