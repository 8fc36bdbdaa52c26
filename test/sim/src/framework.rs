//! Model frameworks: real protocol, random actions.
//!
//! A framework's state across its crashes is that of a careful scheduler: its id and its tasks. The protocol is the client
//! library's session. Its decisions are in `offers` and `actions`.

mod actions;
mod offers;
pub(crate) mod service;
mod volumes;

pub(crate) use actions::revive_all;
pub(crate) use offers::volume;

use std::collections::{BTreeMap, BTreeSet};

use tepui_client::scheduler::{Event as SchedulerEvent, Outcome, Session, calls};
use tepui_client::shorthand::is_terminal;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::framework_info::capability::Type as Capability;
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::ConnId;

use crate::chance::{MS, Rng, SECOND, between, mostly};
use crate::check::Fact;
use crate::event::Event;
use crate::net::{Client, End, Kind, Message, Node};
use crate::plan::Plan;
use crate::users;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Framework {
    pub(crate) index: usize,
    /// Counts the starts of its process.
    pub(crate) life: u32,
    pub(crate) up: bool,
    session: Session,
    /// The one it subscribed with last.
    master: usize,
    stream: Option<ConnId>,
    calls: Option<ConnId>,
    /// Calls until they are answered.
    pending_calls: BTreeMap<ConnId, Call>,
    /// Offers it has not answered.
    pub(crate) offers: BTreeMap<String, pb::Offer>,
    pub(crate) memory: Memory,
    /// Partitioned from the master until then.
    pub(crate) cut_off_until: u64,
    /// Its offers are suppressed.
    suppressed: bool,
    /// The real scheduler that decides for it, if it is a service.
    pub(crate) service: Option<Box<service::Service>>,
}

/// What survives a crash of the scheduler.
#[derive(Debug)]
pub(crate) struct Memory {
    /// With its id, once it has one.
    pub(crate) info: pb::FrameworkInfo,
    /// Counts its ids: a removed framework subscribes with a new one.
    pub(crate) incarnation: u32,
    pub(crate) tasks: BTreeMap<String, Task>,
    /// Updates of tasks whose id another one has since.
    past: BTreeSet<Vec<u8>>,
    /// The number of launches, including those with a reused id.
    launches: usize,
    /// Names for new tasks, executors, operations.
    serial: u64,
    /// Operations without a terminal status.
    pub(crate) operations: BTreeMap<String, Operation>,
}

/// A task in the state of its framework.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) agent_id: pb::AgentID,
    /// Unset for command tasks.
    pub(crate) executor_id: Option<pb::ExecutorID>,
    pub(crate) state: TaskState,
    /// Updates received for this instance of the task.
    received: BTreeSet<Vec<u8>>,
    /// A terminal update of the agent was acknowledged: the id may be reused.
    pub(crate) over: bool,
}

/// An operation in the state of its framework.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) agent_id: pb::AgentID,
    pub(crate) state: pb::OperationState,
}

/// A planned step of a framework.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Start,
    /// The session's deadline.
    Wake,
    /// Uses its offers.
    Consider,
    Acknowledge(Box<pb::TaskStatus>),
    /// A random action.
    Act,
    /// In the healing phase: reconciles and kills all tasks.
    Repair,
    Service(service::Step),
}

impl Step {
    /// As recorded histories name it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Step::Start => "start",
            Step::Wake => "wake",
            Step::Consider => "consider",
            Step::Acknowledge(_) => "acknowledge",
            Step::Act => "wish",
            Step::Repair => "repair",
            Step::Service(step) => step.name(),
        }
    }
}

impl Framework {
    pub(crate) fn new(index: usize, plan: &Plan, rng: &mut Rng) -> Self {
        let mut info = info(index, rng);
        if plan.authorization {
            info.principal = Some(if index == 0 { users::TRUSTED } else { users::UNTRUSTED }.into());
        }
        if plan.volumes {
            info.capabilities.push(tepui_client::shorthand::capability(Capability::SHARED_RESOURCES));
        }
        Framework {
            index,
            life: 0,
            up: false,
            session: Session::new(info.clone()),
            master: 0,
            stream: None,
            calls: None,
            pending_calls: BTreeMap::new(),
            offers: BTreeMap::new(),
            memory: Memory {
                info,
                incarnation: 0,
                tasks: BTreeMap::new(),
                past: BTreeSet::new(),
                launches: 0,
                serial: 0,
                operations: BTreeMap::new(),
            },
            cut_off_until: 0,
            suppressed: false,
            service: None,
        }
    }

