//! The shape of an operator call: its type is there, and so is what the type needs.

use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::Type;

/// The call's type, or what is missing.
pub(super) fn check(call: &Call) -> Result<Type, String> {
    let kind = call.r#type.ok_or_else(|| expecting("type"))?;
    let (name, is_set) = match kind {
        Type::GET_METRICS => ("get_metrics", call.get_metrics.is_set()),
        Type::SET_LOGGING_LEVEL => ("set_logging_level", call.set_logging_level.is_set()),
        Type::LIST_FILES => ("list_files", call.list_files.is_set()),
        Type::READ_FILE => ("read_file", call.read_file.is_set()),
        Type::UPDATE_WEIGHTS => ("update_weights", call.update_weights.is_set()),
        Type::RESERVE_RESOURCES => ("reserve_resources", call.reserve_resources.is_set()),
        Type::UNRESERVE_RESOURCES => ("unreserve_resources", call.unreserve_resources.is_set()),
        Type::CREATE_VOLUMES => ("create_volumes", call.create_volumes.is_set()),
        Type::DESTROY_VOLUMES => ("destroy_volumes", call.destroy_volumes.is_set()),
        Type::GROW_VOLUME => ("grow_volume", call.grow_volume.is_set()),
        Type::SHRINK_VOLUME => ("shrink_volume", call.shrink_volume.is_set()),
        Type::UPDATE_MAINTENANCE_SCHEDULE => {
            ("update_maintenance_schedule", call.update_maintenance_schedule.is_set())
        }
        Type::START_MAINTENANCE => ("start_maintenance", call.start_maintenance.is_set()),
        Type::STOP_MAINTENANCE => ("stop_maintenance", call.stop_maintenance.is_set()),
        Type::DRAIN_AGENT => ("drain_agent", call.drain_agent.is_set()),
        Type::DEACTIVATE_AGENT => ("deactivate_agent", call.deactivate_agent.is_set()),
        Type::REACTIVATE_AGENT => ("reactivate_agent", call.reactivate_agent.is_set()),
        Type::UPDATE_QUOTA => ("update_quota", call.update_quota.is_set()),
        Type::SET_QUOTA => ("set_quota", call.set_quota.is_set()),
        Type::REMOVE_QUOTA => ("remove_quota", call.remove_quota.is_set()),
        Type::TEARDOWN => ("teardown", call.teardown.is_set()),
        Type::MARK_AGENT_GONE => ("mark_agent_gone", call.mark_agent_gone.is_set()),
        Type::UNKNOWN
        | Type::GET_HEALTH
        | Type::GET_FLAGS
        | Type::GET_VERSION
        | Type::GET_LOGGING_LEVEL
        | Type::GET_STATE
        | Type::GET_AGENTS
        | Type::GET_FRAMEWORKS
        | Type::GET_EXECUTORS
        | Type::GET_OPERATIONS
        | Type::GET_TASKS
        | Type::GET_ROLES
        | Type::GET_WEIGHTS
        | Type::GET_MASTER
        | Type::SUBSCRIBE
        | Type::GET_MAINTENANCE_STATUS
        | Type::GET_MAINTENANCE_SCHEDULE
        | Type::GET_QUOTA => return Ok(kind),
    };
    if is_set { Ok(kind) } else { Err(expecting(name)) }
}

fn expecting(name: &str) -> String {
    format!("Expecting '{name}' to be present")
}
