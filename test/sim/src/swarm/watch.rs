//! The manager's connections to engines: each is listed when it is connected and whenever something on it has changed.
//!
//! A list is a moment of the engine that arrives later. While an engine is away it is tried again; the first list after that
//! begins after the manager was told of the loss.

use std::sync::Arc;

use tepui_swarm::{Engine as Listed, EngineAddress, EngineEvent, Input};
use tepui_types::AgentId;

use super::{Step as SwarmStep, input, plan};
use crate::chance::{MS, SECOND, between, mostly};
use crate::world::World;

#[derive(Debug)]
pub(super) struct Watch {
    pub(super) machine: usize,
    /// Changes when the connection does, to recognise answers of an earlier one.
    token: u64,
    is_up: bool,
    is_reading: bool,
    /// Something has changed since the current list began.
    is_stale: bool,
}

#[derive(Debug)]
pub(crate) enum Step {
    Read { agent: AgentId, token: u64 },
    Arrived { agent: AgentId, token: u64, engine: Arc<Listed> },
    Lost { agent: AgentId, token: u64 },
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Read { .. } => "watch-read",
            Step::Arrived { .. } => "watch-arrived",
            Step::Lost { .. } => "watch-lost",
        }
    }
}

/// The machine that an address names.
fn machine_at(address: &EngineAddress) -> usize {
    let host = match address {
        EngineAddress::Tcp { host, .. } => host.strip_prefix("host"),
        EngineAddress::Unix(_) => None,
    };
    host.and_then(|index| index.parse().ok()).expect("agents of this world are named after their index")
}

pub(super) fn connect(world: &mut World, agent: AgentId, address: &EngineAddress) {
    let token = world.rng.next_u64();
    let watch =
        Watch { machine: machine_at(address), token, is_up: false, is_reading: true, is_stale: false };
    let Some(swarm) = &mut world.swarm else { return };
    swarm.watches.insert(agent.clone(), watch);
    read(world, agent, token);
}

pub(super) fn disconnect(world: &mut World, agent: &AgentId) {
    if let Some(swarm) = &mut world.swarm {
        swarm.watches.remove(agent);
    }
}

/// The machine of an agent that the manager is connected to.
pub(super) fn machine_of(world: &World, agent: &AgentId) -> Option<usize> {
    Some(world.swarm.as_ref()?.watches.get(agent)?.machine)
}

fn read(world: &mut World, agent: AgentId, token: u64) {
    let wait = mostly(&mut world.rng, MS / 5, 10 * MS, 0.02, 500 * MS);
    plan(world, wait, SwarmStep::Watch(Step::Read { agent, token }));
}

fn get<'w>(world: &'w mut World, agent: &AgentId, token: u64) -> Option<&'w mut Watch> {
    world.swarm.as_mut()?.watches.get_mut(agent).filter(|watch| watch.token == token)
}

pub(super) fn step(world: &mut World, step: Step) {
    match step {
        Step::Read { agent, token } => on_read(world, agent, token),
        Step::Arrived { agent, token, engine } => arrived(world, agent, token, engine),
        Step::Lost { agent, token } => {
            if get(world, &agent, token).is_some() {
                down(world, agent);
            }
        }
    }
}

fn on_read(world: &mut World, agent: AgentId, token: u64) {
    let Some(watch) = get(world, &agent, token) else { return };
    watch.is_stale = false;
    let machine = watch.machine;
    let Some(swarm) = &world.swarm else { return };
    match swarm.engines[machine].list(machine) {
        None => down(world, agent),
        Some(engine) => {
            let wait = mostly(&mut world.rng, MS / 5, 10 * MS, 0.02, 500 * MS);
            let engine = Arc::new(engine);
            plan(world, wait, SwarmStep::Watch(Step::Arrived { agent, token, engine }));
        }
    }
}

fn arrived(world: &mut World, agent: AgentId, token: u64, engine: Arc<Listed>) {
    let Some(watch) = get(world, &agent, token) else { return };
    watch.is_up = true;
    watch.is_reading = watch.is_stale;
    let again = watch.is_stale;
    input(world, Input::Engine { agent: agent.clone(), event: EngineEvent::Up(engine) });
    if again {
        read(world, agent, token);
    }
}

/// The connection is lost, or could not be had; another attempt follows.
fn down(world: &mut World, agent: AgentId) {
    let token = world.rng.next_u64();
    let Some(swarm) = &mut world.swarm else { return };
    let Some(watch) = swarm.watches.get_mut(&agent) else { return };
    (watch.token, watch.is_up, watch.is_reading) = (token, false, true);
    let event = EngineEvent::Down("connection refused".into());
    input(world, Input::Engine { agent: agent.clone(), event });
    let wait = between(&mut world.rng, 200 * MS, 10 * SECOND);
    plan(world, wait, SwarmStep::Watch(Step::Read { agent, token }));
}

/// Something on an engine has changed.
pub(super) fn changed(world: &mut World, machine: usize) {
    let Some(swarm) = &mut world.swarm else { return };
    let mut reads = Vec::new();
    for (agent, watch) in swarm.watches.iter_mut().filter(|(_, watch)| watch.machine == machine) {
        watch.is_stale = true;
        if watch.is_up && !std::mem::replace(&mut watch.is_reading, true) {
            reads.push((agent.clone(), watch.token));
        }
    }
    reads.into_iter().for_each(|(agent, token)| read(world, agent, token));
}

/// The connections to an engine break: what is in flight is lost.
pub(super) fn lose(world: &mut World, machine: usize) {
    let Some(swarm) = &mut world.swarm else { return };
    let mut lost = Vec::new();
    let live = swarm.watches.iter_mut().filter(|(_, watch)| watch.machine == machine && watch.is_up);
    for (agent, watch) in live {
        watch.token = watch.token.wrapping_add(1);
        (watch.is_up, watch.is_reading) = (false, true);
        lost.push((agent.clone(), watch.token));
    }
    for (agent, token) in lost {
        let wait = between(&mut world.rng, MS, SECOND);
        plan(world, wait, SwarmStep::Watch(Step::Lost { agent, token }));
    }
}
