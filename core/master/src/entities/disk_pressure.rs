//! Disk pressure: of the registry, and of agents.
//!
//! While the registry's disk is nearly full, changes that need space are rejected; terminations are recorded in the
//! reserve of the store, and calls without records continue. An agent under disk pressure is not offered.

use alloc::format;

use tepui_fsm::{Now, Wall};
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::tepui::agent::v1::call as link_call;
use tepui_types::{AgentId, DiskPressure, DiskRoom, Rejection, Status};

use crate::entities::offer;
use crate::master::{Master, Out};
use crate::state::transition::Transition;

/// The registry's disk has become short of room, or is so no longer.
pub(crate) fn room(master: &mut Master, now: Now, room: DiskRoom, out: &mut Out) {
    let found = DiskPressure::found(room, now.wall);
    if found.is_some() != master.state.disk_pressure.is_some() {
        master.state.disk_pressure = found;
        master.changed = true;
        let available_bytes = room.available_bytes;
        Master::log(Transition::RegistryDiskPressure { is_on: room.is_short, available_bytes }, out);
    }
}

/// Whether something may be recorded that takes room for good.
pub(crate) fn check(master: &Master, what: &str) -> Result<(), Rejection> {
    let Some(pressure) = master.state.disk_pressure else { return Ok(()) };
    let why = format!("The registry is under {pressure}: {what} needs room on its disk; nothing was changed");
    Err(Rejection::new(Status::InsufficientStorage, why))
}

/// The calls of operators that leave more in the registry than there was.
pub(crate) fn check_call(master: &Master, call: Type) -> Result<(), Rejection> {
    match call {
        Type::UPDATE_WEIGHTS | Type::UPDATE_QUOTA | Type::SET_QUOTA | Type::UPDATE_MAINTENANCE_SCHEDULE => {
            check(master, "a change of weights, quotas or the maintenance schedule")
        }
        _ => Ok(()),
    }
}

/// The disk of an agent, as it reports it.
pub(crate) fn reported(report: &link_call::DiskPressure, now: Wall) -> Option<DiskPressure> {
    let available_bytes = report.available_bytes.unwrap_or(0);
    DiskPressure::found(DiskRoom { is_short: report.is_on, available_bytes }, now)
}

/// An agent's disk has become short of room, or is so no longer.
pub(crate) fn of_agent(master: &mut Master, id: &AgentId, found: Option<DiskPressure>, out: &mut Out) {
    let Some(agent) = master.agent(id) else { return };
    if agent.disk_pressure.is_some() == found.is_some() {
        return;
    }
    if found.is_some() {
        offer::rescind_all_on(master, id, out);
        master.allocator.deactivate_agent(id);
    }
    let Some(agent) = master.agent_mut(id) else { return };
    agent.disk_pressure = found;
    let hostname = agent.info.hostname.clone();
    if agent.is_offered() {
        master.allocator.activate_agent(id);
    }
    Master::log(Transition::AgentDiskPressure { agent_id: id.clone(), hostname, pressure: found }, out);
}
