//! PONG: the agent is there.

use tepui_types::AgentId;

use crate::entities::liveness;
use crate::master::Master;

pub(super) fn pong(master: &mut Master, from: &AgentId) {
    master.ends.ponged(from);
    liveness::record_contact(master, from);
}
