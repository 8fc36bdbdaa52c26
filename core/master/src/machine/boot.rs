//! The start of a master: from its configuration and the registry.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_fsm::{Deadlines, Now, Rng};
use tepui_registry::{Operation as Record, Registry};

use crate::entities::drain;
use crate::master::{Master, Out, Serial, empty_state};
use crate::rules::allocator_spec;
use crate::state::{Liveness, Offers, Operations};
use crate::values::isolations::Isolations;
use crate::values::terminal_acknowledgements::TerminalAcknowledgements;
use crate::values::timers::Timer;
use crate::{Config, State};

pub(crate) fn master(config: Config, mut registry: Registry, now: Now) -> Master {
    let first_records = first_records(&config, &registry);
    first_records.iter().for_each(|record| registry.apply(record));
    let mut rng = Rng::seeded(config.seed);
    let mut allocator = allocator_spec::allocator(&config, &registry, &mut rng);
    allocator.recover(now.mono, registry.agents.len());
    let mut state = empty_state(&config, now);
    for (id, info) in &registry.agents {
        state.recovered_agents.insert_mut(id.clone(), Arc::new(info.clone()));
    }
    registry.unreachable.iter().for_each(|(id, at)| state.unreachable_agents.insert_mut(id.clone(), *at));
    registry.gone.iter().for_each(|(id, at)| state.gone_agents.insert_mut(id.clone(), *at));
    operator_settings(&mut state, &registry);
    let mut timers = Deadlines::new();
    timers.set(Timer::RegistryGc, now.mono + config.registry_gc_interval);
    if !registry.agents.is_empty() {
        timers.set(Timer::RecoveredAgents, now.mono + config.agent_reregister_timeout);
    }
    let (draining, known_agents) = (drain::begun(&registry), registry.agents.len());
    Master {
        config,
        state,
        registry,
        allocator,
        rng,
        timers,
        schedulers: BTreeMap::new(),
        links: BTreeMap::new(),
        operators: VecDeque::new(),
        offers: Offers::default(),
        inverse_offers: Offers::default(),
        draining,
        operations: Operations::default(),
        footprint: BTreeMap::new(),
        unreachable_tasks: BTreeMap::new(),
        kills: BTreeMap::new(),
        ends: TerminalAcknowledgements::default(),
        isolations: Isolations::default(),
        pids: BTreeMap::new(),
        liveness: Liveness::new(known_agents),
        wanted_back: BTreeMap::new(),
        inquiries: VecDeque::new(),
        serial: Serial::default(),
        first_records,
        changed: true,
        counted: false,
    }
}

/// What operators set, as readers see it.
fn operator_settings(state: &mut State, registry: &Registry) {
    registry.weights.iter().for_each(|(role, weight)| state.weights.insert_mut(role.clone(), *weight));
    for (role, config) in &registry.quotas {
        state.quotas.insert_mut(role.clone(), Arc::new(config.clone()));
    }
    state.schedule = Arc::new(registry.schedule.clone());
    for (machine, info) in &registry.machines {
        state.machines.insert_mut(machine.clone(), Arc::new(info.clone()));
    }
}

/// Records the initial values of a first start; none afterwards.
pub(crate) fn record_first(master: &mut Master, out: &mut Out) {
    core::mem::take(&mut master.first_records).into_iter().for_each(|record| out.record(record));
}

/// On the very first start the flags speak; afterwards the registry does.
fn first_records(config: &Config, registry: &Registry) -> Vec<Record> {
    if !registry.is_new() {
        return if registry.is_old() { alloc::vec![Record::Upgrade] } else { Vec::new() };
    }
    let mut records = alloc::vec![Record::Initialize { cluster_id: config.master_info.id.clone() }];
    if !config.weights.is_empty() {
        records.push(Record::SetWeights(config.weights.clone()));
    }
    records
}
