//! Taking over what an agent brings: frameworks, tasks, executors and operations that the books do not have yet.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::tepui::agent::v1::call::Isolation;
use tepui_proto::tepui::agent::v1::event::{MissingTask, Subscribed};
use tepui_resources::Resources;
use tepui_types::{AgentId, ConnId, ExecutorId, FrameworkId, TaskId, TaskStateExt};

use super::report::Report;
use super::subscribed::send_subscribed;
use crate::entities::{executor, framework, operation, removal, task};
use crate::master::{Master, Out};
use crate::state::Task;
use crate::state::status::Verdict;
use crate::state::transition::{TaskUpdate, Transition};
use crate::values::event::{to_agent, to_scheduler};

/// Adopts everything from an agent that is new to this master. `tell`: frameworks may consider these tasks lost.
pub(super) fn everything(
    master: &mut Master,
    now: Now,
    id: &AgentId,
    report: Report,
    tell: bool,
    out: &mut Out,
) {
    let lost = master.unreachable_tasks.remove(id).unwrap_or_default();
    let strangers = frameworks(master, now, id, &report, out);
    for (info, resources) in report.executors {
        adopt_executor(master, id, info, resources);
    }
    for (task, resources) in report.tasks {
        if is_earlier(master, id, &task) {
            continue;
        }
        let task = Task::reported(id, task, resources);
        complete_predecessor(master, &task);
        if strangers.contains(&task.framework_id)
            || kill_double(master, &task, out)
            || has_unreachable_successor(master, &task)
        {
            continue;
        }
        task::take_unreachable(master, &task.framework_id, &task.id);
        if tell {
            report_reachable(master, now, &task, out);
        }
        adopt_task(master, task, out);
    }
    for task in report.completed_tasks {
        adopt_completed(master, id, task);
    }
    for isolation in report.isolations {
        record_isolation(master, &isolation);
    }
    for operation in report.operations {
        adopt_operation(master, id, operation);
    }
    end_unnamed(master, now, lost, out);
}

/// Compares an agent's report with the master's state: missing entities are sent to the agent, or adopted from it.
pub(super) fn compare(
    master: &mut Master,
    now: Now,
    conn: ConnId,
    id: &AgentId,
    report: Report,
    out: &mut Out,
) {
    end_forgotten(master, now, id, &report, out);
    let missing = missing(master, id, &report);
    send_subscribed(master, conn, id, missing, out);
    acknowledge_again(master, id, out);
    let strangers = frameworks(master, now, id, &report, out);
    drop_unnamed_executors(master, id, &report);
    for (info, resources) in report.executors {
        adopt_executor(master, id, info, resources);
    }
    for (task, resources) in report.tasks {
        let task = Task::reported(id, task, resources);
        let known = master.task(&task.framework_id, &task.id).is_some();
        kill_double(master, &task, out);
        // A terminal unknown task was acknowledged; the agent receives that when it sends the update again.
        if !known && !strangers.contains(&task.framework_id) && !task.state().is_terminal() {
            adopt_lost(master, task, out);
        }
    }
    for operation in report.operations {
        adopt_operation(master, id, operation);
    }
    resend_kills(master, id, out);
}

/// Acknowledgements of ends that may have been lost with the link before this one.
fn acknowledge_again(master: &Master, id: &AgentId, out: &mut Out) {
    for (framework_id, task_id, uuid) in master.ends.on(id) {
        master.send_to_agent(id, to_agent::acknowledge(framework_id, task_id, uuid.into()), out);
    }
}

/// A running task that was declared lost when its agent's link broke: it is booked again, until it is dead.
fn adopt_lost(master: &mut Master, task: Task, out: &mut Out) {
    let key = (task.framework_id.clone(), task.id.clone());
    let agent_id = task.agent_id.clone();
    adopt_task(master, task, out);
    master.kills.entry(agent_id).or_default().insert(key, None);
}

/// An agent brought a task that has ended, and another one brings a task that lives under the same id: its framework has
/// acknowledged that end, or it would not have used the id again.
fn complete_predecessor(master: &mut Master, task: &Task) {
    let ended = master.task(&task.framework_id, &task.id).is_some_and(|known| {
        known.agent_id != task.agent_id && known.is_reported && known.state().is_terminal()
    });
    if ended && !task.state().is_terminal() {
        task::complete(master, &task.framework_id, &task.id);
    }
}

/// The framework launched another task under the same id elsewhere while this one was unknown: this one is killed. A
/// terminal one is not: its agent may have removed it by then, and would report a task of this id as dropped.
fn kill_double(master: &Master, task: &Task, out: &mut Out) -> bool {
    let double = master.task(&task.framework_id, &task.id).is_some_and(|live| live.agent_id != task.agent_id);
    if double && !task.state().is_terminal() {
        master.send_to_agent(&task.agent_id, to_agent::kill(&task.framework_id, &task.id, None), out);
    }
    double
}

