//! SHUTDOWN: the agent must end all tasks, then itself.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Shutdown;
use tepui_proto::tepui::agent::v1::{Call, call};

use crate::agent::{Agent, Out};
use crate::entities::lifecycle;
use crate::state::Phase;

pub(super) fn shutdown(agent: &mut Agent, now: Now, _event: Shutdown, out: &mut Out) {
    end_everything(agent, now, out);
}

/// The same on request of the agent's operator; the master is informed.
pub(crate) fn unregister(agent: &mut Agent, now: Now, out: &mut Out) {
    unregister_only(agent, out);
    end_everything(agent, now, out);
}

/// Sends the master, if there is a link, that this agent leaves.
pub(super) fn unregister_only(agent: &Agent, out: &mut Out) {
    let call = Call { r#type: Some(call::Type::UNREGISTER), ..Default::default() };
    agent.send_to_master(call, out);
}

fn end_everything(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.state.phase == Phase::Recovering {
        // After recovery, when all containers are known.
        agent.recovery.leaving = true;
        return;
    }
    lifecycle::end_everything(agent, now, out);
}
