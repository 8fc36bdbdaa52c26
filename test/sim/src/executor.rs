//! Executors: one process per container, real protocol, scripted tasks.
//!
//! The protocol is the client library's session. Command tasks, Docker tasks and task groups are run by the machines of the
//! built-in executors with simulated I/O ([`single`], [`group`]); custom executors are models ([`custom`]). The behaviour
//! of a task is encoded in its name (see [`crate::script`]).

mod check_session;
pub(crate) mod container;
mod custom;
mod drive;
mod group;
mod single;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tepui_client::executor::{Config, Environment, Event as ExecutorEvent, Outcome, Session};
use tepui_client::shorthand::is_terminal;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::Call;
use tepui_types::{ConnId, ContainerId, LaunchSpec};

use crate::chance::{MS, SECOND, between};
use crate::check::Fact;
use crate::event::Event;
use crate::net::{Client, End, Kind, Message, Node};
use crate::script::Script;
use crate::world::World;
use container::Holder;
use group::Group;
use single::Single;

#[derive(Debug)]
pub(crate) struct Executor {
    session: Session,
    pub(crate) framework_id: String,
    pub(crate) executor_id: String,
    pub(crate) checkpoint: bool,
    program: Program,
    stream: Option<ConnId>,
    calls: Option<ConnId>,
    /// Calls that wait for the answer to the one before.
    waiting: VecDeque<Call>,
    unanswered: bool,
    tasks: BTreeMap<String, Task>,
    had_tasks: bool,
    /// It ignores all events.
    hangs: bool,
    /// Counts activity; a planned exit is cancelled by later activity.
    stirred: u32,
    /// When its machine is to be woken.
    due_at: Option<Duration>,
}

/// What decides.
#[derive(Debug)]
enum Program {
    /// A framework's own.
    Pretend,
    /// For one task: a command, or a container of Docker.
    Single(Box<Single>),
    /// For groups of tasks.
    Group(Box<Group>),
    /// For one container of a Docker engine that clients start.
    Container(Box<Holder>),
}

#[derive(Debug)]
struct Task {
    script: Script,
    state: TaskState,
    killed: bool,
    resources: Vec<pb::Resource>,
}

/// A planned step of an executor.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The session's deadline.
    Wake,
    Run {
        task: String,
    },
    Finish {
        task: String,
    },
    Killed {
        task: String,
    },
    /// Exits unless there was activity.
    Leave {
        stirred: u32,
    },
    Exit {
        status: i32,
    },
    /// The machine's deadline.
    Due,
    Single(single::Step),
    Group(group::Step),
    Container(container::Step),
}

impl Step {
    /// As recorded histories name it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Step::Wake => "wake",
            Step::Run { .. } => "run",
            Step::Finish { .. } => "finish",
            Step::Killed { .. } => "killed",
            Step::Leave { .. } => "leave",
            Step::Exit { .. } => "exit",
            Step::Due => "due",
            Step::Single(step) => step.name(),
            Step::Group(step) => step.name(),
            Step::Container(step) => step.name(),
        }
    }
}

impl Executor {
    pub(crate) fn new(spec: &LaunchSpec, hangs: bool, now: Duration) -> Self {
        let environment = Environment::from_vars(|name| spec.environment.get(name).cloned())
            .expect("an agent gives its executors what they need");
        let config = Config {
            framework_id: environment.framework_id.clone(),
            executor_id: environment.executor_id.clone(),
            checkpoint: environment.checkpoint,
            recovery_timeout: environment.recovery_timeout,
            backoff_max: environment.subscription_backoff_max,
        };
        Executor {
            session: Session::new(config, now),
            framework_id: environment.framework_id,
            executor_id: environment.executor_id,
            checkpoint: environment.checkpoint,
            program: program(spec, environment.shutdown_grace_period),
            stream: None,
            calls: None,
            waiting: VecDeque::new(),
            unanswered: false,
            tasks: BTreeMap::new(),
            had_tasks: false,
            hangs,
            stirred: 0,
            due_at: None,
        }
    }

