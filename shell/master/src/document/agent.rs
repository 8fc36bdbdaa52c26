//! Agents in the classic documents, under their old name.

use tepui_core_master::{Agent, AgentLink, State};
use tepui_program::classic;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_types::AgentId;

use super::{Index, time};
use crate::slack;

/// The port of an agent that names none.
const PORT_DEFAULT: i32 = 5051;

/// Connected and not taken out of use.
pub(crate) fn is_active(agent: &Agent) -> bool {
    matches!(agent.link, AgentLink::Connected { .. }) && !agent.deactivated
}

pub(super) fn members(w: &mut JsonWriter, agent: &Agent, state: &State, index: &Index) {
    let sums = index.agent(&agent.id);
    // Revocable as usage slack is, so that what borrowers use has a total.
    let slack = slack::idle(slack::lendable(state, &agent.total), sums.used);
    info_members(w, agent.id.as_str(), &agent.info);
    w.field("pid", &*agent.pid);
    time(w, "registered_time", agent.registered_at);
    if let Some(at) = agent.reregistered_at {
        time(w, "reregistered_time", at);
    }
    classic::resources(w, "resources", &(&agent.total + &slack));
    classic::resources(w, "used_resources", sums.used);
    classic::resources(w, "offered_resources", sums.offered);
    classic::reserved_resources(w, "reserved_resources", &agent.total);
    classic::resources(w, "unreserved_resources", &(agent.total.unreserved() + &slack));
    w.field("active", &is_active(agent));
    w.field("deactivated", &agent.deactivated);
    if let Some(pressure) = &agent.disk_pressure {
        classic::disk_pressure(w, pressure);
    }
    if let Some(drain) = &agent.drain {
        w.field("drain_info", &drain.info);
        time(w, "estimated_drain_start_time_seconds", drain.since);
    }
    w.field("version", &*agent.version);
    classic::names(w, "capabilities", agent.capabilities.iter().copied());
}

/// With what only `/slaves` has.
pub(super) fn full_object(w: &mut JsonWriter, agent: &Agent, state: &State, index: &Index) {
    let sums = index.agent(&agent.id);
    w.object(|w| {
        members(w, agent, state, index);
        classic::reserved_resources_full(w, "reserved_resources_full", &agent.total);
        classic::resources_full(w, "unreserved_resources_full", &agent.total.unreserved());
        classic::resources_full(w, "used_resources_full", sums.used);
        classic::resources_full(w, "offered_resources_full", sums.offered);
    });
}

/// An agent that an earlier master admitted and that is not back.
pub(super) fn recovered(w: &mut JsonWriter, id: &AgentId, info: &pb::AgentInfo) {
    w.object(|w| info_members(w, id.as_str(), info));
}

fn info_members(w: &mut JsonWriter, id: &str, info: &pb::AgentInfo) {
    w.field("id", id);
    w.field("hostname", &info.hostname);
    w.field("port", &info.port.unwrap_or(PORT_DEFAULT));
    classic::attributes(w, &info.attributes);
    classic::domain(w, info.domain.as_option());
}
