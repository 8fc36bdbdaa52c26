//! Taking tasks in: the checks a launch must pass, and what becomes of tasks that do not.
//!
//! Tasks of one launch share one fate.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Resource, Resources};
use tepui_types::{ExecutorId, FrameworkId, TaskId, check_id, group_limits, lost_as};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle::{self, exited_executor};
use crate::entities::reconcile::reconcile;
use crate::entities::slack;
use crate::entities::status::{self, Verdict};
use crate::rules::checkpoint::{record_executor, record_task};
use crate::rules::limits::missing_isolator;
use crate::rules::{disk_pressure, gc, users};
use crate::state::launching::Launching;
use crate::state::paths;
use crate::state::transition::Transition;
use crate::state::{Delivery, ExecutorEvent, ExecutorPhase, Phase, TaskStage, has_capability};

/// The resources of a launch.
struct Requests {
    executor: Resources,
    /// In the order of the tasks.
    tasks: Vec<Resources>,
}

struct Refused {
    reason: Reason,
    message: String,
}

pub(crate) fn run(agent: &mut Agent, now: Now, mut launching: Launching, out: &mut Out) {
    match agent.state.phase {
        Phase::Running => (),
        Phase::Recovering | Phase::Reconnecting | Phase::Terminating => return,
    }
    let framework = FrameworkId::from(&*launching.framework.id);
    for task in &launching.tasks {
        complete_earlier(agent, now, &framework, &TaskId::from(&*task.task_id), out);
    }
    reconcile(agent, now, out);
    if is_ignored(agent, &framework, &launching) {
        return;
    }
    if agent.state.framework(&framework).is_some_and(|framework| framework.terminating) {
        let reason = Reason::REASON_EXECUTOR_TERMINATED;
        let refused = Refused { reason, message: "Framework terminating".into() };
        return drop_unseen(agent, now, &framework, &launching, refused, out);
    }
    if let Some(message) = disk_pressure::rejection(agent, "a launch") {
        let refused = Refused { reason: Reason::REASON_CONTAINER_LIMITATION_DISK, message };
        return drop_unseen(agent, now, &framework, &launching, refused, out);
    }
    inject_allocation(&mut launching);
    lifecycle::update_framework(agent, launching.framework.clone(), out);
    match check(agent, &framework, &launching) {
        Ok(requests) => accept(agent, now, &framework, launching, requests, out),
        Err(refused) => drop_tasks(agent, now, &framework, &launching, &refused, out),
    }
}

/// A task is launched under the id of a task that terminated here: its framework acknowledged that, and the
/// acknowledgement got lost.
fn complete_earlier(agent: &mut Agent, now: Now, framework: &FrameworkId, task: &TaskId, out: &mut Out) {
    if let Some(uuid) = status::unacknowledged_end(agent, framework, task) {
        lifecycle::acknowledge(agent, now, framework, task, &uuid, out);
    }
}

/// What cannot come from a sound master, or is known already: to answer would only harm the living.
fn is_ignored(agent: &Agent, framework: &FrameworkId, launching: &Launching) -> bool {
    let ids = launching.tasks.iter().map(|task| task.task_id.value.as_str());
    let mut ids = ids.chain([framework.as_str(), launching.executor.executor_id.value.as_str()]);
    let known = |task: &pb::TaskInfo| {
        let task = TaskId::from(&*task.task_id);
        agent.state.executor_of(framework, &task).is_some()
            || agent.streams.contains_key(&(framework.clone(), task))
    };
    launching.tasks.is_empty() || ids.any(|id| check_id(id).is_err()) || launching.tasks.iter().any(known)
}

/// A framework with a single role may leave out the allocation of resources.
fn inject_allocation(launching: &mut Launching) {
    let info = &launching.framework;
    let multi = has_capability(info, pb::framework_info::capability::Type::MULTI_ROLE);
    let role = match info.roles.as_slice() {
        [role] if multi => role.clone(),
        _ if multi => return,
        _ => info.role.clone().unwrap_or_else(|| "*".into()),
    };
    let tasks = launching.tasks.iter_mut().flat_map(|task| {
        let executor = task.executor.as_option_mut().map(|executor| executor.resources.iter_mut());
        task.resources.iter_mut().chain(executor.into_iter().flatten())
    });
    for resource in tasks.chain(&mut launching.executor.resources) {
        if !resource.allocation_info.is_set() {
            let role = Some(role.clone());
            resource.allocation_info = pb::resource::AllocationInfo { role, ..Default::default() }.into();
        }
    }
}

