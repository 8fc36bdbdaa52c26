//! Between the manager and the master: the client library's session, events that become inputs, effects that become calls.
//!
//! As in the manager's own driver, a call that did not get through is not repeated: a lost ACCEPT is reported, and offers of
//! lost calls are declined until the master answers.

use std::collections::BTreeMap;

use tepui_client::scheduler::{Event as SchedulerEvent, Outcome, Session, State, calls};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_swarm::{Effect, Input, Launch, Manage, Update};
use tepui_swarm_shell::convert::{self, Place};
use tepui_types::{AgentId, ConnId, OfferId, TaskId};

use super::{EXECUTOR, Step, USER, crash, input, plan};
use crate::chance::SECOND;
use crate::check::Fact;
use crate::net::{Client, End, Kind, Message, Node};
use crate::world::World;

pub(super) struct Link {
    info: pb::FrameworkInfo,
    session: Session,
    /// The one it subscribed with last.
    master: usize,
    stream: Option<ConnId>,
    calls: Option<ConnId>,
    /// Calls until they are answered.
    pending: BTreeMap<ConnId, Sent>,
    /// Offers of calls that did not get through.
    undeclined: Vec<OfferId>,
}

enum Sent {
    Launch { task: TaskId, agent: AgentId, offers: Vec<OfferId> },
    Other(Box<Call>),
}

impl Sent {
    fn offers(self) -> Vec<OfferId> {
        match self {
            Sent::Launch { offers, .. } => offers,
            Sent::Other(call) => call.decline.offer_ids.iter().map(OfferId::from).collect(),
        }
    }
}

impl Link {
    pub(super) fn new(manage: &Manage, principal: Option<&str>) -> Self {
        let mut info = convert::framework(manage, None, "manager", USER.into());
        info.principal = principal.map(str::to_owned);
        let session = Session::new(info.clone());
        Self {
            info,
            session,
            master: 0,
            stream: None,
            calls: None,
            pending: BTreeMap::new(),
            undeclined: Vec::new(),
        }
    }

    /// A new process, with the id of its records.
    pub(super) fn restart(&mut self, id: Option<&str>) {
        let id = id.map(|id| pb::FrameworkID { value: id.into(), ..Default::default() });
        self.info.id = id.into();
        self.session = Session::new(self.info.clone());
        (self.stream, self.calls) = (None, None);
        self.pending.clear();
        self.undeclined.clear();
    }

    pub(super) fn framework_id(&self) -> Option<&str> {
        self.session.framework().id.as_option().map(|id| id.value.as_str())
    }

    pub(super) fn is_subscribed(&self) -> bool {
        self.session.link().is_some()
    }
}

/// The link of the process with this life, if that is the present one.
fn link(world: &mut World, life: u32) -> Option<&mut Link> {
    let swarm = world.swarm.as_mut()?;
    (swarm.process.is_up() && swarm.process.life == life).then_some(&mut swarm.link)
}

/// Handles the session's deadline, or plans the next wake-up.
pub(super) fn wake(world: &mut World, life: u32) {
    let now = world.elapsed();
    let Some(link) = link(world, life) else { return };
    match link.session.state() {
        State::Disconnected { retry_at } if now >= *retry_at => return subscribe(world, life),
        State::Subscribing { .. } | State::Subscribed { .. } if link.session.is_silent(now) => {
            return lost(world, life);
        }
        // The process exits, and its supervisor starts it again.
        State::Ended => return crash(world),
        State::Disconnected { .. } | State::Subscribing { .. } | State::Subscribed { .. } => (),
    }
    plan_wake(world, life);
}

fn plan_wake(world: &mut World, life: u32) {
    let now = world.elapsed();
    let Some(link) = link(world, life) else { return };
    let deadline = link.session.deadline();
    let wait = deadline.map(|at| u64::try_from(at.saturating_sub(now).as_nanos()).unwrap_or(u64::MAX));
    plan(world, wait.unwrap_or(SECOND).max(1), Step::Wake { life });
}

/// Whether calls reach the master that it is subscribed with.
fn can_reach_master(world: &World) -> bool {
    let Some(swarm) = &world.swarm else { return false };
    world.masters[swarm.link.master].process.is_up() && swarm.cut_off_until <= world.queue.now()
}

