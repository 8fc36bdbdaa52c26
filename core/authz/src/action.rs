//! Everything that can be allowed or denied, with the key under which an operator writes its rules.

/// What the objects of an action's rules may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// Names that are compared as they are: users, principals, hosts.
    Names,
    /// Roles; a name with the suffix `/%` means all roles below it.
    Roles,
    /// Paths of endpoints, of which only some can be protected.
    Paths,
    /// All or none: rules do not distinguish objects.
    AnyOrNone,
}

/// An action that requires authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    RegisterFramework,
    RunTask,
    TeardownFramework,
    ReserveResources,
    UnreserveResources,
    CreateVolume,
    DestroyVolume,
    ResizeVolume,
    CreateBlockDisk,
    DestroyBlockDisk,
    CreateMountDisk,
    DestroyMountDisk,
    DestroyRawDisk,
    GetQuota,
    UpdateQuota,
    ViewRole,
    UpdateWeight,
    GetEndpoint,
    ViewFramework,
    ViewTask,
    ViewExecutor,
    AccessSandbox,
    AccessMesosLog,
    ViewFlags,
    SetLogLevel,
    RegisterAgent,
    UpdateMaintenanceSchedule,
    GetMaintenanceSchedule,
    StartMaintenance,
    StopMaintenance,
    GetMaintenanceStatus,
    DrainAgent,
    DeactivateAgent,
    ReactivateAgent,
    MarkAgentGone,
    LaunchNestedContainerAsUser,
    LaunchNestedContainerUnderParent,
    LaunchNestedContainerSessionAsUser,
    LaunchNestedContainerSessionUnderParent,
    KillNestedContainer,
    WaitNestedContainer,
    RemoveNestedContainer,
    AttachContainerInput,
    AttachContainerOutput,
    ViewContainer,
    LaunchStandaloneContainer,
    KillStandaloneContainer,
    WaitStandaloneContainer,
    RemoveStandaloneContainer,
    ViewStandaloneContainer,
    ModifyResourceProviderConfig,
    MarkResourceProviderGone,
    ViewResourceProvider,
    PruneImages,
}

type Row = (Action, &'static str, &'static str, Objects);

