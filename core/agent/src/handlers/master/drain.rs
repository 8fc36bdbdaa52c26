//! DRAIN: kill all tasks of the agent.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::event::Drain;

use crate::agent::{Agent, Out};
use crate::entities::draining;

pub(super) fn drain(agent: &mut Agent, now: Now, event: Drain, out: &mut Out) {
    draining::begin(agent, now, event.config.into_option().unwrap_or_default(), out);
}
