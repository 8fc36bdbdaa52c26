//! Tasks of a LAUNCH, and the rules that tasks of groups keep as well.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_proto::mesos::v1::executor_info::Type as ExecutorType;
use tepui_proto::wire;
use tepui_resources::{Name, Resources, Scalar, ScalarError};
use tepui_types::{ExecutorId, TaskId, check_id};

use super::resources::Parsed;
use super::{Launch, TaskUse, check, command, container, executor, resources};

/// The parsed resources of a task and of the executor that it brings.
#[derive(Debug)]
pub(crate) struct TaskResources {
    pub(crate) own: Resources,
    pub(crate) executor: Option<Resources>,
}

/// One task of a LAUNCH with everything it brings.
pub(crate) fn launch(launch: &Launch<'_>, task: &pb::TaskInfo) -> Result<TaskResources, String> {
    let own = self::task(launch, task)?;
    room(launch, core::slice::from_ref(task))?;
    if task.command.is_set() == task.executor.is_set() {
        return Err(
            "Task should have at least one (but not both) of CommandInfo or ExecutorInfo present".into()
        );
    }
    let executor = task.executor.as_option();
    let executor = executor.map(|info| executor_of_task(launch, info)).transpose()?;
    let total = match &executor {
        Some(resources) => with_executor(launch, task, &own, resources)?,
        None => own.clone().single_copies(),
    };
    if !launch.remaining.contains(&total) {
        return Err(format!(
            "Total resources {total} required by task and its executor is more than available {}",
            launch.remaining
        ));
    }
    match shares_cgroups(task) {
        Some(false) => Err("Only tasks in a task group may have 'share_cgroups' set to 'false'".into()),
        Some(true) => Err("Only tasks in a task group may have 'share_cgroups' set".into()),
        None => Ok(TaskResources { own, executor }),
    }
}

/// What a task and its executor take from the offers: nothing for an executor that already runs.
fn with_executor(
    launch: &Launch<'_>,
    task: &pb::TaskInfo,
    own: &Resources,
    executor: &Resources,
) -> Result<Resources, String> {
    let own = Parsed { list: &task.resources, resources: own };
    let both = resources::together(&[own, Parsed { list: &task.executor.resources, resources: executor }])?;
    match executor::is_running(launch, &task.executor) {
        true => Ok(own.resources.clone().single_copies()),
        false => Ok(both),
    }
}

/// Whether the master has room for the descriptions of more tasks of the framework.
pub(super) fn room(launch: &Launch<'_>, tasks: &[pb::TaskInfo]) -> Result<(), String> {
    let (known, limit) = (launch.task_bytes, launch.limits.tasks_of_framework);
    // Far from the limit nothing needs to be measured.
    if known.saturating_add(launch.limits.task_info.saturating_mul(tasks.len())) <= limit {
        return Ok(());
    }
    let kept = |task: &pb::TaskInfo| wire::size(task) - task.data.as_ref().map_or(0, |data| data.len());
    let new: usize = tasks.iter().map(kept).sum();
    match known + new <= limit {
        true => Ok(()),
        false => Err(format!(
            "The tasks of the framework take {known} bytes of the master's memory, and {new} more would exceed the \
             limit of {limit} (--max_task_bytes_per_framework)"
        )),
    }
}

/// The rules that hold for every task, and its own resources.
pub(super) fn task(launch: &Launch<'_>, task: &pb::TaskInfo) -> Result<Resources, String> {
    wire::check_size(task, launch.limits.task_info)
        .map_err(|why| format!("'TaskInfo' {why} (--max_task_info_size)"))?;
    identity(launch, task)?;
    if task.kill_policy.grace_period.nanoseconds < 0 {
        return Err("Task's 'kill_policy.grace_period' must be non-negative".into());
    }
    if task.max_completion_time.nanoseconds < 0 {
        return Err("Task's 'max_completion_time' must be non-negative".into());
    }
    if let Some(inner) = task.check.as_option() {
        check::check(inner).map_err(|why| format!("Task uses invalid check: {why}"))?;
    }
    if let Some(inner) = task.health_check.as_option() {
        check::health_check(inner).map_err(|why| format!("Task uses invalid health check: {why}"))?;
    }
    if task.resources.is_empty() && !launch.best_effort_tasks {
        return Err("Task uses no resources".into());
    }
    let own = resources::parse("Task", &task.resources)?;
    if let Some(inner) = task.command.as_option() {
        command::command(inner).map_err(|why| format!("Task's `CommandInfo` is invalid: {why}"))?;
    }
    if let Some(inner) = task.container.as_option() {
        container::container(inner).map_err(|why| format!("Task's `ContainerInfo` is invalid: {why}"))?;
    }
    limits(launch, task, &own)?;
    Ok(own)
}

