//! Clients of the Docker API: they create, start, stop, restart, rename and remove containers, and leave.
//!
//! A call goes the way of the front end: the published view finds the container, names and resources are requested
//! from the machine first, then the engine is called, then the machine gets the result. A crash of the manager ends
//! all calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use tepui_swarm::{Container, ContainerSpec, Created, Input, Rejection, RequestId};
use tepui_types::{AgentId, TaskId};

use super::engine::{self, CREATE_LABEL, MOVES_LABEL, Request};
use super::{Step as SwarmStep, input, plan, watch};
use crate::chance::{MS, SECOND, between, pick};
use crate::check::Fact;
use crate::world::{Phase, World};

/// Two creates often ask for the same name.
const NAMES: u64 = 10;

/// (constraint, kinds that it allows)
const CHOICES: [(&str, &str); 6] = [
    ("", "regular"),
    ("constraint:res-type==regular", "regular"),
    ("constraint:res-type==~regular", "regular revocable"),
    ("constraint:res-type==revocable", "revocable"),
    ("constraint:res-type==~revocable", "regular revocable"),
    ("constraint:res-type==*", "regular revocable"),
];
/// The label with the kinds that a container may use.
pub(crate) const KINDS_LABEL: &str = "kinds";

#[derive(Debug, Default)]
pub(super) struct Clients {
    creates: u64,
    requests: u64,
    /// Calls that wait for the manager.
    waiting: BTreeMap<RequestId, Call>,
    /// Calls whose client left.
    left: BTreeSet<RequestId>,
}

#[derive(Clone, Debug)]
enum Call {
    Create { number: u64, starts: bool },
    Hold { number: u64, agent: AgentId },
    Rename { agent: AgentId, name: String },
}

#[derive(Debug)]
pub(crate) enum Step {
    Act,
    /// `docker run` starts what it created.
    Start {
        life: u32,
        id: String,
    },
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::Act => "client",
            Step::Start { .. } => "client-start",
        }
    }
}

impl Clients {
    fn open(&mut self, call: Call) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.waiting.insert(request, call);
        request
    }

    /// The front end is gone, and all connections with it.
    pub(super) fn disconnect(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn unanswered(&self) -> impl Iterator<Item = String> {
        self.waiting.values().map(|call| format!("a client of swarm waits: {call:?}"))
    }
}

pub(super) fn begin(world: &mut World) {
    let wait = between(&mut world.rng, SECOND, 5 * SECOND);
    plan(world, wait, SwarmStep::Client(Step::Act));
}

pub(super) fn step(world: &mut World, step: Step) {
    match step {
        Step::Act => act(world),
        Step::Start { life, id } => {
            if is_up(world, Some(life))
                && let Some(container) = find(world, &id)
            {
                hold(world, &container);
            }
        }
    }
}

/// Whether the manager runs, still with this life.
fn is_up(world: &World, life: Option<u32>) -> bool {
    let process = world.swarm.as_ref().map(|swarm| &swarm.process);
    process.is_some_and(|process| process.is_up() && life.is_none_or(|life| process.life == life))
}

fn act(world: &mut World) {
    if world.phase != Phase::Faults {
        return;
    }
    let wait = between(&mut world.rng, 50 * MS, 3 * SECOND);
    plan(world, wait, SwarmStep::Client(Step::Act));
    let what = world.rng.below(20);
    if !is_up(world, None) {
        return;
    }
    match what {
        0..=8 => create(world),
        9..=11 => on_one(world, hold),
        12 => on_one(world, |world, container| stop(world, container, false)),
        13 => on_one(world, |world, container| stop(world, container, true)),
        14..=16 => on_one(world, remove),
        17 => on_one(world, rename),
        _ => leave(world),
    }
}

/// The number of the create of a container.
pub(super) fn number(container: &Container) -> u64 {
    let number = container.occupant.labels.get(CREATE_LABEL).and_then(|text| text.parse().ok());
    number.expect("every container has the number of its create")
}

fn find(world: &World, id: &str) -> Option<Arc<Container>> {
    world.swarm.as_ref()?.view.find(id).cloned()
}

/// Any container that clients can name.
fn on_one(world: &mut World, act: impl FnOnce(&mut World, &Container)) {
    let Some(swarm) = &world.swarm else { return };
    let all: Vec<_> =
        swarm.view.containers.values().filter(|it| !it.occupant.id.is_empty()).cloned().collect();
    if let Some(container) = pick(&mut world.rng, &all) {
        act(world, container);
    }
}

fn create(world: &mut World) {
    let rng = &mut world.rng;
    let (constraint, kinds) = CHOICES[rng.below(CHOICES.len() as u64) as usize];
    let name = rng.chance(0.7).then(|| format!("name{}", rng.below(NAMES)));
    let (moves, auto_remove, starts) = (rng.chance(0.3), rng.chance(0.2), rng.chance(0.8));
    let (cpus, memory) = (between(rng, 1, 2), between(rng, 0, 2) * 64);
    let Some(swarm) = &mut world.swarm else { return };
    let number = swarm.clients.creates + 1;
    let mut env = vec!["A=1"];
    env.extend(Some(constraint).filter(|text| !text.is_empty()));
    env.extend(moves.then_some("reschedule:on-node-failure"));
    let mut labels = json!({CREATE_LABEL: number.to_string(), KINDS_LABEL: kinds, "res-type": "gold"});
    if moves {
        labels[MOVES_LABEL] = "yes".into();
    }
    let body = json!({
        "Image": "busybox",
        "Env": env,
        "Labels": labels,
        "HostConfig": {"CpuShares": cpus, "Memory": memory << 20, "AutoRemove": auto_remove},
    });
    // Without revocable resources some constraints are rejected by the front end.
    let revocable = swarm.manage.cluster.revocable;
    let Ok(spec) = ContainerSpec::parse(body.to_string().as_bytes(), revocable) else { return };
    swarm.clients.creates = number;
    let request = swarm.clients.open(Call::Create { number, starts });
    world.counts.swarm_creates += 1;
    if auto_remove {
        world.checks.observe(&Fact::ContainerUnwanted { create: number });
    }
    input(world, Input::Create { request, name, spec: Box::new(spec) });
}

