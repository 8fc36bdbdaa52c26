//! How an agent leaves the books, and what becomes of what was on it.
//!
//! The caller has recorded why. Offers end first, then tasks, executors and operations, then the agent itself.

use alloc::sync::Arc;

use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_registry::Operation as Record;
use tepui_types::{AgentId, FrameworkId, TaskId, TaskStateExt, lost_as};

use crate::Effect;
use crate::entities::{executor, liveness, offer, operation, task};
use crate::master::{Master, Out};
use crate::state::Task;
use crate::state::notice;
use crate::state::status::Verdict;
use crate::state::transition::{AgentRemoval, TaskUpdate, Transition};
use crate::values::counters::Counter;
use crate::values::event::{to_agent, to_scheduler};

/// Message to agents and frameworks when a machine is taken down.
pub(crate) const MACHINE_DOWN: &str = "Machine is down for maintenance";

/// Why an agent is taken out of the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It may re-register, with its tasks.
    Unreachable { since: Wall },
    /// Marked as gone by an operator.
    Gone,
    /// It left, or another agent took its place.
    Removed,
    /// An operator took its machine down.
    MachineDown,
}

impl Loss {
    fn verdict(self, partition_aware: bool) -> Verdict {
        match self {
            Loss::Unreachable { since } => {
                let state = lost_as(partition_aware, pb::TaskState::TASK_UNREACHABLE);
                Verdict::new(state, Reason::REASON_AGENT_REMOVED, "Agent is unreachable")
                    .unreachable_since(since)
            }
            Loss::Gone if partition_aware => Verdict::new(
                pb::TaskState::TASK_GONE_BY_OPERATOR,
                Reason::REASON_AGENT_REMOVED_BY_OPERATOR,
                "Agent was marked gone by an operator",
            ),
            Loss::Gone => {
                let message = "Agent was marked gone by an operator";
                Verdict::new(pb::TaskState::TASK_LOST, Reason::REASON_AGENT_REMOVED, message)
            }
            Loss::Removed => {
                Verdict::new(pb::TaskState::TASK_LOST, Reason::REASON_AGENT_REMOVED, "Agent was removed")
            }
            Loss::MachineDown => {
                Verdict::new(pb::TaskState::TASK_LOST, Reason::REASON_AGENT_REMOVED, MACHINE_DOWN)
            }
        }
    }

    fn removal(self) -> AgentRemoval {
        match self {
            Loss::Unreachable { .. } => AgentRemoval::Unreachable,
            Loss::Gone => AgentRemoval::Gone,
            Loss::Removed => AgentRemoval::Removed,
            Loss::MachineDown => AgentRemoval::MachineDown,
        }
    }

    fn operation_state(self) -> pb::OperationState {
        match self {
            Loss::Unreachable { .. } => pb::OperationState::OPERATION_UNREACHABLE,
            Loss::Gone => pb::OperationState::OPERATION_GONE_BY_OPERATOR,
            Loss::Removed | Loss::MachineDown => pb::OperationState::OPERATION_UNKNOWN,
        }
    }
}

/// Takes an agent that is registered or recovered out of the books; its tasks get what they have coming.
pub(crate) fn remove(master: &mut Master, now: Now, id: &AgentId, loss: Loss, out: &mut Out) {
    master.changed = true;
    let (agent_id, agent) = (id.clone(), master.agent(id).cloned());
    Master::log(Transition::AgentRemoved { agent_id, agent, removal: loss.removal() }, out);
    liveness::forget(master, id);
    // An unreachable agent may come back with updates whose acknowledgements it has not received.
    if !matches!(loss, Loss::Unreachable { .. }) {
        master.ends.forget(id);
    }
    offer::rescind_all_on(master, id, out);
    end_tasks(master, now, id, loss, out);
    drop_executors(master, id);
    operation::end_all_on(master, id, loss.operation_state(), out);
    hang_up(master, id, loss, out);
    master.state.recovered_agents.remove_mut(id);
    if let Some(agent) = master.agent(id).cloned() {
        master.count(Counter::AgentRemovals);
        master.allocator.remove_agent(id);
        master.pids.remove(&agent.pid);
        master.state.agents.remove_mut(id);
        master.notify(|| notice::agent_removed(id), out);
    }
    master.send_to_frameworks(&to_scheduler::agent_failure(id), out);
}

