//! The machine below an agent: simulated containers that start late, fail, exit, hang, and survive the agent.
//!
//! Satisfies the contract of the container port: every Launch is answered, every launched container terminates once, after
//! its nested containers, also across restarts of the agent. Events to a crashed agent are lost, and repeated on Recover;
//! meanwhile nested containers of a terminated first process keep running.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_types::{
    ContainerEvent, ContainerId, ContainerOp, KnownContainer, LaunchSpec, LaunchStage, RecoveredContainer,
    Termination,
};

use crate::caller;
use crate::chance::{MS, SECOND, between, mostly};
use crate::check::Fact;
use crate::event::Event;
use crate::executor::{self, Executor};
use crate::net::{Client, End};
use crate::sabotage::Sabotage;
use crate::script::{CommandExit, Script};
use crate::world::World;

const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;

#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Includes terminated containers: the agent may query their status again.
    pub(crate) containers: BTreeMap<ContainerId, Container>,
    next_pid: u32,
    /// When the newest event reaches the agent: they arrive in order.
    arrival: u64,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) phase: Phase,
    /// It ignores signals; only Destroy terminates it, with a delay.
    hangs: bool,
    /// It is being destroyed.
    doomed: bool,
    /// Why it was evicted.
    evicted: Option<Box<Termination>>,
    /// A process in it fell victim to the OOM killer.
    oom_killed: bool,
}

#[derive(Debug)]
pub(crate) enum Phase {
    Starting {
        spec: Box<LaunchSpec>,
    },
    Running {
        pid: u32,
        workload: Workload,
    },
    /// Its first process exited; nested containers terminate first.
    Closing(Termination),
    Ended(Termination),
}

/// What runs in a container.
#[derive(Debug)]
pub(crate) enum Workload {
    Executor(Box<Executor>),
    /// A command: that of a task, or one that exits after a while.
    Command,
}

impl Container {
    pub(crate) fn is_alive(&self) -> bool {
        match self.phase {
            Phase::Running { .. } | Phase::Closing(_) => true,
            Phase::Starting { .. } | Phase::Ended(_) => false,
        }
    }
}

impl Host {
    pub(crate) fn executor_mut(&mut self, id: &ContainerId) -> Option<&mut Executor> {
        match &mut self.containers.get_mut(id)?.phase {
            Phase::Running { workload: Workload::Executor(executor), .. } => Some(executor),
            Phase::Running { .. } | Phase::Starting { .. } | Phase::Closing(_) | Phase::Ended(_) => None,
        }
    }

    pub(crate) fn executor(&self, id: &ContainerId) -> Option<&Executor> {
        match &self.containers.get(id)?.phase {
            Phase::Running { workload: Workload::Executor(executor), .. } => Some(executor),
            Phase::Running { .. } | Phase::Starting { .. } | Phase::Closing(_) | Phase::Ended(_) => None,
        }
    }

    /// Live executors that hold a container of a Docker engine.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &ContainerId> {
        self.containers.keys().filter(|id| self.executor(id).is_some_and(Executor::is_holder))
    }

    /// Live containers that are not being destroyed.
    pub(crate) fn running(&self) -> impl Iterator<Item = &ContainerId> {
        self.containers.keys().filter(|id| self.is_running(id))
    }

    pub(crate) fn is_running(&self, id: &ContainerId) -> bool {
        self.containers.get(id).is_some_and(|container| container.is_alive() && !container.doomed)
    }

    /// Live direct children of a container.
    fn children(&self, parent: &ContainerId) -> Vec<ContainerId> {
        let left = |container: &Container| !matches!(container.phase, Phase::Ended(_));
        let all =
            self.containers.iter().filter(|(id, container)| id.parent() == Some(parent) && left(container));
        all.map(|(id, _)| id.clone()).collect()
    }

    /// How a container terminated.
    pub(crate) fn ended(&self, id: &ContainerId) -> Option<&Termination> {
        match &self.containers.get(id)?.phase {
            Phase::Ended(termination) => Some(termination),
            Phase::Starting { .. } | Phase::Running { .. } | Phase::Closing(_) => None,
        }
    }

    pub(crate) fn alive(&self) -> impl Iterator<Item = &ContainerId> {
        self.containers.iter().filter(|(_, container)| container.is_alive()).map(|(id, _)| id)
    }
}

