//! UNREGISTER: the agent leaves for good, in order. What is still on it is lost.

use tepui_fsm::Now;
use tepui_registry::Operation as Record;
use tepui_types::AgentId;

use crate::entities::removal::{self, Loss};
use crate::master::{Master, Out};
use crate::values::counters::Counter;

pub(super) fn unregister(master: &mut Master, now: Now, from: &AgentId, out: &mut Out) {
    master.record(Record::RemoveAgent { id: from.clone() }, out);
    removal::remove(master, now, from, Loss::Removed, out);
    master.count(Counter::AgentRemovalsUnregistered);
}
