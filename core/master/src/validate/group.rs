//! LAUNCH_GROUP: tasks and the executor they share.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as AgentCapability;
use tepui_proto::mesos::v1::executor_info::Type as ExecutorType;
use tepui_proto::mesos::v1::health_check::Type as HealthCheckType;
use tepui_proto::mesos::v1::offer::operation::LaunchGroup;
use tepui_proto::wire;
use tepui_resources::{Name, Resources, Scalar};
use tepui_types::{ExecutorId, group_limits};

use super::resources::Parsed;
use super::task::shares_cgroups;
use super::{Launch, executor, resources, task};

/// The least an executor of groups needs, in thousandths of a cpu and of a megabyte.
const EXECUTOR_CPUS_MIN: Scalar = Scalar::from_thousandths(10);
const EXECUTOR_MEM_MIN: Scalar = Scalar::from_thousandths(32_000);

/// The parsed resources of a group: of its executor, and of each task in order.
#[derive(Debug)]
pub(crate) struct GroupResources {
    pub(crate) executor: Resources,
    pub(crate) tasks: Vec<Resources>,
}

pub(crate) fn launch_group(launch: &Launch<'_>, group: &LaunchGroup) -> Result<GroupResources, String> {
    let tasks = &group.task_group.tasks;
    if tasks.is_empty() {
        return Err("Task group cannot be empty".into());
    }
    let mut ids = BTreeSet::new();
    let mut of_tasks = Vec::with_capacity(tasks.len());
    for task in tasks {
        let id = task.task_id.value.as_str();
        let repeated = if ids.insert(id) { Ok(()) } else { Err(format!("Task has duplicate ID: {id}")) };
        let own = repeated.and_then(|()| group_task(launch, task));
        of_tasks.push(own.map_err(|why| format!("Task '{id}' is invalid: {why}"))?);
    }
    task::room(launch, tasks)?;
    wire::check_size(&*group.executor, launch.limits.task_info)
        .map_err(|why| format!("'ExecutorInfo' {why} (--max_task_info_size)"))?;
    let parsed = group_executor(launch, group, of_tasks)?;
    limits(launch, group, &parsed)?;
    one_way_of_sharing(launch, group)?;
    Ok(parsed)
}

