//! LAUNCH_GROUP: tasks that share an executor, all or none.

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::{LaunchGroup, Type};
use tepui_proto::tepui::agent::v1::event;

use super::launch::{book, book_executor};
use super::{AcceptedOffers, reject_tasks};
use crate::entities::task;
use crate::master::{Master, Out};
use crate::rules::authorization::LaunchRights;
use crate::rules::checks;
use crate::rules::checks::CheckedGroup;
use crate::rules::rejection::LaunchUnit;
use crate::state::Task;
use crate::validate::group::GroupResources;
use crate::values::event::to_agent;

pub(super) fn launch_group(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    group: LaunchGroup,
    out: &mut Out,
) {
    let Some(rights) = LaunchRights::of(master, &accepted.framework_id) else { return };
    match checks::group(master, accepted, &rights, group) {
        Ok(group) => start(master, accepted, &rights, group, out),
        Err(rejected) => {
            let tasks = &rejected.subject.task_group.tasks;
            let why = (LaunchUnit::Group, &rejected.rejection);
            reject_tasks(master, now, &accepted.framework_id, tasks, why, out);
        }
    }
}

fn start(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    rights: &LaunchRights,
    group: CheckedGroup,
    out: &mut Out,
) {
    let (mut group, GroupResources { executor, tasks }) = group.into_parts();
    let launch_executor =
        book_executor(master, accepted, group.executor.get_or_insert_default(), executor, out);
    let infos = &mut group.task_group.get_or_insert_default().tasks;
    for (info, resources) in infos.iter_mut().zip(tasks) {
        book(master, accepted, &resources, &mut info.resources);
        // Every task carries the same executor, in the same form.
        info.executor = (*group.executor).clone().into();
        master.count_operation(&accepted.framework_id, Type::LAUNCH_GROUP);
        task::launch(master, Task::staging(&accepted.framework_id, info, resources), out);
    }
    let launch = event::LaunchGroup {
        framework_info: pb::FrameworkInfo::clone(&rights.framework).into(),
        executor: group.executor.into_option().into(),
        task_group: group.task_group.into_option().into(),
        launch_executor,
        no_root: (!rights.root).then_some(true),
        ..Default::default()
    };
    master.send_to_agent(&accepted.agent_id, to_agent::launch_group(launch), out);
}
