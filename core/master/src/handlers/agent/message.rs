//! MESSAGE: from an executor to its scheduler. Unreliable: lost if the scheduler is not connected.

use tepui_proto::tepui::agent::v1::call::Message;
use tepui_types::{AgentId, FrameworkId};

use crate::master::{Master, Out};
use crate::values::counters::Counter;
use crate::values::event::to_scheduler;

pub(super) fn message(master: &mut Master, from: &AgentId, call: Message, out: &mut Out) {
    let framework_id = FrameworkId::from(&*call.framework_id);
    let event = to_scheduler::message(from, &call.executor_id, call.data);
    let heard = master.framework(&framework_id).is_some_and(|framework| framework.conn().is_some());
    master.count(match heard {
        true => Counter::ValidExecutorToFrameworkMessages,
        false => Counter::InvalidExecutorToFrameworkMessages,
    });
    master.send_to_framework(&framework_id, event, out);
}
