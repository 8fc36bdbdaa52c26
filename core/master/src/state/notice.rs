//! Events for operators, and the entries of GET_AGENTS and GET_FRAMEWORKS that they carry.

use tepui_fsm::Wall;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master;
use tepui_proto::mesos::v1::master::event::{self, Type};
use tepui_proto::mesos::v1::master::response::get_agents;
use tepui_proto::mesos::v1::master::response::get_frameworks;
use tepui_resources::Format;
use tepui_types::{AgentId, FrameworkId};

use crate::state::status::time;
use crate::state::{Agent, Framework, FrameworkLink, Task};

fn of(r#type: Type) -> master::Event {
    master::Event { r#type: Some(r#type), ..Default::default() }
}

pub(crate) fn heartbeat() -> master::Event {
    of(Type::HEARTBEAT)
}

pub(crate) fn task_added(task: &Task) -> master::Event {
    let added = event::TaskAdded { task: task.message().into(), ..Default::default() };
    master::Event { task_added: added.into(), ..of(Type::TASK_ADDED) }
}

pub(crate) fn task_updated(
    framework_id: &FrameworkId,
    status: &pb::TaskStatus,
    state: pb::TaskState,
) -> master::Event {
    let updated = event::TaskUpdated {
        framework_id: framework_id.to_proto().into(),
        status: status.clone().into(),
        state,
        ..Default::default()
    };
    master::Event { task_updated: updated.into(), ..of(Type::TASK_UPDATED) }
}

pub(crate) fn agent_added(agent: &Agent) -> master::Event {
    let added = event::AgentAdded { agent: agent_entry(agent).into(), ..Default::default() };
    master::Event { agent_added: added.into(), ..of(Type::AGENT_ADDED) }
}

pub(crate) fn agent_removed(id: &AgentId) -> master::Event {
    let removed = event::AgentRemoved { agent_id: id.to_proto().into(), ..Default::default() };
    master::Event { agent_removed: removed.into(), ..of(Type::AGENT_REMOVED) }
}

pub(crate) fn framework_added(framework: &Framework) -> master::Event {
    let added = event::FrameworkAdded { framework: framework_entry(framework).into(), ..Default::default() };
    master::Event { framework_added: added.into(), ..of(Type::FRAMEWORK_ADDED) }
}

pub(crate) fn framework_updated(framework: &Framework) -> master::Event {
    let updated =
        event::FrameworkUpdated { framework: framework_entry(framework).into(), ..Default::default() };
    master::Event { framework_updated: updated.into(), ..of(Type::FRAMEWORK_UPDATED) }
}

pub(crate) fn framework_removed(framework: &Framework) -> master::Event {
    let info = pb::FrameworkInfo::clone(&framework.info);
    let removed = event::FrameworkRemoved { framework_info: info.into(), ..Default::default() };
    master::Event { framework_removed: removed.into(), ..of(Type::FRAMEWORK_REMOVED) }
}

/// An agent as GET_AGENTS shows it, without what is used or offered of it.
pub fn agent_entry(agent: &Agent) -> get_agents::Agent {
    let capability = |r#type| pb::agent_info::Capability { r#type: Some(r#type), ..Default::default() };
    get_agents::Agent {
        agent_info: pb::AgentInfo::clone(&agent.info).into(),
        active: agent.is_active(),
        deactivated: Some(agent.deactivated),
        version: (&*agent.version).into(),
        pid: Some((&*agent.pid).into()),
        registered_time: time(agent.registered_at).into(),
        reregistered_time: agent.reregistered_at.map(time).into(),
        total_resources: agent.total.to_proto(Format::Endpoint),
        capabilities: agent.capabilities.iter().copied().map(capability).collect(),
        ..Default::default()
    }
}

/// A framework as GET_FRAMEWORKS shows it, without its offers and what it uses.
pub fn framework_entry(framework: &Framework) -> get_frameworks::Framework {
    let connected = framework.conn().is_some();
    get_frameworks::Framework {
        framework_info: pb::FrameworkInfo::clone(&framework.info).into(),
        active: connected,
        connected,
        recovered: framework.link == FrameworkLink::Recovered,
        registered_time: time(framework.registered_at).into(),
        reregistered_time: time(framework.reregistered_at.unwrap_or(Wall(0))).into(),
        unregistered_time: time(framework.unregistered_at.unwrap_or(Wall(0))).into(),
        offer_constraints: framework.offer_constraints.as_deref().cloned().into(),
        ..Default::default()
    }
}
