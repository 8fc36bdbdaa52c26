//! The machine below an agent: pretend containers that start late, fail, exit, hang, and outlive the agent.
//!
//! Keeps the promises of the container port: every Launch is answered, every launched container ends once, also across
//! restarts of the agent. What is on its way to an agent that dies is lost, and told again when it asks with Recover.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{
    ContainerEvent, ContainerId, ContainerOp, KnownContainer, LaunchSpec, LaunchStage, RecoveredContainer,
    Termination,
};

use crate::chance::{MS, SECOND, between, mostly};
use crate::check::Fact;
use crate::event::Event;
use crate::executor::{self, Executor};
use crate::net::{Client, End};
use crate::world::World;

#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Also those that ended: the agent may ask again how.
    pub(crate) containers: BTreeMap<ContainerId, Container>,
    next_pid: u32,
    /// When the newest event reaches the agent: they arrive in order.
    arrival: u64,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) phase: Phase,
    /// It does not end when asked; only Destroy ends it, and not at once.
    hangs: bool,
    /// It is being destroyed.
    doomed: bool,
}

#[derive(Debug)]
pub(crate) enum Phase {
    Starting { spec: Box<LaunchSpec> },
    Running { pid: u32, executor: Box<Executor> },
    Ended(Termination),
}

impl Container {
    pub(crate) fn is_alive(&self) -> bool {
        match self.phase {
            Phase::Running { .. } => true,
            Phase::Starting { .. } | Phase::Ended(_) => false,
        }
    }
}

impl Host {
    pub(crate) fn executor_mut(&mut self, id: &ContainerId) -> Option<&mut Executor> {
        match &mut self.containers.get_mut(id)?.phase {
            Phase::Running { executor, .. } => Some(executor),
            Phase::Starting { .. } | Phase::Ended(_) => None,
        }
    }

    pub(crate) fn executor(&self, id: &ContainerId) -> Option<&Executor> {
        match &self.containers.get(id)?.phase {
            Phase::Running { executor, .. } => Some(executor),
            Phase::Starting { .. } | Phase::Ended(_) => None,
        }
    }

    /// Those alive that nobody is destroying.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &ContainerId> {
        let wanted = |container: &Container| container.is_alive() && !container.doomed;
        self.containers.iter().filter(move |(_, container)| wanted(container)).map(|(id, _)| id)
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &ContainerId> {
        self.containers.iter().filter(|(_, container)| container.is_alive()).map(|(id, _)| id)
    }
}

/// Carries out what the agent asks for.
pub(crate) fn operate(world: &mut World, agent: usize, op: ContainerOp) {
    match op {
        ContainerOp::Recover { known } => recover(world, agent, known),
        ContainerOp::Launch(spec) => launch(world, agent, spec),
        ContainerOp::Update { id, .. } => update(world, agent, id),
        // Pretend containers end for reasons of their own, never for want of memory.
        ContainerOp::Examine { id } => {
            tell(world, agent, MS, ContainerEvent::Examined { id, killed: None });
        }
        ContainerOp::Signal { id, .. } | ContainerOp::Destroy { id } | ContainerOp::Evict { id, .. } => {
            destroy(world, agent, &id)
        }
        ContainerOp::Remove { sandbox: path, .. }
        | ContainerOp::RemovePath { path }
        | ContainerOp::CreateVolume { path }
        | ContainerOp::DestroyVolume { path } => {
            let wait = between(&mut world.rng, MS, 50 * MS);
            tell(world, agent, wait, ContainerEvent::PathDone { path, error: None });
        }
    }
}

/// Sends an event to the agent of now: another one never hears it.
fn tell(world: &mut World, agent: usize, wait: u64, event: ContainerEvent) {
    let node = &mut world.agents[agent];
    let life = node.process.life;
    node.host.arrival = node.host.arrival.max(world.queue.now() + wait);
    world.queue.at(node.host.arrival, Event::Container { agent, life, event });
}

fn launch(world: &mut World, agent: usize, spec: Box<LaunchSpec>) {
    let id = spec.id.clone();
    world.checks.see(&Fact::ContainerLaunches { agent, spec: &spec });
    let bad = world.plan.bad_containers;
    let (fails, hangs) = (world.rng.chance(bad / 3.0), world.rng.chance(bad));
    let wait = mostly(&mut world.rng, 5 * MS, 500 * MS, bad, 40 * SECOND);
    let container = Container { phase: Phase::Starting { spec }, hangs, doomed: false };
    world.agents[agent].host.containers.insert(id.clone(), container);
    world.queue.after(wait, Event::ContainerStarts { agent, id, fails });
}

/// The process of a container comes to be, unless its launch was given up meanwhile.
pub(crate) fn starts(world: &mut World, agent: usize, id: &ContainerId, fails: bool) {
    let elapsed = world.elapsed();
    let host = &mut world.agents[agent].host;
    let Some(container) = host.containers.get_mut(id) else { return };
    let Phase::Starting { spec } = &container.phase else { return };
    if fails {
        container.phase = Phase::Ended(Termination::default());
        let message = "pretended failure".into();
        let event = ContainerEvent::LaunchFailed { id: id.clone(), stage: LaunchStage::Start, message };
        return tell(world, agent, MS, event);
    }
    host.next_pid += 1;
    let pid = host.next_pid;
    let hangs = container.hangs;
    let executor = Executor::new(spec, hangs, elapsed);
    container.phase = Phase::Running { pid, executor: Box::new(executor) };
    world.counts.containers += 1;
    world.tell(|| format!("A{agent} container {id} runs"));
    tell(world, agent, MS, ContainerEvent::Launched { id: id.clone(), pid });
    executor::begin(world, agent, id);
}

