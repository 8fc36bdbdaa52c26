//! LAUNCH: each task for itself. A task that passes is booked and sent to its agent; one that does not gets
//! TASK_ERROR.

use alloc::string::{String, ToString};

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::offer::operation::{Launch, Type};
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1::event;
use tepui_resources::{Format, Resources};
use tepui_types::ExecutorId;

use super::{AcceptedOffers, revocable, send_statuses};
use crate::event::to_agent;
use crate::master::{Master, Out};
use crate::state::Task;
use crate::status::Verdict;
use crate::transition::Transition;
use crate::{authorization, checks, executor, task};

pub(super) fn launch(
    master: &mut Master,
    now: Now,
    accepted: &mut AcceptedOffers,
    launch: Launch,
    out: &mut Out,
) {
    for mut info in launch.task_infos {
        if let Err(why) = authorization::run_task(master, &accepted.framework_id, &info) {
            let verdict = Verdict::new(pb::TaskState::TASK_ERROR, Reason::REASON_TASK_UNAUTHORIZED, why);
            send_statuses(master, now, &accepted.framework_id, [&info], &verdict, out);
            continue;
        }
        revocable::settle_task(master, accepted, &mut info);
        match checks::task(master, accepted, &info) {
            Ok(resources) => start(master, accepted, info, resources, out),
            Err(why) => {
                let verdict = Verdict::new(pb::TaskState::TASK_ERROR, Reason::REASON_TASK_INVALID, why);
                send_statuses(master, now, &accepted.framework_id, [&info], &verdict, out);
            }
        }
    }
}

/// A task that passed every check, with its resources.
fn start(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    mut info: pb::TaskInfo,
    resources: Resources,
    out: &mut Out,
) {
    let new_executor =
        info.executor.as_option_mut().is_some_and(|executor| book_executor(master, accepted, executor));
    book_parsed(master, accepted, &resources, &mut info.resources);
    let launch_executor = info.executor.is_set().then_some(new_executor);
    master.count_operation(&accepted.framework_id, Type::LAUNCH);
    if let (true, Some(executor)) = (new_executor, info.executor.as_option()) {
        log_executor(accepted, executor, out);
    }
    task::launch(master, Task::staging(&accepted.framework_id, &info, resources), out);
    let framework_info =
        master.framework(&accepted.framework_id).map(|framework| pb::FrameworkInfo::clone(&framework.info));
    let no_root = framework_info.as_ref().is_some_and(|info| !authorization::may_use_root(master, info));
    let launch = event::Launch {
        framework_info: framework_info.into(),
        task: info.into(),
        launch_executor,
        no_root: no_root.then_some(true),
        ..Default::default()
    };
    master.tell_agent(&accepted.agent_id, to_agent::launch(launch), out);
}

/// Moves accepted resources to the used ones, in the form that agents expect.
pub(super) fn book(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    list: &mut alloc::vec::Vec<pb::Resource>,
) -> Resources {
    let resources = parse(list).unwrap_or_default();
    book_parsed(master, accepted, &resources, list);
    resources
}

fn book_parsed(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    resources: &Resources,
    list: &mut alloc::vec::Vec<pb::Resource>,
) {
    accepted.pool -= &resources.non_shared();
    master.allocator.launch(&accepted.agent_id, &accepted.framework_id, resources);
    *list = resources.to_proto(Format::Post);
}

/// A new executor is to be started with its first task.
pub(super) fn log_executor(accepted: &AcceptedOffers, executor: &pb::ExecutorInfo, out: &mut Out) {
    let transition = Transition::ExecutorLaunched {
        framework_id: accepted.framework_id.clone(),
        executor_id: ExecutorId::from(&*executor.executor_id),
        agent_id: accepted.agent_id.clone(),
    };
    Master::log(transition, out);
}

/// Books an executor unless its agent has it already; true if it is new.
pub(super) fn book_executor(
    master: &mut Master,
    accepted: &mut AcceptedOffers,
    executor: &mut pb::ExecutorInfo,
) -> bool {
    let key = (accepted.framework_id.clone(), ExecutorId::from(&*executor.executor_id));
    if master.agent(&accepted.agent_id).is_some_and(|agent| agent.executors.contains_key(&key)) {
        return false;
    }
    let resources = book(master, accepted, &mut executor.resources);
    executor::add(master, &accepted.agent_id, &accepted.framework_id, executor.clone(), resources);
    true
}

pub(crate) fn parse(list: &[pb::Resource]) -> Result<Resources, String> {
    Resources::from_proto(list).map_err(|why| why.to_string())
}
