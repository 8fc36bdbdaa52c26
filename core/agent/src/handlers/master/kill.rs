//! KILL: the kill of a task.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Kill;
use tepui_types::{FrameworkId, TaskId};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle::kill_task;

pub(super) fn kill(agent: &mut Agent, now: Now, event: Kill, out: &mut Out) {
    let (framework, task) = (FrameworkId::from(&*event.framework_id), TaskId::from(&*event.task_id));
    if agent.state.framework(&framework).is_none_or(|framework| framework.terminating) {
        return;
    }
    kill_task(agent, now, &framework, &task, event.kill_policy.into_option(), out);
}