    /// Whether it is a built-in executor with its real machine.
    pub(crate) fn is_built_in(&self) -> bool {
        !matches!(self.program, Program::Pretend)
    }

    /// Whether it holds the resources of a container that a Docker engine runs.
    pub(crate) fn is_holder(&self) -> bool {
        matches!(self.program, Program::Container(_))
    }

    /// Thousandths of a cpu that its living tasks need.
    pub(crate) fn milli_cpus(&self) -> u64 {
        let living = self.tasks.values().filter(|task| !is_terminal(task.state));
        let cpus = living.flat_map(|task| &task.resources).filter(|resource| resource.name == "cpus");
        cpus.map(|resource| (resource.scalar.value * 1000.0).round() as u64).sum()
    }

    fn is_idle(&self) -> bool {
        self.tasks.values().all(|task| is_terminal(task.state))
            && self.session.unacknowledged_updates().is_empty()
    }
}

/// The agent runs its own executors by `executor` and their name.
fn program(spec: &LaunchSpec, grace: Duration) -> Program {
    let mut words = spec.command.arguments.iter().skip_while(|word| *word != "executor").skip(1);
    match words.next().map(String::as_str) {
        Some("command") => Program::Single(Box::new(Single::command(grace))),
        Some("docker") => Program::Single(Box::new(Single::docker(grace))),
        Some("container") => Program::Container(Box::new(Holder::new(grace))),
        Some(_) => Program::Group(Box::new(Group::new(grace))),
        None => Program::Pretend,
    }
}

fn get<'w>(world: &'w mut World, agent: usize, id: &ContainerId) -> Option<&'w mut Executor> {
    world.agents[agent].host.executor_mut(id)
}

fn plan(world: &mut World, agent: usize, id: &ContainerId, wait: u64, step: Step) {
    world.queue.after(wait, Event::Executor { agent, container: id.clone(), step });
}

pub(crate) fn begin(world: &mut World, agent: usize, id: &ContainerId) {
    let hangs = get(world, agent, id).is_some_and(|executor| executor.hangs);
    let wait = match hangs && world.rng.chance(0.3) {
        true => between(&mut world.rng, 10 * SECOND, 60 * SECOND), // Too late to be of use.
        false => between(&mut world.rng, MS, 200 * MS),
    };
    plan(world, agent, id, wait, Step::Wake);
}

pub(crate) fn step(world: &mut World, agent: usize, id: &ContainerId, step: Step) {
    if get(world, agent, id).is_none() {
        return; // Its container terminated.
    }
    match step {
        Step::Wake => wake(world, agent, id),
        Step::Run { task } => custom::run(world, agent, id, &task),
        Step::Finish { task } => custom::finish(world, agent, id, &task),
        Step::Killed { task } => custom::update(world, agent, id, &task, TaskState::TASK_KILLED),
        Step::Leave { stirred } => {
            if get(world, agent, id).is_some_and(|executor| executor.stirred == stirred && executor.is_idle())
            {
                exit(world, agent, id, 0, false);
            }
        }
        Step::Exit { status } => exit(world, agent, id, status, false),
        Step::Due => drive::due(world, agent, id),
        Step::Single(step) => single::step(world, agent, id, step),
        Step::Group(step) => group::step(world, agent, id, step),
        Step::Container(step) => container::step(world, agent, id, step),
    }
}

fn exit(world: &mut World, agent: usize, id: &ContainerId, status: i32, oom: bool) {
    crate::host::on_exit(world, agent, id, status, oom);
}

