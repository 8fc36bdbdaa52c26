//! Operations of an ACCEPT: launches and conversions of resources.
//!
//! An operation that fails does not stop the next. Launches fail by updates of their tasks, the others by an operation
//! status if the framework gave them an id.

mod convert;
mod launch;
mod launch_group;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::Operation;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_types::FrameworkId;

use crate::entities::operation;
use crate::master::{Master, Out};
use crate::rules::checks::{self, CheckedOperation};
use crate::rules::rejection::{LaunchUnit, Rejected, Rejection};
use crate::state::transition::{TaskUpdate, Transition};
use crate::values::accepted_offers::AcceptedOffers;
use crate::values::event::to_scheduler;

/// Runs one operation.
pub(crate) fn run(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    operation: Operation,
    out: &mut Out,
) {
    match checks::operation(master, accepted, operation) {
        Ok(CheckedOperation::Launch(tasks)) => launch::launch(master, now, accepted, tasks, out),
        Ok(CheckedOperation::LaunchGroup(group)) => {
            launch_group::launch_group(master, now, accepted, group, out)
        }
        Ok(CheckedOperation::Conversion(conversion)) => convert::convert(master, accepted, conversion, out),
        Ok(CheckedOperation::Unknown) => (),
        Err(rejected) => {
            let Rejected { subject, rejection } = *rejected;
            reject(master, now, &accepted.framework_id, &subject, &rejection, out);
        }
    }
}

/// Rejects an operation of an ACCEPT as its kind requires: launches by statuses of their tasks, others by an operation
/// status.
pub(crate) fn reject(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    operation: &Operation,
    rejection: &Rejection,
    out: &mut Out,
) {
    match operation.r#type {
        Some(Type::LAUNCH) => {
            let tasks = &operation.launch.task_infos;
            reject_tasks(master, now, framework_id, tasks, (LaunchUnit::Task, rejection), out);
        }
        Some(Type::LAUNCH_GROUP) => {
            let tasks = &operation.launch_group.task_group.tasks;
            reject_tasks(master, now, framework_id, tasks, (LaunchUnit::Group, rejection), out);
        }
        Some(_) | None => {
            operation::reject(master, framework_id, operation, rejection.operation_message(), out);
        }
    }
}

/// Reports tasks that are not launched.
fn reject_tasks(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    tasks: &[pb::TaskInfo],
    (unit, rejection): (LaunchUnit, &Rejection),
    out: &mut Out,
) {
    let verdict = rejection.verdict(unit, master.is_partition_aware(framework_id));
    for task in tasks {
        let status = verdict.on(now, &task.task_id, Some(&task.agent_id));
        master.count_task_end(framework_id, status.state, &status);
        Master::log(Transition::TaskUpdated(TaskUpdate::of(framework_id, &status)), out);
        master.send_to_framework(framework_id, to_scheduler::update(status), out);
    }
}
