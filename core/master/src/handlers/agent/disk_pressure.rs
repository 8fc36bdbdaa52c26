//! DISK_PRESSURE: an agent's disk has become short of room, or is so no longer.

use tepui_fsm::Now;
use tepui_proto::tepui::agent::v1::call::DiskPressure;
use tepui_types::AgentId;

use crate::entities::disk_pressure;
use crate::master::{Master, Out};

pub(super) fn disk_pressure(
    master: &mut Master,
    now: Now,
    from: &AgentId,
    call: &DiskPressure,
    out: &mut Out,
) {
    disk_pressure::of_agent(master, from, disk_pressure::reported(call, now.wall), out);
}