fn end_tasks(master: &mut Master, now: Now, id: &AgentId, loss: Loss, out: &mut Out) {
    let Some(agent) = master.agent(id).cloned() else { return };
    for (framework_id, task_id) in agent.tasks.iter() {
        end_task(master, now, framework_id, task_id, loss, out);
    }
    master.kills.remove(id);
}

fn end_task(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    task_id: &TaskId,
    loss: Loss,
    out: &mut Out,
) {
    let Some(task) = master.task(framework_id, task_id) else { return };
    // The framework has received the terminal update; only its acknowledgement is missing.
    let told = task.task.status_update_state.is_some_and(|state| state.is_terminal());
    if told {
        return task::complete(master, framework_id, task_id);
    }
    let verdict = loss.verdict(master.is_partition_aware(framework_id));
    task::decide(master, now, framework_id, task_id, &verdict, out);
    match loss {
        Loss::Unreachable { .. } => task::mark_unreachable(master, framework_id, task_id),
        Loss::Gone | Loss::Removed | Loss::MachineDown => task::complete(master, framework_id, task_id),
    }
}

/// An agent that was unreachable is gone for good: so are the tasks that were unreachable with it.
pub(crate) fn end_unreachable_tasks(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    for (framework_id, task_id) in master.unreachable_tasks.get(id).cloned().unwrap_or_default() {
        let verdict = Loss::Gone.verdict(master.is_partition_aware(&framework_id));
        end_unreachable(master, now, &framework_id, &task_id, &verdict, out);
    }
}

/// Reports the termination of one unreachable task.
pub(crate) fn end_unreachable(
    master: &mut Master,
    now: Now,
    framework_id: &FrameworkId,
    task_id: &TaskId,
    verdict: &Verdict,
    out: &mut Out,
) {
    let Some(task) = task::take_unreachable(master, framework_id, task_id) else { return };
    let ended: Arc<Task> = task.ended(now, verdict);
    let status = verdict.on_task(now, &ended);
    master.notify(|| notice::task_updated(framework_id, &status, ended.state()), out);
    Master::log(Transition::TaskUpdated(TaskUpdate::of(framework_id, &status)), out);
    master.count_task_end(framework_id, status.state, &status);
    master.send_to_framework(framework_id, to_scheduler::update(status), out);
    task::record_completed(master, ended);
}

fn drop_executors(master: &mut Master, id: &AgentId) {
    let Some(agent) = master.agent(id).cloned() else { return };
    for (framework_id, executor_id) in agent.executors.keys() {
        executor::remove(master, id, framework_id, executor_id);
    }
}

/// Closes the agent's link; an agent that must not re-register is shut down.
fn hang_up(master: &mut Master, id: &AgentId, loss: Loss, out: &mut Out) {
    let Some(conn) = master.agent(id).and_then(|agent| agent.conn()) else { return };
    match loss {
        Loss::Gone => {
            master.send_to_agent(id, to_agent::shutdown("Agent was marked gone by an operator"), out)
        }
        Loss::MachineDown => master.send_to_agent(id, to_agent::shutdown(MACHINE_DOWN), out),
        Loss::Unreachable { .. } | Loss::Removed => (),
    }
    master.links.remove(&conn);
    out.effect(Effect::CloseAgent { conn });
}

/// Marks an agent gone that is registered, recovered or unreachable.
pub(crate) fn mark_gone(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    master.record(Record::MarkGone { id: id.clone(), at: now.wall }, out);
    master.state.unreachable_agents.remove_mut(id);
    master.state.gone_agents.insert_mut(id.clone(), now.wall);
    end_unreachable_tasks(master, now, id, out);
    remove(master, now, id, Loss::Gone, out);
}