    pub(crate) fn id(&self) -> Option<&str> {
        self.memory.info.id.as_option().map(|id| id.value.as_str())
    }

    /// A unique name.
    fn name(&mut self, prefix: &str) -> String {
        self.memory.serial += 1;
        format!("{prefix}{}.{}.{}", self.index, self.memory.incarnation, self.memory.serial)
    }

    /// It takes revocable resources from now on.
    pub(crate) fn borrow_resources(&mut self) {
        let capability = tepui_client::shorthand::capability(Capability::REVOCABLE_RESOURCES);
        self.memory.info.capabilities.push(capability);
        self.session = Session::new(self.memory.info.clone());
    }

    /// It can make calls.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.session.link().is_some()
    }

    /// Tasks without a known terminal state.
    pub(crate) fn live_tasks(&self) -> impl Iterator<Item = (&String, &Task)> {
        self.memory.tasks.iter().filter(|(_, task)| !is_terminal(task.state))
    }
}

fn info(index: usize, rng: &mut Rng) -> pb::FrameworkInfo {
    let mut capabilities = vec![Capability::MULTI_ROLE, Capability::RESERVATION_REFINEMENT];
    if rng.chance(0.6) {
        capabilities.push(Capability::PARTITION_AWARE);
    }
    if rng.chance(0.3) {
        capabilities.push(Capability::TASK_KILLING_STATE);
    }
    let failover_timeout = match rng.below(4) {
        0 => between(rng, 1, 20) as f64,
        _ => 100_000.0,
    };
    pb::FrameworkInfo {
        name: format!("framework {index}"),
        user: "nobody".into(),
        roles: draw_roles(rng),
        capabilities: capabilities.into_iter().map(tepui_client::shorthand::capability).collect(),
        checkpoint: Some(rng.chance(0.8)),
        failover_timeout: Some(failover_timeout),
        ..Default::default()
    }
}

/// Roles that frameworks share, with one below another.
pub(super) fn draw_roles(rng: &mut Rng) -> Vec<String> {
    let sets: [&[&str]; 5] =
        [&["role0"], &["role1"], &["role0", "role1"], &["role0/sub"], &["role0/sub", "role1"]];
    let roles = sets[rng.below(sets.len() as u64) as usize];
    roles.iter().map(|role| (*role).into()).collect()
}

fn plan(world: &mut World, index: usize, wait: u64, step: Step) {
    let life = world.frameworks[index].life;
    world.queue.after(wait, Event::Framework { index, life, step });
}

/// Starts the process, after a while.
pub(crate) fn start(world: &mut World, index: usize) {
    let wait = between(&mut world.rng, 10 * MS, 3 * SECOND);
    plan(world, index, wait, Step::Start);
}

/// The process dies; its memory does not.
pub(crate) fn crash(world: &mut World, index: usize) {
    if !world.frameworks[index].up {
        return;
    }
    world.trace_line(|| format!("F{index} crashes"));
    world.counts.framework_crashes += 1;
    stop(world, index);
    start(world, index);
}

fn stop(world: &mut World, index: usize) {
    let framework = &mut world.frameworks[index];
    framework.up = false;
    framework.life += 1;
    framework.offers.clear();
    framework.pending_calls.clear();
    framework.suppressed = false;
    (framework.stream, framework.calls) = (None, None);
    service::stopped(framework);
    let is_ours = |client: &Client| matches!(client, Client::Framework { index: at, .. } if *at == index);
    for conn in world.conns_where(|conn| is_ours(&conn.client)) {
        world.drop_end(conn, End::Client, 2 * SECOND);
    }
}

pub(crate) fn step(world: &mut World, index: usize, life: u32, step: Step) {
    let framework = &world.frameworks[index];
    if framework.life != life || (!framework.up && !matches!(step, Step::Start)) {
        return;
    }
    match step {
        Step::Start => begin(world, index),
        Step::Wake => wake(world, index),
        Step::Consider => offers::consider(world, index),
        Step::Acknowledge(status) => acknowledge(world, index, &status),
        Step::Act if framework.service.is_some() => service::act(world, index),
        Step::Act => actions::act(world, index),
        Step::Repair if framework.service.is_some() => service::repair(world, index),
        Step::Repair => actions::repair(world, index),
        Step::Service(step) => service::step(world, index, step),
    }
}

