//! LAUNCH: each task for itself. A task that passes is booked and sent to its agent; one that does not gets
//! TASK_ERROR.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::Type;
use tepui_proto::tepui::agent::v1::event;
use tepui_resources::{Format, Resources};
use tepui_types::ExecutorId;

use super::{AcceptedOffers, reject_tasks};
use crate::entities::{executor, task};
use crate::master::{Master, Out};
use crate::rules::authorization::LaunchRights;
use crate::rules::checks;
use crate::rules::checks::CheckedTask;
use crate::rules::rejection::LaunchUnit;
use crate::state::Task;
use crate::state::transition::Transition;
use crate::validate::task::TaskResources;
use crate::values::event::to_agent;

pub(super) fn launch(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    tasks: Vec<pb::TaskInfo>,
    out: &mut Out,
) {
    let Some(rights) = LaunchRights::of(master, &accepted.framework_id) else { return };
    for info in tasks {
        match checks::task(master, accepted, &rights, info) {
            Ok(task) => start(master, accepted, &rights, task, out),
            Err(rejected) => {
                let tasks = core::slice::from_ref(&rejected.subject);
                let why = (LaunchUnit::Task, &rejected.rejection);
                reject_tasks(master, now, &accepted.framework_id, tasks, why, out);
            }
        }
    }
}

fn start(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    rights: &LaunchRights,
    task: CheckedTask,
    out: &mut Out,
) {
    let (mut info, TaskResources { own, executor }) = task.into_parts();
    let launch_executor = executor.map(|resources| {
        book_executor(master, accepted, info.executor.get_or_insert_default(), resources, out)
    });
    book(master, accepted, &own, &mut info.resources);
    master.count_operation(&accepted.framework_id, Type::LAUNCH);
    task::launch(master, Task::staging(&accepted.framework_id, &info, own), out);
    let launch = event::Launch {
        framework_info: pb::FrameworkInfo::clone(&rights.framework).into(),
        task: info.into(),
        launch_executor,
        no_root: (!rights.root).then_some(true),
        ..Default::default()
    };
    master.send_to_agent(&accepted.agent_id, to_agent::launch(launch), out);
}

/// Moves accepted resources to the used ones, in the form that agents expect.
pub(super) fn book(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    resources: &Resources,
    list: &mut Vec<pb::Resource>,
) {
    accepted.pool -= &resources.non_shared();
    master.allocator.launch(&accepted.agent_id, &accepted.framework_id, resources);
    *list = resources.to_proto(Format::Post);
}

/// Books an executor unless its agent has it already; true if it is new.
pub(super) fn book_executor(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    executor: &mut pb::ExecutorInfo,
    resources: Resources,
    out: &mut Out,
) -> bool {
    let (framework_id, agent_id) = (accepted.framework_id.clone(), accepted.agent_id.clone());
    let executor_id = ExecutorId::from(&*executor.executor_id);
    let key = (framework_id, executor_id);
    if master.agent(&agent_id).is_some_and(|agent| agent.executors.contains_key(&key)) {
        return false;
    }
    book(master, accepted, &resources, &mut executor.resources);
    let (framework_id, executor_id) = key;
    executor::add(master, &agent_id, &framework_id, executor.clone(), resources);
    Master::log(Transition::ExecutorLaunched { framework_id, executor_id, agent_id }, out);
    true
}
