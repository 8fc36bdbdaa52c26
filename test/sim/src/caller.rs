//! Clients of an agent's container API: executors for containers below their own, operators for any.
//!
//! A job manages one container: launch, wait, maybe remove; other jobs kill it meanwhile, or wait for it too.
//! Every call has its own connection; an unanswered call is retried, as by an executor that lost its agent. A session is a
//! connection that keeps its container alive.

use std::collections::BTreeMap;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::agent::call::{self, Type};
use tepui_types::{ConnId, ContainerId};

use crate::agent;
use crate::chance::{MS, Rng, SECOND, Source, between, mostly, pick};
use crate::event::Event;
use crate::net::{Client, End, Kind, Message, Node};
use crate::world::{Phase, World};

/// Makes another seed of a seed.
const CALLERS: u64 = 0x6361_6c6c_6572_3034;
/// How deep containers are nested.
const DEPTH_MAX: usize = 4;
const RETRY_AFTER: u64 = SECOND;

#[derive(Debug)]
pub(crate) struct Callers {
    rng: Rng,
    next: u64,
    jobs: BTreeMap<u64, Job>,
}

#[derive(Debug)]
struct Job {
    agent: usize,
    /// The executor's container that it is made from; an operator's if unset.
    inside: Option<ContainerId>,
    container: ContainerId,
    /// What is left to do, the present call first.
    steps: Vec<Step>,
    /// Of the call that is not answered yet, or of the session.
    conn: Option<ConnId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Launch,
    LaunchNested,
    Session,
    Wait,
    WaitNested,
    Kill,
    KillNested,
    Remove,
    RemoveNested,
}

/// What happens to callers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// A new job starts.
    Begin,
    /// A job makes its next call, or makes one again.
    Call { job: u64 },
    /// The client of a session disconnects.
    HangUp { job: u64, conn: ConnId },
}

impl Callers {
    pub(crate) fn new(source: &Source) -> Self {
        Callers { rng: source.rng("callers", CALLERS), next: 0, jobs: BTreeMap::new() }
    }

    /// Unanswered calls.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = String> {
        let text =
            |job: &Job| format!("{:?} of {} on A{} is not answered", job.steps, job.container, job.agent);
        self.jobs.values().map(text)
    }
}

pub(crate) fn plan(world: &mut World) {
    if let Some(mean) = world.plan.callers {
        let wait = between(&mut world.callers.rng, mean / 10, 2 * mean);
        world.queue.after(wait, Event::Caller(Turn::Begin));
    }
}

pub(crate) fn step(world: &mut World, turn: Turn) {
    match turn {
        Turn::Begin if world.phase == Phase::Faults => {
            plan(world);
            begin(world);
        }
        Turn::Begin => (),
        Turn::Call { job } => call(world, job),
        Turn::HangUp { job, conn } => {
            if world.callers.jobs.get(&job).is_some_and(|job| job.conn == Some(conn)) {
                world.callers.jobs.remove(&job);
                world.close(conn, End::Client);
            }
        }
    }
}

/// A new container, and other jobs for it.
fn begin(world: &mut World) {
    let agent = world.callers.rng.below(world.agents.len() as u64) as usize;
    let alive: Vec<ContainerId> = world.agents[agent].host.alive().cloned().collect();
    let rng = &mut world.callers.rng;
    let parent = pick(rng, &alive).filter(|id| depth(id) < DEPTH_MAX).filter(|_| rng.chance(0.85)).cloned();
    let value = rng.uuid_text();
    let Some(parent) = parent else {
        world.counts.standalone += 1;
        let container = ContainerId::root(value);
        watch(world, agent, None, &container);
        return add(world, agent, None, container, vec![Step::Launch, Step::Wait]);
    };
    let container = parent.child(value);
    let is_executor = world.agents[agent].host.executor(parent.top()).is_some();
    let rng = &mut world.callers.rng;
    let inside = (is_executor && rng.chance(0.7)).then(|| parent.top().clone());
    if rng.chance(0.25) {
        world.counts.sessions += 1;
        return add(world, agent, inside, container, vec![Step::Session]);
    }
    let mut steps = match rng.chance(0.5) {
        true => vec![Step::Launch, Step::WaitNested],
        false => vec![Step::LaunchNested, Step::Wait],
    };
    if rng.chance(0.6) {
        steps.push(if rng.chance(0.5) { Step::Remove } else { Step::RemoveNested });
    }
    world.counts.nested += 1;
    watch(world, agent, inside.clone(), &container);
    add(world, agent, inside, container, steps);
}

