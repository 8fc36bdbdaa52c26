//! The shape of an operator call: its type is there, and so is what the type needs.

use tepui_program::operator::check_member;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::Type;

/// The call's type, or what is missing.
pub(super) fn check(call: &Call) -> Result<Type, String> {
    check_member(call.r#type, |kind| match kind {
        Type::GET_METRICS => call.get_metrics.is_set(),
        Type::SET_LOGGING_LEVEL => call.set_logging_level.is_set(),
        Type::LIST_FILES => call.list_files.is_set(),
        Type::READ_FILE => call.read_file.is_set(),
        Type::UPDATE_WEIGHTS => call.update_weights.is_set(),
        Type::RESERVE_RESOURCES => call.reserve_resources.is_set(),
        Type::UNRESERVE_RESOURCES => call.unreserve_resources.is_set(),
        Type::CREATE_VOLUMES => call.create_volumes.is_set(),
        Type::DESTROY_VOLUMES => call.destroy_volumes.is_set(),
        Type::GROW_VOLUME => call.grow_volume.is_set(),
        Type::SHRINK_VOLUME => call.shrink_volume.is_set(),
        Type::UPDATE_MAINTENANCE_SCHEDULE => call.update_maintenance_schedule.is_set(),
        Type::START_MAINTENANCE => call.start_maintenance.is_set(),
        Type::STOP_MAINTENANCE => call.stop_maintenance.is_set(),
        Type::DRAIN_AGENT => call.drain_agent.is_set(),
        Type::DEACTIVATE_AGENT => call.deactivate_agent.is_set(),
        Type::REACTIVATE_AGENT => call.reactivate_agent.is_set(),
        Type::UPDATE_QUOTA => call.update_quota.is_set(),
        Type::SET_QUOTA => call.set_quota.is_set(),
        Type::REMOVE_QUOTA => call.remove_quota.is_set(),
        Type::TEARDOWN => call.teardown.is_set(),
        Type::MARK_AGENT_GONE => call.mark_agent_gone.is_set(),
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
        | Type::GET_QUOTA => true,
    })
}
