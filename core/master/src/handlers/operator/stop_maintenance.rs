//! STOP_MAINTENANCE: machines are up again, and no longer in the schedule.

use alloc::collections::BTreeMap;

use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::master::call::StopMaintenance;
use tepui_registry::Machine;
use tepui_types::Rejection;

use super::start_maintenance::{in_mode, named};
use super::update_maintenance_schedule::set;
use crate::master::{Master, Out};

pub(super) fn stop_maintenance(
    master: &mut Master,
    call: &StopMaintenance,
    out: &mut Out,
) -> Result<(), Rejection> {
    let mut machines = BTreeMap::new();
    for machine in named(&call.machines)? {
        in_mode(master, &machine, Mode::DOWN)?;
        machines.insert(machine, None);
    }
    let mut schedule = Schedule::clone(&master.state.schedule);
    for window in &mut schedule.windows {
        window.machine_ids.retain(|id| !machines.contains_key(&Machine::from(id)));
    }
    schedule.windows.retain(|window| !window.machine_ids.is_empty());
    set(master, schedule, machines, out);
    Ok(())
}
