//! Drives the executors' own machines as their programs do: events of the agent and of the I/O part and deadlines in, effects out.

use std::time::Duration;

use tepui_client::executor::{Event as ExecutorEvent, State};
use tepui_executors::machine::{Machine, Moment};
use tepui_types::ContainerId;

use super::{Program, Step, begin_task, container, get, group, plan, single};
use crate::chance::Rng;
use crate::world::World;

/// One input of a machine.
#[derive(Clone, Debug)]
pub(super) enum Input<H> {
    Event(ExecutorEvent),
    IoEvent(H),
    Due,
    /// The session has terminated.
    Abandoned,
}

/// One step of a machine: the effects, to be carried out in order.
pub(super) fn feed<M: Machine>(
    machine: &mut M,
    now: Duration,
    rng: &mut Rng,
    input: Input<M::IoEvent>,
) -> Vec<M::Effect> {
    let mut uuid = || rng.uuid();
    let mut moment = Moment { now, uuid: &mut uuid };
    let mut effects = Vec::new();
    match input {
        Input::Event(event) => machine.on_event(&mut moment, event, &mut effects),
        Input::IoEvent(io_event) => machine.on_io_event(&mut moment, io_event, &mut effects),
        Input::Due => machine.due(&mut moment, &mut effects),
        Input::Abandoned => machine.abandoned(&mut moment, &mut effects),
    }
    effects
}

/// An event of the agent, or of the session; after its last one the executor is on its own.
pub(super) fn event(world: &mut World, agent: usize, id: &ContainerId, event: ExecutorEvent) {
    match &event {
        ExecutorEvent::Launch(task) => drop(begin_task(world, agent, id, task)),
        ExecutorEvent::LaunchGroup(tasks) => {
            for task in tasks {
                begin_task(world, agent, id, task);
            }
        }
        _ => (),
    }
    step(world, agent, id, Input::Event(event));
    let is_over = get(world, agent, id).is_some_and(|executor| *executor.session.state() == State::Ended);
    if is_over {
        step(world, agent, id, Input::Abandoned);
    }
}

pub(super) fn due(world: &mut World, agent: usize, id: &ContainerId) {
    if let Some(executor) = get(world, agent, id) {
        executor.due_at = None;
        step(world, agent, id, Input::Due);
    }
}

/// What both kinds of machines take.
fn step(world: &mut World, agent: usize, id: &ContainerId, input: Input<std::convert::Infallible>) {
    match get(world, agent, id).map(|executor| &executor.program) {
        Some(Program::Single(_)) => single::drive(world, agent, id, input.widen()),
        Some(Program::Group(_)) => group::drive(world, agent, id, input.widen()),
        Some(Program::Container(_)) => container::drive(world, agent, id, input.widen()),
        Some(Program::Pretend) | None => (),
    }
}

impl Input<std::convert::Infallible> {
    fn widen<H>(self) -> Input<H> {
        match self {
            Input::Event(event) => Input::Event(event),
            Input::IoEvent(never) => match never {},
            Input::Due => Input::Due,
            Input::Abandoned => Input::Abandoned,
        }
    }
}

/// Plans when the machine is woken next.
pub(super) fn plan_due(world: &mut World, agent: usize, id: &ContainerId, deadline: Option<Duration>) {
    let now = world.elapsed();
    let Some(executor) = get(world, agent, id) else { return };
    let Some(deadline) = deadline else { return };
    if executor.due_at.is_some_and(|planned| planned <= deadline) {
        return;
    }
    executor.due_at = Some(deadline);
    let wait = u64::try_from(deadline.saturating_sub(now).as_nanos()).unwrap_or(u64::MAX);
    plan(world, agent, id, wait.max(1), Step::Due);
}