fn begin(world: &mut World, index: usize) {
    let framework = &mut world.frameworks[index];
    if framework.up {
        return;
    }
    framework.up = true;
    framework.session = Session::new(framework.memory.info.clone());
    world.trace_line(|| format!("F{index} starts"));
    if !service::begin(world, index) {
        return;
    }
    wake(world, index);
    let wait = between(&mut world.rng, 100 * MS, 5 * SECOND);
    plan(world, index, wait, Step::Act);
    if world.is_healing() {
        plan(world, index, SECOND, Step::Repair);
    }
}

/// Handles the session's deadline, or plans the next wake-up.
fn wake(world: &mut World, index: usize) {
    use tepui_client::scheduler::State;
    let now = world.elapsed();
    let framework = &mut world.frameworks[index];
    match framework.session.state() {
        State::Disconnected { retry_at } if now >= *retry_at => return subscribe(world, index),
        State::Subscribing { .. } | State::Subscribed { .. } if framework.session.is_silent(now) => {
            return lost(world, index);
        }
        State::Ended => return start_over(world, index),
        State::Disconnected { .. } | State::Subscribing { .. } | State::Subscribed { .. } => (),
    }
    plan_wake(world, index);
}

fn plan_wake(world: &mut World, index: usize) {
    let now = world.elapsed();
    let wait = match world.frameworks[index].session.deadline() {
        Some(deadline) => u64::try_from(deadline.saturating_sub(now).as_nanos()).unwrap_or(u64::MAX),
        None => SECOND,
    };
    plan(world, index, wait.max(1), Step::Wake);
}

/// Whether calls reach the master that it is subscribed with.
fn can_reach_master(world: &World, index: usize) -> bool {
    let framework = &world.frameworks[index];
    world.masters[framework.master].process.is_up() && framework.cut_off_until <= world.queue.now()
}

fn subscribe(world: &mut World, index: usize) {
    let now = world.elapsed();
    let call = world.frameworks[index].session.subscribe(now);
    let Some(master) = world.find_master() else { return lost(world, index) };
    world.frameworks[index].master = master;
    if !can_reach_master(world, index) {
        return lost(world, index);
    }
    world.trace_line(|| format!("F{index} subscribes"));
    let client = Client::Framework { index, life: world.frameworks[index].life };
    let stream = world.open(Kind::Stream, client, Node::Master(master));
    world.frameworks[index].stream = Some(stream);
    let message = Message::SchedulerCall { exchange: stream, stream_id: None, call: Box::new(call) };
    world.send(stream, End::Server, message);
    plan_wake(world, index);
}

/// The stream is gone: offers are void, the session decides when to try again.
fn lost(world: &mut World, index: usize) {
    let (now, random) = (world.elapsed(), world.rng.next_u64());
    let framework = &mut world.frameworks[index];
    framework.offers.clear();
    framework.pending_calls.clear();
    let conns = [framework.stream.take(), framework.calls.take()];
    let was_subscribed = framework.session.lost(now, random).is_some();
    conns.into_iter().flatten().for_each(|conn| world.close(conn, End::Client));
    if was_subscribed {
        service::disconnected(world, index);
    }
    plan_wake(world, index);
}

/// The master rejects this id: the framework subscribes with a new one.
fn start_over(world: &mut World, index: usize) {
    if service::session_ended(world, index) {
        return;
    }
    world.trace_line(|| format!("F{index} starts over"));
    if let Some(id) = world.frameworks[index].id().map(str::to_owned) {
        world.checks.observe(&Fact::FrameworkEnds { id: &id });
    }
    stop(world, index);
    let memory = &mut world.frameworks[index].memory;
    memory.info.id = Default::default();
    memory.incarnation += 1;
    memory.tasks.clear();
    memory.launches = 0;
    memory.operations.clear();
    start(world, index);
}

pub(crate) fn closed(world: &mut World, index: usize, life: u32, conn: ConnId, kind: Kind) {
    let framework = &mut world.frameworks[index];
    if framework.life != life {
        return;
    }
    match kind {
        Kind::Calls if framework.calls == Some(conn) => {
            framework.calls = None;
            let lost: Vec<Call> = std::mem::take(&mut framework.pending_calls).into_values().collect();
            match framework.service.is_some() {
                true => service::calls_lost(world, index, &lost),
                false => offers::decline_unanswered(world, index, lost),
            }
        }
        Kind::Stream if framework.stream == Some(conn) => lost(world, index),
        Kind::Calls | Kind::Stream | Kind::Link | Kind::Request | Kind::Session => (),
    }
}

