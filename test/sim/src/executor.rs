//! Pretend executors: one process per container, real protocol, scripted tasks.
//!
//! The protocol is the client library's own session. What a task does is written in its name (see [`crate::script`]).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tepui_client::executor::{Config, Environment, Event as Heard, Outcome, Session};
use tepui_client::shorthand::is_terminal;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::executor::Call;
use tepui_types::{ConnId, ContainerId, LaunchSpec};

use crate::chance::{MS, SECOND, between, mostly};
use crate::check::Fact;
use crate::event::Event;
use crate::net::{Client, End, Kind, Message, Node};
use crate::script::{Ending, Script};
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Executor {
    session: Session,
    pub(crate) framework_id: String,
    pub(crate) executor_id: String,
    pub(crate) checkpoint: bool,
    /// It comes with the agent: for command tasks and task groups.
    built_in: bool,
    stream: Option<ConnId>,
    calls: Option<ConnId>,
    /// Calls that wait for the answer to the one before.
    waiting: VecDeque<Call>,
    unanswered: bool,
    tasks: BTreeMap<String, Task>,
    had_tasks: bool,
    /// It does nothing that it is asked for.
    hangs: bool,
    /// Counts reasons to stay; an intention to leave holds only if none came since.
    stirred: u32,
}

#[derive(Debug)]
struct Task {
    script: Script,
    state: TaskState,
    killed: bool,
    resources: Vec<pb::Resource>,
}

/// What an executor does by itself.
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
    /// Leaves if nothing happened since.
    Leave {
        stirred: u32,
    },
    Exit {
        status: i32,
    },
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
            built_in: spec.command.arguments.iter().any(|argument| argument == "executor"),
            stream: None,
            calls: None,
            waiting: VecDeque::new(),
            unanswered: false,
            tasks: BTreeMap::new(),
            had_tasks: false,
            hangs,
            stirred: 0,
        }
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
        return; // Its container ended.
    }
    match step {
        Step::Wake => wake(world, agent, id),
        Step::Run { task } => run(world, agent, id, &task),
        Step::Finish { task } => finish(world, agent, id, &task),
        Step::Killed { task } => update(world, agent, id, &task, TaskState::TASK_KILLED),
        Step::Leave { stirred } => {
            if get(world, agent, id).is_some_and(|executor| executor.stirred == stirred && executor.is_idle())
            {
                exit(world, agent, id, 0, false);
            }
        }
        Step::Exit { status } => exit(world, agent, id, status, false),
    }
}

fn exit(world: &mut World, agent: usize, id: &ContainerId, status: i32, oom: bool) {
    crate::host::ends(world, agent, id, status, oom);
}

/// The session's deadline may have come; if not, it is waited for.
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
    world.tell(|| format!("A{agent} executor {executor_id} of {framework_id} subscribes"));
    let client = Client::Executor { agent, container: id.clone() };
    let stream = world.open(Kind::Stream, client.clone(), Node::Agent(agent));
    let calls = world.open(Kind::Calls, client, Node::Agent(agent));
    let Some(executor) = get(world, agent, id) else { return };
    (executor.stream, executor.calls) = (Some(stream), Some(calls));
    world.send(stream, End::Server, Message::ExecutorCall { exchange: stream, call: Box::new(call) });
    plan_wake(world, agent, id);
}

/// Calls go out one after the other, as the client library sends them.
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

/// Gives up the subscription; the session decides what follows.
fn lost(world: &mut World, agent: usize, id: &ContainerId) {
    let (now, random) = (world.elapsed(), world.rng.next_u64());
    let Some(executor) = get(world, agent, id) else { return };
    let conns = [executor.stream.take(), executor.calls.take()];
    executor.waiting.clear();
    executor.unanswered = false;
    let event = executor.session.lost(now, random);
    conns.into_iter().flatten().for_each(|conn| world.close(conn, End::Client));
    if let Some(event) = event {
        take_in(world, agent, id, event);
    }
    plan_wake(world, agent, id);
}

