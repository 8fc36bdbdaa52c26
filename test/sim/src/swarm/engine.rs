//! A Docker engine per machine: containers are created, started, exit, are removed, and survive everything but their removal.
//!
//! Requests arrive after a while, also those of a process that died meanwhile; an engine that is away loses them. A stopped
//! engine kills its containers. Changes are shown to executors that follow a container and to the manager's connections.

use std::collections::BTreeMap;

use tepui_docker::{ContainerReport, ContainerTask};
use tepui_executors::container::machine::{IoEvent, NotCreated, Observed};
use tepui_swarm::{Engine as Listed, EngineOperation, Occupant};
use tepui_types::{ContainerId, TaskId};

use super::{Step as SwarmStep, client, plan, watch};
use crate::chance::{MS, SECOND, between, mostly};
use crate::check::Fact;
use crate::executor;
use crate::sabotage::Sabotage;
use crate::world::World;

/// The label with the number of the create; every container of this world has one.
pub(crate) const CREATE_LABEL: &str = "create";
/// The label of containers that move when their node fails.
pub(crate) const MOVES_LABEL: &str = "moves";

const EXIT_KILLED: i64 = 137;
/// As an engine reports containers that it lost in a restart.
const EXIT_LOST: i64 = 255;

#[derive(Debug)]
pub(crate) struct Engine {
    is_up: bool,
    containers: BTreeMap<String, Container>,
    /// Counts its containers.
    serial: u64,
}

#[derive(Debug)]
pub(super) struct Container {
    pub(super) name: String,
    labels: BTreeMap<String, String>,
    auto_remove: bool,
    state: State,
    /// How often it was started, and terminated.
    starts: u32,
    ends: u32,
    /// It cannot be recognised by its name any more.
    pub(super) is_renamed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Created,
    Running,
    Exited { code: i64, oom_killed: bool },
}

/// Requests to an engine.
#[derive(Debug)]
pub(crate) enum Request {
    Create {
        executor: ContainerId,
        task: Box<ContainerTask>,
    },
    Start {
        executor: ContainerId,
        id: String,
    },
    Stop {
        id: String,
        grace: u64,
    },
    /// By the executor: the container was not reported.
    Undo {
        executor: ContainerId,
        id: String,
    },
    /// By the manager.
    Operate(EngineOperation),
    /// By clients, through the front end of the manager with this life.
    ClientStart {
        id: String,
    },
    ClientStop {
        id: String,
        restarts: bool,
    },
    ClientRemove {
        life: u32,
        task: TaskId,
        id: String,
    },
    ClientRename {
        life: u32,
        task: TaskId,
        id: String,
        name: String,
    },
}

#[derive(Debug)]
pub(crate) enum Step {
    Arrives {
        machine: usize,
        request: Request,
    },
    /// A container terminates, unless it was started again meanwhile.
    Exits {
        machine: usize,
        id: String,
        starts: u32,
        code: i64,
        oom_killed: bool,
        restarts: bool,
    },
    Up {
        machine: usize,
    },
}

impl Step {
    pub(super) fn name(&self) -> String {
        match self {
            Step::Arrives { machine, .. } => format!("engine{machine}-request"),
            Step::Exits { machine, .. } => format!("engine{machine}-exit"),
            Step::Up { machine } => format!("engine{machine}-up"),
        }
    }
}

impl Container {
    pub(super) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    pub(super) fn create(&self) -> u64 {
        let number = self.labels.get(CREATE_LABEL).and_then(|text| text.parse().ok());
        number.expect("every container has the number of its create")
    }

    fn moves(&self) -> bool {
        self.labels.contains_key(MOVES_LABEL)
    }
}

