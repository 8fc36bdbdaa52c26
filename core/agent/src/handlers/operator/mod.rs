//! Calls about containers, by operators and the default executor: the checks they share, then one file per call.
//!
//! A container is identified by its whole id. Nested ones live below an executor's container and are kept after their
//! termination until they are removed or the executor terminates; standalone ones are removed when they terminate.

mod check;
mod kill;
mod launch;
mod remove;
mod wait;

use alloc::format;
use alloc::string::{String, ToString};

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::{Call, call};
use tepui_proto::tepui::agent::v1 as stored;
use tepui_types::{Answer, ConnId, ContainerId, ContainerOp, Rejection, Status, Termination, check_id};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;
use crate::interface::input::Sender;
use crate::rules::authorization::authorize_operator;
use crate::rules::checkpoint::termination_to;
use crate::rules::gc;
use crate::rules::nested::{answer_all, forget, forget_below, is_recorded};
use crate::state::bookkeeping::WaitForm;
use crate::state::{ContainerStage, Executor, Phase};
use crate::{Caller, Record};

const CONTAINER_ID_CHARS_MAX: usize = 242;
/// How deep containers may be nested.
const CONTAINER_DEPTH_MAX: usize = 16;

/// Limit of sessions kept with their sandboxes after they terminated by themselves, for later waits.
const ENDED_SESSIONS_KEPT_MAX: usize = 100;

pub(crate) fn call(agent: &mut Agent, conn: ConnId, sender: &Sender, call: Call, out: &mut Out) {
    let caller = match authorize_operator(&agent.state, &agent.config.authorizer, sender, &call) {
        Ok(caller) => caller,
        Err(rejection) => return agent.answer(conn, rejection.into(), out),
    };
    match agent.state.phase {
        Phase::Recovering | Phase::Reconnecting => {
            let message = "Agent has not finished recovery";
            return agent.reject(conn, Status::Unavailable, message, out);
        }
        Phase::Running | Phase::Terminating => (),
    }
    let answer = match dispatch(agent, conn, caller, call, out) {
        Ok(answer) => answer,
        Err(refusal) => Some(refusal.into()),
    };
    if let Some(answer) = answer {
        agent.answer(conn, answer, out);
    }
}

type Answered = Result<Option<Answer<pb::agent::Response>>, Rejection>;

/// The answer, or none if it comes later.
fn dispatch(agent: &mut Agent, conn: ConnId, caller: Caller, call: Call, out: &mut Out) -> Answered {
    let name = |name: &str| invalid(format!("Expecting '{name}' to be present"));
    match call.r#type {
        None => Err(name("type")),
        Some(call::Type::LAUNCH_CONTAINER) => {
            let call = call.launch_container.ok_or_else(|| name("launch_container"))?;
            launch::launch_container(agent, (conn, caller), call, out)
        }
        Some(call::Type::LAUNCH_NESTED_CONTAINER) => {
            let call = call.launch_nested_container.ok_or_else(|| name("launch_nested_container"))?;
            launch::launch_nested_container(agent, (conn, caller), call, out)
        }
        Some(call::Type::LAUNCH_NESTED_CONTAINER_SESSION) => {
            let call = call.launch_nested_container_session;
            let call = call.ok_or_else(|| name("launch_nested_container_session"))?;
            launch::launch_session(agent, (conn, caller), call, out)
        }
        Some(call::Type::WAIT_CONTAINER) => {
            let call = call.wait_container.ok_or_else(|| name("wait_container"))?;
            wait::wait(agent, conn, &call.container_id, WaitForm::Plain)
        }
        Some(call::Type::WAIT_NESTED_CONTAINER) => {
            let call = call.wait_nested_container.ok_or_else(|| name("wait_nested_container"))?;
            wait::wait(agent, conn, &call.container_id, WaitForm::Nested)
        }
        Some(call::Type::KILL_CONTAINER) => {
            let call = call.kill_container.ok_or_else(|| name("kill_container"))?;
            kill::kill(agent, &call.container_id, call.signal, out)
        }
        Some(call::Type::KILL_NESTED_CONTAINER) => {
            let call = call.kill_nested_container.ok_or_else(|| name("kill_nested_container"))?;
            kill::kill(agent, &call.container_id, call.signal, out)
        }
        Some(call::Type::REMOVE_CONTAINER) => {
            let call = call.remove_container.ok_or_else(|| name("remove_container"))?;
            remove::remove(agent, conn, &call.container_id, out)
        }
        Some(call::Type::REMOVE_NESTED_CONTAINER) => {
            let call = call.remove_nested_container.ok_or_else(|| name("remove_nested_container"))?;
            remove::remove(agent, conn, &call.container_id, out)
        }
        Some(other) => Err(not_implemented(other)),
    }
}

fn not_implemented(call: call::Type) -> Rejection {
    Rejection::new(Status::NotImplemented, format!("{call:?} is not implemented"))
}

/// The client of a call that is not answered yet went away, or that of a session did.
pub(crate) fn closed(agent: &mut Agent, conn: ConnId, out: &mut Out) {
    if let Some(id) = agent.requests.sessions.remove(&conn) {
        agent.container(ContainerOp::Destroy { id }, out);
    }
    let requests = &mut agent.requests;
    requests.launches.retain(|_, waiting| *waiting != conn);
    requests.removals.retain(|_, waiting| *waiting != conn);
    requests.waits.retain(|_, waiting| {
        waiting.retain(|(waiting, _)| *waiting != conn);
        !waiting.is_empty()
    });
}

/// The container runs.
pub(crate) fn launched(agent: &mut Agent, id: &ContainerId, pid: u32, out: &mut Out) {
    found_alive(agent, id, Some(pid));
    if let Some(conn) = agent.requests.launches.remove(id) {
        agent.answer(conn, Answer::Ok, out);
    }
}

