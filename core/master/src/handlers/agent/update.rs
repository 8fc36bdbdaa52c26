//! UPDATE: the oldest unacknowledged status of a task.
//!
//! Forwarded with its uuid; the framework's acknowledgement goes back the same way. The master applies the newest
//! state in the update, which may be ahead of the forwarded status.

use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::call::Update;
use tepui_types::{AgentId, FrameworkId, TaskId, TaskStateExt};

use crate::entities::task;
use crate::master::{Master, Out};
use crate::state::Task;
use crate::values::counters::Counter;
use crate::values::event::{to_agent, to_scheduler};

pub(super) fn update(master: &mut Master, from: &AgentId, call: Update, out: &mut Out) {
    let framework_id = FrameworkId::from(&*call.framework_id);
    let Some(framework) = master.framework(&framework_id) else {
        master.count(Counter::InvalidStatusUpdates);
        // The agent named its frameworks when it subscribed, and they were taken in: this one was removed since.
        return master.send_to_agent(from, to_agent::shutdown_framework(&framework_id), out);
    };
    let task_id = TaskId::from(&*call.status.task_id);
    let live = framework.tasks.get(&task_id);
    let known = live.or_else(|| framework.unreachable_tasks.get(&task_id));
    let elsewhere = known.filter(|known| known.agent_id != *from);
    let executor_id = live.and_then(|live| live.executor_id.clone());
    let (is_elsewhere, is_decided) =
        (elsewhere.is_some(), elsewhere.is_some_and(|live| !is_undecided(live, call.latest_state)));
    if is_over(master, from, &call) || is_decided {
        master.count(Counter::InvalidStatusUpdates);
        if let Some(uuid) = &call.status.uuid {
            master.send_to_agent(from, to_agent::acknowledge(&framework_id, &task_id, uuid.clone()), out);
        }
        return;
    }
    master.count(Counter::ValidStatusUpdates);
    let mut status: pb::TaskStatus = call.status.into_option().unwrap_or_default();
    status.agent_id = from.to_proto().into();
    if is_elsewhere {
        // The books are about the other one.
        return master.send_to_framework(&framework_id, to_scheduler::update(status), out);
    }
    if !status.executor_id.is_set() {
        status.executor_id = executor_id.map(|id| id.to_proto()).into();
    }
    task::update(master, &framework_id, &status, call.latest_state, out);
    master.send_to_framework(&framework_id, to_scheduler::update(status), out);
}

/// Whether the framework has acknowledged this terminal update, and the agent has not received that. The id may
/// belong to another task by now.
fn is_over(master: &Master, from: &AgentId, call: &Update) -> bool {
    let (framework_id, task_id) =
        (FrameworkId::from(&*call.framework_id), TaskId::from(&*call.status.task_id));
    let uuid = call.status.uuid.as_deref();
    uuid.is_some() && master.ends.of(from, &framework_id, &task_id) == uuid
}

/// Two agents reported tasks of the same id to a new master, and both are terminal: it is unknown which of the two
/// updates the framework has acknowledged. Otherwise the live one, or the one that this master launched, came later;
/// the other was killed, or the framework has acknowledged its termination, so that it need not be reported.
fn is_undecided(live: &Task, latest: pb::TaskState) -> bool {
    live.is_reported && live.state().is_terminal() && latest.is_terminal()
}
