//! Waits are answered: every container call once, a wait with the exit status of the container, and never with "unknown"
//! for a container that must be known.
//!
//! A container is known while it runs; a nested one also after its termination, until it is removed (for the agent: until
//! the requested removal is durable) or its root container terminates. Sessions and their nested containers are lost with
//! a restart of the agent.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent::Record;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::agent::{Call, Response};
use tepui_types::{Answer, ConnId, ContainerId, Status};

use super::{Check, Fact};
use crate::host::Host;

#[derive(Debug, Default)]
pub(super) struct WaitsAreAnswered {
    requests: BTreeMap<ConnId, Request>,
    answered: BTreeSet<ConnId>,
    /// Containers that ran and were not removed, except those in sessions.
    ran: BTreeSet<ContainerId>,
    sessions: BTreeSet<ContainerId>,
    /// Containers whose removal was requested.
    unwanted: BTreeSet<ContainerId>,
}

#[derive(Debug)]
struct Request {
    kind: CallKind,
    id: ContainerId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Launch,
    Wait,
    Remove,
    Kill,
}

impl Check for WaitsAreAnswered {
    fn name(&self) -> &'static str {
        "waits_are_answered"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::CallReceived { conn, call } => {
                let request = request(call);
                if request.kind == CallKind::Remove {
                    self.unwanted.insert(request.id.clone());
                }
                self.requests.insert(*conn, request);
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
                let Some(request) = self.requests.remove(conn) else { return Ok(()) };
                self.answered.insert(*conn);
                self.judge(&request, answer, host).map_err(|reason| format!("A{agent}: {reason}"))
            }
            _ => Ok(()),
        }
    }
}

impl WaitsAreAnswered {
    fn judge(&self, request: &Request, answer: &Answer<Response>, host: &Host) -> Result<(), String> {
        let id = &request.id;
        match (request.kind, answer) {
            (CallKind::Launch, Answer::Ok) if !host.containers.contains_key(id) => {
                Err(format!("{id} is launched and not there"))
            }
            (CallKind::Wait, Answer::Body(reported)) => {
                let reported =
                    reported.wait_container.exit_status.or(reported.wait_nested_container.exit_status);
                match host.ended(id) {
                    Some(ended) if ended.status == reported => Ok(()),
                    Some(ended) => {
                        Err(format!("{id} ended with {:?}, a wait returned {reported:?}", ended.status))
                    }
                    // The agent crashed before it launched the container.
                    None if reported.is_none() && !host.containers.contains_key(id) => Ok(()),
                    None => Err(format!("{id} has not ended, a wait returned {reported:?}")),
                }
            }
            (CallKind::Wait, Answer::Refused(refusal)) if refusal.status == Status::NotFound => {
                let wanted = if id.parent().is_some() { id.top() } else { id };
                match self.ran.contains(id) && host.is_running(wanted) {
                    true => Err(format!("{id} ran, a wait was answered as unknown")),
                    false => Ok(()),
                }
            }
            (CallKind::Launch | CallKind::Wait | CallKind::Remove | CallKind::Kill, _) => Ok(()),
        }
    }
}

fn is_inside(id: &ContainerId, outer: &ContainerId) -> bool {
    std::iter::successors(Some(id), |id| id.parent()).any(|id| id == outer)
}

fn request(call: &Call) -> Request {
    let (kind, id) = match call.r#type {
        Some(Type::LAUNCH_CONTAINER) => (CallKind::Launch, &call.launch_container.container_id),
        Some(Type::LAUNCH_NESTED_CONTAINER) => (CallKind::Launch, &call.launch_nested_container.container_id),
        Some(Type::LAUNCH_NESTED_CONTAINER_SESSION) => {
            (CallKind::Launch, &call.launch_nested_container_session.container_id)
        }
        Some(Type::WAIT_CONTAINER) => (CallKind::Wait, &call.wait_container.container_id),
        Some(Type::WAIT_NESTED_CONTAINER) => (CallKind::Wait, &call.wait_nested_container.container_id),
        Some(Type::KILL_CONTAINER) => (CallKind::Kill, &call.kill_container.container_id),
        Some(Type::KILL_NESTED_CONTAINER) => (CallKind::Kill, &call.kill_nested_container.container_id),
        Some(Type::REMOVE_CONTAINER) => (CallKind::Remove, &call.remove_container.container_id),
        _ => (CallKind::Remove, &call.remove_nested_container.container_id),
    };
    Request { kind, id: ContainerId::from(&**id) }
}