pub(crate) fn found_alive(agent: &mut Agent, id: &ContainerId, pid: Option<u32>) {
    if let Some(container) = agent.state.container_mut(id) {
        container.stage = ContainerStage::Running { pid };
    }
}

/// The container failed to launch: it is removed.
pub(crate) fn launch_failed(agent: &mut Agent, now: Now, id: &ContainerId, message: String, out: &mut Out) {
    if let Some(conn) = agent.requests.launches.remove(id) {
        agent.reject(conn, Status::BadRequest, message, out);
    }
    forget(agent, id, out);
    lifecycle::end_if_done(agent, now, out);
}

/// The container terminated: pending waits are answered; a nested one is kept.
pub(crate) fn ended(agent: &mut Agent, now: Now, id: &ContainerId, termination: Termination, out: &mut Out) {
    let Some(container) = agent.state.container_mut(id) else { return };
    container.stage = ContainerStage::Ended(termination.clone());
    let sandbox = container.sandbox.to_string();
    let is_session = container.is_session;
    if id.parent().is_some() {
        record(agent, id, out);
    }
    answer_all(agent, id, Some(&termination), out);
    if is_session {
        session_ended(agent, id, out);
    }
    if id.parent().is_none() {
        forget_below(agent, id, out);
        forget(agent, id, out);
        gc::schedule(agent, now, sandbox, out);
        lifecycle::end_if_done(agent, now, out);
    }
}

/// A session ended; with too many of them remembered the oldest goes.
fn session_ended(agent: &mut Agent, id: &ContainerId, out: &mut Out) {
    agent.requests.sessions.retain(|_, kept| kept != id);
    agent.requests.ended_sessions.push_back(id.clone());
    if agent.requests.ended_sessions.len() <= ENDED_SESSIONS_KEPT_MAX {
        return;
    }
    let Some(oldest) = agent.requests.ended_sessions.pop_front() else { return };
    if let Some(container) = agent.state.containers.get(&oldest) {
        let sandbox = container.sandbox.to_string();
        forget_below(agent, &oldest, out);
        forget(agent, &oldest, out);
        agent.container(ContainerOp::Remove { id: oldest, sandbox }, out);
    }
}

/// A sandbox was removed, or could not be. False if no call here requested it.
pub(crate) fn path_done(agent: &mut Agent, path: &str, error: Option<&str>, out: &mut Out) -> bool {
    let Some(conn) = agent.requests.removals.remove(path) else { return false };
    match error {
        None => agent.answer(conn, Answer::Ok, out),
        Some(error) => agent.reject(conn, Status::Internal, error, out),
    }
    true
}

/// Where the container's sandbox is.
pub(crate) fn sandbox_of(agent: &Agent, id: &ContainerId) -> String {
    match (id.parent(), executor_in(agent, id)) {
        (Some(parent), _) => format!("{}/containers/{}", sandbox_of(agent, parent), id.value()),
        (None, Some(executor)) => executor.sandbox.to_string(),
        (None, None) => format!("{}/containers/{}", agent.config.work_dir, id.value()),
    }
}

/// Whether this is a live executor's container or one launched by a call.
pub(crate) fn is_known(agent: &Agent, id: &ContainerId) -> bool {
    executor_in(agent, id).is_some() || agent.state.containers.contains_key(id)
}

/// The live executor of this container.
fn executor_in<'a>(agent: &'a Agent, id: &ContainerId) -> Option<&'a Executor> {
    let (framework, executor) = agent.executors_by_container.get(id)?;
    let executor = agent.state.executor(framework, executor)?;
    (!executor.is_terminated()).then_some(executor)
}

fn record(agent: &Agent, id: &ContainerId, out: &mut Out) {
    let Some(container) = agent.state.containers.get(id) else { return };
    if !is_recorded(agent, id) {
        return;
    }
    let termination = match &container.stage {
        ContainerStage::Ended(termination) => Some(termination_to(termination)),
        ContainerStage::Launching | ContainerStage::Running { .. } => None,
    };
    let container = stored::StoredContainer {
        container_id: id.to_proto().into(),
        termination: termination.into(),
        ..Default::default()
    };
    out.record(Record::Container(container.into()));
}

/// The id as it may be used: each part can be the name of a directory and of a control group.
fn checked_id(id: &pb::ContainerID) -> Result<ContainerId, Rejection> {
    let mut part = Some(id);
    for _ in 0..CONTAINER_DEPTH_MAX {
        let Some(id) = part else { break };
        check_value(&id.value)?;
        part = id.parent.as_option();
    }
    match part {
        None => Ok(ContainerId::from(id)),
        Some(_) => Err(invalid(format!("containers are nested more than {CONTAINER_DEPTH_MAX} deep"))),
    }
}

fn check_value(value: &str) -> Result<(), Rejection> {
    let problem = match check_id(value) {
        Err(problem) => Some(problem.to_string()),
        Ok(()) if value.chars().count() > CONTAINER_ID_CHARS_MAX => {
            Some(format!("ID must not be longer than {CONTAINER_ID_CHARS_MAX} characters"))
        }
        Ok(()) if value.contains(['.', ' ']) => Some("ID must not contain '.' or a blank".into()),
        Ok(()) => None,
    };
    problem.map_or(Ok(()), |problem| {
        Err(invalid(format!("'container_id.value' '{value}' is invalid: {problem}")))
    })
}

fn invalid(problem: impl core::fmt::Display) -> Rejection {
    Rejection::bad_request(format!("Failed to validate agent::Call: {problem}"))
}
