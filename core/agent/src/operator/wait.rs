//! WAIT_CONTAINER and WAIT_NESTED_CONTAINER: answered when the container ends.

use alloc::boxed::Box;
use alloc::format;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::{Response, response};
use tepui_types::{Answer, ConnId, ContainerId, Refusal, Status, Termination};

use super::{Answered, checked_id, executor_in};
use crate::agent::{Agent, Out};
use crate::state::ContainerStage;

/// Which of the two calls is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Nested,
}

pub(super) fn wait(agent: &mut Agent, conn: ConnId, id: &pb::ContainerID, form: Form) -> Answered {
    let id = checked_id(id)?;
    match agent.state.containers.get(&id).map(|container| &container.stage) {
        Some(ContainerStage::Ended(termination)) => return Ok(Some(answer(form, termination))),
        Some(ContainerStage::Launching | ContainerStage::Running { .. }) => (),
        None if executor_in(agent, &id).is_some() => (),
        None => return Err(missing(&id)),
    }
    agent.requests.waits.entry(id).or_default().push((conn, form));
    Ok(None)
}

/// Answers everybody who waits for this container; without termination it is not known any more.
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

fn missing(id: &ContainerId) -> Refusal {
    Refusal::new(Status::NotFound, format!("Container {id} cannot be found"))
}

fn answer(form: Form, termination: &Termination) -> Answer<Response> {
    let limitation = (!termination.limited.is_empty())
        .then(|| pb::TaskResourceLimitation { resources: termination.limited.clone(), ..Default::default() });
    let response = match form {
        Form::Plain => Response {
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
        Form::Nested => Response {
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