/// Handles the session's deadline, or plans the next wake-up.
fn wake(world: &mut World, agent: usize, id: &ContainerId) {
    let now = world.elapsed();
    let Some(executor) = get(world, agent, id) else { return };
    match executor.session.due(now) {
        Outcome::Continue | Outcome::Ended(_) => (),
        Outcome::Subscribe => return subscribe(world, agent, id),
        Outcome::Send(call) => send(world, agent, id, call),
        Outcome::Lost => return lost(world, agent, id),
    }
    plan_wake(world, agent, id);
}

fn plan_wake(world: &mut World, agent: usize, id: &ContainerId) {
    let now = world.elapsed();
    let Some(deadline) = get(world, agent, id).and_then(|executor| executor.session.deadline()) else {
        return;
    };
    let wait = u64::try_from(deadline.saturating_sub(now).as_nanos()).unwrap_or(u64::MAX);
    plan(world, agent, id, wait.max(1), Step::Wake);
}

fn subscribe(world: &mut World, agent: usize, id: &ContainerId) {
    let now = world.elapsed();
    let Some(executor) = get(world, agent, id) else { return };
    let call = executor.session.subscribe(now);
    let (framework_id, executor_id) = (executor.framework_id.clone(), executor.executor_id.clone());
    if !world.agents[agent].process.is_up() {
        return lost(world, agent, id);
    }
    world.trace_line(|| format!("A{agent} executor {executor_id} of {framework_id} subscribes"));
    let client = Client::Executor { agent, container: id.clone() };
    let stream = world.open(Kind::Stream, client.clone(), Node::Agent(agent));
    let calls = world.open(Kind::Calls, client, Node::Agent(agent));
    let Some(executor) = get(world, agent, id) else { return };
    (executor.stream, executor.calls) = (Some(stream), Some(calls));
    world.send(stream, End::Server, Message::ExecutorCall { exchange: stream, call: Box::new(call) });
    plan_wake(world, agent, id);
}

/// Calls are sent one after the other, as by the client library.
fn send(world: &mut World, agent: usize, id: &ContainerId, call: Call) {
    let Some(executor) = get(world, agent, id) else { return };
    executor.waiting.push_back(call);
    if !executor.unanswered {
        send_next(world, agent, id);
    }
}

fn send_next(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    let (Some(conn), Some(call)) = (executor.calls, executor.waiting.pop_front()) else { return };
    executor.unanswered = true;
    let exchange = world.begin_exchange(conn);
    world.send(conn, End::Server, Message::ExecutorCall { exchange, call: Box::new(call) });
}

/// The subscription is lost; the session decides the next step.
fn lost(world: &mut World, agent: usize, id: &ContainerId) {
    let (now, random) = (world.elapsed(), world.rng.next_u64());
    let Some(executor) = get(world, agent, id) else { return };
    let conns = [executor.stream.take(), executor.calls.take()];
    executor.waiting.clear();
    executor.unanswered = false;
    let event = executor.session.lost(now, random);
    conns.into_iter().flatten().for_each(|conn| world.close(conn, End::Client));
    if let Some(event) = event {
        on_executor_event(world, agent, id, event);
    }
    plan_wake(world, agent, id);
}

/// The stream or the call connection was closed: the subscription is lost.
pub(crate) fn closed(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) {
    let ours = get(world, agent, id)
        .is_some_and(|executor| executor.stream == Some(conn) || executor.calls == Some(conn));
    match ours {
        true => lost(world, agent, id),
        false => group::closed(world, agent, id, conn),
    }
}

