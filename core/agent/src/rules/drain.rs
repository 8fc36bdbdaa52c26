//! The end of a drain: the agent is empty. `draining` starts one.

use crate::Record;
use crate::agent::{Agent, Out};
use crate::state::transition::Transition;

/// The agent is empty: it may be used again, or taken away.
pub(crate) fn end_if_empty(agent: &mut Agent, out: &mut Out) {
    if agent.state.drain.is_some() && is_empty(agent) {
        agent.state.drain = None;
        agent.state.touch();
        out.record(Record::Drained);
        Agent::log(Transition::DrainCompleted, out);
    }
}

pub(crate) fn is_empty(agent: &Agent) -> bool {
    agent.state.frameworks.is_empty() && agent.state.operations.is_empty()
}
