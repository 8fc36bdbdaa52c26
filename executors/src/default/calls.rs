//! The agent calls of the default executor, as messages.

use tepui_client::v1::agent::call::LaunchNestedContainerSession;
use tepui_client::v1::agent::{Call, call};
use tepui_client::v1::environment::Variable;
use tepui_client::v1::volume::Source;
use tepui_client::v1::volume::source::{SandboxPath, Type as SourceType, sandbox_path};
use tepui_client::v1::{CommandInfo, ContainerID, ContainerInfo, Resource, TaskInfo, Volume, container_info};

use crate::process::allocation_role;

fn call_of(kind: call::Type) -> Call {
    Call { r#type: Some(kind), ..Default::default() }
}

/// Launches a task in its container. Idempotent, so that it can be retried.
pub fn launch(task: &TaskInfo, container_id: &ContainerID, container_ip: &str) -> Call {
    let mut command = (*task.command).clone();
    set_variable(&mut command, "MESOS_CONTAINER_IP", container_ip);
    if let Some(role) = allocation_role(task) {
        set_variable(&mut command, "MESOS_ALLOCATION_ROLE", role);
    }
    let launch = call::LaunchContainer {
        container_id: container_id.clone().into(),
        command: command.into(),
        resources: task.resources.clone(),
        container: container(task).map(Into::into).unwrap_or_default(),
        limits: task.limits.clone(),
        ..Default::default()
    };
    Call { launch_container: launch.into(), ..call_of(call::Type::LAUNCH_CONTAINER) }
}

fn set_variable(command: &mut CommandInfo, name: &str, value: &str) {
    let variables = &mut command.environment.get_or_insert_default().variables;
    variables.push(Variable { name: name.into(), value: Some(value.into()), ..Default::default() });
}

/// The container of a task: its own, plus the persistent volumes among its resources, which the executor's container
/// has mounted at the same paths.
fn container(task: &TaskInfo) -> Option<ContainerInfo> {
    let volumes: Vec<Volume> = task.resources.iter().filter_map(persistent_volume).collect();
    let mut container = match task.container.as_option() {
        Some(container) => container.clone(),
        None if volumes.is_empty() => return None,
        None => ContainerInfo { r#type: container_info::Type::MESOS, ..Default::default() },
    };
    container.volumes.extend(volumes);
    Some(container)
}

fn persistent_volume(resource: &Resource) -> Option<Volume> {
    resource.disk.persistence.as_option()?;
    let volume = resource.disk.volume.as_option()?;
    let path = SandboxPath {
        r#type: Some(sandbox_path::Type::PARENT),
        path: volume.container_path.clone(),
        ..Default::default()
    };
    let source =
        Source { r#type: Some(SourceType::SANDBOX_PATH), sandbox_path: path.into(), ..Default::default() };
    Some(Volume {
        mode: volume.mode,
        container_path: volume.container_path.clone(),
        source: source.into(),
        ..Default::default()
    })
}

pub fn wait(container_id: &ContainerID) -> Call {
    let wait = call::WaitNestedContainer { container_id: container_id.clone().into(), ..Default::default() };
    Call { wait_nested_container: wait.into(), ..call_of(call::Type::WAIT_NESTED_CONTAINER) }
}

pub fn kill(container_id: &ContainerID, signal: i32) -> Call {
    let kill = call::KillNestedContainer {
        container_id: container_id.clone().into(),
        signal: Some(signal),
        ..Default::default()
    };
    Call { kill_nested_container: kill.into(), ..call_of(call::Type::KILL_NESTED_CONTAINER) }
}

/// Runs the command of a check beneath the container of its task, in the task's sandbox and with its environment.
pub fn check_session(container_id: &ContainerID, command: &CommandInfo) -> LaunchNestedContainerSession {
    LaunchNestedContainerSession {
        container_id: container_id.clone().into(),
        command: command.clone().into(),
        ..Default::default()
    }
}

pub fn remove(container_id: &ContainerID) -> Call {
    let remove =
        call::RemoveNestedContainer { container_id: container_id.clone().into(), ..Default::default() };
    Call { remove_nested_container: remove.into(), ..call_of(call::Type::REMOVE_NESTED_CONTAINER) }
}

#[cfg(test)]
mod tests {
    use tepui_client::shorthand::{container_id, scalar, shell};
    use tepui_client::v1::resource::disk_info::Persistence;
    use tepui_client::v1::resource::{AllocationInfo, DiskInfo};
    use tepui_client::v1::value::Scalar;
    use tepui_client::v1::volume::Mode;

    use super::*;

    #[test]
    fn a_launch_carries_role_address_volumes_and_limits() {
        let volume = Volume { mode: Mode::RW, container_path: "data".into(), ..Default::default() };
        let persistence = Persistence { id: "p".into(), ..Default::default() };
        let disk = DiskInfo { persistence: persistence.into(), volume: volume.into(), ..Default::default() };
        let allocation = AllocationInfo { role: Some("web".into()), ..Default::default() };
        let task = TaskInfo {
            command: shell("work").into(),
            resources: vec![
                Resource { allocation_info: allocation.into(), ..scalar("cpus", 1.0) },
                Resource { disk: disk.into(), ..scalar("disk", 10.0) },
            ],
            limits: [("mem".to_owned(), Scalar { value: f64::INFINITY, ..Default::default() })].into(),
            ..Default::default()
        };
        let call = launch(&task, &container_id("c"), "10.0.0.1");
        assert_eq!(call.r#type, Some(call::Type::LAUNCH_CONTAINER), "the nested one has no limits");
        let launch = call.launch_container;
        assert_eq!(launch.limits, task.limits);
        let variables: Vec<_> = launch
            .command
            .environment
            .variables
            .iter()
            .map(|variable| (variable.name.as_str(), variable.value.as_deref()))
            .collect();
        assert_eq!(
            variables,
            [("MESOS_CONTAINER_IP", Some("10.0.0.1")), ("MESOS_ALLOCATION_ROLE", Some("web"))]
        );
        let volume = &launch.container.volumes[0];
        assert_eq!((volume.mode, volume.container_path.as_str()), (Mode::RW, "data"));
        assert_eq!(volume.source.sandbox_path.r#type, Some(sandbox_path::Type::PARENT));
        assert_eq!(launch.container.r#type, container_info::Type::MESOS);
        assert_eq!(launch.resources.len(), 2);

        let plain = TaskInfo { command: shell("work").into(), ..Default::default() };
        assert!(super::launch(&plain, &container_id("c"), "h").launch_container.container.is_unset());
    }
}
