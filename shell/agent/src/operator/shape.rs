//! The shape of an operator call: its type is there, and so is what the type needs.

use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;

/// The call's type, or what is missing.
pub(super) fn check(call: &Call) -> Result<Type, String> {
    let kind = call.r#type.ok_or_else(|| expecting("type"))?;
    let (name, is_set) = match kind {
        Type::GET_METRICS => ("get_metrics", call.get_metrics.is_set()),
        Type::SET_LOGGING_LEVEL => ("set_logging_level", call.set_logging_level.is_set()),
        Type::LIST_FILES => ("list_files", call.list_files.is_set()),
        Type::READ_FILE => ("read_file", call.read_file.is_set()),
        Type::LAUNCH_NESTED_CONTAINER => ("launch_nested_container", call.launch_nested_container.is_set()),
        Type::WAIT_NESTED_CONTAINER => ("wait_nested_container", call.wait_nested_container.is_set()),
        Type::KILL_NESTED_CONTAINER => ("kill_nested_container", call.kill_nested_container.is_set()),
        Type::REMOVE_NESTED_CONTAINER => ("remove_nested_container", call.remove_nested_container.is_set()),
        Type::LAUNCH_NESTED_CONTAINER_SESSION => {
            ("launch_nested_container_session", call.launch_nested_container_session.is_set())
        }
        Type::ATTACH_CONTAINER_INPUT => ("attach_container_input", call.attach_container_input.is_set()),
        Type::ATTACH_CONTAINER_OUTPUT => ("attach_container_output", call.attach_container_output.is_set()),
        Type::LAUNCH_CONTAINER => ("launch_container", call.launch_container.is_set()),
        Type::WAIT_CONTAINER => ("wait_container", call.wait_container.is_set()),
        Type::KILL_CONTAINER => ("kill_container", call.kill_container.is_set()),
        Type::REMOVE_CONTAINER => ("remove_container", call.remove_container.is_set()),
        Type::ADD_RESOURCE_PROVIDER_CONFIG => {
            ("add_resource_provider_config", call.add_resource_provider_config.is_set())
        }
        Type::UPDATE_RESOURCE_PROVIDER_CONFIG => {
            ("update_resource_provider_config", call.update_resource_provider_config.is_set())
        }
        Type::REMOVE_RESOURCE_PROVIDER_CONFIG => {
            ("remove_resource_provider_config", call.remove_resource_provider_config.is_set())
        }
        Type::MARK_RESOURCE_PROVIDER_GONE => {
            ("mark_resource_provider_gone", call.mark_resource_provider_gone.is_set())
        }
        Type::UNKNOWN
        | Type::GET_HEALTH
        | Type::GET_FLAGS
        | Type::GET_VERSION
        | Type::GET_LOGGING_LEVEL
        | Type::GET_STATE
        | Type::GET_CONTAINERS
        | Type::GET_FRAMEWORKS
        | Type::GET_EXECUTORS
        | Type::GET_OPERATIONS
        | Type::GET_TASKS
        | Type::GET_AGENT
        | Type::GET_RESOURCE_PROVIDERS
        | Type::PRUNE_IMAGES => return Ok(kind),
    };
    if is_set { Ok(kind) } else { Err(expecting(name)) }
}

fn expecting(name: &str) -> String {
    format!("Expecting '{name}' to be present")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_a_call_needs() {
        let of = |kind| check(&Call { r#type: Some(kind), ..Default::default() });
        // Which images stay is optional, and so is the message that says so.
        for kind in [Type::PRUNE_IMAGES, Type::GET_CONTAINERS, Type::GET_STATE] {
            assert_eq!(of(kind), Ok(kind));
        }
        assert_eq!(of(Type::WAIT_CONTAINER), Err(String::from("Expecting 'wait_container' to be present")));
        assert_eq!(check(&Call::default()), Err(String::from("Expecting 'type' to be present")));
    }
}
