//! `/registrar(1)/registry`: what outlives the master, in the form of v1's registry.
//!
//! Ours is stored key by key; this is the one value that v1 would have stored.

use tepui_core_master::State;
use tepui_fsm::Wall;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::{AGENT_DRAINING, QUOTA_V2};
use tepui_types::AgentId;

pub(crate) fn registry(w: &mut JsonWriter, state: &State) {
    w.object(|w| {
        w.object_field("master", |w| w.field("info", &*state.master_info));
        w.object_field("slaves", |w| w.array_field("slaves", |w| admitted(w, state)));
        w.object_field("unreachable", |w| {
            w.array_field("slaves", |w| {
                state.unreachable_agents.iter().for_each(|(id, since)| {
                    w.object(|w| {
                        absence(w, id, *since);
                        deactivation(w, state, id);
                    });
                });
            });
        });
        w.object_field("gone", |w| {
            w.array_field("slaves", |w| {
                state.gone_agents.iter().for_each(|(id, since)| w.object(|w| absence(w, id, *since)));
            });
        });
        operator_settings(w, state);
        w.array_field("minimum_capabilities", |w| minimum_capabilities(w, state));
    });
}

fn admitted(w: &mut JsonWriter, state: &State) {
    let registered = state.agents.iter().map(|(id, agent)| (id, &agent.info));
    for (id, info) in registered.chain(&state.recovered_agents) {
        w.object(|w| {
            w.field("info", &**info);
            deactivation(w, state, id);
        });
    }
}

fn absence(w: &mut JsonWriter, id: &AgentId, since: Wall) {
    w.object_field("id", |w| w.field("value", id.as_str()));
    let since = pb::TimeInfo { nanoseconds: since.as_nanos_i64(), ..Default::default() };
    w.field("timestamp", &since);
}

/// Whether it is used, and what it drains to.
fn deactivation(w: &mut JsonWriter, state: &State, id: &AgentId) {
    let deactivation = state.deactivated_agents.get(id);
    w.optional_field("drain_info", deactivation.and_then(|deactivation| deactivation.drain.as_ref()));
    w.field("deactivated", &deactivation.is_some());
}

fn operator_settings(w: &mut JsonWriter, state: &State) {
    w.object_field("machines", |w| {
        w.array_field("machines", |w| {
            state.machines.values().for_each(|info| w.object(|w| w.field("info", &**info)));
        });
    });
    w.array_field("schedules", |w| {
        if !state.schedule.windows.is_empty() {
            w.value(&*state.schedule);
        }
    });
    w.array_field("quota_configs", |w| state.quotas.values().for_each(|config| w.value(&**config)));
    w.array_field("weights", |w| {
        for (role, weight) in &state.weights {
            let info = pb::WeightInfo { weight: *weight, role: Some(role.clone()), ..Default::default() };
            w.object(|w| w.field("info", &info));
        }
    });
}

/// What a master must be able to do to go on from here.
fn minimum_capabilities(w: &mut JsonWriter, state: &State) {
    let needed =
        [(QUOTA_V2, !state.quotas.is_empty()), (AGENT_DRAINING, !state.deactivated_agents.is_empty())];
    for (capability, _) in needed.iter().filter(|(_, needed)| *needed) {
        w.object(|w| w.field("capability", *capability));
    }
}