fn subscribe(world: &mut World, life: u32) {
    let now = world.elapsed();
    let Some(link) = link(world, life) else { return };
    let call = link.session.subscribe(now);
    let Some(master) = world.find_master() else { return lost(world, life) };
    if let Some(link) = self::link(world, life) {
        link.master = master;
    }
    if !can_reach_master(world) {
        return lost(world, life);
    }
    world.trace_line(|| "swarm subscribes".into());
    let stream = world.open(Kind::Stream, Client::Swarm { life }, Node::Master(master));
    if let Some(link) = self::link(world, life) {
        link.stream = Some(stream);
    }
    let message = Message::SchedulerCall { exchange: stream, stream_id: None, call: Box::new(call) };
    world.send(stream, End::Server, message);
    plan_wake(world, life);
}

/// The stream is gone; the session decides when to try again.
fn lost(world: &mut World, life: u32) {
    let (now, random) = (world.elapsed(), world.rng.next_u64());
    let Some(link) = link(world, life) else { return };
    link.pending.clear();
    link.undeclined.clear();
    let conns = [link.stream.take(), link.calls.take()];
    let event = link.session.lost(now, random);
    conns.into_iter().flatten().for_each(|conn| world.close(conn, End::Client));
    if event.is_some() {
        input(world, Input::Disconnected);
    }
    plan_wake(world, life);
}

pub(crate) fn closed(world: &mut World, life: u32, conn: ConnId, kind: Kind) {
    let Some(link) = link(world, life) else { return };
    match kind {
        // It is unknown whether the master received the calls: the next subscription reconciles.
        Kind::Calls if link.calls == Some(conn) => {
            link.calls = None;
            let lost = std::mem::take(&mut link.pending).into_values().flat_map(Sent::offers);
            link.undeclined.extend(lost);
            plan(world, SECOND, Step::Decline { life });
        }
        Kind::Stream if link.stream == Some(conn) => lost(world, life),
        Kind::Calls | Kind::Stream | Kind::Link | Kind::Request | Kind::Session => (),
    }
}

/// Declines the offers of calls that did not get through.
pub(super) fn decline_lost(world: &mut World, life: u32) {
    let Some(link) = link(world, life) else { return };
    let offers = std::mem::take(&mut link.undeclined);
    if !offers.is_empty() {
        send(world, Effect::Decline { offers, refuse: None });
    }
}

pub(super) fn accept(world: &mut World, launch: Launch) {
    let Some(swarm) = &world.swarm else { return };
    let id = swarm.framework_id().unwrap_or_default().to_owned();
    let (task, agent) = (launch.task.clone(), launch.agent.clone());
    world.checks.observe(&Fact::FrameworkLaunches { id: &id, task: task.as_str() });
    world.counts.swarm_launches += 1;
    world.counts.swarm_adoptions += u64::from(launch.adopt.is_some());
    world.counts.swarm_moves += u64::from(launch.start);
    let sent = Sent::Launch { task: task.clone(), agent: agent.clone(), offers: launch.offers.clone() };
    if !call(world, convert::accept(&launch, EXECUTOR, USER), sent) {
        on_lost_accept(world, task, agent, TaskState::TASK_DROPPED, Reason::REASON_INVALID_OFFERS);
    }
}

/// The master did not get the launch, or rejected it.
fn on_lost_accept(world: &mut World, task: TaskId, agent: AgentId, state: TaskState, reason: Reason) {
    let update = Update {
        task,
        agent: Some(agent),
        state,
        reason: Some(reason),
        message: "the launch was not sent".into(),
        uuid: None,
        container: None,
        missing_image: None,
        by_executor: false,
        has_executor: false,
    };
    input(world, Input::Update(update));
}

pub(super) fn send(world: &mut World, effect: Effect) {
    let wire = match effect {
        Effect::Decline { offers, refuse } => convert::decline(&offers, refuse),
        Effect::Revive => calls::revive(Vec::new()),
        Effect::Acknowledge { agent, task, uuid } => {
            let status = pb::TaskStatus {
                task_id: task.to_proto().into(),
                agent_id: agent.to_proto().into(),
                uuid: Some(uuid),
                ..Default::default()
            };
            calls::acknowledge(&status).expect("it has a uuid and an agent")
        }
        Effect::Kill { task, agent } => calls::kill(task.to_proto(), Some(agent.to_proto()), None),
        Effect::Reconcile(tasks) => {
            calls::reconcile(tasks.iter().map(|(task, agent)| (task.to_proto(), Some(agent.to_proto()))))
        }
        other => panic!("{other} is no call"),
    };
    let uuid = wire.acknowledge.as_option().map(|acknowledge| acknowledge.uuid.clone());
    if call(world, wire.clone(), Sent::Other(Box::new(wire)))
        && let Some(uuid) = uuid
    {
        world.counts.acknowledgements += 1;
        world.checks.observe(&Fact::FrameworkAcknowledges { uuid: &uuid });
    }
}