fn identity(launch: &Launch<'_>, task: &pb::TaskInfo) -> Result<(), String> {
    let id = &task.task_id.value;
    check_id(id).map_err(|why| format!("TaskID '{id}' is invalid: {why}"))?;
    match launch.known.task(&TaskId::from(&*task.task_id)) {
        TaskUse::Live => return Err(format!("Task has duplicate ID: {id}")),
        TaskUse::Unreachable => return Err(format!("Task reuses the ID of an unreachable task: {id}")),
        TaskUse::Unused => (),
    }
    match task.agent_id.value == launch.agent_id.as_str() {
        true => Ok(()),
        false => Err(format!(
            "Task uses invalid agent {} while agent {} is expected",
            task.agent_id.value, launch.agent_id
        )),
    }
}

fn limits(launch: &Launch<'_>, task: &pb::TaskInfo, requests: &Resources) -> Result<(), String> {
    if task.limits.is_empty() {
        return Ok(());
    }
    if !launch.agent_capabilities.contains(&AgentCapability::TASK_RESOURCE_LIMITS) {
        return Err("Task has resource limits, but its agent has no TASK_RESOURCE_LIMITS capability".into());
    }
    if let Some(name) = task.limits.keys().find(|name| *name != "cpus" && *name != "mem") {
        let only = "Only cpus and mem may be included in a task's resource limits";
        return Err(format!("{only}, not '{name}'"));
    }
    limit(launch, task, "cpu", Name::Cpus, requests.cpus())?;
    limit(launch, task, "memory", Name::Mem, requests.mem())
}

fn limit(
    launch: &Launch<'_>,
    task: &pb::TaskInfo,
    what: &str,
    name: Name,
    request: Scalar,
) -> Result<(), String> {
    let Some(limit) = task.limits.get(name.as_str()).map(|limit| limit.value) else { return Ok(()) };
    if limit.is_nan() || limit == f64::NEG_INFINITY {
        return Err(format!("The {what} limit 'limits.{name}' must be a number or Infinity, not {limit}"));
    }
    if request.is_zero() && !launch.best_effort_tasks {
        return Err(format!("A task with the {what} limit 'limits.{name}' must have a {what} request"));
    }
    let enough = match Scalar::from_f64(limit) {
        Ok(limit) => limit >= request,
        Err(ScalarError::Infinite | ScalarError::TooLarge) => true,
        Err(ScalarError::Negative | ScalarError::NotANumber) => false,
    };
    match enough {
        true => Ok(()),
        false => Err(format!(
            "The {what} limit must be greater than or equal to the {what} request: 'limits.{name}' is {limit}, \
             the request {request}"
        )),
    }
}

/// An executor that is launched by a task, not by a group.
fn executor_of_task(launch: &Launch<'_>, info: &pb::ExecutorInfo) -> Result<Resources, String> {
    let resources = executor::executor(launch, info)?;
    if info.r#type.is_some_and(|kind| kind != ExecutorType::CUSTOM) {
        return Err("'ExecutorInfo.type' must be 'CUSTOM' for the executor of a LAUNCH".into());
    }
    if !info.command.is_set() {
        return Err("'ExecutorInfo.command' must be set".into());
    }
    if info.resources.iter().any(|resource| resource.shared.is_set()) {
        return Err("Executor uses shared resources, which only tasks may".into());
    }
    if info.container.linux_info.share_cgroups.is_some() {
        return Err("Only the executor of a task group may have 'share_cgroups' set".into());
    }
    match launch.known.shares_cgroups(&ExecutorId::from(&*info.executor_id)) {
        Some(false) => Err(format!(
            "A task that is not in a group shares the cgroups of its executor, but under executor '{}' \
             'share_cgroups' is false for all tasks: use another executor id",
            info.executor_id.value
        )),
        Some(true) | None => Ok(resources),
    }
}

/// The task's own setting; unset means shared.
pub(super) fn shares_cgroups(task: &pb::TaskInfo) -> Option<bool> {
    task.container.linux_info.share_cgroups
}