/// A stream or the calls ended: either way the subscription is over.
pub(crate) fn closed(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId) {
    let ours = get(world, agent, id)
        .is_some_and(|executor| executor.stream == Some(conn) || executor.calls == Some(conn));
    if ours {
        lost(world, agent, id);
    }
}

pub(crate) fn hear(world: &mut World, agent: usize, id: &ContainerId, conn: ConnId, message: Message) {
    let now = world.elapsed();
    let Some(executor) = get(world, agent, id) else { return };
    if executor.stream != Some(conn) && executor.calls != Some(conn) {
        return;
    }
    match message {
        Message::ExecutorEvent(event) => {
            if let Some(event) = executor.session.hear(now, *event) {
                take_in(world, agent, id, event);
            }
        }
        Message::Answer { refused: Some((status, message)), .. } => {
            match executor.session.refused(status, &message) {
                Outcome::Ended(event) => take_in(world, agent, id, event),
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

fn take_in(world: &mut World, agent: usize, id: &ContainerId, event: Heard) {
    match event {
        Heard::Subscribed(_) => {
            let calls =
                get(world, agent, id).map(|executor| executor.session.held_back()).unwrap_or_default();
            calls.into_iter().for_each(|call| send(world, agent, id, call));
            plan_wake(world, agent, id);
            leave_if_unused(world, agent, id);
        }
        Heard::Launch(task) => launch(world, agent, id, task),
        Heard::LaunchGroup(tasks) => tasks.into_iter().for_each(|task| launch(world, agent, id, task)),
        Heard::Kill { task_id, .. } => kill(world, agent, id, &task_id.value),
        Heard::Acknowledged { task_id, uuid } => {
            let Some(executor) = world.agents[agent].host.executor(id) else { return };
            let task = &task_id.value;
            world.checks.see(&Fact::ExecutorConfirmed { agent, executor, container: id, task, uuid: &uuid });
            leave_if_idle(world, agent, id);
        }
        Heard::Shutdown => shutdown(world, agent, id),
        Heard::Error(_) => exit(world, agent, id, 256, false),
        Heard::Disconnected | Heard::Message(_) => (),
    }
}

fn launch(world: &mut World, agent: usize, id: &ContainerId, info: pb::TaskInfo) {
    let task = info.task_id.value.clone();
    let script = Script::parse(&info.name);
    let Some(executor) = world.agents[agent].host.executor_mut(id) else { return };
    executor.stirred += 1;
    executor.had_tasks = true;
    let known = executor.tasks.get(&task).is_some_and(|task| !is_terminal(task.state));
    let running = Task { script, state: TaskState::TASK_STAGING, killed: false, resources: info.resources };
    if !known {
        executor.tasks.insert(task.clone(), running);
    }
    let framework = executor.framework_id.clone();
    world.tell(|| format!("A{agent} executor starts {task}"));
    let cpus = world.agents[agent].cpus_in_use();
    world.checks.see(&Fact::TaskStarts { agent, framework: &framework, container: id, task: &task, cpus });
    if !known {
        plan(world, agent, id, script.start, Step::Run { task });
    }
}

fn run(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(running) = get(world, agent, id).and_then(|executor| executor.tasks.get(task)) else { return };
    if is_terminal(running.state) || running.killed {
        return;
    }
    let script = running.script;
    if script.ending == Ending::Crash && script.run == 0 {
        return exit(world, agent, id, 256, false); // It never came to run.
    }
    if script.says_starting {
        update(world, agent, id, task, TaskState::TASK_STARTING);
    }
    update(world, agent, id, task, TaskState::TASK_RUNNING);
    if world.rng.chance(0.2) {
        say(world, agent, id);
    }
    match script.ending {
        Ending::Stay => (),
        Ending::Finish | Ending::Fail | Ending::Crash | Ending::Oom => {
            plan(world, agent, id, script.run, Step::Finish { task: task.into() });
        }
    }
}

/// A message to the framework, which may get lost.
fn say(world: &mut World, agent: usize, id: &ContainerId) {
    let message = get(world, agent, id).and_then(|executor| executor.session.message(b"hello".into()));
    if let Some(call) = message {
        send(world, agent, id, call);
    }
}

fn finish(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(running) = get(world, agent, id).and_then(|executor| executor.tasks.get(task)) else { return };
    if is_terminal(running.state) || running.killed {
        return;
    }
    match running.script.ending {
        Ending::Finish => update(world, agent, id, task, TaskState::TASK_FINISHED),
        Ending::Fail => update(world, agent, id, task, TaskState::TASK_FAILED),
        Ending::Crash => exit(world, agent, id, 256, false),
        Ending::Oom => exit(world, agent, id, 9, true),
        Ending::Stay => (),
    }
}

fn kill(world: &mut World, agent: usize, id: &ContainerId, task: &str) {
    let Some(executor) = get(world, agent, id) else { return };
    let hangs = executor.hangs;
    let built_in = executor.built_in;
    let Some(running) = executor.tasks.get_mut(task) else { return };
    if is_terminal(running.state) || std::mem::replace(&mut running.killed, true) {
        return;
    }
    if hangs && built_in && world.rng.chance(0.5) {
        world.counts.unheard_kills += 1;
        return; // Its agent has to.
    }
    if world.rng.chance(0.3) {
        update(world, agent, id, task, TaskState::TASK_KILLING);
    }
    let longest = if hangs { 30 * SECOND } else { SECOND };
    let wait = between(&mut world.rng, MS, longest);
    plan(world, agent, id, wait, Step::Killed { task: task.into() });
}

fn shutdown(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    if executor.hangs {
        // It will be destroyed before, unless the agent is not there to do it.
        let wait = between(&mut world.rng, 10 * SECOND, 40 * SECOND);
        return plan(world, agent, id, wait, Step::Exit { status: 9 });
    }
    let live = executor.tasks.iter().filter(|(_, task)| !is_terminal(task.state));
    let live: Vec<String> = live.map(|(task, _)| task.clone()).collect();
    if world.rng.chance(0.7) {
        live.iter().for_each(|task| update(world, agent, id, task, TaskState::TASK_KILLED));
    }
    let wait = between(&mut world.rng, MS, SECOND);
    plan(world, agent, id, wait, Step::Exit { status: 0 });
}

fn update(world: &mut World, agent: usize, id: &ContainerId, task: &str, state: TaskState) {
    let (uuid, timestamp) = (world.rng.uuid(), world.now().wall.as_secs_f64());
    let Some(executor) = world.agents[agent].host.executor_mut(id) else { return };
    let Some(running) = executor.tasks.get_mut(task) else { return };
    if is_terminal(running.state) {
        return;
    }
    running.state = state;
    executor.stirred += 1;
    let task_id = pb::TaskID { value: task.into(), ..Default::default() };
    let status = pb::TaskStatus { task_id: task_id.into(), state, ..Default::default() };
    let call = executor.session.update(status, uuid, timestamp);
    let executor = world.agents[agent].host.executor(id).expect("it was found above");
    world.checks.see(&Fact::ExecutorUpdates { executor, container: id, task, uuid: &uuid });
    if let Some(call) = call {
        send(world, agent, id, call);
    }
    if is_terminal(state) {
        leave_if_idle(world, agent, id);
    }
}

/// A framework's own executor that gets nothing to do does not stay for ever. Those that come with the agent rely on
/// it to send them away.
fn leave_if_unused(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    let stirred = executor.stirred;
    if !executor.built_in && !executor.had_tasks {
        let wait = between(&mut world.rng, 10 * SECOND, 30 * SECOND);
        plan(world, agent, id, wait, Step::Leave { stirred });
    }
}

/// An executor without anything to do leaves after a while; one that comes with the agent soon.
fn leave_if_idle(world: &mut World, agent: usize, id: &ContainerId) {
    let Some(executor) = get(world, agent, id) else { return };
    let (built_in, stirred) = (executor.built_in, executor.stirred);
    if !executor.had_tasks || !executor.is_idle() {
        return;
    }
    let wait = match built_in {
        true => between(&mut world.rng, MS, 500 * MS),
        false => mostly(&mut world.rng, 10 * MS, 3 * SECOND, 0.2, 10 * SECOND),
    };
    plan(world, agent, id, wait, Step::Leave { stirred });
}
