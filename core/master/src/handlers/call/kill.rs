//! KILL: forwarded to the task's agent, and repeated until the task is terminal. For a task that is not live the
//! framework receives its last known status.

use alloc::boxed::Box;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::scheduler::call::Kill;
use tepui_types::{AgentId, FrameworkId, TaskId, TaskStateExt};

use super::reconcile_task;
use crate::Effect;
use crate::master::{Master, Out};
use crate::state::transition::Transition;
use crate::values::event::to_agent;

pub(super) fn kill(master: &mut Master, now: Now, from: &FrameworkId, call: &Kill, out: &mut Out) {
    let task_id = TaskId::from(&*call.task_id);
    let agent_id = call.agent_id.as_option().map(AgentId::from);
    let Some(task) = master.task(from, &task_id).cloned() else {
        return reconcile_task(master, now, from, &task_id, agent_id.as_ref(), out);
    };
    if agent_id.is_some_and(|given| given != task.agent_id) {
        return;
    }
    let agent_id = task.agent_id.clone();
    Master::log(Transition::TaskKill { framework_id: from.clone(), task_id: task_id.clone(), agent_id }, out);
    let policy = call.kill_policy.as_option().cloned();
    if !task.state().is_terminal() {
        let kills = master.kills.entry(task.agent_id.clone()).or_default();
        kills.insert((from.clone(), task_id.clone()), policy.clone());
    }
    let event = to_agent::kill(from, &task_id, policy);
    let conn = master.agent(&task.agent_id).and_then(|agent| agent.conn());
    match conn {
        Some(conn) if task.state() != TaskState::TASK_STAGING => {
            out.effect(Effect::Kill { conn, event: Box::new(event) });
        }
        _ => master.send_to_agent(&task.agent_id, event, out),
    }
}