/// Performs an operation of the agent.
pub(crate) fn operate(world: &mut World, agent: usize, op: ContainerOp) {
    match op {
        ContainerOp::Recover { known } => recover(world, agent, known),
        ContainerOp::Launch(spec) => launch(world, agent, spec),
        ContainerOp::Update { id, .. } => update(world, agent, id),
        ContainerOp::Examine { id } => examine(world, agent, id),
        ContainerOp::Signal { id, signal } => self::signal(world, agent, &id, signal),
        ContainerOp::Destroy { id } => destroy(world, agent, &id),
        ContainerOp::Evict { id, why } => {
            if let Some(container) = world.agents[agent].host.containers.get_mut(&id) {
                container.evicted = Some(Box::new(why));
            }
            destroy(world, agent, &id);
        }
        ContainerOp::Remove { id, sandbox } => remove(world, agent, &id, sandbox),
        ContainerOp::RemovePath { path }
        | ContainerOp::CreateVolume { path }
        | ContainerOp::DestroyVolume { path } => {
            let wait = between(&mut world.rng, MS, 50 * MS);
            emit(world, agent, wait, ContainerEvent::PathDone { path, error: None });
        }
    }
}

/// Sends an event to the current process of the agent; it is lost with a restart.
fn emit(world: &mut World, agent: usize, wait: u64, event: ContainerEvent) {
    let node = &mut world.agents[agent];
    let life = node.process.life;
    node.host.arrival = node.host.arrival.max(world.queue.now() + wait);
    world.queue.at(node.host.arrival, Event::Container { agent, life, event });
}

fn launch(world: &mut World, agent: usize, spec: Box<LaunchSpec>) {
    let id = spec.id.clone();
    world.checks.observe(&Fact::ContainerLaunches { agent, spec: &spec });
    let host = &world.agents[agent].host;
    let runs = |parent: &ContainerId| {
        host.is_running(parent) && matches!(host.containers[parent].phase, Phase::Running { .. })
    };
    if id.parent().is_some_and(|parent| !runs(parent)) {
        let message = "its parent does not run".into();
        let event = ContainerEvent::LaunchFailed { id, stage: LaunchStage::Start, message };
        return emit(world, agent, MS, event);
    }
    let bad = world.plan.bad_containers;
    let (fails, hangs) = (world.rng.chance(bad / 3.0), world.rng.chance(bad));
    let wait = mostly(&mut world.rng, 5 * MS, 500 * MS, bad, 40 * SECOND);
    let phase = Phase::Starting { spec };
    let container = Container { phase, hangs, doomed: false, evicted: None, oom_killed: false };
    world.agents[agent].host.containers.insert(id.clone(), container);
    world.queue.after(wait, Event::ContainerStarts { agent, id, fails });
}

/// The process of a container starts, unless its launch was cancelled.
pub(crate) fn on_start(world: &mut World, agent: usize, id: &ContainerId, fails: bool) {
    let elapsed = world.elapsed();
    let host = &mut world.agents[agent].host;
    let Some(container) = host.containers.get_mut(id) else { return };
    let Phase::Starting { spec } = &container.phase else { return };
    if fails {
        container.phase = Phase::Ended(Termination::default());
        let message = "pretended failure".into();
        let event = ContainerEvent::LaunchFailed { id: id.clone(), stage: LaunchStage::Start, message };
        emit(world, agent, MS, event);
        return child_gone(world, agent, id);
    }
    host.next_pid += 1;
    let pid = host.next_pid;
    let hangs = container.hangs;
    let is_executor = spec.environment.contains_key("MESOS_EXECUTOR_ID");
    let script = spec.command.value.as_deref().and_then(Script::read);
    let workload = match is_executor {
        true => Workload::Executor(Box::new(Executor::new(spec, hangs, elapsed))),
        false => Workload::Command,
    };
    world.checks.observe(&Fact::ContainerRuns { agent, spec });
    container.phase = Phase::Running { pid, workload };
    world.counts.containers += 1;
    world.trace_line(|| format!("A{agent} container {id} runs"));
    emit(world, agent, MS, ContainerEvent::Launched { id: id.clone(), pid });
    match (is_executor, script) {
        (true, _) => executor::begin(world, agent, id),
        (false, Some(script)) => run_script(world, agent, id, &script),
        (false, None) => run_command(world, agent, id),
    }
}

/// Plays the script of a task in its own container.
fn run_script(world: &mut World, agent: usize, id: &ContainerId, script: &Script) {
    let (status, oom) = match script.ending {
        CommandExit::Finish => (0, false),
        CommandExit::Fail => (script.exit_code() << 8, false),
        CommandExit::Crash => (SIGSEGV, false),
        CommandExit::Oom => (SIGKILL, true),
        CommandExit::Stay => return,
    };
    world.counts.out_of_memory += u64::from(oom);
    world.queue.after(script.run, Event::ContainerEnds { agent, id: id.clone(), status, oom });
}

/// Any other command exits with a random status.
fn run_command(world: &mut World, agent: usize, id: &ContainerId) {
    let wait = mostly(&mut world.rng, 10 * MS, 5 * SECOND, 0.3, 40 * SECOND);
    let status = (world.rng.below(256) as i32) << 8;
    world.queue.after(wait, Event::ContainerEnds { agent, id: id.clone(), status, oom: false });
}

