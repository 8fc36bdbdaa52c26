//! DEACTIVATE_AGENT: nothing of an agent is offered any more. What runs there keeps running.

use tepui_proto::mesos::v1::master::call::DeactivateAgent;
use tepui_registry::Deactivation;
use tepui_types::{AgentId, Rejection};

use crate::entities::drain;
use crate::master::{Master, Out};

pub(super) fn deactivate_agent(
    master: &mut Master,
    call: &DeactivateAgent,
    out: &mut Out,
) -> Result<(), Rejection> {
    let id = AgentId::from(&*call.agent_id);
    check_known(master, &id)?;
    // A draining agent is deactivated, and continues to drain.
    if !master.registry.deactivated.contains_key(&id) {
        drain::deactivate(master, &id, Deactivation::default(), out);
    }
    Ok(())
}

/// Registered, recovered or unreachable.
pub(super) fn check_known(master: &Master, id: &AgentId) -> Result<(), Rejection> {
    let state = &master.state;
    let known = state.agents.contains_key(id)
        || state.recovered_agents.contains_key(id)
        || state.unreachable_agents.contains_key(id);
    if known { Ok(()) } else { Err(Rejection::bad_request("Unknown agent")) }
}
