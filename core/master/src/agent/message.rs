//! MESSAGE: an executor speaks to its scheduler. Not reliable: if nobody listens it is lost.

use tepui_proto::tepui::agent::v1::call::Message;
use tepui_types::{AgentId, FrameworkId};

use crate::event::to_scheduler;
use crate::master::{Master, Out};

pub(super) fn message(master: &Master, from: &AgentId, call: Message, out: &mut Out) {
    let event = to_scheduler::message(from, &call.executor_id, call.data);
    master.tell_framework(&FrameworkId::from(&*call.framework_id), event, out);
}
