//! REMOVE_CONTAINER and REMOVE_NESTED_CONTAINER: remove a terminated container and its sandbox.

use alloc::format;
use alloc::string::ToString;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{Answer, ConnId, ContainerOp, Rejection, Status};

use super::{Answered, checked_id, forget, forget_below, is_known};
use crate::agent::{Agent, Out};

pub(super) fn remove(agent: &mut Agent, conn: ConnId, id: &pb::ContainerID, out: &mut Out) -> Answered {
    let id = checked_id(id)?;
    let internal = |message| Err(Rejection::new(Status::Internal, message));
    if !is_known(agent, id.top()) {
        return internal(format!("Container {id} cannot be removed: its top container is not known"));
    }
    if id.parent().is_none() {
        return internal(format!("Container {id} is still running"));
    }
    let Some(container) = agent.state.containers.get(&id) else { return Ok(Some(Answer::Ok)) };
    if !container.is_ended() {
        return internal(format!("Container {id} is still running"));
    }
    let sandbox = container.sandbox.to_string();
    forget_below(agent, &id, out);
    forget(agent, &id, out);
    agent.requests.removals.insert(sandbox.clone(), conn);
    agent.container(ContainerOp::Remove { id, sandbox }, out);
    Ok(None)
}
