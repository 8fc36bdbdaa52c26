//! RECONCILE: the master's statuses of the framework's tasks. Answers are updates without a uuid.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call::Reconcile;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, FrameworkId, TaskId, lost_as};

use crate::master::{Master, Out};
use crate::state::status::{self, Verdict};
use crate::values::event::to_scheduler;

pub(super) fn reconcile(master: &Master, now: Now, from: &FrameworkId, call: &Reconcile, out: &mut Out) {
    if call.tasks.is_empty() {
        return reconcile_all(master, now, from, out);
    }
    for task in &call.tasks {
        let agent_id = task.agent_id.as_option().map(AgentId::from);
        reconcile_task(master, now, from, &TaskId::from(&*task.task_id), agent_id.as_ref(), out);
    }
}

/// Every live task. Unreachable and completed ones are left out, and there is no end marker.
fn reconcile_all(master: &Master, now: Now, from: &FrameworkId, out: &mut Out) {
    let Some(framework) = master.framework(from) else { return };
    let statuses: Vec<_> = framework.tasks.values().map(|task| status::latest(now, task)).collect();
    for status in statuses {
        master.send_to_framework(from, to_scheduler::update(status), out);
    }
}

/// One task, live or not.
pub(crate) fn reconcile_task(
    master: &Master,
    now: Now,
    from: &FrameworkId,
    task_id: &TaskId,
    agent_id: Option<&AgentId>,
    out: &mut Out,
) {
    let answer = match master.task(from, task_id) {
        Some(task) => Some(status::latest(now, task)),
        None => not_live(master, from, agent_id)
            .map(|verdict| verdict.on(now, &task_id.to_proto(), agent_id.map(AgentId::to_proto).as_ref())),
    };
    if let Some(status) = answer {
        master.send_to_framework(from, to_scheduler::update(status), out);
    }
}

/// The status of a task that is not live; none while its agent may still re-register.
fn not_live(master: &Master, from: &FrameworkId, agent_id: Option<&AgentId>) -> Option<Verdict> {
    let state = &master.state;
    let precise = |precise| lost_as(master.is_partition_aware(from), precise);
    let verdict = |state, message| Verdict::new(state, Reason::REASON_RECONCILIATION, message);
    let Some(agent_id) = agent_id else {
        let unknown = verdict(precise(pb::TaskState::TASK_UNKNOWN), "Reconciliation: Task is unknown");
        return state.recovered_agents.is_empty().then_some(unknown);
    };
    if state.recovered_agents.contains_key(agent_id) {
        None
    } else if state.agents.contains_key(agent_id) {
        let message = "Reconciliation: Task is unknown to the agent";
        Some(verdict(precise(pb::TaskState::TASK_GONE), message))
    } else if let Some(since) = state.unreachable_agents.get(agent_id) {
        let message = "Reconciliation: Task is unreachable";
        Some(verdict(precise(pb::TaskState::TASK_UNREACHABLE), message).unreachable_since(*since))
    } else if state.gone_agents.contains_key(agent_id) {
        Some(verdict(precise(pb::TaskState::TASK_GONE_BY_OPERATOR), "Reconciliation: Task is gone"))
    } else {
        Some(verdict(precise(pb::TaskState::TASK_UNKNOWN), "Reconciliation: Task is unknown"))
    }
}
