//! An agent's link closed. It may re-register; until then it is not offered.

use alloc::sync::Arc;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::{AgentId, ConnId, FrameworkId, TaskStateExt};

use crate::Effect;
use crate::entities::{executor, liveness, offer, task};
use crate::master::{Master, Out};
use crate::state::AgentLink;
use crate::state::status::Verdict;
use crate::state::transition::Transition;

pub(crate) fn closed(master: &mut Master, now: Now, conn: ConnId, out: &mut Out) {
    let Some(id) = master.links.remove(&conn) else { return };
    let Some(agent) = master.agent_mut(&id) else { return };
    agent.link = AgentLink::Silent { since: now.wall };
    let agent = Arc::new(agent.clone());
    Master::log(Transition::AgentDisconnected { agent }, out);
    offer::rescind_all_on(master, &id, out);
    master.allocator.deactivate_agent(&id);
    lose_unchecked(master, now, &id, out);
    liveness::link_broke(master, now, &id);
}

/// Closes an agent's link from this side: it has to subscribe again with its complete state.
pub(super) fn hang_up(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    if let Some(conn) = master.agent(id).and_then(|agent| agent.conn()) {
        out.effect(Effect::CloseAgent { conn });
        closed(master, now, conn, out);
    }
}

/// Frameworks without checkpointing receive at once that their tasks there are lost.
fn lose_unchecked(master: &mut Master, now: Now, id: &AgentId, out: &mut Out) {
    let Some(agent) = master.agent(id).cloned() else { return };
    let message = "Agent disconnected and the framework does not checkpoint";
    let verdict = Verdict::new(pb::TaskState::TASK_LOST, Reason::REASON_AGENT_DISCONNECTED, message);
    for (framework_id, task_id) in agent.tasks.iter() {
        let live = master.task(framework_id, task_id).is_some_and(|task| !task.state().is_terminal());
        if live && !checkpoints(master, framework_id) {
            task::decide(master, now, framework_id, task_id, &verdict, out);
            task::complete(master, framework_id, task_id);
        }
    }
    for (framework_id, executor_id) in agent.executors.keys() {
        if !checkpoints(master, framework_id) {
            executor::remove(master, id, framework_id, executor_id);
        }
    }
}

fn checkpoints(master: &Master, id: &FrameworkId) -> bool {
    master.framework(id).is_some_and(|framework| framework.info.checkpoint.unwrap_or(false))
}
