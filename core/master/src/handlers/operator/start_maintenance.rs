//! START_MAINTENANCE: machines go down. Their agents are shut down, and may not register before the machine is up.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::master::call::StartMaintenance;
use tepui_registry::{Machine, Operation as Record};
use tepui_types::Rejection;

use super::update_maintenance_schedule::{check_machine, set};
use crate::entities::maintenance;
use crate::entities::removal::{self, Loss};
use crate::master::{Master, Out};

pub(super) fn start_maintenance(
    master: &mut Master,
    now: Now,
    call: &StartMaintenance,
    out: &mut Out,
) -> Result<(), Rejection> {
    let named = named(&call.machines)?;
    let mut machines = BTreeMap::new();
    for machine in &named {
        let info = in_mode(master, machine, Mode::DRAINING)?;
        machines.insert(machine.clone(), Some(pb::MachineInfo { mode: Some(Mode::DOWN), ..info }));
    }
    let schedule = Schedule::clone(&master.state.schedule);
    set(master, schedule, machines, out);
    for id in
        named.iter().flat_map(|machine| maintenance::agents_on(&master.state, machine)).collect::<Vec<_>>()
    {
        master.record(Record::RemoveAgent { id: id.clone() }, out);
        removal::remove(master, now, &id, Loss::MachineDown, out);
    }
    Ok(())
}

/// The machines of a call: some, sound, none twice.
pub(super) fn named(ids: &[pb::MachineID]) -> Result<Vec<Machine>, Rejection> {
    let mut machines: Vec<Machine> = Vec::new();
    for id in ids {
        let machine = check_machine(id).map_err(Rejection::bad_request)?;
        if machines.contains(&machine) {
            return Err(Rejection::bad_request(format!("Machine '{machine}' appears more than once")));
        }
        machines.push(machine);
    }
    match machines.is_empty() {
        true => Err(Rejection::bad_request("List of machines is empty")),
        false => Ok(machines),
    }
}

/// A machine that is in the schedule, in this mode.
pub(super) fn in_mode(master: &Master, machine: &Machine, mode: Mode) -> Result<pb::MachineInfo, Rejection> {
    match master.state.machines.get(machine) {
        None => {
            Err(Rejection::bad_request(format!("Machine '{machine}' is not part of a maintenance schedule")))
        }
        Some(info) if info.mode == Some(mode) => Ok(pb::MachineInfo::clone(info)),
        Some(info) => {
            let is = info.mode.unwrap_or(Mode::UP);
            Err(Rejection::bad_request(format!("Machine '{machine}' is not in {mode:?} mode, but {is:?}")))
        }
    }
}
