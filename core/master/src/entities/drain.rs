//! Draining: an agent that is not offered, and whose tasks are being killed, until it is empty.
//!
//! The registry contains the draining agents; the drain is sent again whenever the agent re-registers. The end of the
//! drain is detected at the end of a turn.

use alloc::collections::BTreeSet;

use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_registry::{Deactivation, Operation as Record, Registry};
use tepui_types::AgentId;

use crate::entities::{offer, removal};
use crate::master::{Master, Out};
use crate::state::Drain;
use crate::state::transition::Transition;
use crate::values::event::to_agent;

/// Agents whose drain is not complete.
pub(crate) fn begun(registry: &Registry) -> BTreeSet<AgentId> {
    let draining = registry.deactivated.iter().filter(|(_, deactivation)| config(deactivation).is_some());
    draining.map(|(id, _)| id.clone()).collect()
}

/// The drain parameters of the agent, while it drains.
fn config(deactivation: &Deactivation) -> Option<&pb::DrainConfig> {
    let drain = deactivation.drain.as_ref().filter(|drain| drain.state == pb::DrainState::DRAINING)?;
    Some(&drain.config)
}

/// As readers see it.
pub(crate) fn shown(deactivation: &Deactivation) -> Option<Drain> {
    let info = deactivation.drain.clone()?;
    Some(Drain { info, since: deactivation.since.unwrap_or(Wall(0)) })
}

/// Nothing more is offered of the agent, whether it is here or not.
pub(crate) fn deactivate(master: &mut Master, id: &AgentId, deactivation: Deactivation, out: &mut Out) {
    let drain = shown(&deactivation);
    if config(&deactivation).is_some() {
        master.draining.insert(id.clone());
    }
    master.record(Record::Deactivate { id: id.clone(), deactivation }, out);
    if let Some(agent) = master.agent_mut(id) {
        agent.deactivated = true;
        agent.drain = drain;
    }
    offer::rescind_all_on(master, id, out);
    master.allocator.deactivate_agent(id);
    remind(master, id, out);
}

/// Sends the drain to an agent that drains: it kills its tasks.
pub(crate) fn remind(master: &Master, id: &AgentId, out: &mut Out) {
    if let Some(config) = master.registry.deactivated.get(id).and_then(config) {
        master.send_to_agent(id, to_agent::drain(config.clone()), out);
    }
}

/// Ends the drain of every agent that is empty.
pub(crate) fn finish(master: &mut Master, now: Now, out: &mut Out) {
    if master.draining.is_empty() {
        return;
    }
    for id in master.draining.clone() {
        let Some(deactivation) = master.registry.deactivated.get(&id).cloned() else {
            master.draining.remove(&id);
            continue;
        };
        let Some(config) = config(&deactivation).cloned() else { continue };
        if !is_empty(master, &id) {
            continue;
        }
        master.draining.remove(&id);
        match config.mark_gone.unwrap_or(false) {
            true => removal::mark_gone(master, now, &id, out),
            false => drained(master, &id, deactivation, out),
        }
    }
}

/// Nothing on it is under way or unacknowledged; an agent that is away may have something.
fn is_empty(master: &Master, id: &AgentId) -> bool {
    master
        .agent(id)
        .is_some_and(|agent| agent.conn().is_some() && agent.tasks.is_empty() && agent.operations.is_empty())
}

fn drained(master: &mut Master, id: &AgentId, mut deactivation: Deactivation, out: &mut Out) {
    if let Some(drain) = &mut deactivation.drain {
        drain.state = pb::DrainState::DRAINED;
    }
    let drain = shown(&deactivation);
    master.record(Record::Deactivate { id: id.clone(), deactivation }, out);
    Master::log(Transition::AgentDrained { agent_id: id.clone() }, out);
    if let Some(agent) = master.agent_mut(id) {
        agent.drain = drain;
    }
}