impl Engine {
    pub(super) fn new() -> Self {
        Engine { is_up: true, containers: BTreeMap::new(), serial: 0 }
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    pub(super) fn containers(&self) -> &BTreeMap<String, Container> {
        &self.containers
    }

    /// What it shows at this moment; nothing while it is away.
    pub(super) fn list(&self, machine: usize) -> Option<Listed> {
        let occupants = self.containers.iter().map(|(id, it)| Occupant {
            id: id.clone(),
            name: it.name.clone(),
            labels: it.labels.clone(),
            is_running: it.is_running(),
            ..Occupant::default()
        });
        self.is_up.then(|| Listed {
            id: format!("engine-{machine}"),
            name: format!("node-{machine}"),
            occupants: occupants.collect(),
            ..Listed::default()
        })
    }

    /// The state of a container, as an executor learns of it. `former_end`: an end that it knows already.
    fn inspect(&self, id: &str, former_end: Option<u32>) -> Observed {
        let Some(container) = self.containers.get(id) else { return Observed::Missing };
        match container.state {
            State::Created => Observed::Created,
            State::Running => Observed::Running,
            State::Exited { .. } if former_end == Some(container.ends) => Observed::Created,
            State::Exited { code, oom_killed } => Observed::Exited { code, oom_killed, error: String::new() },
        }
    }
}

/// The state of a container; none while the engine is away.
pub(crate) fn inspect(world: &World, machine: usize, id: &str, former_end: Option<u32>) -> Option<Observed> {
    let engine = &world.swarm.as_ref()?.engines[machine];
    engine.is_up.then(|| engine.inspect(id, former_end))
}

pub(crate) fn request(world: &mut World, machine: usize, request: Request) {
    let wait = mostly(&mut world.rng, MS / 5, 50 * MS, 0.05, 2 * SECOND);
    plan(world, wait, SwarmStep::Engine(Step::Arrives { machine, request }));
}

pub(super) fn step(world: &mut World, step: Step) {
    match step {
        Step::Arrives { machine, request } => arrives(world, machine, request),
        Step::Exits { machine, id, starts, code, oom_killed, restarts } => {
            let container = get(world, machine, &id);
            if container.is_some_and(|it| it.is_running() && it.starts == starts) {
                exit(world, machine, &id, code, oom_killed);
                if restarts {
                    let _ = start(world, machine, &id); // An automatic removal is final.
                }
            }
        }
        Step::Up { machine } => {
            let Some(swarm) = &mut world.swarm else { return };
            swarm.engines[machine].is_up = true;
            if world.sabotage == Sabotage::RepeatedStarts {
                let all: Vec<String> = swarm.engines[machine].containers.keys().cloned().collect();
                all.iter().for_each(|id| drop(start(world, machine, id)));
            }
        }
    }
}

fn get<'w>(world: &'w mut World, machine: usize, id: &str) -> Option<&'w mut Container> {
    world.swarm.as_mut()?.engines[machine].containers.get_mut(id)
}

fn arrives(world: &mut World, machine: usize, request: Request) {
    let is_up = world.swarm.as_ref().is_some_and(|swarm| swarm.engines[machine].is_up);
    match request {
        Request::Create { executor, task } => {
            let created = if is_up { create(world, machine, &task) } else { Err(away()) };
            let (former_end, outcome) = match created {
                Ok((report, former_end)) => (former_end, Ok(report)),
                Err(message) => (None, Err(NotCreated::Failed(message))),
            };
            executor::container::created(world, machine, &executor, former_end, outcome);
        }
        Request::Start { executor, id } => {
            let started = if is_up { start(world, machine, &id) } else { Err(away()) };
            executor::container::report(world, machine, &executor, IoEvent::Started(started));
        }
        Request::Stop { id, grace } if is_up => {
            let wait = between(&mut world.rng, MS, grace.max(MS));
            end_later(world, machine, &id, wait, (EXIT_KILLED, false), false);
        }
        // An engine that is away is asked again: the container may run there.
        Request::Stop { .. } => {
            plan(world, 500 * MS, SwarmStep::Engine(Step::Arrives { machine, request }));
        }
        Request::Undo { executor, id } => {
            if is_up {
                remove(world, machine, &id);
            }
            executor::container::report(world, machine, &executor, IoEvent::Observed(Observed::Missing));
        }
        Request::Operate(EngineOperation::Kill(id)) if is_up => exit(world, machine, &id, EXIT_KILLED, false),
        Request::Operate(EngineOperation::Remove(id)) if is_up => remove(world, machine, &id),
        Request::Operate(_) => (),
        Request::ClientStart { id } if is_up => drop(start(world, machine, &id)),
        Request::ClientStop { id, restarts } if is_up => {
            let wait = between(&mut world.rng, MS, 2 * SECOND);
            end_later(world, machine, &id, wait, (EXIT_KILLED, false), restarts);
        }
        Request::ClientStart { .. } | Request::ClientStop { .. } => (),
        Request::ClientRemove { life, task, id } => {
            if is_up {
                remove(world, machine, &id);
                client::removed(world, life, task);
            }
        }
        Request::ClientRename { life, task, id, name } => {
            let renamed = is_up && rename(world, machine, &id, &name);
            client::renamed(world, life, task, name, renamed);
        }
    }
}

fn away() -> String {
    "connection refused".into()
}

