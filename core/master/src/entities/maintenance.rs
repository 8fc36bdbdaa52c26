//! Machines and their unavailability: what a maintenance schedule means for agents.
//!
//! Time alone changes nothing: operators take machines down and up. Until then an agent in a window is offered as
//! always, with its unavailability, and its frameworks receive inverse offers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::maintenance::ClusterStatus;
use tepui_proto::mesos::v1::maintenance::cluster_status::DrainingMachine;
use tepui_registry::Machine;
use tepui_types::AgentId;

use crate::entities::offer;
use crate::master::{Master, Out};
use crate::state::{Agent, Map, State};

/// Whether the agent at this hostname and address is on the machine; an unset field of the machine matches all.
fn is_on(machine: &Machine, hostname: &str, ip: &str) -> bool {
    let same_host = machine.hostname.is_empty() || machine.hostname == hostname.to_lowercase();
    same_host && (machine.ip.is_empty() || machine.ip == ip)
}

/// The maintenance of the machine at this hostname and address.
pub(crate) fn machine_of<'a>(state: &'a State, hostname: &str, ip: &str) -> Option<&'a Arc<pb::MachineInfo>> {
    let exact = state.machines.get(&Machine::new(hostname, ip));
    exact.or_else(|| state.machines.iter().find(|(machine, _)| is_on(machine, hostname, ip)).map(|it| it.1))
}

pub(crate) fn is_down(state: &State, hostname: &str, ip: &str) -> bool {
    machine_of(state, hostname, ip).is_some_and(|info| info.mode == Some(Mode::DOWN))
}

/// When the agent at this hostname and address will not be there.
pub(crate) fn unavailability(state: &State, hostname: &str, ip: &str) -> Option<Arc<pb::Unavailability>> {
    let info = machine_of(state, hostname, ip)?;
    info.unavailability.as_option().cloned().map(Arc::new)
}

/// The agents on a machine.
pub(crate) fn agents_on(state: &State, machine: &Machine) -> Vec<AgentId> {
    let on = |agent: &&Arc<Agent>| is_on(machine, &agent.info.hostname, ip(&agent.pid));
    state.agents.values().filter(on).map(|agent| agent.id.clone()).collect()
}

/// After a change of the schedule: offers of agents whose unavailability changed are rescinded.
pub(crate) fn follow_schedule(master: &mut Master, out: &mut Out) {
    let mut changed = Vec::new();
    for agent in master.state.agents.values() {
        let unavailability = unavailability(&master.state, &agent.info.hostname, ip(&agent.pid));
        if unavailability != agent.unavailability {
            changed.push((agent.id.clone(), unavailability));
        }
    }
    for (id, unavailability) in changed {
        offer::rescind_all_on(master, &id, out);
        let unavailable = unavailability.is_some();
        if let Some(agent) = master.agent_mut(&id) {
            agent.unavailability = unavailability;
            agent.inverse_answers = Map::new_sync();
        }
        master.allocator.set_unavailable(&id, unavailable);
    }
}

/// Draining and down machines, with the answers of frameworks.
pub fn cluster_status(state: &State) -> ClusterStatus {
    let mut status = ClusterStatus::default();
    for (machine, info) in state.machines.iter() {
        match info.mode {
            Some(Mode::DOWN) => status.down_machines.push((*info.id).clone()),
            Some(Mode::DRAINING) => {
                let agents = agents_on(state, machine);
                let answers = agents.iter().filter_map(|id| state.agents.get(id));
                let statuses = answers.flat_map(|agent| agent.inverse_answers.values().cloned()).collect();
                let id = info.id.clone();
                status.draining_machines.push(DrainingMachine { id, statuses, ..Default::default() });
            }
            Some(Mode::UP) | None => (),
        }
    }
    status
}

/// `slave(1)@ip:port` -> ip.
pub(crate) fn ip(pid: &str) -> &str {
    let address = pid.split_once('@').map_or(pid, |(_, address)| address);
    address.rsplit_once(':').map_or(address, |(ip, _)| ip)
}