/// Removes a terminated container and its nested ones.
fn remove(world: &mut World, agent: usize, id: &ContainerId, path: String) {
    let host = &mut world.agents[agent].host;
    let is_below =
        |other: &ContainerId| std::iter::successors(Some(other), |id| id.parent()).any(|at| at == id);
    let alive = host.alive().any(is_below);
    if !alive {
        host.containers.retain(|other, _| !is_below(other));
        world.checks.observe(&Fact::ContainerRemoved { id });
    }
    let error = alive.then(|| "it is still running".into());
    let wait = between(&mut world.rng, MS, 50 * MS);
    emit(world, agent, wait, ContainerEvent::PathDone { path, error });
}

fn update(world: &mut World, agent: usize, id: ContainerId) {
    if world.rng.chance(world.plan.bad_containers / 20.0) {
        let message = "pretended failure".into();
        emit(world, agent, 5 * MS, ContainerEvent::UpdateFailed { id, message });
    }
}

/// A signal to the first process of a container; a hanging one reacts to SIGKILL only.
fn signal(world: &mut World, agent: usize, id: &ContainerId, signal: i32) {
    let Some(container) = world.agents[agent].host.containers.get(id) else {
        return emit(world, agent, MS, ContainerEvent::NoSuchContainer { id: id.clone() });
    };
    match &container.phase {
        Phase::Running { workload: Workload::Command, .. } if signal != SIGKILL => {
            if !container.hangs {
                let wait = between(&mut world.rng, MS, SECOND);
                let status = if world.rng.chance(0.3) { 0 } else { signal };
                let event = Event::ContainerEnds { agent, id: id.clone(), status, oom: false };
                world.queue.after(wait, event);
            }
        }
        Phase::Starting { .. } | Phase::Running { .. } => destroy(world, agent, id),
        Phase::Closing(_) | Phase::Ended(_) => {
            emit(world, agent, MS, ContainerEvent::NoSuchContainer { id: id.clone() });
        }
    }
}

/// The OOM killer killed a process of a container.
pub(crate) fn oom_kill(world: &mut World, agent: usize, id: &ContainerId) {
    if let Some(container) = world.agents[agent].host.containers.get_mut(id) {
        container.oom_killed = true;
    }
}

fn examine(world: &mut World, agent: usize, id: ContainerId) {
    let container = world.agents[agent].host.containers.get(&id);
    let killed = container.filter(|container| container.oom_killed).map(|_| out_of_memory());
    emit(world, agent, MS, ContainerEvent::Examined { id, killed });
}

