//! KILL_CONTAINER and KILL_NESTED_CONTAINER: a signal to the container's first process.

use alloc::format;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{Answer, ContainerOp, Rejection, Status};

use super::{Answered, checked_id, executor_in};
use crate::agent::{Agent, Out};

const SIGKILL: i32 = 9;
/// Numbers above are no signals.
const SIGNAL_MAX: i32 = 64;

pub(super) fn kill(agent: &Agent, id: &pb::ContainerID, signal: Option<i32>, out: &mut Out) -> Answered {
    let id = checked_id(id)?;
    let signal = signal.unwrap_or(SIGKILL);
    if !(1..=SIGNAL_MAX).contains(&signal) {
        return Err(super::invalid(format!("{signal} is not a signal")));
    }
    let runs = match agent.state.containers.get(&id) {
        Some(container) => !container.is_ended(),
        None => executor_in(agent, &id).is_some(),
    };
    if !runs {
        let message = format!("Container '{id}' cannot be found (or is already killed)");
        return Err(Rejection::new(Status::NotFound, message));
    }
    agent.container(ContainerOp::Signal { id, signal }, out);
    Ok(Some(Answer::Ok))
}