/// Sends a call if subscribed; false otherwise, as in the client library.
pub(super) fn call(world: &mut World, index: usize, call: Call) -> bool {
    let framework = &world.frameworks[index];
    let Some(link) = framework.session.link().cloned() else { return false };
    if !can_reach_master(world, index) {
        return false;
    }
    let conn = match framework.calls {
        Some(conn) => conn,
        None => {
            let client = Client::Framework { index, life: framework.life };
            world.open(Kind::Calls, client, Node::Master(framework.master))
        }
    };
    world.frameworks[index].calls = Some(conn);
    let call = link.stamp(call);
    let exchange = world.begin_exchange(conn);
    world.frameworks[index].pending_calls.insert(exchange, call.clone());
    let message = Message::SchedulerCall { exchange, stream_id: link.stream_id, call: Box::new(call) };
    world.send(conn, End::Server, message);
    true
}

pub(crate) fn on_event(world: &mut World, index: usize, life: u32, conn: ConnId, message: Message) {
    let now = world.elapsed();
    let framework = &mut world.frameworks[index];
    if framework.life != life || (framework.stream != Some(conn) && framework.calls != Some(conn)) {
        return;
    }
    match message {
        Message::StreamOpen { stream_id } => framework.session.opened(stream_id),
        Message::SchedulerEvent(event) => {
            if let Some(event) = framework.session.receive(now, (*event).clone()) {
                on_scheduler_event(world, index, event);
            }
        }
        Message::Answer { refused: Some((status, message)), .. } => {
            world.trace_line(|| format!("F{index} is refused: {status} {message}"));
            refused(world, index, conn, status, &message);
        }
        Message::Answer { exchange, refused: None, .. } => {
            if let Some(call) = framework.pending_calls.remove(&exchange) {
                framework.session.apply_accepted(&call);
                plan_wake(world, index);
                service::answered(world, index, &call);
            }
        }
        Message::SchedulerCall { .. }
        | Message::AgentCall(_)
        | Message::ExecutorCall { .. }
        | Message::ContainerCall(_)
        | Message::LinkOpen
        | Message::LinkEvent(_)
        | Message::ExecutorEvent(_)
        | Message::Close => (),
    }
}

fn refused(world: &mut World, index: usize, conn: ConnId, status: u16, message: &str) {
    let framework = &mut world.frameworks[index];
    if framework.stream == Some(conn) {
        match framework.session.refused(status, message) {
            Outcome::Retry => lost(world, index),
            Outcome::Ended(event) => on_scheduler_event(world, index, event),
        }
    } else if status != 403 && message != "Framework cannot be found" {
        // Otherwise the framework failed over or was removed and has not received that yet.
        world.checks.fail("calls_are_sound", format!("F{index}: {status} {message}"));
    }
}

fn on_scheduler_event(world: &mut World, index: usize, event: SchedulerEvent) {
    if world.frameworks[index].service.is_some() {
        return service::on_event(world, index, event);
    }
    match event {
        SchedulerEvent::Subscribed(subscribed) => subscribed_as(world, index, &subscribed.framework_id.value),
        SchedulerEvent::Offers(offers) => {
            world.counts.offers += offers.len() as u64;
            for offer in offers {
                world.frameworks[index].offers.insert(offer.id.value.clone(), offer);
            }
            let wait = mostly(&mut world.rng, MS, 500 * MS, 0.1, 15 * SECOND);
            plan(world, index, wait, Step::Consider);
        }
        SchedulerEvent::Rescind(id) => {
            world.frameworks[index].offers.remove(&id.value);
        }
        SchedulerEvent::Update(status) => updated(world, index, status),
        SchedulerEvent::UpdateOperation(status) => operation_updated(world, index, &status),
        SchedulerEvent::Error(message) => {
            world.trace_line(|| format!("F{index} is told: {message}"));
            let wait = between(&mut world.rng, MS, SECOND);
            plan(world, index, wait, Step::Wake);
        }
        SchedulerEvent::InverseOffers(offers) => {
            let ids = offers.into_iter().map(|offer| (*offer.id).clone());
            let answer = match world.rng.chance(0.5) {
                true => calls::accept_inverse_offers(ids, None),
                false => calls::decline_inverse_offers(ids, None),
            };
            call(world, index, answer);
        }
        SchedulerEvent::Disconnected
        | SchedulerEvent::RescindInverseOffer(_)
        | SchedulerEvent::Message(_)
        | SchedulerEvent::Failure(_) => (),
    }
}