fn out_of_memory() -> Termination {
    Termination {
        state: Some(pb::TaskState::TASK_FAILED),
        reason: Some(pb::task_status::Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        message: Some("Memory limit exceeded".into()),
        ..Default::default()
    }
}

/// Destroys a container and its nested ones.
fn destroy(world: &mut World, agent: usize, id: &ContainerId) {
    for child in world.agents[agent].host.children(id) {
        destroy(world, agent, &child);
    }
    let Some(container) = world.agents[agent].host.containers.get_mut(id) else { return };
    match &container.phase {
        Phase::Starting { .. } => {
            container.phase = Phase::Ended(Termination::default());
            let message = "destroyed while it was being launched".into();
            let event = ContainerEvent::LaunchFailed { id: id.clone(), stage: LaunchStage::Start, message };
            emit(world, agent, 10 * MS, event);
            child_gone(world, agent, id);
        }
        Phase::Running { .. } => {
            container.doomed = true;
            let longest = if container.hangs { 20 * SECOND } else { SECOND };
            let wait = between(&mut world.rng, 5 * MS, longest);
            let event = Event::ContainerEnds { agent, id: id.clone(), status: 9, oom: false };
            world.queue.after(wait, event);
        }
        Phase::Closing(_) | Phase::Ended(_) => (),
    }
}

/// The first process of a container terminated, and everything in it.
pub(crate) fn on_exit(world: &mut World, agent: usize, id: &ContainerId, status: i32, oom: bool) {
    if !silence(world, agent, id) {
        return;
    }
    let container = world.agents[agent].host.containers.get_mut(id).expect("it ran just now");
    let reason = if oom { out_of_memory() } else { Termination::default() };
    let reason = container.evicted.take().map_or(reason, |why| *why);
    let termination = Termination { status: Some(status), ..reason };
    container.phase = Phase::Closing(termination);
    container.doomed = true;
    close(world, agent, id);
}

/// Kills the processes of a running container; false if it does not run.
fn silence(world: &mut World, agent: usize, id: &ContainerId) -> bool {
    let host = &world.agents[agent].host;
    if !host.containers.get(id).is_some_and(|container| matches!(container.phase, Phase::Running { .. })) {
        return false;
    }
    world.trace_line(|| format!("A{agent} container {id} ended"));
    let is_inside = |client: &Client| match client {
        Client::Executor { agent: at, container } => *at == agent && container == id,
        Client::Caller { agent: at, inside, .. } => *at == agent && inside.as_ref() == Some(id),
        Client::Framework { .. } | Client::Swarm { .. } | Client::Agent { .. } | Client::Operator => false,
    };
    for conn in world.conns_where(|conn| is_inside(&conn.client)) {
        world.drop_end(conn, End::Client, 10 * MS);
    }
    caller::container_ended(world, agent, id);
    true
}

/// Destroys the nested containers of a terminated first process, and then the container. Requires a running agent.
fn close(world: &mut World, agent: usize, id: &ContainerId) {
    let node = &world.agents[agent];
    let children = node.host.children(id);
    if children.is_empty() || world.sabotage == Sabotage::NestedLeftBehind {
        return finish(world, agent, id);
    }
    if node.process.is_up() {
        let undoomed = |child: &ContainerId| !node.host.containers[child].doomed;
        let children: Vec<_> = children.into_iter().filter(undoomed).collect();
        children.iter().for_each(|child| destroy(world, agent, child));
    }
}

fn finish(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(container) = world.agents[agent].host.containers.get_mut(id) else { return };
    let Phase::Closing(termination) = &container.phase else { return };
    let termination = termination.clone();
    container.phase = Phase::Ended(termination.clone());
    world.checks.observe(&Fact::ContainerEnds { id, termination: &termination });
    let termination = world.sabotage.forge(termination);
    emit(world, agent, MS, ContainerEvent::Exited { id: id.clone(), termination });
    child_gone(world, agent, id);
}

/// The parent of a container that is no more may be waiting for that.
fn child_gone(world: &mut World, agent: usize, id: &ContainerId) {
    if let Some(parent) = id.parent()
        && let Some(container) = world.agents[agent].host.containers.get(parent)
        && matches!(container.phase, Phase::Closing(_))
    {
        close(world, agent, &parent.clone());
    }
}

/// Compares expected with existing containers; all others are orphans.
fn recover(world: &mut World, agent: usize, known: Vec<KnownContainer>) {
    let host = &mut world.agents[agent].host;
    let mut containers = Vec::new();
    for KnownContainer { id, .. } in &known {
        let container = host.containers.get_mut(id);
        let (pid, ended) = match container.map(|container| &mut container.phase) {
            Some(Phase::Running { pid, .. }) => (Some(*pid), None),
            Some(Phase::Closing(_)) => (None, None), // The new agent continues it.
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
                world.trace_line(|| format!("A{agent} container {id} is an orphan"));
                let wait = between(&mut world.rng, 5 * MS, SECOND);
                world.queue.after(wait, Event::ContainerEnds { agent, id, status: 9, oom: false });
            }
            Phase::Closing(_) | Phase::Ended(_) => (),
        }
    }
    let wait = between(&mut world.rng, MS, SECOND);
    emit(world, agent, wait, ContainerEvent::Recovered { containers });
    let containers = world.agents[agent].host.containers.iter();
    let closing = containers.filter(|(_, container)| matches!(container.phase, Phase::Closing(_)));
    let closing: Vec<ContainerId> = closing.map(|(id, _)| id.clone()).collect();
    closing.iter().for_each(|id| close(world, agent, id));
}

/// The agent crashed: some of the containers being launched never start.
pub(crate) fn agent_died(world: &mut World, agent: usize) {
    let mut never = Vec::new();
    for (id, container) in &mut world.agents[agent].host.containers {
        if matches!(container.phase, Phase::Starting { .. }) && world.rng.chance(0.5) {
            container.phase = Phase::Ended(Termination::default());
            never.push(id.clone());
        }
    }
    never.iter().for_each(|id| child_gone(world, agent, id));
}

/// The machine powers off: all containers die.
pub(crate) fn power_off(world: &mut World, agent: usize) {
    let ids: Vec<ContainerId> = world.agents[agent].host.containers.keys().cloned().collect();
    for id in ids {
        silence(world, agent, &id);
        let container = world.agents[agent].host.containers.get_mut(&id).expect("it was listed");
        if !matches!(container.phase, Phase::Ended(_)) {
            let termination = Termination::default();
            world.checks.observe(&Fact::ContainerEnds { id: &id, termination: &termination });
            container.phase = Phase::Ended(termination);
        }
    }
}

/// An agent that unregistered leaves no container.
pub(crate) fn expect_empty(world: &mut World, agent: usize) {
    if let Some(id) = world.agents[agent].host.running().next() {
        let detail = format!("A{agent} ended for good while container {id} was alive");
        world.checks.fail("no_orphan_container", detail);
    }
}
