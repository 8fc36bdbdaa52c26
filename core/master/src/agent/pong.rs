//! PONG: the agent is there.

use tepui_types::AgentId;

use crate::master::Master;
use crate::reachability;

pub(super) fn pong(master: &mut Master, from: &AgentId) {
    master.ends.ponged(from);
    reachability::heard(master, from);
}