/// The framework launched another task under the same id on an agent that is unreachable, after this one had ended.
fn has_unreachable_successor(master: &Master, task: &Task) -> bool {
    let framework = master.framework(&task.framework_id);
    let known = framework.and_then(|framework| framework.unreachable_tasks.get(&task.id));
    let is_elsewhere = known.is_some_and(|it| it.agent_id != task.agent_id && !it.state().is_terminal());
    task.state().is_terminal() && is_elsewhere
}

/// Makes sure that the frameworks of the agent's tasks are in the books. Those that are over are shut down on it, and
/// returned together with those of which the agent has no description.
fn frameworks(
    master: &mut Master,
    now: Now,
    id: &AgentId,
    report: &Report,
    out: &mut Out,
) -> BTreeSet<FrameworkId> {
    let of_tasks = report.tasks.iter().map(|(task, _)| FrameworkId::from(&*task.framework_id));
    let of_executors = report.executors.iter().map(|(info, _)| FrameworkId::from(&*info.framework_id));
    let named: BTreeSet<FrameworkId> =
        of_tasks.chain(of_executors).chain(report.frameworks.keys().cloned()).collect();
    let mut strangers = BTreeSet::new();
    for framework_id in named {
        if master.framework(&framework_id).is_some() {
            continue;
        }
        let over = master.state.completed_frameworks.contains(&framework_id);
        match report.frameworks.get(&framework_id) {
            Some(info) if !over => framework::recover(master, now, info.clone(), out),
            Some(_) | None => {
                master.send_to_agent(id, to_agent::shutdown_framework(&framework_id), out);
                strangers.insert(framework_id);
            }
        }
    }
    strangers
}

fn adopt_task(master: &mut Master, task: Task, out: &mut Out) {
    if !task.state().is_terminal() {
        master.allocator.occupy(&task.agent_id, &task.framework_id, &task.resources);
    }
    task::add(master, task, out);
}

fn adopt_executor(master: &mut Master, id: &AgentId, info: pb::ExecutorInfo, resources: Resources) {
    let framework_id = FrameworkId::from(&*info.framework_id);
    let key = (framework_id.clone(), ExecutorId::from(&*info.executor_id));
    let known = master.agent(id).is_some_and(|agent| agent.executors.contains_key(&key));
    if !known && master.framework(&framework_id).is_some() {
        master.allocator.occupy(id, &framework_id, &resources);
        executor::add(master, id, &framework_id, info, resources);
    }
}

fn adopt_operation(master: &mut Master, id: &AgentId, operation: pb::Operation) {
    let Some(uuid) = operation::from_proto(&operation.uuid) else { return };
    if master.agent(id).is_some_and(|agent| !agent.operations.contains_key(&uuid)) {
        operation::add(master, id, uuid, operation);
    }
}

/// A task the agent has completed, for readers of a new master.
fn adopt_completed(master: &mut Master, id: &AgentId, task: pb::Task) {
    let task = Task::reported(id, task, Resources::new());
    let known = master.framework(&task.framework_id).is_some_and(|it| it.completed_tasks.contains(&task.id));
    if !known {
        task::record_completed(master, task.into());
    }
}

fn record_isolation(master: &mut Master, isolation: &Isolation) {
    let framework_id = FrameworkId::from(&*isolation.framework_id);
    let executor_id = ExecutorId::from(&*isolation.executor_id);
    match master.framework_mut(&framework_id) {
        Some(framework) => task::record_isolation(framework, &executor_id, isolation.shares_cgroups),
        None => master.isolations.insert(framework_id, executor_id, isolation.shares_cgroups),
    }
}

/// A task that was thought lost is there.
fn report_reachable(master: &Master, now: Now, task: &Task, out: &mut Out) {
    let verdict = Verdict::new(task.state(), Reason::REASON_AGENT_REREGISTERED, "Agent reregistered");
    let status = verdict.on_task(now, task);
    Master::log(Transition::TaskUpdated(TaskUpdate::of(&task.framework_id, &status)), out);
    master.send_to_framework(&task.framework_id, to_scheduler::update(status), out);
}

