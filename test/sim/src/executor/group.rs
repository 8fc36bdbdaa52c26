//! The default executor's machine, over the agent's own API: each task in a nested container.
//!
//! Calls are repeated as its program repeats them: while the agent is away or has not recovered.

use std::collections::BTreeMap;
use std::time::Duration;

use tepui_executors::checks::{CheckKind, Outcome, Target};
use tepui_executors::default::calls;
use tepui_executors::default::machine::{DefaultMachine, Effect, Id, IoEvent, Waited};
use tepui_executors::machine::Machine;
use tepui_proto::mesos::v1::agent::{Call, Response};
use tepui_types::{ConnId, ContainerId};

use super::check_session::{self, CheckSession};
use super::drive::{self, Input};
use super::{Executor, Program, exit, get, plan, report};
use crate::chance::SECOND;
use crate::check::Fact;
use crate::net::{Client, End, Kind, Message, Node};
use crate::probe;
use crate::world::World;

/// The pause before a call is repeated.
const RETRY_PAUSE: u64 = SECOND;

#[derive(Debug)]
pub(super) struct Group {
    machine: DefaultMachine,
    requests: BTreeMap<u64, Request>,
    /// Attempts of checks by command.
    pub(super) checks: BTreeMap<u64, CheckSession>,
    next: u64,
}

/// A call that is not answered yet.
#[derive(Debug)]
struct Request {
    purpose: Purpose,
    call: Call,
    conn: Option<ConnId>,
}

#[derive(Clone, Debug)]
enum Purpose {
    Launch(Id),
    Wait(Id),
    Kill,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A call is made, or made again.
    Call(u64),
    /// An attempt of a check has no more time.
    CheckTimeout(u64),
    Probed {
        task: Id,
        kind: CheckKind,
        outcome: Outcome,
    },
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Call(_) => "call",
            Step::CheckTimeout(_) => "trial-over",
            Step::Probed { .. } => "probed",
        }
    }
}

impl Group {
    pub(super) fn new(grace: Duration) -> Self {
        let machine = DefaultMachine::new(grace);
        Self { machine, requests: BTreeMap::new(), checks: BTreeMap::new(), next: 0 }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

pub(super) fn group<'w>(world: &'w mut World, agent: usize, id: &ContainerId) -> Option<&'w mut Group> {
    group_of(get(world, agent, id)?)
}

fn group_of(executor: &mut Executor) -> Option<&mut Group> {
    match &mut executor.program {
        Program::Group(group) => Some(group),
        Program::Pretend | Program::Single(_) | Program::Container(_) => None,
    }
}

pub(super) fn drive(world: &mut World, agent: usize, id: &ContainerId, input: Input<IoEvent>) {
    let now = world.elapsed();
    let World { rng, agents, .. } = world;
    let Some(group) = agents[agent].host.executor_mut(id).and_then(group_of) else { return };
    let effects = drive::feed(&mut group.machine, now, rng, input);
    let deadline = group.machine.deadline();
    effects.into_iter().for_each(|effect| perform(world, agent, id, effect));
    drive::plan_due(world, agent, id, deadline);
}

/// Ignored after the exit of the executor.
fn perform(world: &mut World, agent: usize, id: &ContainerId, effect: Effect) {
    match effect {
        Effect::Update(status) => report(world, agent, id, status),
        Effect::Launch(task, container) => {
            world.counts.group_tasks += 1;
            let call = calls::launch(&task, &container, "10.0.1.1");
            request(world, agent, id, Purpose::Launch(task.task_id.value.clone()), call);
        }
        Effect::Wait(task, container) => {
            request(world, agent, id, Purpose::Wait(task), calls::wait(&container));
        }
        Effect::Kill(container, signal) => {
            request(world, agent, id, Purpose::Kill, calls::kill(&container, signal as i32));
        }
        Effect::Link(..) => (),
        Effect::Probe(task, container, kind, probe) => match &probe.target {
            Target::Command(command) => {
                check_session::begin(world, agent, id, (task, kind), &container, &probe, command);
            }
            Target::Http { .. } | Target::Tcp { .. } => {
                let (wait, outcome) = probe::draw(world);
                plan(world, agent, id, wait, super::Step::Group(Step::Probed { task, kind, outcome }));
            }
        },
        Effect::Exit(code) => exit(world, agent, id, i32::from(code) << 8, false),
    }
}

