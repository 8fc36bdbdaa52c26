//! The life of a task in the master: live, then unreachable or completed.
//!
//! A live task holds its resources until its newest state is terminal, and stays live until its terminal update is
//! acknowledged. Absent: the causes of state changes.

use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::wire;
use tepui_resources::{Format, Resources};
use tepui_types::{AgentId, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use crate::entities::slack;
use crate::master::{Master, Out};
use crate::state::notice;
use crate::state::status::Verdict;
use crate::state::transition::{TaskUpdate, Transition};
use crate::state::{Framework, Presence, Task};
use crate::values::event::to_scheduler;

/// Limit of executors per framework whose cgroup isolation is stored; beyond that the oldest are removed.
const EXECUTORS_REMEMBERED_MAX: usize = 10_000;

/// Statuses of one task that are kept; an ordinary life has five.
const STATUSES_MAX: usize = 64;
/// What is kept of one status. The framework gets it whole.
const STATUS_BYTES_MAX: usize = 64 * 1024;
const STATUS_MESSAGE_BYTES_MAX: usize = 16 * 1024;

impl Task {
    /// A task that is about to be sent to its agent.
    pub(crate) fn staging(framework_id: &FrameworkId, info: &pb::TaskInfo, resources: Resources) -> Task {
        let executor_id = info.executor.as_option().map(|executor| ExecutorId::from(&*executor.executor_id));
        let task = pb::Task {
            name: info.name.clone(),
            task_id: info.task_id.clone(),
            framework_id: framework_id.to_proto().into(),
            executor_id: executor_id.as_ref().map(ExecutorId::to_proto).into(),
            agent_id: info.agent_id.clone(),
            state: pb::TaskState::TASK_STAGING,
            labels: info.labels.clone(),
            discovery: info.discovery.clone(),
            container: info.container.clone(),
            health_check: info.health_check.clone(),
            kill_policy: info.kill_policy.clone(),
            user: info.command.user.clone().or_else(|| info.executor.command.user.clone()),
            limits: info.limits.clone(),
            ..Default::default()
        };
        Task {
            id: TaskId::from(&*info.task_id),
            framework_id: framework_id.clone(),
            agent_id: AgentId::from(&*info.agent_id),
            executor_id,
            bytes: wire::size(&task),
            task,
            resources,
            is_reported: false,
        }
    }

    /// A task reported by an agent.
    pub(crate) fn reported(agent_id: &AgentId, mut task: pb::Task, resources: Resources) -> Task {
        if !resources.is_empty() {
            task.resources = Vec::new();
        }
        trim(&mut task.statuses);
        Task {
            id: TaskId::from(&*task.task_id),
            framework_id: FrameworkId::from(&*task.framework_id),
            agent_id: agent_id.clone(),
            executor_id: task.executor_id.as_option().map(ExecutorId::from),
            bytes: wire::size(&task),
            task,
            resources,
            is_reported: true,
        }
    }

    /// The task as GET_TASKS shows it.
    pub fn message(&self) -> pb::Task {
        let mut task = self.task.clone();
        if task.resources.is_empty() {
            task.resources = self.resources.to_proto(Format::Post);
        }
        task
    }

    pub(crate) fn state(&self) -> pb::TaskState {
        self.task.state
    }

    /// The task as it is once the master's verdict is in its books.
    pub(crate) fn ended(&self, now: Now, verdict: &Verdict) -> Arc<Task> {
        let mut task = self.clone();
        let status = verdict.on_task(now, &task);
        task.ingest_status(&status, status.state);
        Arc::new(task)
    }

    /// Takes a status in: the newest state, and the status among those kept.
    fn ingest_status(&mut self, status: &pb::TaskStatus, latest: pb::TaskState) -> Taken {
        let before = self.task.state;
        // Terminal is final, whatever comes late.
        if !before.is_terminal() {
            self.task.state = latest;
        }
        if status.uuid.is_some() {
            self.task.status_update_state = Some(status.state);
            self.task.status_update_uuid = status.uuid.clone();
        }
        let statuses = &mut self.task.statuses;
        let replaced = statuses.pop_if(|last| last.state == status.state);
        // A task has few statuses, and there are many tasks.
        statuses.reserve_exact(1);
        statuses.push(kept(status));
        if statuses.len() > STATUSES_MAX {
            statuses.remove(0);
        }
        Taken { changed: self.task.state != before, new_status: replaced.is_none() }
    }
}

/// Releases the room for more elements that decoded lists have, which is most of what statuses take.
fn trim(statuses: &mut Vec<pb::TaskStatus>) {
    for status in statuses.iter_mut() {
        if let Some(container) = status.container_status.as_option_mut() {
            container.network_infos.shrink_to_fit();
            container.network_infos.iter_mut().for_each(|info| info.ip_addresses.shrink_to_fit());
        }
    }
    statuses.shrink_to_fit();
}

/// A status as it stays in the books: without data, and without whatever makes it larger than its limit.
fn kept(status: &pb::TaskStatus) -> pb::TaskStatus {
    let kept = pb::TaskStatus { data: None, ..status.clone() };
    if wire::size(&kept) <= STATUS_BYTES_MAX {
        return kept;
    }
    let message = kept.message.map(|mut text| {
        text.truncate(text.floor_char_boundary(STATUS_MESSAGE_BYTES_MAX));
        text
    });
    let (labels, container_status, check_status) = Default::default();
    let small = pb::TaskStatus { message, labels, container_status, check_status, ..kept };
    match wire::size(&small) <= STATUS_BYTES_MAX {
        true => small,
        // Limited resources, or unknown fields.
        false => pb::TaskStatus {
            task_id: small.task_id,
            state: small.state,
            message: small.message,
            source: small.source,
            reason: small.reason,
            agent_id: small.agent_id,
            executor_id: small.executor_id,
            timestamp: small.timestamp,
            uuid: small.uuid,
            healthy: small.healthy,
            ..Default::default()
        },
    }
}

/// What a status brought that was not there before.
struct Taken {
    /// The task is in another state.
    changed: bool,
    /// The status has another state than the last one; the task's newest state may have been the same before.
    new_status: bool,
}

/// Puts a task among the live ones. Its resources are the caller's business.
pub(crate) fn add(master: &mut Master, mut task: Task, out: &mut Out) {
    master.notify(|| notice::task_added(&task), out);
    stand(master, &task.framework_id, &task.agent_id);
    let Some(framework) = master.framework_mut(&task.framework_id) else { return };
    share(framework, &mut task);
    record_sharing(framework, &task);
    let replaced = framework.tasks.get(&task.id).map_or(0, |old| old.bytes);
    framework.task_bytes = framework.task_bytes + task.bytes - replaced;
    let task = Arc::new(task);
    framework.tasks.insert_mut(task.id.clone(), task.clone());
    moved(master, &task, Presence::Nowhere, Presence::Live(task.state()));
    if let Some(agent) = master.agent_mut(&task.agent_id) {
        agent.tasks.insert_mut((task.framework_id.clone(), task.id.clone()));
    }
}

/// Many tasks of a framework are alike: its id and equal resources are in memory once, not with every task.
fn share(framework: &Framework, task: &mut Task) {
    task.framework_id = framework.id.clone();
    if let Some((_, other)) = framework.tasks.last()
        && other.resources == task.resources
    {
        task.resources = other.resources.clone();
    }
}

/// Puts a task among the live ones that is about to be sent to its agent.
pub(crate) fn launch(master: &mut Master, task: Task, out: &mut Out) {
    let (framework_id, task_id) = (task.framework_id.clone(), task.id.clone());
    add(master, task, out);
    if let Some(task) = master.task(&framework_id, &task_id).cloned() {
        Master::log(Transition::TaskLaunched { task }, out);
    }
}

fn record_sharing(framework: &mut Framework, task: &Task) {
    if let Some(executor) = &task.executor_id {
        let shares = task.task.container.linux_info.share_cgroups.unwrap_or(true);
        record_isolation(framework, executor, shares);
    }
}

/// The first task under an executor decides for all that come later, also long after it ended.
pub(crate) fn record_isolation(framework: &mut Framework, executor: &ExecutorId, shares: bool) {
    if !framework.shares_cgroups.contains(executor) {
        framework.shares_cgroups.push(EXECUTORS_REMEMBERED_MAX, executor.clone(), shares);
    }
}

/// Applies a status to a live task; a terminal one releases its resources and completes its kill.
pub(crate) fn update(
    master: &mut Master,
    framework_id: &FrameworkId,
    status: &pb::TaskStatus,
    latest: pb::TaskState,
    out: &mut Out,
) {
    let task_id = TaskId::from(&*status.task_id);
    let known = master.framework_mut(framework_id).and_then(|framework| framework.tasks.get_mut(&task_id));
    let Some(known) = known else { return };
    let before = known.state();
    let taken = Arc::make_mut(known).ingest_status(status, latest);
    let task = Arc::clone(known);
    let state = task.state();
    if taken.changed {
        moved(master, &task, Presence::Live(before), Presence::Live(state));
    }
    let checked = matches!(
        status.reason,
        Some(Reason::REASON_TASK_CHECK_STATUS_UPDATED | Reason::REASON_TASK_HEALTH_CHECK_STATUS_UPDATED)
    );
    if taken.changed && state.is_terminal() {
        slack::count_eviction(master, status, &task.resources);
        free(master, &task);
        forget_kill(master, &task);
    }
    if taken.changed && (state.is_terminal() || state == pb::TaskState::TASK_UNREACHABLE) {
        master.count_task_end(framework_id, state, status);
    }
    // Also a status whose state is known from the newest state: its message and reason are new.
    if taken.new_status || checked {
        master.notify(|| notice::task_updated(framework_id, status, state), out);
        let update = TaskUpdate::new(framework_id.clone(), task_id, task.agent_id.clone(), status);
        Master::log(Transition::TaskUpdated(update), out);
    }
}

/// Sends the framework an update made by the master about a live task, and applies it.
pub(crate) fn decide(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    task_id: &TaskId,
    verdict: &Verdict,
    out: &mut Out,
) {
    let Some(task) = master.task(framework_id, task_id) else { return };
    let status = verdict.on_task(now, task);
    master.send_to_framework(framework_id, to_scheduler::update(status.clone()), out);
    update(master, framework_id, &status, status.state, out);
}

/// Ends the life of a live task: it moves to the completed ones.
pub(crate) fn complete(master: &mut Master, framework_id: &FrameworkId, task_id: &TaskId) {
    let Some(task) = take(master, framework_id, task_id) else { return };
    if !task.state().is_terminal() {
        free(master, &task);
    }
    record_completed(master, task);
}

/// Puts a task among the completed ones of its framework.
pub(crate) fn record_completed(master: &mut Master, task: Arc<Task>) {
    let limits = (master.config.max_completed_tasks_per_framework, master.config.limits.tasks_of_framework);
    if let Some(framework) = master.framework_mut(&task.framework_id) {
        record_sharing(framework, &task);
        let (id, bytes) = (task.id.clone(), task.bytes);
        let forgotten = framework.completed_tasks.push_weighed(limits, id, task.clone(), bytes);
        moved(master, &task, Presence::Nowhere, Presence::Remembered(task.state()));
        forgotten.iter().for_each(|task| forget(master, task));
    }
}

/// Moves a live task to the unreachable ones. Its resources went with its agent.
pub(crate) fn mark_unreachable(master: &mut Master, framework_id: &FrameworkId, task_id: &TaskId) {
    let Some(task) = take(master, framework_id, task_id) else { return };
    let limits = (master.config.max_unreachable_tasks_per_framework, master.config.limits.tasks_of_framework);
    let key = (framework_id.clone(), task_id.clone());
    master.unreachable_tasks.entry(task.agent_id.clone()).or_default().insert(key);
    let Some(framework) = master.framework_mut(framework_id) else { return };
    let (id, bytes) = (task.id.clone(), task.bytes);
    let forgotten = framework.unreachable_tasks.push_weighed(limits, id, task.clone(), bytes);
    moved(master, &task, Presence::Nowhere, Presence::Remembered(task.state()));
    for task in &forgotten {
        forget(master, task);
        forget_unreachable(master, task);
    }
}

/// Takes a task out of the unreachable ones.
pub(crate) fn take_unreachable(
    master: &mut Master,
    framework_id: &FrameworkId,
    task_id: &TaskId,
) -> Option<Arc<Task>> {
    if !master.framework(framework_id)?.unreachable_tasks.contains(task_id) {
        return None;
    }
    let task = master.framework_mut(framework_id)?.unreachable_tasks.remove(task_id)?;
    forget(master, &task);
    forget_unreachable(master, &task);
    Some(task)
}

/// An unreachable or completed task is not remembered any more.
pub(crate) fn forget(master: &mut Master, task: &Task) {
    moved(master, task, Presence::Remembered(task.state()), Presence::Nowhere);
}

/// Every change of the place or the state of a task in the books goes into the tallies here.
fn moved(master: &mut Master, task: &Task, from: Presence, to: Presence) {
    master.state.tallies.task_moved(task, from, to);
}

/// A framework has one more task or executor on an agent.
pub(crate) fn stand(master: &mut Master, framework_id: &FrameworkId, agent_id: &AgentId) {
    let agents = master.footprint.entry(framework_id.clone()).or_default();
    *agents.entry(agent_id.clone()).or_default() += 1;
}

/// A framework has one task or executor less on an agent.
pub(crate) fn leave(master: &mut Master, framework_id: &FrameworkId, agent_id: &AgentId) {
    let Some(agents) = master.footprint.get_mut(framework_id) else { return };
    if let Entry::Occupied(mut count) = agents.entry(agent_id.clone()) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
    if agents.is_empty() {
        master.footprint.remove(framework_id);
    }
}

fn free(master: &mut Master, task: &Task) {
    master.allocator.release(&task.agent_id, &task.framework_id, &task.resources);
}

fn forget_kill(master: &mut Master, task: &Task) {
    if let Entry::Occupied(mut kills) = master.kills.entry(task.agent_id.clone()) {
        kills.get_mut().remove(&(task.framework_id.clone(), task.id.clone()));
        if kills.get().is_empty() {
            kills.remove();
        }
    }
}

fn forget_unreachable(master: &mut Master, task: &Task) {
    if let Entry::Occupied(mut tasks) = master.unreachable_tasks.entry(task.agent_id.clone()) {
        tasks.get_mut().remove(&(task.framework_id.clone(), task.id.clone()));
        if tasks.get().is_empty() {
            tasks.remove();
        }
    }
}

/// Takes a task out of the live ones.
fn take(master: &mut Master, framework_id: &FrameworkId, task_id: &TaskId) -> Option<Arc<Task>> {
    let task = master.task(framework_id, task_id)?.clone();
    let framework = master.framework_mut(framework_id)?;
    framework.tasks.remove_mut(task_id);
    framework.task_bytes -= task.bytes;
    moved(master, &task, Presence::Live(task.state()), Presence::Nowhere);
    if let Some(agent) = master.agent_mut(&task.agent_id) {
        agent.tasks.remove_mut(&(framework_id.clone(), task_id.clone()));
    }
    forget_kill(master, &task);
    leave(master, framework_id, &task.agent_id);
    Some(task)
}