/// The checks, in their order.
fn check(agent: &Agent, framework: &FrameworkId, launching: &Launching) -> Result<Requests, Refused> {
    let id = ExecutorId::from(&*launching.executor.executor_id);
    let refused = |reason: Reason, message: &str| Err(Refused { reason, message: message.into() });
    if let Some(message) = users::unauthorized(agent, launching) {
        let reason = match launching.group {
            true => Reason::REASON_TASK_GROUP_UNAUTHORIZED,
            false => Reason::REASON_TASK_UNAUTHORIZED,
        };
        return Err(Refused { reason, message });
    }
    let missing = launching.tasks.iter().find_map(|task| unenforced(agent, task));
    if let Some(message) = missing.or_else(|| unenforced_group(agent, &launching.executor)) {
        return Err(Refused { reason: Reason::REASON_TASK_INVALID, message });
    }
    if launching.tasks.iter().any(|task| task.resources.is_empty()) && !agent.config.best_effort_tasks {
        let message = "A task without resources needs an agent with --best_effort_tasks";
        return refused(Reason::REASON_TASK_INVALID, message);
    }
    if agent.state.drain.is_some() {
        let message = "Task was received while agent was already draining";
        return refused(Reason::REASON_AGENT_DRAINING, message);
    }
    let unknown = Reason::REASON_RESOURCES_UNKNOWN;
    let tasks = launching.tasks.iter().map(|task| known_resources(agent, &task.resources));
    let Some(tasks) = tasks.collect::<Option<Vec<_>>>() else {
        return refused(unknown, "Task uses resources that the agent does not have");
    };
    let Some(executor) = known_resources(agent, &launching.executor.resources) else {
        return refused(unknown, "Executor uses resources that the agent does not have");
    };
    let terminated = Reason::REASON_EXECUTOR_TERMINATED;
    let existing = agent.state.executor(framework, &id).map(|executor| &executor.phase);
    match (existing, launching.launch_executor) {
        (Some(_), _) if launching.generated => {
            let message = "Cannot reuse an already existing executor for a command task";
            refused(Reason::REASON_TASK_INVALID, message)
        }
        (Some(_), Some(true)) => refused(terminated, "Executor is to be launched but already exists"),
        (None, Some(false)) => refused(terminated, "Executor does not exist any more"),
        (Some(ExecutorPhase::Terminating { .. }), _) => refused(terminated, "Executor terminating"),
        (Some(ExecutorPhase::Terminated { .. }), _) => refused(terminated, "Executor terminated"),
        (
            None | Some(ExecutorPhase::Pending | ExecutorPhase::Registering | ExecutorPhase::Running { .. }),
            _,
        ) => Ok(Requests { executor, tasks }),
    }
}

/// A task limit that cannot be enforced; Docker enforces its own.
fn unenforced(agent: &Agent, task: &pb::TaskInfo) -> Option<String> {
    let container = task.container.as_option();
    match container.map(|container| container.r#type) {
        Some(pb::container_info::Type::DOCKER) => None,
        Some(pb::container_info::Type::MESOS) | None => {
            missing_isolator(&agent.config.isolation, &task.limits)
        }
    }
}

/// The same for a limit of a whole group.
fn unenforced_group(agent: &Agent, executor: &pb::ExecutorInfo) -> Option<String> {
    let limits = group_limits(&executor.labels).ok().filter(|_| agent.config.task_group_limits)?;
    missing_isolator(&agent.config.isolation, &limits)
}

/// None if they are invalid, or a dynamic reservation or persistent volume among them is not the agent's.
fn known_resources(agent: &Agent, resources: &[pb::Resource]) -> Option<Resources> {
    let resources = Resources::from_proto(resources).ok()?;
    let kept = |resource: &&Resource| resource.is_dynamically_reserved() || resource.is_persistent_volume();
    let unknown = |resource: &Resource| {
        let plain = resource.clone().with_allocation(None);
        !agent.state.total.contains_resource(&plain)
    };
    let has_unknown = resources.iter().filter(kept).any(unknown);
    (!has_unknown).then_some(resources)
}

