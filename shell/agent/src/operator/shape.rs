//! The shape of an operator call: its type is there, and so is what the type needs.

use tepui_program::operator::check_member;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::Type;

/// The call's type, or what is missing.
pub(super) fn check(call: &Call) -> Result<Type, String> {
    check_member(call.r#type, |kind| match kind {
        Type::GET_METRICS => call.get_metrics.is_set(),
        Type::SET_LOGGING_LEVEL => call.set_logging_level.is_set(),
        Type::LIST_FILES => call.list_files.is_set(),
        Type::READ_FILE => call.read_file.is_set(),
        Type::LAUNCH_NESTED_CONTAINER => call.launch_nested_container.is_set(),
        Type::WAIT_NESTED_CONTAINER => call.wait_nested_container.is_set(),
        Type::KILL_NESTED_CONTAINER => call.kill_nested_container.is_set(),
        Type::REMOVE_NESTED_CONTAINER => call.remove_nested_container.is_set(),
        Type::LAUNCH_NESTED_CONTAINER_SESSION => call.launch_nested_container_session.is_set(),
        Type::ATTACH_CONTAINER_INPUT => call.attach_container_input.is_set(),
        Type::ATTACH_CONTAINER_OUTPUT => call.attach_container_output.is_set(),
        Type::LAUNCH_CONTAINER => call.launch_container.is_set(),
        Type::WAIT_CONTAINER => call.wait_container.is_set(),
        Type::KILL_CONTAINER => call.kill_container.is_set(),
        Type::REMOVE_CONTAINER => call.remove_container.is_set(),
        Type::ADD_RESOURCE_PROVIDER_CONFIG => call.add_resource_provider_config.is_set(),
        Type::UPDATE_RESOURCE_PROVIDER_CONFIG => call.update_resource_provider_config.is_set(),
        Type::REMOVE_RESOURCE_PROVIDER_CONFIG => call.remove_resource_provider_config.is_set(),
        Type::MARK_RESOURCE_PROVIDER_GONE => call.mark_resource_provider_gone.is_set(),
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
        | Type::PRUNE_IMAGES => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_calls_require_their_fields() {
        let of = |kind| check(&Call { r#type: Some(kind), ..Default::default() });
        // The excluded images are optional, and so is their message.
        for kind in [Type::PRUNE_IMAGES, Type::GET_CONTAINERS, Type::GET_STATE] {
            assert_eq!(of(kind), Ok(kind));
        }
        assert_eq!(of(Type::WAIT_CONTAINER), Err(String::from("Expecting 'wait_container' to be present")));
        assert_eq!(check(&Call::default()), Err(String::from("Expecting 'type' to be present")));
    }
}
