//! SHUTDOWN: an executor is to end itself and its tasks.

use tepui_proto::mesos::v1::scheduler::call::Shutdown;
use tepui_types::{AgentId, FrameworkId};

use crate::master::{Master, Out};
use crate::values::event::to_agent;

pub(super) fn shutdown(master: &Master, from: &FrameworkId, call: &Shutdown, out: &mut Out) {
    let event = to_agent::shutdown_executor(from, &call.executor_id);
    master.send_to_agent(&AgentId::from(&*call.agent_id), event, out);
}
