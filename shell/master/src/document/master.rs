//! `/state`: the whole cluster in one document.

use tepui_core_master::State;
use tepui_program::classic;
use tepui_proto::json::JsonWriter;

use super::{DocumentInfo, Index, agent, framework, time};

pub(super) fn members(w: &mut JsonWriter, state: &State, index: &Index, info: &DocumentInfo) {
    let active = state.agents.values().filter(|one| agent::is_active(one)).count();
    classic::version_members(w);
    time(w, "start_time", state.started_at);
    time(w, "elected_time", state.elected_at);
    self_members(w, state);
    w.field("activated_slaves", &(active as f64));
    w.field("deactivated_slaves", &((state.agents.size() - active) as f64));
    w.field("unreachable_slaves", &(state.unreachable_agents.size() as f64));
    leader_members(w, state);
    w.optional_field("cluster", info.cluster.as_ref());
    info.server.write(w);
    w.array_field("slaves", |w| {
        state.agents.values().for_each(|one| w.object(|w| agent::members(w, one, state, index)));
    });
    w.array_field("recovered_slaves", |w| {
        state.recovered_agents.iter().for_each(|(id, info)| agent::recovered(w, id, info));
    });
    w.array_field("frameworks", |w| {
        state.frameworks.values().for_each(|one| framework::object(w, one, index));
    });
    w.array_field("completed_frameworks", |w| {
        state.completed_frameworks.iter().for_each(|one| framework::object(w, one, index));
    });
    w.array_field("orphan_tasks", |_| ());
    w.array_field("unregistered_frameworks", |_| ());
}

fn self_members(w: &mut JsonWriter, state: &State) {
    let info = &state.master_info;
    w.field("id", &info.id);
    w.field("pid", info.pid.as_deref().unwrap_or_default());
    w.field("hostname", info.hostname.as_deref().unwrap_or_default());
    classic::names(w, "capabilities", info.capabilities.iter().filter_map(|capability| capability.r#type));
}

fn leader_members(w: &mut JsonWriter, state: &State) {
    let info = &state.master_info;
    classic::domain(w, info.domain.as_option());
    w.optional_field("leader", info.pid.as_ref());
    w.object_field("leader_info", |w| {
        w.field("id", &info.id);
        w.optional_field("pid", info.pid.as_ref());
        w.field("port", &info.port);
        w.optional_field("hostname", info.hostname.as_ref());
        classic::domain(w, info.domain.as_option());
    });
}
