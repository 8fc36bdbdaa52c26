//! Fills in what schedulers may leave out: the allocation role of resources, the framework of an executor, the type
//! of a health check, the executor of a group's tasks and its cgroup setting. Kinds of revocable resources depend on
//! the usage of earlier tasks, and are filled in later (`revocable`).

use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::Operation;

use crate::values::accepted_offers::AcceptedOffers;

pub(crate) fn operation(operation: &mut Operation, accepted: &AcceptedOffers) {
    fill_tasks(operation, accepted);
    for resource in resources(operation) {
        if resource.allocation_info.role.is_none() {
            let role = Some(accepted.role.as_str().into());
            resource.allocation_info = pb::resource::AllocationInfo { role, ..Default::default() }.into();
        }
    }
}

/// The operation as its agent applies it: on unallocated resources.
pub(crate) fn without_allocation(mut operation: Operation) -> Operation {
    for resource in resources(&mut operation) {
        resource.allocation_info = None.into();
    }
    operation
}

fn fill_tasks(operation: &mut Operation, accepted: &AcceptedOffers) {
    if let Some(launch) = operation.launch.as_option_mut() {
        for task in &mut launch.task_infos {
            fill_health_check(task);
            if let Some(executor) = task.executor.as_option_mut()
                && !executor.framework_id.is_set()
            {
                executor.framework_id = accepted.framework_id.to_proto().into();
            }
        }
    }
    if let Some(group) = operation.launch_group.as_option_mut() {
        for task in &mut group.task_group.get_or_insert_default().tasks {
            fill_health_check(task);
            if !task.executor.is_set() {
                task.executor = (*group.executor).clone().into();
            }
            fill_sharing(task, &group.executor);
        }
    }
}

/// A task without a setting has cgroups of its own if its executor says so: then all readers find it in the task
/// itself.
fn fill_sharing(task: &mut pb::TaskInfo, executor: &pb::ExecutorInfo) {
    let said = executor.container.linux_info.share_cgroups == Some(false);
    if said && task.container.linux_info.share_cgroups.is_none() {
        if !task.container.is_set() {
            let r#type = pb::container_info::Type::MESOS;
            task.container = pb::ContainerInfo { r#type, ..Default::default() }.into();
        }
        task.container.get_or_insert_default().linux_info.get_or_insert_default().share_cgroups = Some(false);
    }
}

fn fill_health_check(task: &mut pb::TaskInfo) {
    let Some(check) = task.health_check.as_option_mut() else { return };
    if check.r#type.is_none() {
        check.r#type = match (check.command.is_set(), check.http.is_set()) {
            (true, false) => Some(pb::health_check::Type::COMMAND),
            (false, true) => Some(pb::health_check::Type::HTTP),
            (true, true) | (false, false) => None,
        };
    }
}

/// Every resource that an operation names.
pub(crate) fn resources(operation: &mut Operation) -> Vec<&mut pb::Resource> {
    let mut all = Vec::new();
    if let Some(launch) = operation.launch.as_option_mut() {
        launch.task_infos.iter_mut().for_each(|task| of_task(task, &mut all));
    }
    if let Some(group) = operation.launch_group.as_option_mut() {
        all.extend(group.executor.get_or_insert_default().resources.iter_mut());
        group.task_group.get_or_insert_default().tasks.iter_mut().for_each(|task| of_task(task, &mut all));
    }
    if let Some(reserve) = operation.reserve.as_option_mut() {
        all.extend(reserve.source.iter_mut().chain(&mut reserve.resources));
    }
    if let Some(unreserve) = operation.unreserve.as_option_mut() {
        all.extend(unreserve.resources.iter_mut());
    }
    if let Some(create) = operation.create.as_option_mut() {
        all.extend(create.volumes.iter_mut());
    }
    if let Some(destroy) = operation.destroy.as_option_mut() {
        all.extend(destroy.volumes.iter_mut());
    }
    if let Some(grow) = operation.grow_volume.as_option_mut() {
        all.push(grow.volume.get_or_insert_default());
        all.push(grow.addition.get_or_insert_default());
    }
    if let Some(shrink) = operation.shrink_volume.as_option_mut() {
        all.push(shrink.volume.get_or_insert_default());
    }
    all
}

fn of_task<'a>(task: &'a mut pb::TaskInfo, all: &mut Vec<&'a mut pb::Resource>) {
    all.extend(task.resources.iter_mut());
    if let Some(executor) = task.executor.as_option_mut() {
        all.extend(executor.resources.iter_mut());
    }
}