/// Creates the container of a task, or finds the one to adopt, with the end that it has.
fn create(
    world: &mut World,
    machine: usize,
    task: &ContainerTask,
) -> Result<(ContainerReport, Option<u32>), String> {
    let Some(swarm) = &mut world.swarm else { return Err(away()) };
    let engine = &mut swarm.engines[machine];
    if let Some(id) = &task.adopt {
        let container = engine.containers.get(id).ok_or("No such container")?;
        if task.is_orphan && !container.is_running() {
            return Err("it does not run any more".into());
        }
        let former_end = (!container.is_running()).then_some(container.ends);
        return Ok((ContainerReport { id: id.clone(), name: container.name.clone() }, former_end));
    }
    if engine.containers.values().any(|container| container.name == task.name) {
        return Err(format!("Conflict. The container name {} is already in use", task.name));
    }
    engine.serial += 1;
    let id = format!("{:08x}{:056x}", machine + 1, engine.serial);
    let labels = task.document["Labels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
    let container = Container {
        name: task.name.clone(),
        labels: labels.collect(),
        auto_remove: task.document["HostConfig"]["AutoRemove"] == true,
        state: State::Created,
        starts: 0,
        ends: 0,
        is_renamed: false,
    };
    world
        .trace
        .line(world.queue.now(), || format!("engine {machine} creates {} as {}", task.name, short(&id)));
    engine.containers.insert(id.clone(), container);
    watch::changed(world, machine);
    Ok((ContainerReport { id, name: task.name.clone() }, None))
}

fn start(world: &mut World, machine: usize, id: &str) -> Result<(), String> {
    let script = (world.rng.below(10), between(&mut world.rng, MS, 30 * SECOND));
    let container = get(world, machine, id).ok_or("No such container")?;
    if container.is_running() {
        return Ok(());
    }
    container.state = State::Running;
    container.starts += 1;
    let (create, moves) = (container.create(), container.moves());
    world.counts.swarm_starts += 1;
    world.trace_line(|| format!("engine {machine} starts {} of create {create}", short(id)));
    world.checks.observe(&Fact::EngineStarts { create, moves, id });
    changed(world, machine, id, Observed::Running);
    let end = match script.0 {
        0..=2 => (0, false),
        3 => (1, false),
        4 => (EXIT_KILLED, true),
        _ => return Ok(()), // It stays.
    };
    end_later(world, machine, id, script.1, end, false);
    Ok(())
}

fn end_later(world: &mut World, machine: usize, id: &str, wait: u64, end: (i64, bool), restarts: bool) {
    let Some(starts) = get(world, machine, id).filter(|it| it.is_running()).map(|it| it.starts) else {
        return;
    };
    let (id, (code, oom_killed)) = (id.to_owned(), end);
    let exits = Step::Exits { machine, id, starts, code, oom_killed, restarts };
    plan(world, wait, SwarmStep::Engine(exits));
}

/// A container that runs terminates.
fn exit(world: &mut World, machine: usize, id: &str, code: i64, oom_killed: bool) {
    let Some(container) = get(world, machine, id).filter(|it| it.is_running()) else { return };
    container.state = State::Exited { code, oom_killed };
    container.ends += 1;
    let is_removed = container.auto_remove;
    world.trace_line(|| format!("engine {machine}: {} exits with {code}", short(id)));
    world.checks.observe(&Fact::EngineStops { id });
    changed(world, machine, id, Observed::Exited { code, oom_killed, error: String::new() });
    if is_removed {
        remove(world, machine, id);
    }
}

fn remove(world: &mut World, machine: usize, id: &str) {
    exit(world, machine, id, EXIT_KILLED, false);
    let Some(swarm) = &mut world.swarm else { return };
    if swarm.engines[machine].containers.remove(id).is_some() {
        world.trace_line(|| format!("engine {machine} removes {}", short(id)));
        changed(world, machine, id, Observed::Missing);
    }
}

/// False if there is no such container or the name is taken.
fn rename(world: &mut World, machine: usize, id: &str, name: &str) -> bool {
    let Some(swarm) = &mut world.swarm else { return false };
    let containers = &mut swarm.engines[machine].containers;
    if containers.values().any(|container| container.name == name) {
        return false;
    }
    let Some(container) = containers.get_mut(id) else { return false };
    (container.name, container.is_renamed) = (name.to_owned(), true);
    watch::changed(world, machine);
    true
}

/// An engine stops and kills its containers; it is back after `wait`.
pub(super) fn stop(world: &mut World, machine: usize, wait: u64) {
    let Some(swarm) = &mut world.swarm else { return };
    let running = swarm.engines[machine].containers.iter().filter(|(_, it)| it.is_running());
    let running: Vec<String> = running.map(|(id, _)| id.clone()).collect();
    world.trace_line(|| format!("engine {machine} stops"));
    executor::container::engine_lost(world, machine);
    watch::lose(world, machine);
    running.iter().for_each(|id| exit(world, machine, id, EXIT_LOST, false));
    if let Some(swarm) = &mut world.swarm {
        swarm.engines[machine].is_up = false;
    }
    plan(world, wait, SwarmStep::Engine(Step::Up { machine }));
}

/// Sends a change to all subscribers.
fn changed(world: &mut World, machine: usize, id: &str, observed: Observed) {
    executor::container::observe(world, machine, id, &observed);
    watch::changed(world, machine);
}

/// The part of an id that differs.
pub(super) fn short(id: &str) -> &str {
    let serial = id.get(8..).unwrap_or(id).trim_start_matches('0');
    if serial.is_empty() { id } else { serial }
}