fn update(world: &mut World, agent: usize, id: ContainerId) {
    if world.rng.chance(world.plan.bad_containers / 20.0) {
        let message = "pretended failure".into();
        tell(world, agent, 5 * MS, ContainerEvent::UpdateFailed { id, message });
    }
}

fn destroy(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(container) = world.agents[agent].host.containers.get_mut(id) else { return };
    match &container.phase {
        Phase::Starting { .. } => {
            container.phase = Phase::Ended(Termination::default());
            let message = "destroyed while it was being launched".into();
            let event = ContainerEvent::LaunchFailed { id: id.clone(), stage: LaunchStage::Start, message };
            tell(world, agent, 10 * MS, event);
        }
        Phase::Running { .. } => {
            container.doomed = true;
            let longest = if container.hangs { 20 * SECOND } else { SECOND };
            let wait = between(&mut world.rng, 5 * MS, longest);
            let event = Event::ContainerEnds { agent, id: id.clone(), status: 9, oom: false };
            world.queue.after(wait, event);
        }
        Phase::Ended(_) => (),
    }
}

/// The first process of a container ended, and everything in it.
pub(crate) fn ends(world: &mut World, agent: usize, id: &ContainerId, status: i32, oom: bool) {
    let mut termination = Termination { status: Some(status), ..Default::default() };
    if oom {
        termination.state = Some(pb::TaskState::TASK_FAILED);
        termination.reason = Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY);
        termination.message = Some("Memory limit exceeded".into());
    }
    if end(world, agent, id, termination.clone()) {
        tell(world, agent, MS, ContainerEvent::Exited { id: id.clone(), termination });
    }
}

/// Ends a running container; false if it did not run.
fn end(world: &mut World, agent: usize, id: &ContainerId, termination: Termination) -> bool {
    let Some(container) = world.agents[agent].host.containers.get_mut(id) else { return false };
    if !container.is_alive() {
        return false;
    }
    container.phase = Phase::Ended(termination);
    world.tell(|| format!("A{agent} container {id} ended"));
    let is_inside = |client: &Client| match client {
        Client::Executor { agent: at, container } => *at == agent && container == id,
        Client::Framework { .. } | Client::Agent { .. } | Client::Operator => false,
    };
    for conn in world.conns_where(|conn| is_inside(&conn.client)) {
        world.drop_end(conn, End::Client, 10 * MS);
    }
    true
}

/// What should exist is compared with what does; everything else is an orphan.
fn recover(world: &mut World, agent: usize, known: Vec<KnownContainer>) {
    let host = &mut world.agents[agent].host;
    let mut containers = Vec::new();
    for KnownContainer { id, .. } in &known {
        let container = host.containers.get_mut(id);
        let (pid, ended) = match container.map(|container| &mut container.phase) {
            Some(Phase::Running { pid, .. }) => (Some(*pid), None),
            Some(Phase::Ended(termination)) => (None, Some(termination.clone())),
            Some(starting @ Phase::Starting { .. }) => {
                *starting = Phase::Ended(Termination::default()); // It cannot begin any more.
                (None, Some(Termination::default()))
            }
            None => (None, Some(Termination::default())),
        };
        containers.push(RecoveredContainer { id: id.clone(), pid, ended });
    }
    let is_known = |id: &ContainerId| known.iter().any(|known| known.id == *id);
    let orphans: Vec<ContainerId> = host.containers.keys().filter(|id| !is_known(id)).cloned().collect();
    for id in orphans {
        let container = world.agents[agent].host.containers.get_mut(&id).expect("it was listed");
        match container.phase {
            Phase::Starting { .. } => container.phase = Phase::Ended(Termination::default()),
            Phase::Running { .. } => {
                container.doomed = true;
                world.tell(|| format!("A{agent} container {id} is an orphan"));
                let wait = between(&mut world.rng, 5 * MS, SECOND);
                world.queue.after(wait, Event::ContainerEnds { agent, id, status: 9, oom: false });
            }
            Phase::Ended(_) => (),
        }
    }
    let wait = between(&mut world.rng, MS, SECOND);
    tell(world, agent, wait, ContainerEvent::Recovered { containers });
}

/// The agent's process died: of the containers it was just launching, some never come to be.
pub(crate) fn agent_died(world: &mut World, agent: usize) {
    let containers = &mut world.agents[agent].host.containers;
    for container in containers.values_mut() {
        if matches!(container.phase, Phase::Starting { .. }) && world.rng.chance(0.5) {
            container.phase = Phase::Ended(Termination::default());
        }
    }
}

/// The machine goes down: nothing on it lives on.
pub(crate) fn power_off(world: &mut World, agent: usize) {
    let ids: Vec<ContainerId> = world.agents[agent].host.containers.keys().cloned().collect();
    for id in ids {
        if !end(world, agent, &id, Termination::default())
            && let Some(container) = world.agents[agent].host.containers.get_mut(&id)
            && matches!(container.phase, Phase::Starting { .. })
        {
            container.phase = Phase::Ended(Termination::default());
        }
    }
}

/// An agent that ends for good leaves nothing behind.
pub(crate) fn expect_empty(world: &mut World, agent: usize) {
    if let Some(id) = world.agents[agent].host.wanted().next() {
        let what = format!("A{agent} ended for good while container {id} was alive");
        world.checks.fail("no_orphan_container", what);
    }
}
