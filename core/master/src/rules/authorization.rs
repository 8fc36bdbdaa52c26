//! Authorization of calls: the objects of each call, evaluated against the operator's rules.
//!
//! Frameworks act under the principal of their FrameworkInfo, operators under their authenticated one.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_authz::{Action, Subject};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::offer::Operation;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_types::{
    FrameworkId, ProcessUser, ROOT, Rejection, Status, docker_privilege, is_root, launch_users,
};

use crate::master::Master;
use crate::state::roles_of;
use crate::values::accepted_offers::AcceptedOffers;

/// Permission that a call needs: one action and its object. No object means any object.
type Permission<'a> = (Action, Option<&'a str>);

/// A principal may register an agent of this host name or address.
pub(crate) fn register_agent(master: &Master, principal: Option<&str>, name: &str) -> Result<(), String> {
    match master.config.authorizer.allows(principal.into(), Action::RegisterAgent, Some(name)) {
        true => Ok(()),
        false => Err(format!("Not authorized to register an agent as '{name}'")),
    }
}

/// A framework may be in every one of its roles.
pub(crate) fn register_framework(master: &Master, info: &pb::FrameworkInfo) -> Result<(), String> {
    let subject = Subject::from(info.principal.as_deref());
    let allows = |role: &String| {
        master.config.authorizer.allows(subject, Action::RegisterFramework, Some(role.as_str()))
    };
    match roles_of(info).iter().find(|role| !allows(role)) {
        Some(role) => Err(format!("Not authorized to use role '{role}'")),
        None => Ok(()),
    }
}

/// The users that the tasks of a framework may have. Decided once per operation: neither rules nor frameworks change
/// during an ACCEPT.
#[derive(Debug)]
pub(crate) struct LaunchRights {
    pub(crate) framework: Arc<pb::FrameworkInfo>,
    /// Whether tasks may have the framework's own user.
    own_user: bool,
    /// Whether tasks may be root; agents hold containers of others to their users.
    pub(crate) root: bool,
}

impl LaunchRights {
    /// None for an unknown framework.
    pub(crate) fn of(master: &Master, framework_id: &FrameworkId) -> Option<Self> {
        let framework = master.framework(framework_id)?.info.clone();
        let own_user = may_use(master, &framework, &framework.user);
        let root = may_use(master, &framework, ROOT);
        Some(Self { framework, own_user, root })
    }
}

/// A framework may use the users of all processes of a task: its executor, itself, its checks.
pub(crate) fn run_task(
    master: &Master,
    rights: &LaunchRights,
    task: &pb::TaskInfo,
    executor: Option<&pb::ExecutorInfo>,
) -> Result<(), String> {
    let own_user = rights.framework.user.as_str();
    for ProcessUser { process, user } in launch_users(own_user, executor, task) {
        let is_allowed =
            if user == own_user { rights.own_user } else { may_use(master, &rights.framework, user) };
        if is_allowed {
            continue;
        }
        let process = if process == "task" { String::new() } else { format!(" ({process})") };
        if is_root(user) && !master.config.root_submissions {
            let why = "is not allowed to run tasks without --root_submissions set";
            return Err(format!("User '{user}' {why}{process}"));
        }
        return Err(format!("Not authorized to launch as user '{user}'{process}"));
    }
    let containers = [Some(&task.container), executor.map(|executor| &executor.container)];
    let privilege = containers.into_iter().flatten().find_map(|container| docker_privilege(container));
    match privilege.filter(|_| !rights.root) {
        Some(field) => Err(format!("Not authorized to use '{field}' without the user 'root'")),
        None => Ok(()),
    }
}

/// Whether tasks of a framework may have this user.
pub(crate) fn may_use(master: &Master, framework: &pb::FrameworkInfo, user: &str) -> bool {
    let subject = Subject::from(framework.principal.as_deref());
    (master.config.root_submissions || !is_root(user))
        && master.config.authorizer.allows(subject, Action::RunTask, Some(user))
}

/// A framework may carry out an operation other than a launch.
pub(crate) fn operation(
    master: &Master,
    accepted: &AcceptedOffers,
    operation: &Operation,
) -> Result<(), String> {
    let Some(framework) = master.framework(&accepted.framework_id) else { return Ok(()) };
    let permissions = match operation.r#type.unwrap_or(OperationType::UNKNOWN) {
        OperationType::RESERVE => reserve(&operation.reserve.resources),
        OperationType::UNRESERVE => unreserve(&operation.unreserve.resources),
        OperationType::CREATE => by_role(Action::CreateVolume, &operation.create.volumes),
        OperationType::DESTROY => destroy(&operation.destroy.volumes),
        OperationType::GROW_VOLUME => resize(&operation.grow_volume.volume),
        OperationType::SHRINK_VOLUME => resize(&operation.shrink_volume.volume),
        OperationType::LAUNCH
        | OperationType::LAUNCH_GROUP
        | OperationType::CREATE_DISK
        | OperationType::DESTROY_DISK
        | OperationType::UNKNOWN => Vec::new(),
    };
    let subject = Subject::from(framework.info.principal.as_deref());
    match denied(master, subject, permissions) {
        Some((action, _)) => Err(format!("Not authorized to perform {action:?}")),
        None => Ok(()),
    }
}