/// A start: a task has to hold the resources first.
fn hold(world: &mut World, container: &Container) {
    let Some(swarm) = &mut world.swarm else { return };
    let call = Call::Hold { number: number(container), agent: AgentId::new(&*container.agent) };
    let request = swarm.clients.open(call);
    input(world, Input::Hold { request, task: TaskId::new(&*container.task) });
}

/// The engine of a container, if the manager is connected to it.
fn machine_of(world: &World, container: &Container) -> Option<usize> {
    watch::machine_of(world, &AgentId::new(&*container.agent))
}

fn stop(world: &mut World, container: &Container, restarts: bool) {
    let Some(machine) = machine_of(world, container) else { return };
    if restarts {
        world.checks.observe(&Fact::ClientStarts { create: number(container) });
    }
    engine::request(world, machine, Request::ClientStop { id: container.occupant.id.clone(), restarts });
}

pub(super) fn remove(world: &mut World, container: &Container) {
    let Some(machine) = machine_of(world, container) else { return };
    let Some(life) = world.swarm.as_ref().map(|swarm| swarm.process.life) else { return };
    world.checks.observe(&Fact::ContainerUnwanted { create: number(container) });
    let (task, id) = (TaskId::new(&*container.task), container.occupant.id.clone());
    engine::request(world, machine, Request::ClientRemove { life, task, id });
}

/// The engine has removed a container for a client.
pub(super) fn removed(world: &mut World, life: u32, task: TaskId) {
    if is_up(world, Some(life)) {
        input(world, Input::Removed(task));
    }
}

fn rename(world: &mut World, container: &Container) {
    let name = format!("name{}", world.rng.below(NAMES));
    let Some(swarm) = &mut world.swarm else { return };
    let call = Call::Rename { agent: AgentId::new(&*container.agent), name: name.clone() };
    let request = swarm.clients.open(call);
    input(world, Input::Rename { request, task: TaskId::new(&*container.task), name });
}

/// The engine has renamed a container for a client, or has not.
pub(super) fn renamed(world: &mut World, life: u32, task: TaskId, name: String, renamed: bool) {
    if is_up(world, Some(life)) {
        let name = world.sabotage.forge_name(name);
        input(world, if renamed { Input::Renamed { task, name } } else { Input::RenameFailed { name } });
    }
}

/// A client that waits for a create or a start closes its connection.
fn leave(world: &mut World) {
    let Some(swarm) = &mut world.swarm else { return };
    let waits = swarm.clients.waiting.iter().filter(|(_, call)| !matches!(call, Call::Rename { .. }));
    let waits: Vec<RequestId> = waits.map(|(request, _)| *request).collect();
    if let Some(request) = pick(&mut world.rng, &waits).copied() {
        swarm.clients.waiting.remove(&request);
        swarm.clients.left.insert(request);
        world.counts.swarm_left += 1;
        input(world, Input::Abandoned(request));
    }
}

pub(super) fn on_reply(world: &mut World, request: RequestId, answer: Result<Created, Rejection>) {
    let Some(swarm) = &mut world.swarm else { return };
    let life = swarm.process.life;
    let Some(call) = swarm.clients.waiting.remove(&request) else {
        // An answer may cross the leaving of its client.
        if !swarm.clients.left.remove(&request) {
            world.checks.fail("swarm_answers_once", format!("{request:?} is answered again: {answer:?}"));
        }
        return;
    };
    match (call, answer) {
        (Call::Create { number, starts }, Ok(created)) => {
            world.counts.swarm_created += 1;
            world.checks.observe(&Fact::ContainerAnswered { create: number });
            if starts {
                let wait = between(&mut world.rng, MS, 20 * MS);
                plan(world, wait, SwarmStep::Client(Step::Start { life, id: created.id }));
            }
        }
        (Call::Hold { number, agent }, Ok(created)) => {
            if let Some(machine) = watch::machine_of(world, &agent) {
                world.checks.observe(&Fact::ClientStarts { create: number });
                engine::request(world, machine, Request::ClientStart { id: created.id });
            }
        }
        (Call::Rename { agent, name }, Ok(created)) => match watch::machine_of(world, &agent) {
            Some(machine) => {
                let Created { task, id } = created;
                engine::request(world, machine, Request::ClientRename { life, task, id, name });
            }
            None => input(world, Input::RenameFailed { name }),
        },
        (Call::Create { .. }, Err(_)) => world.counts.swarm_rejected += 1,
        (Call::Hold { .. } | Call::Rename { .. }, Err(_)) => (),
    }
}
