//! The container executor: its machine over a simulated engine.
//!
//! It asks the engine and follows its container as the real executor does: requests may be lost with the engine, which is
//! asked again; events of one container arrive in order.

use std::time::Duration;

use tepui_docker::ContainerReport;
use tepui_executors::container::machine::{ContainerMachine, Effect, IoEvent, NotCreated, Observed};
use tepui_executors::machine::Machine;
use tepui_types::ContainerId;

use super::drive::{self, Input};
use super::{Executor, Program, Step as ExecutorStep, exit, get, plan};
use crate::chance::{MS, between, mostly};
use crate::swarm::engine::{self, Request};
use crate::world::World;

/// Between two attempts to reach an engine that is away.
const ENGINE_RETRY: u64 = 500 * MS;

#[derive(Debug)]
pub(super) struct Holder {
    machine: ContainerMachine,
    /// The last end of an adopted container before it was adopted.
    former_end: Option<u32>,
    follows: Option<Follow>,
}

#[derive(Debug)]
struct Follow {
    id: String,
    /// Events arrive; not while the engine is away.
    is_open: bool,
    /// When the newest event arrives.
    arrival: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Follow,
    Inspect(String),
    Io(IoEvent),
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Follow => "container-follow",
            Step::Inspect(_) => "container-inspect",
            Step::Io(_) => "container-happened",
        }
    }
}

impl Holder {
    pub(super) fn new(grace: Duration) -> Self {
        Self { machine: ContainerMachine::new(grace), former_end: None, follows: None }
    }
}

fn holder_of(executor: &mut Executor) -> Option<&mut Holder> {
    match &mut executor.program {
        Program::Container(holder) => Some(holder),
        Program::Pretend | Program::Single(_) | Program::Group(_) => None,
    }
}

fn holder<'w>(world: &'w mut World, agent: usize, id: &ContainerId) -> Option<&'w mut Holder> {
    get(world, agent, id).and_then(holder_of)
}

pub(super) fn drive(world: &mut World, agent: usize, id: &ContainerId, input: Input<IoEvent>) {
    let now = world.elapsed();
    let World { rng, agents, .. } = world;
    let Some(holder) = agents[agent].host.executor_mut(id).and_then(holder_of) else { return };
    let effects = drive::feed(&mut holder.machine, now, rng, input);
    let deadline = holder.machine.deadline();
    effects.into_iter().for_each(|effect| perform(world, agent, id, effect));
    drive::plan_due(world, agent, id, deadline);
}

/// Ignored after the exit of the executor.
fn perform(world: &mut World, agent: usize, id: &ContainerId, effect: Effect) {
    let executor = id.clone();
    match effect {
        Effect::Update(status) => super::report(world, agent, id, status),
        Effect::Create(task) => engine::request(world, agent, Request::Create { executor, task }),
        Effect::Follow(container) => {
            let Some(holder) = holder(world, agent, id) else { return };
            holder.follows = Some(Follow { id: container, is_open: false, arrival: 0 });
            plan_step(world, agent, id, Step::Follow);
        }
        Effect::Inspect(container) => plan_step(world, agent, id, Step::Inspect(container)),
        Effect::Start(id) => engine::request(world, agent, Request::Start { executor, id }),
        Effect::Stop(id, grace) => {
            let grace = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
            engine::request(world, agent, Request::Stop { id, grace });
        }
        Effect::Remove(id) => engine::request(world, agent, Request::Undo { executor, id }),
        Effect::Exit(code) => exit(world, agent, id, i32::from(code) << 8, false),
    }
}

fn plan_step(world: &mut World, agent: usize, id: &ContainerId, step: Step) {
    let wait = mostly(&mut world.rng, MS / 20, MS, 0.01, 200 * MS);
    plan(world, agent, id, wait, ExecutorStep::Container(step));
}

pub(super) fn step(world: &mut World, agent: usize, id: &ContainerId, step: Step) {
    match step {
        Step::Follow => follow(world, agent, id),
        Step::Inspect(container) => {
            let former_end = holder(world, agent, id).and_then(|holder| holder.former_end);
            match engine::inspect(world, agent, &container, former_end) {
                Some(observed) => plan_step(world, agent, id, Step::Io(IoEvent::Inspected(observed))),
                None => {
                    plan(world, agent, id, ENGINE_RETRY, ExecutorStep::Container(Step::Inspect(container)))
                }
            }
        }
        Step::Io(io_event) => drive(world, agent, id, Input::IoEvent(io_event)),
    }
}

/// Subscribes to the engine's events, then looks at the container: nothing in between is missed.
fn follow(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(Holder { former_end, follows: Some(follow), .. }) = holder(world, agent, id) else { return };
    let (container, former_end) = (follow.id.clone(), *former_end);
    match engine::inspect(world, agent, &container, former_end) {
        None => plan(world, agent, id, ENGINE_RETRY, ExecutorStep::Container(Step::Follow)),
        Some(observed) => {
            if let Some(Holder { follows: Some(follow), .. }) = holder(world, agent, id) {
                follow.is_open = true;
            }
            observe_one(world, agent, id, &container, &observed);
        }
    }
}

/// An engine answered a create; the executor may be gone.
pub(crate) fn created(
    world: &mut World,
    agent: usize,
    id: &ContainerId,
    former_end: Option<u32>,
    outcome: Result<ContainerReport, NotCreated>,
) {
    if let Some(holder) = holder(world, agent, id) {
        holder.former_end = former_end;
    }
    report(world, agent, id, IoEvent::Created(outcome));
}

/// An answer of the engine is on its way to an executor.
pub(crate) fn report(world: &mut World, agent: usize, id: &ContainerId, io_event: IoEvent) {
    plan_step(world, agent, id, Step::Io(io_event));
}

/// Something happened to a container of the engine on this machine.
pub(crate) fn observe(world: &mut World, agent: usize, container: &str, observed: &Observed) {
    let holders: Vec<ContainerId> = world.agents[agent].host.holders().cloned().collect();
    holders.iter().for_each(|id| observe_one(world, agent, id, container, observed));
}

fn observe_one(world: &mut World, agent: usize, id: &ContainerId, container: &str, observed: &Observed) {
    let at = world.queue.now() + between(&mut world.rng, MS / 20, 5 * MS);
    let Some(Holder { follows: Some(follow), .. }) = holder(world, agent, id) else { return };
    if !follow.is_open || follow.id != container {
        return;
    }
    follow.arrival = follow.arrival.max(at);
    follow.is_open = *observed != Observed::Missing;
    let wait = follow.arrival - world.queue.now();
    let io_event = IoEvent::Observed(observed.clone());
    plan(world, agent, id, wait, ExecutorStep::Container(Step::Io(io_event)));
}

/// The engine on this machine stops: its events end.
pub(crate) fn engine_lost(world: &mut World, agent: usize) {
    let holders: Vec<ContainerId> = world.agents[agent].host.holders().cloned().collect();
    for id in holders {
        if let Some(Holder { follows: Some(follow), .. }) = holder(world, agent, &id)
            && std::mem::take(&mut follow.is_open)
        {
            plan(world, agent, &id, ENGINE_RETRY, ExecutorStep::Container(Step::Follow));
        }
    }
}
