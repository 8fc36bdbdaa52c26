//! MESSAGE: bytes from an executor to its scheduler; lost if the master is not there.

use tepui_proto::mesos::v1::executor::call;
use tepui_proto::tepui::agent::v1 as api;
use tepui_types::{ExecutorId, FrameworkId};

use crate::agent::{Agent, Out};
use crate::state::ExecutorPhase;

pub(super) fn message(
    agent: &mut Agent,
    framework: FrameworkId,
    executor: ExecutorId,
    message: call::Message,
    out: &mut Out,
) {
    let phase = agent.state.executor(&framework, &executor).map(|executor| &executor.phase);
    let running = matches!(phase, Some(ExecutorPhase::Running { .. }))
        && agent.state.framework(&framework).is_some_and(|framework| !framework.terminating);
    if !running || agent.link.subscribed().is_none() {
        agent.state.counters.invalid_framework_messages += 1;
        agent.state.touch();
        return;
    }
    agent.state.counters.valid_framework_messages += 1;
    let message = api::call::Message {
        framework_id: framework.to_proto().into(),
        executor_id: executor.to_proto().into(),
        data: message.data,
        ..Default::default()
    };
    let call =
        api::Call { r#type: Some(api::call::Type::MESSAGE), message: message.into(), ..Default::default() };
    agent.send_to_master(call, out);
}