/// Other jobs that wait for the container or kill it.
fn watch(world: &mut World, agent: usize, inside: Option<ContainerId>, container: &ContainerId) {
    for step in [Step::Wait, Step::WaitNested, Step::Kill, Step::KillNested] {
        if world.callers.rng.chance(0.2) {
            add(world, agent, inside.clone(), container.clone(), vec![step]);
        }
    }
}

fn add(
    world: &mut World,
    agent: usize,
    inside: Option<ContainerId>,
    container: ContainerId,
    steps: Vec<Step>,
) {
    let callers = &mut world.callers;
    callers.next += 1;
    let job = callers.next;
    let wait = match steps[0] {
        Step::Launch | Step::LaunchNested | Step::Session => 1,
        _ => mostly(&mut callers.rng, MS, 500 * MS, 0.3, 5 * SECOND),
    };
    callers.jobs.insert(job, Job { agent, inside, container, steps, conn: None });
    world.queue.after(wait, Event::Caller(Turn::Call { job }));
}

fn call(world: &mut World, number: u64) {
    let Some(job) = world.callers.jobs.get(&number).filter(|job| job.conn.is_none()) else { return };
    let Some(step) = job.steps.first().copied() else { return };
    let (agent, inside, call) = (job.agent, job.inside.clone(), request(step, &job.container));
    if !world.agents[agent].process.is_up() {
        return later(world, number);
    }
    let kind = if step == Step::Session { Kind::Session } else { Kind::Request };
    let session = (step == Step::Session).then(|| job.container.clone());
    let client = Client::Caller { agent, inside, session, job: number };
    let conn = world.open(kind, client, Node::Agent(agent));
    if let Some(job) = world.callers.jobs.get_mut(&number) {
        job.conn = Some(conn);
    }
    world.send(conn, End::Server, Message::ContainerCall(Box::new(call)));
}

fn later(world: &mut World, job: u64) {
    let wait = RETRY_AFTER + world.callers.rng.below(SECOND);
    world.queue.after(wait, Event::Caller(Turn::Call { job }));
}

/// An answer; a refusal has a status.
pub(crate) fn on_event(world: &mut World, number: u64, conn: ConnId, message: &Message) {
    let Message::Answer { refused, .. } = message else { return };
    let status = refused.as_ref().map(|(status, _)| *status);
    let Some(job) = world.callers.jobs.get_mut(&number).filter(|job| job.conn == Some(conn)) else { return };
    let step = job.steps.first().copied();
    match (step, status) {
        (Some(Step::Session), None) => {
            let wait = mostly(&mut world.callers.rng, MS, 5 * SECOND, 0.2, 60 * SECOND);
            world.queue.after(wait, Event::Caller(Turn::HangUp { job: number, conn }));
            return;
        }
        (_, Some(503)) => {
            job.conn = None;
            return later(world, number);
        }
        (_, None) => {
            job.conn = None;
            job.steps.remove(0);
        }
        (_, Some(_)) => job.steps.clear(), // It is not there, or not any more.
    }
    world.counts.container_calls += 1;
    match job.steps.is_empty() {
        true => drop(world.callers.jobs.remove(&number)),
        false => call(world, number),
    }
}