/// Sends a call if subscribed; false otherwise, as in the client library.
fn call(world: &mut World, call: Call, sent: Sent) -> bool {
    let Some(swarm) = &world.swarm else { return false };
    let (Some(bound), master) = (swarm.link.session.link().cloned(), swarm.link.master) else { return false };
    if !can_reach_master(world) {
        return false;
    }
    let life = swarm.process.life;
    let conn = match swarm.link.calls {
        Some(conn) => conn,
        None => world.open(Kind::Calls, Client::Swarm { life }, Node::Master(master)),
    };
    let exchange = world.begin_exchange(conn);
    if let Some(link) = link(world, life) {
        link.calls = Some(conn);
        link.pending.insert(exchange, sent);
    }
    let call = Box::new(bound.stamp(call));
    world.send(conn, End::Server, Message::SchedulerCall { exchange, stream_id: bound.stream_id, call });
    true
}

pub(crate) fn on_event(world: &mut World, life: u32, conn: ConnId, message: Message) {
    let now = world.elapsed();
    let Some(link) = link(world, life) else { return };
    if link.stream != Some(conn) && link.calls != Some(conn) {
        return;
    }
    match message {
        Message::StreamOpen { stream_id } => link.session.opened(stream_id),
        Message::SchedulerEvent(event) => {
            if let Some(event) = link.session.receive(now, (*event).clone()) {
                on_scheduler_event(world, life, event);
            }
        }
        Message::Answer { exchange, refused, .. } => answered(world, life, conn, exchange, refused),
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

fn answered(world: &mut World, life: u32, conn: ConnId, exchange: ConnId, refused: Option<(u16, String)>) {
    let Some(link) = link(world, life) else { return };
    let sent = link.pending.remove(&exchange);
    let Some((status, message)) = refused else {
        if let Some(Sent::Other(call)) = sent {
            link.session.apply_accepted(&call);
        }
        return;
    };
    if link.stream == Some(conn) {
        match link.session.refused(status, &message) {
            Outcome::Retry => lost(world, life),
            Outcome::Ended(_) => wake(world, life),
        }
        return;
    }
    world.trace_line(|| format!("swarm is refused: {status} {message}"));
    if let Some(Sent::Launch { task, agent, .. }) = sent {
        match status {
            500.. => {
                on_lost_accept(world, task, agent, TaskState::TASK_DROPPED, Reason::REASON_INVALID_OFFERS)
            }
            _ => on_lost_accept(world, task, agent, TaskState::TASK_ERROR, Reason::REASON_TASK_INVALID),
        }
    }
    if status != 403 && message != "Framework cannot be found" {
        world.checks.fail("calls_are_sound", format!("swarm: {status} {message}"));
    }
}

fn on_scheduler_event(world: &mut World, life: u32, event: SchedulerEvent) {
    match event {
        SchedulerEvent::Subscribed(subscribed) => {
            let framework_id = subscribed.framework_id.value.clone();
            world.trace_line(|| format!("swarm is {framework_id}"));
            let checkpoint = true;
            world.checks.observe(&Fact::FrameworkIs { id: &framework_id, checkpoint, untrusted: false });
            input(world, Input::Subscribed { framework_id });
            plan_wake(world, life);
        }
        SchedulerEvent::Offers(offers) => {
            let place = Place { hostname: "manager".into(), tls: false, socket: "/run/docker.sock".into() };
            let offers = offers.iter().map(|offer| place.offer(offer).expect("agents name their engines"));
            input(world, Input::Offers(offers.collect()));
        }
        SchedulerEvent::Rescind(offer) => input(world, Input::Rescinded(OfferId::new(offer.value))),
        SchedulerEvent::Update(status) => {
            let id =
                world.swarm.as_ref().and_then(|swarm| swarm.framework_id()).unwrap_or_default().to_owned();
            world.counts.updates += 1;
            world.checks.observe(&Fact::FrameworkSees { id: &id, status: &status });
            let update = world.sabotage.forge_end(convert::update(&status));
            input(world, Input::Update(update));
        }
        SchedulerEvent::Failure(failure) => {
            if let (Some(agent), false) = (failure.agent_id.into_option(), failure.executor_id.is_set()) {
                input(world, Input::AgentFailed(AgentId::new(agent.value)));
            }
        }
        SchedulerEvent::Error(_) => wake(world, life),
        SchedulerEvent::Disconnected
        | SchedulerEvent::InverseOffers(_)
        | SchedulerEvent::RescindInverseOffer(_)
        | SchedulerEvent::UpdateOperation(_)
        | SchedulerEvent::Message(_) => (),
    }
}