fn subscribed_as(world: &mut World, index: usize, id: &str) {
    world.trace_line(|| format!("F{index} is {id}"));
    let framework = &mut world.frameworks[index];
    framework.memory.info = framework.session.framework().clone();
    framework.offers.clear();
    let checkpoint = framework.memory.info.checkpoint == Some(true);
    let untrusted = world.plan.authorization && index > 0;
    world.checks.observe(&Fact::FrameworkIs { id, checkpoint, untrusted });
    actions::reconcile_all(world, index);
    plan_wake(world, index);
}

fn updated(world: &mut World, index: usize, status: pb::TaskStatus) {
    let framework = &mut world.frameworks[index];
    let id = framework.id().unwrap_or_default().to_owned();
    world.counts.updates += 1;
    let is_past = status.uuid.as_ref().is_some_and(|uuid| framework.memory.past.contains(uuid));
    let task = framework.memory.tasks.get_mut(&status.task_id.value);
    if let Some(task) = task.filter(|_| !is_past) {
        task.received.extend(status.uuid.clone());
        let ended = !is_terminal(task.state) && is_terminal(status.state);
        task.state = status.state;
        match status.state {
            TaskState::TASK_FINISHED if ended => world.counts.finished += 1,
            TaskState::TASK_KILLED if ended => world.counts.killed += 1,
            TaskState::TASK_LOST if ended => world.counts.lost += 1,
            _ => (), // The rest is not counted.
        }
        match status.reason.filter(|_| ended) {
            Some(Reason::REASON_CONTAINER_PREEMPTED) => world.counts.preempted += 1,
            Some(Reason::REASON_MAX_COMPLETION_TIME_REACHED) => world.counts.completion_time_reached += 1,
            Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED) => world.counts.evicted += 1,
            Some(Reason::REASON_TASK_UNAUTHORIZED | Reason::REASON_TASK_GROUP_UNAUTHORIZED) => {
                world.counts.denied += 1;
            }
            _ => (), // Nor are other reasons.
        }
        world.counts.unhealthy += u64::from(ended && status.healthy == Some(false));
    }
    world.checks.observe(&Fact::FrameworkSees { id: &id, status: &status });
    if status.uuid.is_some() {
        let wait = mostly(&mut world.rng, 0, 10 * MS, world.plan.late_acknowledgements, 15 * SECOND);
        plan(world, index, wait, Step::Acknowledge(Box::new(status)));
    }
}

fn acknowledge(world: &mut World, index: usize, status: &pb::TaskStatus) {
    let Some(acknowledge) = calls::acknowledge(status) else { return };
    if call(world, index, acknowledge) {
        world.counts.acknowledgements += 1;
        let uuid = status.uuid.as_deref().unwrap_or_default();
        world.checks.observe(&Fact::FrameworkAcknowledges { uuid });
        let task = world.frameworks[index].memory.tasks.get_mut(&status.task_id.value);
        if let Some(task) = task.filter(|task| task.received.contains(uuid)) {
            task.over |= is_terminal(status.state);
        }
    }
}

fn operation_updated(world: &mut World, index: usize, status: &pb::OperationStatus) {
    use pb::OperationState as State;
    let over = match status.state {
        State::OPERATION_FINISHED
        | State::OPERATION_FAILED
        | State::OPERATION_ERROR
        | State::OPERATION_DROPPED
        | State::OPERATION_GONE_BY_OPERATOR => true,
        State::OPERATION_UNSUPPORTED
        | State::OPERATION_PENDING
        | State::OPERATION_UNREACHABLE
        | State::OPERATION_RECOVERING
        | State::OPERATION_UNKNOWN => false,
    };
    let operations = &mut world.frameworks[index].memory.operations;
    if over {
        operations.remove(&status.operation_id.value);
    } else if let Some(operation) = operations.get_mut(&status.operation_id.value) {
        operation.state = status.state;
    }
    if let Some(acknowledge) = calls::acknowledge_operation(status) {
        call(world, index, acknowledge);
    }
}
