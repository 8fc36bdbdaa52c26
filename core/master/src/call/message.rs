//! MESSAGE: the scheduler speaks to an executor. Not reliable: if the agent is away it is lost.

use tepui_proto::mesos::v1::scheduler::call::Message;
use tepui_types::{AgentId, FrameworkId};

use crate::event::to_agent;
use crate::master::{Master, Out};

pub(super) fn message(master: &Master, from: &FrameworkId, call: Message, out: &mut Out) {
    let event = to_agent::message(from, &call.executor_id, call.data);
    master.tell_agent(&AgentId::from(&*call.agent_id), event, out);
}
