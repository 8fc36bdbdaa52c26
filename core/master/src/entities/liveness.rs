//! Watching connected agents: when to ping them and when to expect them back.
//!
//! Absent: the consequences of silence (`reachability`).

use tepui_fsm::Now;
use tepui_types::AgentId;

use crate::master::Master;
use crate::state::Silence;
use crate::values::counters::Counter;
use crate::values::timers::Timer;

/// Starts to watch a connected agent.
pub(crate) fn watch(master: &mut Master, now: Now, id: &AgentId) {
    master.ends.linked(id);
    record_contact(master, id);
    master.timers.clear(&Timer::Reregister(id.clone()));
    master.timers.set(Timer::Ping(id.clone()), now.mono + master.config.agent_ping_timeout);
}

/// Stops watching an agent.
pub(crate) fn forget(master: &mut Master, id: &AgentId) {
    record_contact(master, id);
    master.timers.clear(&Timer::Reregister(id.clone()));
    master.timers.clear(&Timer::Ping(id.clone()));
}

/// A sign of life.
pub(crate) fn record_contact(master: &mut Master, id: &AgentId) {
    if master.liveness.silent.remove(id) == Some(Silence::RemovalScheduled) {
        master.timers.clear(&Timer::Unreachable(id.clone()));
        master.count(Counter::AgentUnreachableCanceled);
    }
}

/// Gives an agent whose link broke time to re-register.
pub(crate) fn link_broke(master: &mut Master, now: Now, id: &AgentId) {
    master.timers.set(Timer::Reregister(id.clone()), now.mono + master.config.agent_reregister_timeout);
}
