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

/// The same without a master's order: it is told that the agent leaves.
pub(crate) fn unregister(agent: &mut Agent, now: Now, out: &mut Out) {
    unregister_only(agent, out);
    end_everything(agent, now, out);
}

/// Tells the master, if there is a link to it, that it has nothing to expect of this agent.
pub(super) fn unregister_only(agent: &Agent, out: &mut Out) {
    let call = Call { r#type: Some(call::Type::UNREGISTER), ..Default::default() };
    agent.tell_master(call, out);
}

fn end_everything(agent: &mut Agent, now: Now, out: &mut Out) {
    if agent.state.phase == Phase::Recovering {
        // As soon as it knows what there is to end.
        agent.recovery.leaving = true;
        return;
    }
    lifecycle::end_everything(agent, now, out);
}