/// Tasks of a framework that need not be known here: it was over, and another master took it in again before everything of it
/// here has ended; or there is no room for its record.
fn drop_unseen(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    launching: &Launching,
    refused: Refused,
    out: &mut Out,
) {
    let executor = ExecutorId::from(&*launching.executor.executor_id);
    let aware = has_capability(&launching.framework, pb::framework_info::capability::Type::PARTITION_AWARE);
    let state = lost_as(aware, TaskState::TASK_DROPPED);
    let verdict = Verdict::new(state, refused.reason, refused.message);
    for task in &launching.tasks {
        let task = TaskId::from(&*task.task_id);
        status::report_missing(agent, now, framework, Some(&executor), &task, &verdict, out);
    }
    if launching.launch_executor == Some(true) {
        exited_executor(agent, framework, &executor, -1, out);
    }
}

fn drop_tasks(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    launching: &Launching,
    refused: &Refused,
    out: &mut Out,
) {
    let executor = ExecutorId::from(&*launching.executor.executor_id);
    let state = match refused.reason {
        Reason::REASON_TASK_UNAUTHORIZED | Reason::REASON_TASK_GROUP_UNAUTHORIZED => TaskState::TASK_ERROR,
        _ => status::lost(agent, framework, TaskState::TASK_DROPPED),
    };
    let verdict = Verdict::new(state, refused.reason, refused.message.clone());
    for task in &launching.tasks {
        let task = TaskId::from(&*task.task_id);
        status::from_agent(agent, now, framework, Some(&executor), &task, &verdict, out);
    }
    if launching.launch_executor == Some(true) {
        lifecycle::shutdown_executor(agent, now, framework, &executor, out);
        exited_executor(agent, framework, &executor, -1, out);
    }
}

fn accept(
    agent: &mut Agent,
    now: Now,
    framework: &FrameworkId,
    launching: Launching,
    requests: Requests,
    out: &mut Out,
) {
    let id = ExecutorId::from(&*launching.executor.executor_id);
    let new = agent.state.executor(framework, &id).is_none();
    let borrows = launching.borrows();
    if new {
        unschedule(agent, framework, &id, out);
        let no_root = launching.no_root || !users::may_use_root(agent, &launching.framework);
        let executor = (launching.executor, requests.executor);
        lifecycle::add(agent, framework, executor, (launching.generated, no_root), now.wall);
    }
    let delivery = next_delivery(agent, framework, &id);
    let mut ids = Vec::new();
    for (info, resources) in launching.tasks.into_iter().zip(requests.tasks) {
        let mut task = lifecycle::new_task(agent, framework, info, resources);
        task.delivery = (delivery, launching.group);
        let task_id = task.id.clone();
        if let Some(executor) = agent.state.executor_mut(framework, &id) {
            executor.tasks.insert_mut(task_id.clone(), Arc::new(task));
        }
        ids.push(task_id);
    }
    let starts = slack::may_start(agent, now, &(framework.clone(), id.clone()), borrows);
    if new {
        if let Some(executor) = agent.state.executor_mut(framework, &id).filter(|_| starts) {
            executor.apply(ExecutorEvent::Started);
        }
        record_executor(agent, framework, &id, out);
    }
    let held_back = agent
        .state
        .executor(framework, &id)
        .is_some_and(|executor| executor.delivered && (!starts || executor.conn().is_none()));
    for task in &ids {
        if let Some(task) = agent.state.task_mut(framework, &id, task) {
            task.stage = TaskStage::Queued { held_back };
        }
        record_task(agent, framework, &id, task, out);
        let transition = Transition::TaskReceived {
            framework_id: framework.clone(),
            executor_id: id.clone(),
            task_id: task.clone(),
            pending: !starts,
        };
        Agent::log(transition, out);
    }
    if let Some(executor) = agent.state.executor_mut(framework, &id) {
        match launching.group {
            true => executor.queue.push(Delivery::Group(ids.clone())),
            false => executor.queue.extend(ids.iter().cloned().map(Delivery::Task)),
        }
    }
    if !starts {
        slack::settle(agent, now, out);
        slack::note_waiting(agent, now, &(framework.clone(), id), &ids, out);
    } else if new {
        lifecycle::launch(agent, now, framework, &id, out);
    } else {
        agent.touched.executor(framework, &id);
    }
}

/// The executor's directories are needed again.
fn unschedule(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId, out: &mut Out) {
    let directory = paths::executor_directory(&agent.config.work_dir, &agent.id(), framework, id);
    gc::unschedule(agent, &directory, out);
}

/// Deliveries of an executor are numbered, so that they keep their order over a restart.
fn next_delivery(agent: &mut Agent, framework: &FrameworkId, id: &ExecutorId) -> u64 {
    let Some(executor) = agent.state.executor_mut(framework, id) else { return 0 };
    executor.deliveries += 1;
    executor.deliveries
}
