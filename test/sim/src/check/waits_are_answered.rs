//! Waits are answered: every call about a container once, a wait with the status that the container ended with, and
//! never by saying that a container that ran is not known while it should be.
//!
//! One is known while it lives; if it is nested also after its end, until it is removed (for the agent that is so as soon
//! as the removal somebody asked for is on its disk) or the outermost container around it ends. Sessions and
//! what is in them are forgotten with a restart of the agent.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent::Record;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::agent::{Call, Response};
use tepui_types::{Answer, ConnId, ContainerId, Status};

use super::{Check, Fact};
use crate::host::Host;

#[derive(Debug, Default)]
pub(super) struct WaitsAreAnswered {
    asked: BTreeMap<ConnId, Asked>,
    answered: BTreeSet<ConnId>,
    /// Those that ran, besides what is in sessions, and were not removed.
    ran: BTreeSet<ContainerId>,
    sessions: BTreeSet<ContainerId>,
    /// Those that somebody asked to remove.
    unwanted: BTreeSet<ContainerId>,
}

#[derive(Debug)]
struct Asked {
    what: What,
    id: ContainerId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Launch,
    Wait,
    Remove,
    Kill,
}

impl Check for WaitsAreAnswered {
    fn name(&self) -> &'static str {
        "waits_are_answered"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::CallHeard { conn, call } => {
                let asked = asked(call);
                if asked.what == What::Remove {
                    self.unwanted.insert(asked.id.clone());
                }
                self.asked.insert(*conn, asked);
                Ok(())
            }
            Fact::ContainerRuns { spec, .. } => {
                let in_session = self.sessions.iter().any(|session| is_inside(&spec.id, session));
                match spec.is_session || in_session {
                    true => self.sessions.insert(spec.id.clone()),
                    false => self.ran.insert(spec.id.clone()),
                };
                Ok(())
            }
            Fact::ContainerRemoved { id } => {
                self.ran.retain(|other| !is_inside(other, id));
                Ok(())
            }
            Fact::AgentStores { record: Record::ContainerRemoved { id }, .. }
                if self.unwanted.iter().any(|unwanted| is_inside(id, unwanted)) =>
            {
                self.ran.remove(id);
                Ok(())
            }
            Fact::CallAnswered { agent, conn, answer, host } => {
                if self.answered.contains(conn) {
                    return Err(format!("A{agent} answers #{} twice", conn.0));
                }
                let Some(asked) = self.asked.remove(conn) else { return Ok(()) };
                self.answered.insert(*conn);
                self.judge(&asked, answer, host).map_err(|why| format!("A{agent}: {why}"))
            }
            _ => Ok(()),
        }
    }
}

impl WaitsAreAnswered {
    fn judge(&self, asked: &Asked, answer: &Answer<Response>, host: &Host) -> Result<(), String> {
        let id = &asked.id;
        match (asked.what, answer) {
            (What::Launch, Answer::Ok) if !host.containers.contains_key(id) => {
                Err(format!("{id} is launched and not there"))
            }
            (What::Wait, Answer::Body(told)) => {
                let told = told.wait_container.exit_status.or(told.wait_nested_container.exit_status);
                match host.ended(id) {
                    Some(ended) if ended.status == told => Ok(()),
                    Some(ended) => {
                        Err(format!("{id} ended with {:?}, a wait was told {told:?}", ended.status))
                    }
                    // The agent crashed before it asked for it.
                    None if told.is_none() && !host.containers.contains_key(id) => Ok(()),
                    None => Err(format!("{id} has not ended, a wait was told {told:?}")),
                }
            }
            (What::Wait, Answer::Refused(refusal)) if refusal.status == Status::NotFound => {
                let wanted = if id.parent().is_some() { id.top() } else { id };
                match self.ran.contains(id) && host.is_wanted(wanted) {
                    true => Err(format!("{id} ran, a wait was told that it is not known")),
                    false => Ok(()),
                }
            }
            (What::Launch | What::Wait | What::Remove | What::Kill, _) => Ok(()),
        }
    }
}

fn is_inside(id: &ContainerId, outer: &ContainerId) -> bool {
    std::iter::successors(Some(id), |id| id.parent()).any(|id| id == outer)
}

fn asked(call: &Call) -> Asked {
    let (what, id) = match call.r#type {
        Some(Type::LAUNCH_CONTAINER) => (What::Launch, &call.launch_container.container_id),
        Some(Type::LAUNCH_NESTED_CONTAINER) => (What::Launch, &call.launch_nested_container.container_id),
        Some(Type::LAUNCH_NESTED_CONTAINER_SESSION) => {
            (What::Launch, &call.launch_nested_container_session.container_id)
        }
        Some(Type::WAIT_CONTAINER) => (What::Wait, &call.wait_container.container_id),
        Some(Type::WAIT_NESTED_CONTAINER) => (What::Wait, &call.wait_nested_container.container_id),
        Some(Type::KILL_CONTAINER) => (What::Kill, &call.kill_container.container_id),
        Some(Type::KILL_NESTED_CONTAINER) => (What::Kill, &call.kill_nested_container.container_id),
        Some(Type::REMOVE_CONTAINER) => (What::Remove, &call.remove_container.container_id),
        _ => (What::Remove, &call.remove_nested_container.container_id),
    };
    Asked { what, id: ContainerId::from(&**id) }
}