/// An operator may make this call.
pub(crate) fn operator(master: &Master, principal: Option<&str>, call: &Call) -> Result<(), Rejection> {
    match denied(master, principal.into(), permissions(master, call)) {
        Some(_) => Err(Rejection::new(Status::Forbidden, "")),
        None => Ok(()),
    }
}

/// All permissions that an operator's call needs. Reads are filtered instead, where they are answered.
fn permissions<'a>(master: &'a Master, call: &'a Call) -> Vec<Permission<'a>> {
    match call.r#type.unwrap_or(Type::UNKNOWN) {
        Type::TEARDOWN => {
            let framework = master.framework(&FrameworkId::from(&*call.teardown.framework_id));
            let principal = framework.and_then(|framework| framework.info.principal.as_deref());
            alloc::vec![(Action::TeardownFramework, principal)]
        }
        Type::MARK_AGENT_GONE => alloc::vec![(Action::MarkAgentGone, None)],
        Type::DRAIN_AGENT => alloc::vec![(Action::DrainAgent, None)],
        Type::DEACTIVATE_AGENT => alloc::vec![(Action::DeactivateAgent, None)],
        Type::REACTIVATE_AGENT => alloc::vec![(Action::ReactivateAgent, None)],
        Type::UPDATE_MAINTENANCE_SCHEDULE => alloc::vec![(Action::UpdateMaintenanceSchedule, None)],
        Type::START_MAINTENANCE => alloc::vec![(Action::StartMaintenance, None)],
        Type::STOP_MAINTENANCE => alloc::vec![(Action::StopMaintenance, None)],
        Type::UPDATE_WEIGHTS => {
            let roles = call.update_weights.weight_infos.iter().map(|info| info.role.as_deref());
            roles.map(|role| (Action::UpdateWeight, role)).collect()
        }
        Type::UPDATE_QUOTA => {
            let roles = call.update_quota.quota_configs.iter().map(|config| config.role.as_str());
            roles.map(|role| (Action::UpdateQuota, Some(role))).collect()
        }
        Type::SET_QUOTA => {
            alloc::vec![(Action::UpdateQuota, call.set_quota.quota_request.role.as_deref())]
        }
        Type::REMOVE_QUOTA => alloc::vec![(Action::UpdateQuota, Some(call.remove_quota.role.as_str()))],
        Type::RESERVE_RESOURCES => {
            let mut permissions = reserve(&call.reserve_resources.resources);
            permissions.extend(unreserve(&call.reserve_resources.source));
            permissions
        }
        Type::UNRESERVE_RESOURCES => unreserve(&call.unreserve_resources.resources),
        Type::CREATE_VOLUMES => by_role(Action::CreateVolume, &call.create_volumes.volumes),
        Type::DESTROY_VOLUMES => destroy(&call.destroy_volumes.volumes),
        Type::GROW_VOLUME => resize(&call.grow_volume.volume),
        Type::SHRINK_VOLUME => resize(&call.shrink_volume.volume),
        Type::UNKNOWN
        | Type::SUBSCRIBE
        | Type::SET_LOGGING_LEVEL
        | Type::LIST_FILES
        | Type::READ_FILE
        | Type::GET_HEALTH
        | Type::GET_FLAGS
        | Type::GET_VERSION
        | Type::GET_METRICS
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
        | Type::GET_MAINTENANCE_STATUS
        | Type::GET_MAINTENANCE_SCHEDULE
        | Type::GET_QUOTA => Vec::new(),
    }
}

fn denied<'a>(
    master: &Master,
    subject: Subject<'_>,
    permissions: Vec<Permission<'a>>,
) -> Option<Permission<'a>> {
    permissions
        .into_iter()
        .find(|(action, object)| !master.config.authorizer.allows(subject, *action, *object))
}

fn by_role(action: Action, resources: &[pb::Resource]) -> Vec<Permission<'_>> {
    resources.iter().map(|resource| (action, reservation_role(resource))).collect()
}

fn reserve(resources: &[pb::Resource]) -> Vec<Permission<'_>> {
    by_role(Action::ReserveResources, resources)
}

fn unreserve(resources: &[pb::Resource]) -> Vec<Permission<'_>> {
    resources.iter().map(|resource| (Action::UnreserveResources, reserver(resource))).collect()
}

fn destroy(volumes: &[pb::Resource]) -> Vec<Permission<'_>> {
    volumes.iter().map(|volume| (Action::DestroyVolume, creator_of(volume))).collect()
}

fn resize(volume: &pb::Resource) -> Vec<Permission<'_>> {
    alloc::vec![(Action::ResizeVolume, reservation_role(volume))]
}

fn creator_of(volume: &pb::Resource) -> Option<&str> {
    let disk = volume.disk.as_option()?;
    disk.persistence.as_option()?.principal.as_deref()
}

/// The role of the innermost reservation, in the new way of writing it or in the old.
fn reservation_role(resource: &pb::Resource) -> Option<&str> {
    match resource.reservations.last() {
        Some(reservation) => reservation.role.as_deref(),
        None => resource.role.as_deref().filter(|role| *role != "*"),
    }
}

/// The principal of the innermost reservation.
fn reserver(resource: &pb::Resource) -> Option<&str> {
    match resource.reservations.last() {
        Some(reservation) => reservation.principal.as_deref(),
        None => resource.reservation.as_option().and_then(|reservation| reservation.principal.as_deref()),
    }
}

#[cfg(test)]
mod tests;
