//! Taking tasks in: the checks a launch must pass, and what becomes of tasks that do not.
//!
//! Tasks of one launch share one fate.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Resource, Resources};
use tepui_types::{ExecutorId, FrameworkId, TaskId, check_id, group_limits, lost_as};

use super::end::exited_executor;
use super::{deliver, new_task, record_executor, record_task, shutdown_executor, start, update_framework};
use crate::agent::{Agent, Out};
use crate::state::{Delivery, ExecutorPhase, Phase, has_capability};
use crate::status::{self, Verdict};
use crate::transition::Transition;
use crate::{disk_pressure, gc, paths, slack, users};

/// A launch as the master ordered it.
#[derive(Debug)]
pub(crate) struct Launching {
    pub(crate) framework: pb::FrameworkInfo,
    pub(crate) executor: pb::ExecutorInfo,
    /// The executor is made by the agent for a command task.
    pub(crate) generated: bool,
    pub(crate) tasks: Vec<pb::TaskInfo>,
    /// The tasks are handed over together.
    pub(crate) group: bool,
    /// Whether the master thinks the executor new; unset if it does not know it.
    pub(crate) launch_executor: Option<bool>,
    /// The master says that the framework may not use the user root.
    pub(crate) no_root: bool,
}

impl Launching {
    /// Whether something that is reserved for others is lent for it.
    fn borrows(&self) -> bool {
        let slack = Some(pb::resource::revocable_info::Type::ALLOCATION_SLACK);
        let tasks = self.tasks.iter().flat_map(|task| &task.resources);
        tasks.chain(&self.executor.resources).any(|resource| resource.revocable.r#type == slack)
    }
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
        status::end_earlier(agent, now, &framework, &TaskId::from(&*task.task_id), out);
    }
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
    update_framework(agent, launching.framework.clone(), out);
    if let Some(refused) = refuse(agent, &framework, &launching) {
        drop_tasks(agent, now, &framework, &launching, &refused, out);
        return;
    }
    accept(agent, now, &framework, launching, out);
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

/// A framework with a single role need not say for whom its resources are.
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
fn refuse(agent: &Agent, framework: &FrameworkId, launching: &Launching) -> Option<Refused> {
    let id = ExecutorId::from(&*launching.executor.executor_id);
    let refused = |reason: Reason, message: &str| Some(Refused { reason, message: message.into() });
    if let Some(message) = users::unauthorized(agent, launching) {
        let reason = match launching.group {
            true => Reason::REASON_TASK_GROUP_UNAUTHORIZED,
            false => Reason::REASON_TASK_UNAUTHORIZED,
        };
        return Some(Refused { reason, message });
    }
    let missing = launching.tasks.iter().find_map(|task| unenforced(agent, task));
    if let Some(message) = missing.or_else(|| unenforced_group(agent, &launching.executor)) {
        return Some(Refused { reason: Reason::REASON_TASK_INVALID, message });
    }
    if launching.tasks.iter().any(|task| task.resources.is_empty()) && !agent.config.best_effort_tasks {
        let message = "A task without resources needs an agent with --best_effort_tasks";
        return refused(Reason::REASON_TASK_INVALID, message);
    }
    if agent.state.drain.is_some() {
        let message = "Task was received while agent was already draining";
        return refused(Reason::REASON_AGENT_DRAINING, message);
    }
    if launching.tasks.iter().any(|task| uses_unknown(agent, &task.resources)) {
        return refused(Reason::REASON_RESOURCES_UNKNOWN, "Task uses resources that the agent does not have");
    }
    if uses_unknown(agent, &launching.executor.resources) {
        return refused(
            Reason::REASON_RESOURCES_UNKNOWN,
            "Executor uses resources that the agent does not have",
        );
    }
    let terminated = Reason::REASON_EXECUTOR_TERMINATED;
    let existing = agent.state.executor(framework, &id).map(|executor| executor.phase);
    match (existing, launching.launch_executor) {
        (Some(_), _) if launching.generated => {
            let message = "Cannot reuse an already existing executor for a command task";
            refused(Reason::REASON_TASK_INVALID, message)
        }
        (Some(_), Some(true)) => refused(terminated, "Executor is to be launched but already exists"),
        (None, Some(false)) => refused(terminated, "Executor does not exist any more"),
        (Some(ExecutorPhase::Terminating { .. }), _) => refused(terminated, "Executor terminating"),
        (Some(ExecutorPhase::Terminated), _) => refused(terminated, "Executor terminated"),
        (Some(ExecutorPhase::Registering | ExecutorPhase::Running { .. }) | None, _) => None,
    }
}

/// A limit of a task that nobody would enforce; Docker enforces its own.
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

/// A limit that nobody would enforce.
pub(crate) fn missing_isolator<K: Borrow<str> + Ord, V>(
    isolation: &[String],
    limits: &BTreeMap<K, V>,
) -> Option<String> {
    for (name, isolator) in [("cpus", "cgroups/cpu"), ("mem", "cgroups/mem")] {
        let enforced = isolation.iter().any(|given| given.contains(isolator) || given == "cgroups/all");
        if limits.contains_key(name) && !enforced {
            return Some(format!(
                "A limit on '{name}' needs the isolator '{isolator}', which this agent lacks"
            ));
        }
    }
    None
}

/// Whether a dynamic reservation or persistent volume among these is not the agent's.
fn uses_unknown(agent: &Agent, resources: &[pb::Resource]) -> bool {
    let Ok(resources) = Resources::from_proto(resources) else { return true };
    let kept = |resource: &&Resource| resource.is_dynamically_reserved() || resource.is_persistent_volume();
    let unknown = |resource: &Resource| {
        let plain = resource.clone().with_allocation(None);
        !agent.state.total.contains_resource(&plain)
    };
    resources.iter().filter(kept).any(unknown)
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
        status::about_missing(agent, now, framework, Some(&executor), &task, &verdict, out);
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
        shutdown_executor(agent, now, framework, &executor, out);
        exited_executor(agent, framework, &executor, -1, out);
    }
}

fn accept(agent: &mut Agent, now: Now, framework: &FrameworkId, launching: Launching, out: &mut Out) {
    let id = ExecutorId::from(&*launching.executor.executor_id);
    let new = agent.state.executor(framework, &id).is_none();
    let borrows = launching.borrows();
    if new {
        unschedule(agent, framework, &id, out);
        let no_root = launching.no_root || !users::may_use_root(agent, &launching.framework);
        start::add(agent, framework, launching.executor, (launching.generated, no_root), now.wall);
    }
    let delivery = next_delivery(agent, framework, &id);
    let mut ids = Vec::new();
    for info in launching.tasks {
        let mut task = new_task(agent, framework, info);
        task.delivery = (delivery, launching.group);
        let task_id = task.id.clone();
        if let Some(executor) = agent.state.executor_mut(framework, &id) {
            executor.tasks.insert_mut(task_id.clone(), Arc::new(task));
        }
        ids.push(task_id);
    }
    let starts = slack::may_start(agent, now, &(framework.clone(), id.clone()), borrows);
    if new {
        if let Some(executor) = agent.state.executor_mut(framework, &id) {
            executor.started = starts;
        }
        record_executor(agent, framework, &id, out);
    }
    let held_back = agent
        .state
        .executor(framework, &id)
        .is_some_and(|executor| executor.delivered && (!starts || executor.conn().is_none()));
    for task in &ids {
        if let Some(task) = agent.state.task_mut(framework, &id, task) {
            task.held_back = held_back;
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
        start::launch(agent, now, framework, &id, out);
    } else {
        deliver(agent, now, framework, &id, out);
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
