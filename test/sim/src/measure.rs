//! Simulated measurements of agents: memory and load of their machines, and usage of containers.

use std::time::Duration;

use tepui_core_agent::{
    Config, Estimator, Eviction, Input, Load, MachineMemory, MemoryUse, QosController, Used,
};
use tepui_resources::Resources;
use tepui_types::ContainerId;

use crate::agent;
use crate::chance::{SECOND, between};
use crate::event::Event;
use crate::plan::Plan;
use crate::world::{Phase, World};

const MB: u64 = 1024 * 1024;
/// The eviction threshold.
const AVAILABLE_MIN: u64 = 256 * MB;
/// The load above which revocable tasks are killed.
const LOAD_MAX: f64 = 10.0;

/// Configures eviction and QoS of an agent.
pub(crate) fn configure(plan: &Plan, config: &mut Config) {
    if plan.evictions {
        config.eviction = Eviction { available_bytes: Some(AVAILABLE_MIN), ..Eviction::default() };
    }
    if let Some(cpus) = plan.oversubscribed_cpus {
        let cpus = tepui_client::shorthand::scalar("cpus", cpus as f64);
        let fixed = Resources::from_proto(&[cpus]).expect("an amount of cpus");
        config.estimator = Estimator::Fixed(fixed);
        config.oversubscribed_resources_interval = Duration::from_secs(2);
        config.qos_controller = QosController::Load { five_minutes: Some(LOAD_MAX), fifteen_minutes: None };
        config.qos_correction_interval_min = Duration::from_secs(1);
    }
}

pub(crate) fn plan(world: &mut World, agent: usize) {
    if world.plan.evictions || world.plan.oversubscribed_cpus.is_some() {
        let wait = between(&mut world.rng, SECOND, 5 * SECOND);
        world.queue.after(wait, Event::Measure { agent });
    }
}

/// No more shortages while everything heals.
pub(crate) fn sample(world: &mut World, agent: usize) {
    if world.phase != Phase::Faults {
        return;
    }
    plan(world, agent);
    if !world.agents[agent].process.is_up() {
        return;
    }
    if world.plan.evictions {
        memory(world, agent);
    }
    if world.plan.oversubscribed_cpus.is_some() {
        load(world, agent);
    }
}

fn memory(world: &mut World, agent: usize) {
    let is_short = world.rng.chance(0.2);
    let available = if is_short { AVAILABLE_MIN / 2 } else { 2 * AVAILABLE_MIN };
    let alive: Vec<ContainerId> = world.agents[agent].host.alive().cloned().collect();
    let mut containers = Vec::new();
    for id in alive {
        let used_bytes = between(&mut world.rng, 0, 400) * MB;
        containers.push(MemoryUse { id, used_bytes, request_bytes: 200 * MB, limit_bytes: None });
    }
    let machine = MachineMemory { available_bytes: Some(available), pressure: None };
    agent::input(world, agent, Input::Memory { machine, containers });
}

fn load(world: &mut World, agent: usize) {
    let five_minutes = if world.rng.chance(0.2) { 2.0 * LOAD_MAX } else { 1.0 };
    world.counts.overloads += u64::from(five_minutes > LOAD_MAX);
    let alive: Vec<ContainerId> = world.agents[agent].host.alive().cloned().collect();
    let cpu_time = Duration::from_nanos(world.queue.now() / 10);
    let samples = alive.into_iter().map(|id| Used { id, cpu_time, mem_bytes: 100 * MB }).collect();
    agent::input(world, agent, Input::Used { samples });
    agent::input(world, agent, Input::Load(Load { five_minutes, ..Default::default() }));
}
