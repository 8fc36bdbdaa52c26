//! UPDATE: the oldest status of a task that its framework has not acknowledged.
//!
//! Forwarded with its uuid; the framework's acknowledgement goes back the same way. The books follow the newest state
//! the agent knows, which may be ahead of the one that is being delivered.

use tepui_proto::mesos::v1 as pb;
use tepui_proto::tepui::agent::v1::call::Update;
use tepui_types::{AgentId, FrameworkId, TaskId};

use crate::counters::Counter;
use crate::event::{to_agent, to_scheduler};
use crate::master::{Master, Out};
use crate::task;

pub(super) fn update(master: &mut Master, from: &AgentId, call: Update, out: &mut Out) {
    let framework_id = FrameworkId::from(&*call.framework_id);
    let Some(framework) = master.framework(&framework_id).cloned() else {
        master.count(Counter::InvalidStatusUpdates);
        // The agent named its frameworks when it subscribed, and they were taken in: this one was removed since.
        return master.tell_agent(from, to_agent::shutdown_framework(&framework_id), out);
    };
    let task_id = TaskId::from(&*call.status.task_id);
    let is_another = framework.tasks.get(&task_id).is_some_and(|live| {
        let uuid = call.status.uuid.as_deref();
        live.agent_id != *from || uuid.is_some() && master.ends.of(from, &framework_id, &task_id) == uuid
    });
    if is_another {
        master.count(Counter::InvalidStatusUpdates);
        // Another task has the same id: one that lives elsewhere, so that this one was killed, or one that was launched
        // after this one's end was acknowledged, of which the agent has not heard. Its end is nobody's business.
        if let Some(uuid) = &call.status.uuid {
            master.tell_agent(from, to_agent::acknowledge(&framework_id, &task_id, uuid.clone()), out);
        }
        return;
    }
    master.count(Counter::ValidStatusUpdates);
    let mut status: pb::TaskStatus = call.status.into_option().unwrap_or_default();
    status.agent_id = from.to_proto().into();
    if !status.executor_id.is_set() {
        let executor_id = master.task(&framework_id, &task_id).and_then(|task| task.executor_id.clone());
        status.executor_id = executor_id.map(|id| id.to_proto()).into();
    }
    task::update(master, &framework_id, &status, call.latest_state, out);
    master.tell_framework(&framework_id, to_scheduler::update(status), out);
}