pub(crate) fn on_event(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId, message: Message) {
    let now = world.elapsed();
    let Some(executor) = get(world, agent, id) else { return };
    if executor.stream != Some(conn) && executor.calls != Some(conn) {
        return group::answered(world, agent, id, conn, message);
    }
    match message {
        Message::ExecutorEvent(event) => {
            if let Some(event) = executor.session.receive(now, *event) {
                on_executor_event(world, agent, id, event);
            }
        }
        Message::Answer { refused: Some((status, message)), .. } => {
            match executor.session.refused(status, &message) {
                Outcome::Ended(event) => on_executor_event(world, agent, id, event),
                Outcome::Lost => lost(world, agent, id),
                Outcome::Continue | Outcome::Subscribe | Outcome::Send(_) => (),
            }
        }
        Message::Answer { refused: None, .. } => {
            executor.unanswered = false;
            send_next(world, agent, id);
        }
        Message::StreamOpen { .. }
        | Message::SchedulerCall { .. }
        | Message::AgentCall(_)
        | Message::ExecutorCall { .. }
        | Message::ContainerCall(_)
        | Message::LinkOpen
        | Message::SchedulerEvent(_)
        | Message::LinkEvent(_)
        | Message::Close => (),
    }
}

/// An event or the end of the session: the common part, then the executor's own.
fn on_executor_event(world: &mut World, agent: usize, id: &ContainerId, event: ExecutorEvent) {
    world.checks.observe(&Fact::ExecutorEvent { container: id, event: &event });
    match &event {
        ExecutorEvent::Subscribed(_) => {
            let calls =
                get(world, agent, id).map(|executor| executor.session.held_back()).unwrap_or_default();
            calls.into_iter().for_each(|call| send(world, agent, id, call));
            plan_wake(world, agent, id);
        }
        ExecutorEvent::Acknowledged { task_id, uuid } => {
            let Some(executor) = world.agents[agent].host.executor(id) else { return };
            let task = &task_id.value;
            world.checks.observe(&Fact::ExecutorConfirmed { agent, executor, container: id, task, uuid });
        }
        _ => (),
    }
    match get(world, agent, id).map(|executor| executor.is_built_in()) {
        Some(true) => drive::event(world, agent, id, event),
        Some(false) => custom::event(world, agent, id, event),
        None => (),
    }
}

/// Registers a new task; false if it is known already.
fn begin_task(world: &mut World, agent: usize, id: &ContainerId, info: &pb::TaskInfo) -> bool {
    let task = info.task_id.value.clone();
    let Some(executor) = world.agents[agent].host.executor_mut(id) else { return false };
    executor.stirred += 1;
    executor.had_tasks = true;
    let known = executor.tasks.get(&task).is_some_and(|task| !is_terminal(task.state));
    let begun = Task {
        script: Script::parse(&info.name),
        state: TaskState::TASK_STAGING,
        killed: false,
        resources: info.resources.clone(),
    };
    if !known {
        executor.tasks.insert(task.clone(), begun);
    }
    let (framework, is_nested) =
        (executor.framework_id.clone(), matches!(executor.program, Program::Group(_)));
    world.trace_line(|| format!("A{agent} executor starts {task}"));
    let cpus = world.agents[agent].cpus_in_use(world.plan.oversubscribed_cpus);
    let (framework, container) = (&*framework, id);
    world.checks.observe(&Fact::TaskStarts { agent, framework, container, task: &task, cpus, is_nested });
    !known
}

/// Sends an update, or queues it for the next subscription.
fn report(world: &mut World, agent: usize, id: &ContainerId, status: pb::TaskStatus) {
    let timestamp = world.wall_of(Node::Agent(agent)).as_secs_f64();
    let Some(executor) = world.agents[agent].host.executor_mut(id) else { return };
    let uuid = status.uuid.clone().and_then(|uuid| uuid.try_into().ok()).unwrap_or_default();
    if let Some(task) = executor.tasks.get_mut(&status.task_id.value).filter(|task| !is_terminal(task.state))
    {
        task.state = status.state;
    }
    executor.stirred += 1;
    let call = executor.session.update(status.clone(), uuid, timestamp);
    let executor = world.agents[agent].host.executor(id).expect("it was found above");
    world.checks.observe(&Fact::ExecutorUpdates { executor, container: id, status: &status, uuid: &uuid });
    if let Some(call) = call {
        send(world, agent, id, call);
    }
}
