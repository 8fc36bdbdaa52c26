//! LAUNCH_GROUP: tasks that share an executor, all or none.

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::{LaunchGroup, Type};
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1::event;

use super::launch::{book, book_executor, log_executor};
use super::{AcceptedOffers, revocable, send_statuses};
use crate::event::to_agent;
use crate::master::{Master, Out};
use crate::state::Task;
use crate::status::Verdict;
use crate::{authorization, checks, task};

pub(super) fn launch_group(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    mut group: LaunchGroup,
    out: &mut Out,
) {
    let unauthorized = group.task_group.tasks.iter().find_map(|task| {
        let task = pb::TaskInfo { executor: group.executor.clone(), ..task.clone() };
        authorization::run_task(master, &accepted.framework_id, &task).err()
    });
    if let Some(why) = unauthorized {
        let verdict = Verdict::new(pb::TaskState::TASK_ERROR, Reason::REASON_TASK_GROUP_UNAUTHORIZED, why);
        return send_statuses(master, now, &accepted.framework_id, &group.task_group.tasks, &verdict, out);
    }
    revocable::settle_group(master, accepted, &mut group);
    if let Err(why) = checks::group(master, accepted, &group) {
        let verdict = Verdict::new(pb::TaskState::TASK_ERROR, Reason::REASON_TASK_GROUP_INVALID, why);
        return send_statuses(master, now, &accepted.framework_id, &group.task_group.tasks, &verdict, out);
    }
    let launch_executor = book_executor(master, accepted, group.executor.get_or_insert_default());
    if launch_executor {
        log_executor(accepted, &group.executor, out);
    }
    for info in &mut group.task_group.get_or_insert_default().tasks {
        let resources = book(master, accepted, &mut info.resources);
        // Every task carries the same executor, in the same form.
        info.executor = (*group.executor).clone().into();
        master.count_operation(&accepted.framework_id, Type::LAUNCH_GROUP);
        task::launch(master, Task::staging(&accepted.framework_id, info, resources), out);
    }
    let framework_info =
        master.framework(&accepted.framework_id).map(|framework| pb::FrameworkInfo::clone(&framework.info));
    let no_root = framework_info.as_ref().is_some_and(|info| !authorization::may_use_root(master, info));
    let launch = event::LaunchGroup {
        framework_info: framework_info.into(),
        executor: group.executor.into_option().into(),
        task_group: group.task_group.into_option().into(),
        launch_executor,
        no_root: no_root.then_some(true),
        ..Default::default()
    };
    master.tell_agent(&accepted.agent_id, to_agent::launch_group(launch), out);
}
