//! Executors: by themselves, and against one of the same id that already runs.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::executor_info::Type;
use tepui_resources::Resources;
use tepui_types::{ExecutorId, check_id};

use super::{Launch, RunningExecutor, command, container, resources};

/// The rules for executors of tasks and of groups, and the executor's resources.
pub(super) fn executor(launch: &Launch<'_>, info: &pb::ExecutorInfo) -> Result<Resources, String> {
    kind(info)?;
    let id = &info.executor_id.value;
    check_id(id).map_err(|why| format!("Executor's ID '{id}' is invalid: {why}"))?;
    if info.shutdown_grace_period.nanoseconds < 0 {
        return Err("ExecutorInfo's 'shutdown_grace_period' must be non-negative".into());
    }
    if let Some(inner) = info.command.as_option() {
        command::command(inner).map_err(|why| format!("Executor's `CommandInfo` is invalid: {why}"))?;
    }
    if let Some(inner) = info.container.as_option() {
        container::container(inner).map_err(|why| format!("Executor's `ContainerInfo` is invalid: {why}"))?;
    }
    framework(launch, info)?;
    let resources = resources::parse("Executor", &info.resources)?;
    if let Some(running) = launch.known.executor(&ExecutorId::from(&*info.executor_id)) {
        same(info, &resources, running)?;
    }
    Ok(resources)
}

/// Whether the agent has it already.
pub(super) fn is_running(launch: &Launch<'_>, info: &pb::ExecutorInfo) -> bool {
    launch.known.executor(&ExecutorId::from(&*info.executor_id)).is_some()
}

fn kind(info: &pb::ExecutorInfo) -> Result<(), String> {
    match info.r#type {
        Some(Type::DEFAULT) => default_executor(info),
        Some(Type::CUSTOM) if !info.command.is_set() => {
            Err("'ExecutorInfo.command' must be set for 'CUSTOM' executor".into())
        }
        Some(Type::CUSTOM | Type::UNKNOWN) | None => Ok(()),
    }
}

fn default_executor(info: &pb::ExecutorInfo) -> Result<(), String> {
    if info.command.is_set() {
        return Err("'ExecutorInfo.command' must not be set for 'DEFAULT' executor".into());
    }
    let Some(container) = info.container.as_option() else { return Ok(()) };
    if container.r#type != pb::container_info::Type::MESOS {
        return Err("'ExecutorInfo.container.type' must be 'MESOS' for 'DEFAULT' executor".into());
    }
    match container.mesos.image.is_set() {
        true => Err("'ExecutorInfo.container.mesos.image' must not be set for 'DEFAULT' executor".into()),
        false => Ok(()),
    }
}

fn framework(launch: &Launch<'_>, info: &pb::ExecutorInfo) -> Result<(), String> {
    match info.framework_id.as_option() {
        None => Err("'ExecutorInfo.framework_id' must be set".into()),
        Some(id) if id.value != launch.framework_id.as_str() => Err(format!(
            "ExecutorInfo has an invalid FrameworkID (Actual: {} vs Expected: {})",
            id.value, launch.framework_id
        )),
        Some(_) => Ok(()),
    }
}

/// Labels and the grace period may differ.
fn same(
    info: &pb::ExecutorInfo,
    resources: &Resources,
    RunningExecutor { info: running, resources: booked }: RunningExecutor<'_>,
) -> Result<(), String> {
    let fields = [
        ("type", info.r#type == running.r#type),
        ("data", info.data == running.data),
        ("resources", resources == booked),
        ("command", comparable(&info.command) == comparable(&running.command)),
        ("name", info.name == running.name),
        ("source", info.source == running.source),
        ("container", info.container == running.container),
        ("discovery", info.discovery == running.discovery),
    ];
    match fields.iter().find(|(_, same)| !same) {
        Some((field, _)) => Err(format!(
            "ExecutorInfo is not compatible with existing ExecutorInfo with same ExecutorID '{}': '{field}' differs",
            info.executor_id.value
        )),
        None => Ok(()),
    }
}

/// The order of uris and of variables has no meaning.
fn comparable(command: &pb::CommandInfo) -> pb::CommandInfo {
    let mut command = command.clone();
    command.uris.sort_by(|a, b| a.value.cmp(&b.value));
    if let Some(environment) = command.environment.as_option_mut() {
        environment.variables.sort_by(|a, b| a.name.cmp(&b.name));
    }
    command
}
