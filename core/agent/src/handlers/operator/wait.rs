//! WAIT_CONTAINER and WAIT_NESTED_CONTAINER: answered when the container ends.

use tepui_proto::mesos::v1 as pb;
use tepui_types::ConnId;

use super::{Answered, checked_id, executor_in};
use crate::agent::Agent;
use crate::rules::nested::{answer, missing};
use crate::state::ContainerStage;
use crate::state::bookkeeping::WaitForm;

pub(super) fn wait(agent: &mut Agent, conn: ConnId, id: &pb::ContainerID, form: WaitForm) -> Answered {
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