/// Tasks that were unreachable on this agent, and are not on it any more.
fn end_unnamed(master: &mut Master, now: Now, lost: BTreeSet<(FrameworkId, TaskId)>, out: &mut Out) {
    for (framework_id, task_id) in lost {
        if !master.is_partition_aware(&framework_id) {
            // It received TASK_LOST when the agent was removed.
            if let Some(task) = task::take_unreachable(master, &framework_id, &task_id) {
                task::record_completed(master, task);
            }
            continue;
        }
        let message = "Task is unknown to the agent";
        let verdict = Verdict::new(pb::TaskState::TASK_GONE, Reason::REASON_RECONCILIATION, message);
        removal::end_unreachable(master, now, &framework_id, &task_id, &verdict, out);
    }
}

/// Tasks that the books have on this agent and the agent did not name.
fn unnamed(master: &Master, id: &AgentId, report: &Report) -> Vec<(FrameworkId, TaskId)> {
    let Some(agent) = master.agent(id) else { return Vec::new() };
    let present = report.tasks.iter().map(|(task, _)| task).filter(|task| !is_earlier(master, id, task));
    let named: BTreeSet<(&str, &str)> =
        present.map(|task| (&*task.framework_id.value, &*task.task_id.value)).collect();
    let tasks = agent.tasks.iter();
    tasks.filter(|(framework, task)| !named.contains(&(framework.as_str(), task.as_str()))).cloned().collect()
}

/// Whether a task is terminal and acknowledged, and the agent has not received that yet.
fn is_earlier(master: &Master, id: &AgentId, task: &pb::Task) -> bool {
    let (framework_id, task_id) = (FrameworkId::from(&*task.framework_id), TaskId::from(&*task.task_id));
    let last = task.statuses.last().and_then(|status| status.uuid.as_deref());
    task.state.is_terminal() && last.is_some() && master.ends.of(id, &framework_id, &task_id) == last
}

/// Terminal tasks whose last update the agent removed before it was acknowledged: the update is sent once more, since
/// no agent will send it, and needs no acknowledgement.
fn end_forgotten(master: &mut Master, now: Now, id: &AgentId, report: &Report, out: &mut Out) {
    for (framework_id, task_id) in unnamed(master, id, report) {
        let Some(state) = master.task(&framework_id, &task_id).map(|task| task.state()) else { continue };
        if state.is_terminal() {
            let message = "Task is no longer known to the agent";
            let verdict = Verdict::new(state, Reason::REASON_RECONCILIATION, message);
            task::decide(master, now, &framework_id, &task_id, &verdict, out);
            task::complete(master, &framework_id, &task_id);
        }
    }
}

/// What the books have of this agent and the agent did not name.
fn missing(master: &Master, id: &AgentId, report: &Report) -> Subscribed {
    let Some(agent) = master.agent(id) else { return Subscribed::default() };
    let tasks = unnamed(master, id, report);
    let operations: BTreeSet<&[u8]> = report.operations.iter().map(|it| it.uuid.value.as_slice()).collect();
    let operations_missing = agent.operations.keys().filter(|uuid| !operations.contains(uuid.as_slice()));
    Subscribed {
        missing_tasks: tasks
            .iter()
            .map(|(framework, task)| missing_task(master, id, framework, task))
            .collect(),
        missing_operations: operations_missing.map(operation::to_proto).collect(),
        ..Default::default()
    }
}

fn missing_task(master: &Master, id: &AgentId, framework_id: &FrameworkId, task_id: &TaskId) -> MissingTask {
    let executor_id = master.task(framework_id, task_id).and_then(|task| task.executor_id.clone());
    MissingTask {
        framework_id: framework_id.to_proto().into(),
        task_id: task_id.to_proto().into(),
        executor_id: executor_id.map(|id| id.to_proto()).into(),
        partition_aware: master.is_partition_aware(framework_id),
        acknowledged: master.ends.of(id, framework_id, task_id).map(Into::into),
        ..Default::default()
    }
}

/// Executors that the agent does not have hold nothing.
fn drop_unnamed_executors(master: &mut Master, id: &AgentId, report: &Report) {
    let Some(agent) = master.agent(id).cloned() else { return };
    let named: BTreeSet<(FrameworkId, ExecutorId)> = report
        .executors
        .iter()
        .map(|(info, _)| (FrameworkId::from(&*info.framework_id), ExecutorId::from(&*info.executor_id)))
        .collect();
    for (framework_id, executor_id) in agent.executors.keys().filter(|key| !named.contains(key)) {
        executor::remove(master, id, framework_id, executor_id);
    }
}

/// Kills that were requested while the agent was disconnected, or were lost.
fn resend_kills(master: &Master, id: &AgentId, out: &mut Out) {
    let kills: Vec<_> = master.kills.get(id).into_iter().flatten().collect();
    for ((framework_id, task_id), policy) in kills {
        master.send_to_agent(id, to_agent::kill(framework_id, task_id, policy.clone()), out);
    }
}