/// (action, key of its rules, key of the objects in a rule, kind of objects).
const TABLE: &[Row] = &[
    (Action::RegisterFramework, "register_frameworks", "roles", Objects::Roles),
    (Action::RunTask, "run_tasks", "users", Objects::Names),
    (Action::TeardownFramework, "teardown_frameworks", "framework_principals", Objects::Names),
    (Action::ReserveResources, "reserve_resources", "roles", Objects::Roles),
    (Action::UnreserveResources, "unreserve_resources", "reserver_principals", Objects::Names),
    (Action::CreateVolume, "create_volumes", "roles", Objects::Roles),
    (Action::DestroyVolume, "destroy_volumes", "creator_principals", Objects::Names),
    (Action::ResizeVolume, "resize_volumes", "roles", Objects::Roles),
    (Action::CreateBlockDisk, "create_block_disks", "roles", Objects::Roles),
    (Action::DestroyBlockDisk, "destroy_block_disks", "roles", Objects::Roles),
    (Action::CreateMountDisk, "create_mount_disks", "roles", Objects::Roles),
    (Action::DestroyMountDisk, "destroy_mount_disks", "roles", Objects::Roles),
    (Action::DestroyRawDisk, "destroy_raw_disks", "roles", Objects::Roles),
    (Action::GetQuota, "get_quotas", "roles", Objects::Roles),
    (Action::UpdateQuota, "update_quotas", "roles", Objects::Roles),
    (Action::ViewRole, "view_roles", "roles", Objects::Roles),
    (Action::UpdateWeight, "update_weights", "roles", Objects::Roles),
    (Action::GetEndpoint, "get_endpoints", "paths", Objects::Paths),
    (Action::ViewFramework, "view_frameworks", "users", Objects::Names),
    (Action::ViewTask, "view_tasks", "users", Objects::Names),
    (Action::ViewExecutor, "view_executors", "users", Objects::Names),
    (Action::AccessSandbox, "access_sandboxes", "users", Objects::Names),
    (Action::AccessMesosLog, "access_mesos_logs", "logs", Objects::AnyOrNone),
    (Action::ViewFlags, "view_flags", "flags", Objects::AnyOrNone),
    (Action::SetLogLevel, "set_log_level", "level", Objects::AnyOrNone),
    (Action::RegisterAgent, "register_agents", "agents", Objects::Names),
    (Action::UpdateMaintenanceSchedule, "update_maintenance_schedules", "machines", Objects::AnyOrNone),
    (Action::GetMaintenanceSchedule, "get_maintenance_schedules", "machines", Objects::AnyOrNone),
    (Action::StartMaintenance, "start_maintenances", "machines", Objects::AnyOrNone),
    (Action::StopMaintenance, "stop_maintenances", "machines", Objects::AnyOrNone),
    (Action::GetMaintenanceStatus, "get_maintenance_statuses", "machines", Objects::AnyOrNone),
    (Action::DrainAgent, "drain_agents", "agents", Objects::AnyOrNone),
    (Action::DeactivateAgent, "deactivate_agents", "agents", Objects::AnyOrNone),
    (Action::ReactivateAgent, "reactivate_agents", "agents", Objects::AnyOrNone),
    (Action::MarkAgentGone, "mark_agents_gone", "agents", Objects::AnyOrNone),
    (Action::LaunchNestedContainerAsUser, "launch_nested_containers_as_user", "users", Objects::Names),
    (
        Action::LaunchNestedContainerUnderParent,
        "launch_nested_containers_under_parent_with_user",
        "users",
        Objects::Names,
    ),
    (
        Action::LaunchNestedContainerSessionAsUser,
        "launch_nested_container_sessions_as_user",
        "users",
        Objects::Names,
    ),
    (
        Action::LaunchNestedContainerSessionUnderParent,
        "launch_nested_container_sessions_under_parent_with_user",
        "users",
        Objects::Names,
    ),
    (Action::KillNestedContainer, "kill_nested_containers", "users", Objects::Names),
    (Action::WaitNestedContainer, "wait_nested_containers", "users", Objects::Names),
    (Action::RemoveNestedContainer, "remove_nested_containers", "users", Objects::Names),
    (Action::AttachContainerInput, "attach_containers_input", "users", Objects::Names),
    (Action::AttachContainerOutput, "attach_containers_output", "users", Objects::Names),
    (Action::ViewContainer, "view_containers", "users", Objects::Names),
    (Action::LaunchStandaloneContainer, "launch_standalone_containers", "users", Objects::AnyOrNone),
    (Action::KillStandaloneContainer, "kill_standalone_containers", "users", Objects::AnyOrNone),
    (Action::WaitStandaloneContainer, "wait_standalone_containers", "users", Objects::AnyOrNone),
    (Action::RemoveStandaloneContainer, "remove_standalone_containers", "users", Objects::AnyOrNone),
    (Action::ViewStandaloneContainer, "view_standalone_containers", "users", Objects::AnyOrNone),
    (
        Action::ModifyResourceProviderConfig,
        "modify_resource_provider_configs",
        "resource_providers",
        Objects::AnyOrNone,
    ),
    (
        Action::MarkResourceProviderGone,
        "mark_resource_providers_gone",
        "resource_providers",
        Objects::AnyOrNone,
    ),
    (Action::ViewResourceProvider, "view_resource_providers", "resource_providers", Objects::AnyOrNone),
    (Action::PruneImages, "prune_images", "images", Objects::AnyOrNone),
];

impl Action {
    /// Every action.
    pub fn all() -> impl Iterator<Item = Action> {
        TABLE.iter().map(|row| row.0)
    }

    /// Under which key its rules stand.
    pub fn key(self) -> &'static str {
        self.row().1
    }

    /// Under which key a rule names its objects.
    pub fn object_key(self) -> &'static str {
        self.row().2
    }

    pub fn objects(self) -> Objects {
        self.row().3
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.0 == self).expect("every action has a row; a test holds it to that")
    }
}
