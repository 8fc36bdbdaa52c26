//! Operations of an ACCEPT: one file per operation, and what all of them go through first.
//!
//! An operation that fails does not stop the next. Launches fail by updates of their tasks, the others by an operation
//! status if the framework gave them an id.

mod convert;
mod create;
mod destroy;
mod grow_volume;
mod launch;
mod launch_group;
pub(crate) mod normalize;
mod reserve;
mod revocable;
mod shrink_volume;
mod unreserve;

use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent_info::capability::Type as Capability;
use tepui_proto::mesos::v1::offer::Operation;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::wire;
use tepui_resources::validate;
use tepui_types::FrameworkId;

use crate::accepted::AcceptedOffers;
use crate::authorization;
use crate::event::to_scheduler;
use crate::master::{Master, Out};
use crate::operation;
use crate::status::Verdict;
use crate::transition::{TaskUpdate, Transition};

/// Operations of one framework that it has not acknowledged; further ones need to have no id.
const OPERATIONS_OF_FRAMEWORK_MAX: usize = 10_000;

/// Runs one operation.
pub(crate) fn run(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    mut operation: Operation,
    out: &mut Out,
) {
    if let Err(why) = check(master, accepted, &mut operation) {
        return reject(master, now, accepted, &operation, why, out);
    }
    normalize::operation(&mut operation, accepted);
    if let Err(why) = authorization::operation(master, accepted, &operation) {
        return reject(master, now, accepted, &operation, why, out);
    }
    match operation.r#type.unwrap_or(Type::UNKNOWN) {
        Type::LAUNCH => {
            launch::launch(master, now, accepted, operation.launch.into_option().unwrap_or_default(), out)
        }
        Type::LAUNCH_GROUP => {
            let group = operation.launch_group.into_option().unwrap_or_default();
            launch_group::launch_group(master, now, accepted, group, out);
        }
        Type::RESERVE => reserve::reserve(master, accepted, operation, out),
        Type::UNRESERVE => unreserve::unreserve(master, accepted, operation, out),
        Type::CREATE => create::create(master, accepted, operation, out),
        Type::DESTROY => destroy::destroy(master, accepted, operation, out),
        Type::GROW_VOLUME => grow_volume::grow_volume(master, accepted, operation, out),
        Type::SHRINK_VOLUME => shrink_volume::shrink_volume(master, accepted, operation, out),
        Type::CREATE_DISK | Type::DESTROY_DISK => {
            let why = String::from("No agent has a resource provider that could carry it out");
            operation::reject(master, &accepted.framework_id, &operation, why, out);
        }
        Type::UNKNOWN => (),
    }
}

/// Shape and sound resources first, then whether feedback is possible.
fn check(master: &Master, accepted: &AcceptedOffers, operation: &mut Operation) -> Result<(), String> {
    if let Some((field, false)) = body(operation) {
        return Err(alloc::format!("Expecting '{field}' to be present"));
    }
    if operation.reserve.as_option().is_some_and(|reserve| !reserve.source.is_empty()) {
        return Err("'reserve.source' is not for schedulers".into());
    }
    if !is_launch(operation) {
        wire::check_size(operation, master.config.limits.operation)
            .map_err(|why| alloc::format!("The operation {why} (--max_operation_size)"))?;
    }
    for resource in normalize::resources(operation) {
        validate::resource(resource).map_err(|why| alloc::format!("{why}"))?;
    }
    if !operation.id.is_set() {
        return Ok(());
    }
    if is_launch(operation) {
        return Err("'id' is not supported for launches".into());
    }
    let unacknowledged = master.operations.count_of(&accepted.framework_id, OPERATIONS_OF_FRAMEWORK_MAX);
    if unacknowledged >= OPERATIONS_OF_FRAMEWORK_MAX {
        return Err(alloc::format!(
            "{OPERATIONS_OF_FRAMEWORK_MAX} operations with an 'id' are not acknowledged yet, which is the limit"
        ));
    }
    let feedback =
        master.agent(&accepted.agent_id).is_some_and(|it| it.has(Capability::AGENT_OPERATION_FEEDBACK));
    match feedback {
        true => Ok(()),
        false => Err("The agent does not support operation feedback, so 'id' must not be set".into()),
    }
}

/// The message an operation cannot do without, and whether it is there.
fn body(operation: &Operation) -> Option<(&'static str, bool)> {
    match operation.r#type.unwrap_or(Type::UNKNOWN) {
        Type::LAUNCH => Some(("launch", operation.launch.is_set())),
        Type::LAUNCH_GROUP => Some(("launch_group", operation.launch_group.is_set())),
        Type::RESERVE => Some(("reserve", operation.reserve.is_set())),
        Type::UNRESERVE => Some(("unreserve", operation.unreserve.is_set())),
        Type::CREATE => Some(("create", operation.create.is_set())),
        Type::DESTROY => Some(("destroy", operation.destroy.is_set())),
        Type::GROW_VOLUME => Some(("grow_volume", operation.grow_volume.is_set())),
        Type::SHRINK_VOLUME => Some(("shrink_volume", operation.shrink_volume.is_set())),
        Type::CREATE_DISK => Some(("create_disk", operation.create_disk.is_set())),
        Type::DESTROY_DISK => Some(("destroy_disk", operation.destroy_disk.is_set())),
        Type::UNKNOWN => None,
    }
}

/// Says that an operation was not carried out, in the way its kind asks for.
fn reject(
    master: &mut Master,
    now: Now,
    accepted: &AcceptedOffers,
    operation: &Operation,
    why: String,
    out: &mut Out,
) {
    let reason = match operation.r#type {
        Some(Type::LAUNCH_GROUP) => Reason::REASON_TASK_GROUP_INVALID,
        Some(_) | None => Reason::REASON_TASK_INVALID,
    };
    if is_launch(operation) {
        let verdict = Verdict::new(pb::TaskState::TASK_ERROR, reason, why);
        send_statuses(master, now, &accepted.framework_id, tasks(operation), &verdict, out);
    } else {
        operation::reject(master, &accepted.framework_id, operation, why, out);
    }
}

pub(crate) fn is_launch(operation: &Operation) -> bool {
    matches!(operation.r#type, Some(Type::LAUNCH | Type::LAUNCH_GROUP))
}

/// The tasks an operation would launch.
pub(crate) fn tasks(operation: &Operation) -> Vec<&pb::TaskInfo> {
    match operation.r#type {
        Some(Type::LAUNCH) => operation.launch.task_infos.iter().collect(),
        Some(Type::LAUNCH_GROUP) => operation.launch_group.task_group.tasks.iter().collect(),
        Some(_) | None => Vec::new(),
    }
}

/// Tells a framework of tasks that were never launched.
pub(crate) fn send_statuses<'a>(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    tasks: impl IntoIterator<Item = &'a pb::TaskInfo>,
    verdict: &Verdict,
    out: &mut Out,
) {
    for task in tasks {
        let status = verdict.on(now, &task.task_id, Some(&task.agent_id));
        master.count_task_end(framework_id, status.state, &status);
        Master::log(Transition::TaskUpdated(TaskUpdate::of(framework_id, &status)), out);
        master.tell_framework(framework_id, to_scheduler::update(status), out);
    }
}
