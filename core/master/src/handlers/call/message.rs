//! MESSAGE: the scheduler speaks to an executor. Not reliable: if the agent is away it is lost.

use tepui_proto::mesos::v1::scheduler::call::Message;
use tepui_types::{AgentId, FrameworkId};

use crate::master::{Master, Out};
use crate::values::counters::Counter;
use crate::values::event::to_agent;

pub(super) fn message(master: &mut Master, from: &FrameworkId, call: Message, out: &mut Out) {
    let agent_id = AgentId::from(&*call.agent_id);
    let event = to_agent::message(from, &call.executor_id, call.data);
    let heard = master.agent(&agent_id).is_some_and(|agent| agent.conn().is_some());
    master.count(match heard {
        true => Counter::ValidFrameworkToExecutorMessages,
        false => Counter::InvalidFrameworkToExecutorMessages,
    });
    master.send_to_agent(&agent_id, event, out);
}
