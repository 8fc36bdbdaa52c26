//! Containers that terminate: pending waits are answered, and nested containers removed.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::{Response, response};
use tepui_types::{Answer, ContainerId, Rejection, Status, Termination};

use crate::Record;
use crate::agent::{Agent, Out};
use crate::state::bookkeeping::WaitForm;

/// An executor's container terminated: pending waits are answered, and all containers below it removed.
pub(crate) fn top_ended(agent: &mut Agent, id: &ContainerId, termination: &Termination, out: &mut Out) {
    forget_below(agent, id, out);
    answer_all(agent, id, Some(termination), out);
}

/// A container is gone, and with it everything known about those nested in it.
pub(crate) fn forget_below(agent: &mut Agent, id: &ContainerId, out: &mut Out) {
    for nested in agent.state.containers_in(id) {
        forget(agent, &nested, out);
    }
}

/// The container is no longer known; pending waits receive that answer.
pub(crate) fn forget(agent: &mut Agent, id: &ContainerId, out: &mut Out) {
    answer_all(agent, id, None, out);
    if let Some(conn) = agent.requests.launches.remove(id) {
        let message = format!("Container {id} terminated with its parent before it was launched");
        agent.reject(conn, Status::BadRequest, message, out);
    }
    let was_recorded = is_recorded(agent, id);
    if agent.state.containers.remove_mut(id) {
        agent.state.touch();
        agent.requests.sessions.retain(|_, kept| kept != id);
        agent.requests.ended_sessions.retain(|kept| kept != id);
        if was_recorded {
            out.record(Record::ContainerRemoved { id: id.clone() });
        }
    }
}

/// Containers below an executor that does not survive a restart do not either; sessions and what is in them never do.
pub(crate) fn is_recorded(agent: &Agent, id: &ContainerId) -> bool {
    let is_session = |id: &ContainerId| agent.state.containers.get(id).is_some_and(|one| one.is_session);
    if core::iter::successors(Some(id), |id| id.parent()).any(is_session) {
        return false;
    }
    match agent.executors_by_container.get(id.top()) {
        Some((framework, _)) => agent.is_checkpointing(framework),
        None => true,
    }
}

/// Answers all waits for this container; without a termination it is unknown.
pub(crate) fn answer_all(
    agent: &mut Agent,
    id: &ContainerId,
    termination: Option<&Termination>,
    out: &mut Out,
) {
    for (conn, form) in agent.requests.waits.remove(id).unwrap_or_default() {
        let answer = match termination {
            Some(termination) => answer(form, termination),
            None => missing(id).into(),
        };
        agent.answer(conn, answer, out);
    }
}

pub(crate) fn answer(form: WaitForm, termination: &Termination) -> Answer<Response> {
    let limitation = (!termination.limited.is_empty())
        .then(|| pb::TaskResourceLimitation { resources: termination.limited.clone(), ..Default::default() });
    let response = match form {
        WaitForm::Plain => Response {
            r#type: Some(response::Type::WAIT_CONTAINER),
            wait_container: response::WaitContainer {
                exit_status: termination.status,
                state: termination.state,
                reason: termination.reason,
                limitation: limitation.into(),
                message: termination.message.clone(),
                ..Default::default()
            }
            .into(),
            ..Default::default()
        },
        WaitForm::Nested => Response {
            r#type: Some(response::Type::WAIT_NESTED_CONTAINER),
            wait_nested_container: response::WaitNestedContainer {
                exit_status: termination.status,
                state: termination.state,
                reason: termination.reason,
                limitation: limitation.into(),
                message: termination.message.clone(),
                ..Default::default()
            }
            .into(),
            ..Default::default()
        },
    };
    Answer::Body(Box::new(response))
}

/// Containers that stand alone and have not ended.
pub(crate) fn live_alone(agent: &Agent) -> Vec<ContainerId> {
    let containers = agent.state.containers.values();
    let alone = containers.filter(|container| container.id.parent().is_none() && !container.is_ended());
    alone.map(|container| container.id.clone()).collect()
}

/// No container of this ID is known.
pub(crate) fn missing(id: &ContainerId) -> Rejection {
    Rejection::new(Status::NotFound, format!("Container {id} cannot be found"))
}
