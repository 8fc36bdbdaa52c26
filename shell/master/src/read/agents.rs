//! GET_AGENTS: registered agents, and those that an earlier master admitted and that are not back.

use tepui_core_master::{Agent, State};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::response::{GetAgents, get_agents};
use tepui_resources::Format;

use super::time;
use crate::document::is_active;
use crate::index::Index;

pub(super) fn json(w: &mut JsonWriter, state: &State, index: &Index) {
    w.array_field("agents", |w| state.agents.values().for_each(|agent| w.value(&entry(agent, index))));
    w.array_field("recovered_agents", |w| state.recovered_agents.values().for_each(|info| w.value(&**info)));
}

pub(super) fn message(state: &State, index: &Index) -> GetAgents {
    GetAgents {
        agents: state.agents.values().map(|agent| entry(agent, index)).collect(),
        recovered_agents: state.recovered_agents.values().map(|info| (**info).clone()).collect(),
        ..Default::default()
    }
}

fn entry(agent: &Agent, index: &Index) -> get_agents::Agent {
    let sums = index.agent(&agent.id);
    let capability = |kind: &pb::agent_info::capability::Type| pb::agent_info::Capability {
        r#type: Some(*kind),
        ..Default::default()
    };
    get_agents::Agent {
        agent_info: pb::AgentInfo { id: agent.id.to_proto().into(), ..pb::AgentInfo::clone(&agent.info) }
            .into(),
        active: is_active(agent),
        deactivated: Some(agent.deactivated),
        version: agent.version.to_string(),
        pid: Some(agent.pid.to_string()),
        registered_time: time(agent.registered_at).into(),
        reregistered_time: agent.reregistered_at.map(time).into(),
        total_resources: agent.total.to_proto(Format::Endpoint),
        allocated_resources: sums.used.to_proto(Format::Endpoint),
        offered_resources: sums.offered.to_proto(Format::Endpoint),
        capabilities: agent.capabilities.iter().map(capability).collect(),
        drain_info: agent.drain.as_ref().map(|drain| drain.info.clone()).into(),
        estimated_drain_start_time: agent.drain.as_ref().map(|drain| time(drain.since)).into(),
        ..Default::default()
    }
}