/// The connection of an unanswered call or of a session was closed.
pub(crate) fn closed(world: &mut World, number: u64, conn: ConnId) {
    let Some(job) = world.callers.jobs.get_mut(&number).filter(|job| job.conn == Some(conn)) else { return };
    job.conn = None;
    match (job.steps.first(), job.container.parent()) {
        (Some(Step::Session), _) => drop(world.callers.jobs.remove(&number)),
        // A standalone container is removed when it terminates: a repeated launch would run it again.
        (Some(Step::Launch), None) => {
            job.steps.remove(0);
            later(world, number);
        }
        _ => later(world, number),
    }
}

/// Jobs inside the container send no more calls; its output streams are closed.
pub(crate) fn container_ended(world: &mut World, agent: usize, id: &ContainerId) {
    world.callers.jobs.retain(|_, job| job.agent != agent || job.inside.as_ref() != Some(id));
    let shows = |client: &Client| match client {
        Client::Caller { agent: at, session, .. } => *at == agent && session.as_ref() == Some(id),
        Client::Framework { .. }
        | Client::Swarm { .. }
        | Client::Agent { .. }
        | Client::Executor { .. }
        | Client::Operator => false,
    };
    for conn in world.conns_where(|conn| shows(&conn.client)) {
        world.close(conn, End::Server);
        agent::caller_closed(world, agent, conn);
    }
}

fn depth(id: &ContainerId) -> usize {
    std::iter::successors(id.parent(), |id| id.parent()).count()
}

fn of(r#type: Type) -> Call {
    Call { r#type: Some(r#type), ..Default::default() }
}

fn request(step: Step, id: &ContainerId) -> Call {
    let container_id = id.to_proto().into();
    match step {
        Step::Launch | Step::LaunchNested | Step::Session => launch(step, id),
        Step::Wait => {
            let wait = call::WaitContainer { container_id, ..Default::default() };
            Call { wait_container: wait.into(), ..of(Type::WAIT_CONTAINER) }
        }
        Step::WaitNested => {
            let wait = call::WaitNestedContainer { container_id, ..Default::default() };
            Call { wait_nested_container: wait.into(), ..of(Type::WAIT_NESTED_CONTAINER) }
        }
        Step::Kill => {
            let kill = call::KillContainer { container_id, ..Default::default() };
            Call { kill_container: kill.into(), ..of(Type::KILL_CONTAINER) }
        }
        Step::KillNested => {
            let kill = call::KillNestedContainer { container_id, ..Default::default() };
            Call { kill_nested_container: kill.into(), ..of(Type::KILL_NESTED_CONTAINER) }
        }
        Step::Remove => {
            let remove = call::RemoveContainer { container_id, ..Default::default() };
            Call { remove_container: remove.into(), ..of(Type::REMOVE_CONTAINER) }
        }
        Step::RemoveNested => {
            let remove = call::RemoveNestedContainer { container_id, ..Default::default() };
            Call { remove_nested_container: remove.into(), ..of(Type::REMOVE_NESTED_CONTAINER) }
        }
    }
}

fn launch(step: Step, id: &ContainerId) -> Call {
    let container_id = id.to_proto().into();
    let command = pb::CommandInfo { value: Some("true".into()), ..Default::default() }.into();
    match step {
        Step::Session => {
            let launch =
                call::LaunchNestedContainerSession { container_id, command, ..Default::default() }.into();
            Call { launch_nested_container_session: launch, ..of(Type::LAUNCH_NESTED_CONTAINER_SESSION) }
        }
        Step::LaunchNested => {
            let launch = call::LaunchNestedContainer { container_id, command, ..Default::default() }.into();
            Call { launch_nested_container: launch, ..of(Type::LAUNCH_NESTED_CONTAINER) }
        }
        _ => {
            let launch = call::LaunchContainer { container_id, command, ..Default::default() }.into();
            Call { launch_container: launch, ..of(Type::LAUNCH_CONTAINER) }
        }
    }
}