fn group_task(launch: &Launch<'_>, task: &pb::TaskInfo) -> Result<Resources, String> {
    let own = task::task(launch, task)?;
    if is_docker(&task.container) {
        return Err("Docker ContainerInfo is not supported on the task".into());
    }
    let probed = matches!(task.health_check.r#type, Some(HealthCheckType::HTTP | HealthCheckType::TCP));
    if probed && !task.container.network_infos.is_empty() {
        return Err(
            "HTTP and TCP health checks are not supported for tasks with a network of their own".into()
        );
    }
    match !task.limits.is_empty() && shares_cgroups(task) != Some(false) {
        true => {
            Err("Resource limits may only be set on a task of a group if its 'share_cgroups' is 'false'"
                .into())
        }
        false => Ok(own),
    }
}

fn group_executor(
    launch: &Launch<'_>,
    group: &LaunchGroup,
    of_tasks: Vec<Resources>,
) -> Result<GroupResources, String> {
    let info = &*group.executor;
    let parsed = GroupResources { executor: executor::executor(launch, info)?, tasks: of_tasks };
    if matches!(info.r#type, None | Some(ExecutorType::UNKNOWN)) {
        return Err("'ExecutorInfo.type' must be set to 'DEFAULT' or 'CUSTOM'".into());
    }
    if is_docker(&info.container) {
        return Err("Docker ContainerInfo is not supported on the executor".into());
    }
    let tasks = &group.task_group.tasks;
    // Left out, it is filled in.
    let differs = |task: &&pb::TaskInfo| task.executor.is_set() && *task.executor != *info;
    if let Some(task) = tasks.iter().find(differs) {
        return Err(format!(
            "The `ExecutorInfo` of task '{}' is different from its group's",
            task.task_id.value
        ));
    }
    least(&info.executor_id.value, &parsed.executor)?;
    let mut lists: Vec<Parsed<'_>> = parsed.lists(group).collect();
    resources::together(&lists)?;
    if executor::is_running(launch, info) {
        lists.pop(); // It takes nothing from the offers.
    }
    let total = resources::together(&lists)?;
    match launch.remaining.contains(&total) {
        true => Ok(parsed),
        false => Err(format!(
            "Total resources {total} required by task group and its executor are more than available {}",
            launch.remaining
        )),
    }
}

impl GroupResources {
    /// Those of the tasks, then those of the executor.
    fn lists<'a>(&'a self, group: &'a LaunchGroup) -> impl Iterator<Item = Parsed<'a>> {
        let of_tasks = group.task_group.tasks.iter().zip(&self.tasks);
        let of_tasks = of_tasks.map(|(task, resources)| Parsed { list: &task.resources, resources });
        of_tasks.chain([Parsed { list: &group.executor.resources, resources: &self.executor }])
    }
}

/// The limits of the whole group: not below its requests, nor below the limit of one of its tasks.
fn limits(launch: &Launch<'_>, group: &LaunchGroup, parsed: &GroupResources) -> Result<(), String> {
    if !launch.task_group_limits {
        return Ok(());
    }
    let tasks = &group.task_group.tasks;
    for (name, limit) in group_limits(&group.executor.labels)? {
        if !launch.agent_capabilities.contains(&AgentCapability::TASK_RESOURCE_LIMITS) {
            return Err(
                "Task group has resource limits, but its agent has no TASK_RESOURCE_LIMITS capability".into(),
            );
        }
        let requests = resources::together(&parsed.lists(group).collect::<Vec<_>>())?;
        let request = requests.amount(&Name::new(name)).to_f64();
        if limit < request {
            return Err(format!(
                "The {name} limit {limit} of the task group is less than its request of {request}"
            ));
        }
        let larger = |task: &&pb::TaskInfo| {
            task.limits.get(name).is_some_and(|own| own.value.is_finite() && own.value > limit)
        };
        if let Some(task) = tasks.iter().find(larger) {
            return Err(format!(
                "The {name} limit of task '{}' is greater than the {name} limit {limit} of its task group",
                task.task_id.value
            ));
        }
    }
    Ok(())
}

fn is_docker(container: &tepui_proto::MessageField<pb::ContainerInfo>) -> bool {
    container.as_option().is_some_and(|container| container.r#type == pb::container_info::Type::DOCKER)
}

fn least(id: &str, has: &Resources) -> Result<(), String> {
    if has.cpus() < EXECUTOR_CPUS_MIN {
        return Err(format!("Executor '{id}' needs at least {EXECUTOR_CPUS_MIN} cpus, not {}", has.cpus()));
    }
    if has.mem() < EXECUTOR_MEM_MIN {
        return Err(format!("Executor '{id}' needs at least {EXECUTOR_MEM_MIN} mem, not {}", has.mem()));
    }
    match has.disk().is_zero() {
        true => Err(format!("Executor '{id}' needs some disk")),
        false => Ok(()),
    }
}

/// Under one executor all tasks share its cgroups, or none does: the first of them determines it for ever, and the
/// executor's setting is the default of its tasks.
fn one_way_of_sharing(launch: &Launch<'_>, group: &LaunchGroup) -> Result<(), String> {
    let id = ExecutorId::from(&*group.executor.executor_id);
    let said = group.executor.container.linux_info.share_cgroups;
    let known = launch.known.shares_cgroups(&id);
    if let (Some(said), Some(known)) = (said, known)
        && said != known
    {
        return Err(another_sharing(&format!("Executor '{id}'"), said, &id));
    }
    let mut wanted = known.or(said);
    for task in &group.task_group.tasks {
        let own = shares_cgroups(task).or(said).unwrap_or(true);
        if *wanted.get_or_insert(own) != own {
            return Err(another_sharing(&format!("Task '{}'", task.task_id.value), own, &id));
        }
    }
    Ok(())
}

fn another_sharing(who: &str, own: bool, id: &ExecutorId) -> String {
    format!(
        "{who} has 'container.linux_info.share_cgroups' {own}, but under executor '{id}' it is {} for all tasks: use \
         that, or another executor id",
        !own
    )
}