pub(super) fn step(world: &mut World, agent: usize, id: &ContainerId, step: Step) {
    match step {
        Step::Call(number) => call(world, agent, id, number),
        Step::CheckTimeout(number) => check_session::time_out(world, agent, id, number),
        Step::Probed { task, kind, outcome } => {
            if probe::is_bad(&outcome) {
                world.checks.observe(&Fact::ProbeFails { container: id, task: &task });
            }
            drive(world, agent, id, Input::IoEvent(IoEvent::Probed(task, kind, outcome)));
        }
    }
}

fn request(world: &mut World, agent: usize, id: &ContainerId, purpose: Purpose, call: Call) {
    let Some(group) = group(world, agent, id) else { return };
    let number = group.number();
    group.requests.insert(number, Request { purpose, call, conn: None });
    self::call(world, agent, id, number);
}

fn call(world: &mut World, agent: usize, id: &ContainerId, number: u64) {
    if !world.agents[agent].process.is_up() {
        return plan(world, agent, id, RETRY_PAUSE, super::Step::Group(Step::Call(number)));
    }
    let Some(request) = group(world, agent, id).and_then(|group| group.requests.get(&number)) else { return };
    let call = Box::new(request.call.clone());
    let client = Client::Executor { agent, container: id.clone() };
    let conn = world.open(Kind::Request, client, Node::Agent(agent));
    if let Some(request) = group(world, agent, id).and_then(|group| group.requests.get_mut(&number)) {
        request.conn = Some(conn);
    }
    world.send(conn, End::Server, Message::ContainerCall(call));
}

/// The request that waits on a connection.
fn waiting(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) -> Option<u64> {
    let requests = &group(world, agent, id)?.requests;
    requests.iter().find(|(_, request)| request.conn == Some(conn)).map(|(number, _)| *number)
}

/// The connection of an unanswered call was closed.
pub(super) fn closed(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) {
    if check_session::closed(world, agent, id, conn) {
        return;
    }
    if let Some(number) = waiting(world, agent, id, conn) {
        again(world, agent, id, number);
    }
}

fn again(world: &mut World, agent: usize, id: &ContainerId, number: u64) {
    if let Some(request) = group(world, agent, id).and_then(|group| group.requests.get_mut(&number)) {
        request.conn = None;
        world.counts.repeated_calls += 1;
        plan(world, agent, id, RETRY_PAUSE, super::Step::Group(Step::Call(number)));
    }
}

pub(super) fn answered(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId, message: Message) {
    if check_session::answered(world, agent, id, conn, &message) {
        return;
    }
    let Message::Answer { refused, body, .. } = message else { return };
    let Some(number) = waiting(world, agent, id, conn) else { return };
    if matches!(refused, Some((503, _))) {
        return again(world, agent, id, number);
    }
    let removed = group(world, agent, id).and_then(|group| group.requests.remove(&number));
    let Some(Request { purpose, .. }) = removed else { return };
    let io_event = match purpose {
        Purpose::Kill => return, // It arrived, or the container has terminated.
        Purpose::Launch(task) => IoEvent::Launched(task, refused.map_or(Ok(()), |(_, why)| Err(why))),
        Purpose::Wait(task) => IoEvent::Waited(task, waited(refused, body)),
    };
    drive(world, agent, id, Input::IoEvent(io_event));
}

fn waited(refused: Option<(u16, String)>, body: Option<Box<Response>>) -> Waited {
    match refused {
        None => Waited::Ended(Box::new((*body.unwrap_or_default().wait_nested_container).clone())),
        Some((404, _)) => Waited::Unknown,
        Some((_, why)) => Waited::Failed(why),
    }
}
