//! What of the agent's doings goes into the audit log: calls about containers and sessions, and what changes the agent.

use tepui_http::{Deed, Request};
use tepui_proto::Enumeration;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;
use tepui_proto::mesos::v1::executor;
use tepui_types::{ContainerId, command_user};

/// Notes a call that runs, ends or reaches a container, or changes the agent. Reads and waits are not noted.
pub(crate) fn note_operator(request: &Request, call: &Call) {
    let Some(kind) = call.r#type else { return };
    let deed = Deed::new(kind.proto_name());
    let on = |deed: Deed, id: &pb::ContainerID| deed.on("container_id", ContainerId::from(id).to_string());
    let launch = |id: &pb::ContainerID, command: &pb::CommandInfo| {
        let deed = on(Deed::new(kind.proto_name()), id);
        match command_user(command) {
            Some(user) => deed.on("user", user),
            None => deed,
        }
    };
    let deed = match kind {
        Type::LAUNCH_NESTED_CONTAINER => {
            launch(&call.launch_nested_container.container_id, &call.launch_nested_container.command)
        }
        Type::LAUNCH_CONTAINER => launch(&call.launch_container.container_id, &call.launch_container.command),
        Type::LAUNCH_NESTED_CONTAINER_SESSION => {
            let call = &call.launch_nested_container_session;
            launch(&call.container_id, &call.command)
        }
        Type::KILL_NESTED_CONTAINER => on(deed, &call.kill_nested_container.container_id),
        Type::KILL_CONTAINER => on(deed, &call.kill_container.container_id),
        Type::REMOVE_NESTED_CONTAINER => on(deed, &call.remove_nested_container.container_id),
        Type::REMOVE_CONTAINER => on(deed, &call.remove_container.container_id),
        Type::ATTACH_CONTAINER_OUTPUT => on(deed, &call.attach_container_output.container_id),
        Type::ATTACH_CONTAINER_INPUT => on(deed, &call.attach_container_input.container_id),
        Type::SET_LOGGING_LEVEL => deed.on("level", call.set_logging_level.level.to_string()),
        Type::PRUNE_IMAGES => deed,
        _ => return,
    };
    request.note(match kind {
        // Executors do the rest all the time, and the log has what became of it.
        Type::LAUNCH_NESTED_CONTAINER_SESSION
        | Type::ATTACH_CONTAINER_OUTPUT
        | Type::ATTACH_CONTAINER_INPUT
        | Type::PRUNE_IMAGES => deed.log(),
        _ => deed.log_refusals(),
    });
}

/// Notes a call of an executor, which is of interest only if it speaks for another one.
pub(crate) fn note_executor(request: &Request, call: &executor::Call) {
    let Some(kind) = call.r#type else { return };
    let deed = Deed::new(kind.proto_name())
        .on("framework_id", call.framework_id.value.as_str())
        .on("executor_id", call.executor_id.value.as_str());
    request.note(deed.only_refusals().log_refusals());
}
