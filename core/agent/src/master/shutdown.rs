//! SHUTDOWN: the agent must end all tasks, then itself.

use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Shutdown;
use tepui_types::FrameworkId;

use crate::agent::{Agent, Out};
use crate::lifecycle;
use crate::state::Phase;

pub(super) fn shutdown(agent: &mut Agent, now: Now, _event: Shutdown, out: &mut Out) {
    agent.state.phase = Phase::Terminating;
    agent.state.touch();
    let frameworks: Vec<FrameworkId> = agent.state.frameworks.keys().cloned().collect();
    if frameworks.is_empty() {
        return lifecycle::end_if_done(agent, now, out);
    }
    for framework in frameworks {
        lifecycle::shutdown_framework(agent, now, &framework, out);
    }
}
