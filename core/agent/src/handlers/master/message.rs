//! MESSAGE: bytes from a scheduler to one of its executors; lost if the executor cannot be reached.

use tepui_proto::mesos::v1::executor as executor_api;
use tepui_proto::tepui::agent::v1::event::Message;
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::state::ExecutorPhase;

pub(super) fn message(agent: &mut Agent, event: Message, out: &mut Out) {
    let (framework, id) = (FrameworkId::from(&*event.framework_id), ExecutorId::from(&*event.executor_id));
    let terminating = agent.state.framework(&framework).is_none_or(|framework| framework.terminating);
    let phase = agent.state.executor(&framework, &id).map(|executor| &executor.phase);
    let (false, Some(&ExecutorPhase::Running { conn: Some(conn) })) = (terminating, phase) else {
        agent.state.counters.invalid_framework_messages += 1;
        agent.state.touch();
        return;
    };
    agent.state.counters.valid_framework_messages += 1;
    let event = executor_api::Event {
        r#type: Some(executor_api::event::Type::MESSAGE),
        message: executor_api::event::Message { data: event.data, ..Default::default() }.into(),
        ..Default::default()
    };
    agent.send_to_executor(Some(conn), event, out);
}
