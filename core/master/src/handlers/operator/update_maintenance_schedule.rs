//! UPDATE_MAINTENANCE_SCHEDULE: which machines will not be there, and when. Replaces the schedule as a whole.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::master::call::UpdateMaintenanceSchedule;
use tepui_proto::wire;
use tepui_registry::{Machine, Operation as Record};
use tepui_types::Rejection;

use crate::entities::maintenance;
use crate::master::{Master, Out};

type Machines = BTreeMap<Machine, Option<pb::MachineInfo>>;

pub(super) fn update_maintenance_schedule(
    master: &mut Master,
    call: &UpdateMaintenanceSchedule,
    out: &mut Out,
) -> Result<(), Rejection> {
    wire::check_size(&*call.schedule, master.config.limits.maintenance_schedule).map_err(|why| {
        Rejection::bad_request(format!("The schedule {why} (--max_maintenance_schedule_size)"))
    })?;
    let machines = planned(master, &call.schedule).map_err(Rejection::bad_request)?;
    set(master, Schedule::clone(&call.schedule), machines, out);
    Ok(())
}

/// What becomes of every machine: those in a window drain, or stay down; the others are up.
fn planned(master: &Master, schedule: &Schedule) -> Result<Machines, String> {
    let mut machines: Machines =
        master.state.machines.keys().map(|machine| (machine.clone(), None)).collect();
    for window in &schedule.windows {
        if window.machine_ids.is_empty() {
            return Err("List of machines in the maintenance window is empty".into());
        }
        if window.unavailability.duration.as_option().is_some_and(|duration| duration.nanoseconds < 0) {
            return Err("Unavailability 'duration' is negative".into());
        }
        for id in &window.machine_ids {
            let machine = check_machine(id)?;
            let known = master.state.machines.get(&machine);
            let down = known.is_some_and(|info| info.mode == Some(Mode::DOWN));
            let info = pb::MachineInfo {
                id: id.clone().into(),
                mode: Some(if down { Mode::DOWN } else { Mode::DRAINING }),
                unavailability: window.unavailability.clone(),
                ..Default::default()
            };
            if let Some(Some(_)) = machines.insert(machine.clone(), Some(info)) {
                return Err(format!("Machine '{machine}' appears more than once in the schedule"));
            }
        }
    }
    let left_out = machines.iter().filter(|(_, info)| info.is_none()).map(|(machine, _)| machine);
    for machine in left_out {
        if master.state.machines.get(machine).is_some_and(|info| info.mode == Some(Mode::DOWN)) {
            return Err(format!(
                "Machine '{machine}' is deactivated and cannot be removed from the schedule"
            ));
        }
    }
    Ok(machines)
}

/// A machine that is identified.
pub(super) fn check_machine(id: &pb::MachineID) -> Result<Machine, String> {
    let machine = Machine::from(id);
    if machine.hostname.is_empty() && machine.ip.is_empty() {
        return Err("Both 'hostname' and 'ip' for a machine are empty".into());
    }
    let sound = machine.ip.is_empty() || machine.ip.parse::<core::net::Ipv4Addr>().is_ok();
    match sound {
        true => Ok(machine),
        false => Err(format!("'{}' of a machine is not an IPv4 address", machine.ip)),
    }
}

/// Records the schedule and what it makes of machines, and follows it.
pub(super) fn set(master: &mut Master, schedule: Schedule, machines: Machines, out: &mut Out) {
    master.changed = true;
    master.state.schedule = Arc::new(schedule.clone());
    for (machine, info) in &machines {
        match info {
            Some(info) => master.state.machines.insert_mut(machine.clone(), Arc::new(info.clone())),
            None => drop(master.state.machines.remove_mut(machine)),
        }
    }
    master.record(Record::SetSchedule { schedule, machines }, out);
    maintenance::follow_schedule(master, out);
}
