//! ACKNOWLEDGE: the framework has taken a status in; its agent may send the next. After the terminal one the task's
//! life is over.

use tepui_proto::mesos::v1::scheduler::call::Acknowledge;
use tepui_types::{AgentId, FrameworkId, TaskId, TaskStateExt};

use crate::entities::task;
use crate::master::{Master, Out};
use crate::values::counters::Counter;
use crate::values::event::to_agent;

pub(super) fn acknowledge(master: &mut Master, from: &FrameworkId, call: Acknowledge, out: &mut Out) {
    let (agent_id, task_id) = (AgentId::from(&*call.agent_id), TaskId::from(&*call.task_id));
    if master.agent(&agent_id).is_none_or(|agent| agent.conn().is_none()) {
        return master.count(Counter::InvalidStatusUpdateAcknowledgements);
    }
    let live = master.task(from, &task_id).filter(|live| live.agent_id == agent_id);
    let over = live.is_some_and(|live| {
        live.task.status_update_state.is_some_and(|state| state.is_terminal())
            && live.task.status_update_uuid.as_deref() == Some(&*call.uuid)
    });
    match live.map(|live| live.task.status_update_state) {
        // Nothing of this task was forwarded, so there is nothing to acknowledge.
        Some(None) => return master.count(Counter::InvalidStatusUpdateAcknowledgements),
        Some(Some(_)) if over => master.ends.acknowledged(&agent_id, from, &task_id, &call.uuid),
        Some(Some(_)) => (),
        None => master.ends.acknowledged_unknown(&agent_id, from, &task_id, &call.uuid),
    }
    master.count(Counter::ValidStatusUpdateAcknowledgements);
    master.send_to_agent(&agent_id, to_agent::acknowledge(from, &task_id, call.uuid), out);
    if over {
        task::complete(master, from, &task_id);
    }
}
