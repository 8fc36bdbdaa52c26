//! An agent's process and the machine it runs on: the real machine, a disk, and containers that outlive it.

use std::time::Duration;

use tepui_core_agent::{Agent, Config, Effect, Input, LinkId, Peer, Recover, Sender};
use tepui_fsm::Item;
use tepui_proto::mesos::v1 as pb;
use tepui_types::{Answer, ConnId, ContainerEvent};

use crate::chance::{MS, Rng, SECOND, between, mostly};
use crate::check::{Fact, Share};
use crate::event::Event;
use crate::executor::Executor;
use crate::host::{self, Host};
use crate::net::{Client, End, Kind, Message, Node};
use crate::plan::Plan;
use crate::process::Process;
use crate::show;
use crate::world::World;
use crate::{disk, measure, swarm, users};

pub(crate) struct AgentNode {
    pub(crate) process: Process<Agent>,
    pub(crate) host: Host,
    /// The connection of its newest link.
    link: Option<ConnId>,
    /// Partitioned from the master until then.
    pub(crate) cut_off_until: u64,
    /// Counts the boots of its machine.
    boots: u32,
    cpus: f64,
    mem: f64,
    disk_mb: f64,
}

impl AgentNode {
    pub(crate) fn new(_index: usize, rng: &mut Rng) -> Self {
        AgentNode {
            process: Process::new(),
            host: Host::default(),
            link: None,
            cut_off_until: 0,
            boots: 1,
            cpus: between(rng, 2, 8) as f64,
            mem: between(rng, 1, 8) as f64 * 512.0,
            disk_mb: 1024.0,
        }
    }

    /// The cpus of running tasks, of the agent's total with oversubscription. Tasks that are being killed are left out: a
    /// master need not wait for them.
    pub(crate) fn cpus_in_use(&self, oversubscribed: Option<u64>) -> Share {
        let Some(machine) = &self.process.machine else { return Share { used: 0, total: 0 } };
        let live = machine.state().frameworks.values().filter(|framework| !framework.terminating);
        let executors =
            live.flat_map(|framework| framework.executors.values()).filter(|executor| !executor.is_ending());
        let running = executors.filter_map(|executor| self.host.executor(&executor.container_id));
        // The maximum of all estimates: after a restart, tasks are recovered before the first estimate.
        let total = (self.cpus * 1000.0).round() as u64 + oversubscribed.unwrap_or_default() * 1000;
        Share { used: running.map(Executor::milli_cpus).sum(), total }
    }
}

pub(crate) fn start(world: &mut World, index: usize) {
    if world.agents[index].process.is_up() || !disk::may_start(world, Node::Agent(index)) {
        return;
    }
    let config = config(world, index);
    let now = world.now_of(Node::Agent(index));
    let stored = world.agents[index].process.disk.clone();
    let agent = Agent::new(config, stored, now).expect("the agent wrote it");
    world.trace_line(|| format!("A{index} starts"));
    world.agents[index].process.start(agent);
    world.agents[index].process.on_event(Input::Start);
    world.plan_turn(Node::Agent(index));
    if world.hardware(Node::Agent(index)).short_until > world.queue.now() {
        disk::plan_room_checks(world, Node::Agent(index));
    }
}

/// What a machine has; with slack a part of it is reserved for a role.
fn resources(plan: &Plan, agent: &AgentNode) -> Vec<pb::Resource> {
    let scalar = tepui_client::shorthand::scalar;
    let all = [("cpus", agent.cpus), ("mem", agent.mem), ("disk", agent.disk_mb)];
    if !plan.slack {
        return all.into_iter().map(|(name, amount)| scalar(name, amount)).collect();
    }
    let reserved = |name, amount| {
        let mut resource = scalar(name, amount);
        resource.reservations.push(pb::resource::ReservationInfo {
            r#type: Some(pb::resource::reservation_info::Type::STATIC),
            role: Some("role1".into()),
            ..Default::default()
        });
        resource
    };
    all.into_iter()
        .flat_map(|(name, amount)| [scalar(name, amount / 2.0), reserved(name, amount / 2.0)])
        .collect()
}

fn config(world: &mut World, index: usize) -> Config {
    let (plan, agent) = (&world.plan, &world.agents[index]);
    let agent_info = pb::AgentInfo {
        hostname: format!("host{index}"),
        port: Some(5051),
        resources: resources(plan, agent),
        ..Default::default()
    };
    let mut config = Config {
        agent_info,
        authorizer: users::authorizer(plan, world.sabotage),
        pid: format!("slave(1)@10.0.1.{index}:5051"),
        endpoint: format!("10.0.1.{index}:5051"),
        version: "1.12.0".into(),
        work_dir: "/work".into(),
        runtime_dir: "/run".into(),
        executor_program: "/bin/tepui".into(),
        executor_registration_timeout: Duration::from_nanos(plan.executor_registration_timeout),
        recovery_timeout: Duration::from_nanos(plan.recovery_timeout),
        executor_kill_margin: world.sabotage.kill_margin(),
        recover: Recover::Reconnect,
        isolation: ["cgroups/cpu", "cgroups/mem"].map(String::from).into(),
        boot_id: format!("boot-{}", agent.boots),
        seed: world.rng.next_u64(),
        ..Config::default()
    };
    measure::configure(&world.plan, &mut config);
    config
}

/// The process dies; its containers live on.
pub(crate) fn crash(world: &mut World, index: usize) {
    if !world.agents[index].process.is_up() {
        return;
    }
    let lucky = world.rng.below(4) as usize;
    stop(world, index, lucky);
}

/// Of the records being written, the first `written` are on its disk.
pub(crate) fn stop(world: &mut World, index: usize, written: usize) {
    world.trace_line(|| format!("A{index} crashes"));
    for record in world.agents[index].process.crash(written) {
        world.trace_line(|| format!("A{index} stored while it crashed: {record}"));
        world.checks.observe(&Fact::AgentStores { agent: index, record: &record });
    }
    world.agents[index].link = None;
    for conn in world.conns_where(|conn| conn.server == Node::Agent(index)) {
        world.drop_end(conn, End::Server, 100 * MS);
    }
    for conn in world.conns_where(|conn| is_link_of(&conn.client, index)) {
        world.drop_end(conn, End::Client, SECOND);
    }
    host::agent_died(world, index);
}

/// An operator makes the agent kill its tasks and unregister.
pub(crate) fn unregister(world: &mut World, index: usize) {
    world.checks.observe(&Fact::AgentLeaves { agent: index });
    input(world, index, Input::Unregister);
}

/// The machine reboots; all containers die.
pub(crate) fn reboot(world: &mut World, index: usize) {
    crash(world, index);
    world.trace_line(|| format!("A{index}'s machine reboots"));
    world.agents[index].boots += 1;
    host::power_off(world, index);
    swarm::power_off(world, index);
}

/// An operator wipes the agent's disk.
pub(crate) fn wipe(world: &mut World, index: usize) {
    world.trace_line(|| format!("A{index} is wiped"));
    world.agents[index].process.wipe();
    world.checks.observe(&Fact::AgentWiped { agent: index });
}

fn is_link_of(client: &Client, agent: usize) -> bool {
    matches!(client, Client::Agent { index, .. } if *index == agent)
}

pub(crate) fn input(world: &mut World, index: usize, input: Input) {
    if world.trace.is_on()
        && let Some(line) = show::agent_input(&input)
    {
        world.trace_line(|| format!("A{index} <- {line}"));
    }
    world.agents[index].process.on_event(input);
    world.plan_turn(Node::Agent(index));
}

/// A message of an executor or of a client of the container API arrived.
pub(crate) fn on_event(world: &mut World, index: usize, conn: ConnId, message: Message) {
    match message {
        Message::ExecutorCall { exchange, call } => {
            input(world, index, Input::Executor { conn: exchange, sender: Sender::default(), call });
        }
        Message::ContainerCall(call) => {
            world.checks.observe(&Fact::CallReceived { conn, call: &call });
            let sender = Sender { peer: Some(Peer::Executor), ..Sender::default() };
            input(world, index, Input::Operator { conn, sender, call });
        }
        _ => (),
    }
}

/// An executor's stream was closed, or a call's connection before its answer.
pub(crate) fn closed(world: &mut World, index: usize, conn: ConnId, kind: Kind) {
    match kind {
        Kind::Request | Kind::Session => caller_closed(world, index, conn),
        Kind::Stream | Kind::Calls | Kind::Link => input(world, index, Input::ExecutorClosed { conn }),
    }
}

pub(crate) fn caller_closed(world: &mut World, index: usize, conn: ConnId) {
    input(world, index, Input::OperatorClosed { conn });
}

/// Something arrived from the master.
pub(crate) fn on_master_message(
    world: &mut World,
    index: usize,
    life: u32,
    link: LinkId,
    conn: ConnId,
    message: Message,
) {
    if world.agents[index].process.life != life {
        return;
    }
    match message {
        Message::LinkOpen => input(world, index, Input::LinkUp { link }),
        Message::LinkEvent(event) => {
            input(world, index, Input::LinkEvent { link, event });
        }
        Message::Answer { refused, .. } => {
            let reason = refused.map(|(_, message)| message).unwrap_or_default();
            world.close(conn, End::Client);
            input(world, index, Input::LinkDown { link, reason });
        }
        Message::SchedulerCall { .. }
        | Message::AgentCall(_)
        | Message::ExecutorCall { .. }
        | Message::ContainerCall(_)
        | Message::StreamOpen { .. }
        | Message::SchedulerEvent(_)
        | Message::ExecutorEvent(_)
        | Message::Close => (),
    }
}

pub(crate) fn link_down(world: &mut World, index: usize, life: u32, link: LinkId) {
    if world.agents[index].process.life == life {
        input(world, index, Input::LinkDown { link, reason: "the link broke".into() });
    }
}

pub(crate) fn unreachable(world: &mut World, index: usize, life: u32, link: LinkId) {
    if world.agents[index].process.life == life {
        input(world, index, Input::LinkDown { link, reason: "no master can be reached".into() });
    }
}

pub(crate) fn container_event(world: &mut World, index: usize, life: u32, event: ContainerEvent) {
    if world.agents[index].process.life == life {
        input(world, index, Input::Container(event));
    }
}

pub(crate) fn synced(world: &mut World, index: usize) {
    let sabotage = world.sabotage;
    for item in world.agents[index].process.synced(|record| sabotage.loses_record(record)) {
        match item {
            Item::Record(record) => {
                world.trace_line(|| format!("A{index} stored: {record}"));
                world.checks.observe(&Fact::AgentStores { agent: index, record: &record });
            }
            Item::Effect(effect) => make_visible(world, index, effect),
        }
    }
}

pub(crate) fn make_visible(world: &mut World, index: usize, effect: Effect) {
    if !world.agents[index].process.is_up() {
        return; // An earlier effect terminated the process.
    }
    if world.trace.is_on()
        && let Some(line) = show::agent_effect(&effect)
    {
        world.trace_line(|| format!("A{index} -> {line}"));
    }
    world.checks.observe(&Fact::AgentEffect { agent: index, effect: &effect });
    match effect {
        Effect::Connect { link } => connect(world, index, link),
        Effect::Master { link, call } => send_to_master(world, index, link, call),
        Effect::Answer { conn, answer } => {
            for _ in 0..world.sabotage.answers() {
                let host = &world.agents[index].host;
                world.checks.observe(&Fact::CallAnswered { agent: index, conn, answer: &answer, host });
            }
            answered(world, conn, &answer);
        }
        Effect::OpenExecutor { conn } => {
            world.send(conn, End::Client, Message::StreamOpen { stream_id: None });
        }
        Effect::Executor { conn, event } | Effect::Kill { conn, event } => {
            world.send(conn, End::Client, Message::ExecutorEvent(event));
        }
        Effect::CloseExecutor { conn } => world.close(conn, End::Server),
        Effect::Container(op) => host::operate(world, index, op),
        Effect::Publish { .. } | Effect::Transition(_) => (),
        Effect::Exit { message, failed } => exit(world, index, &message, failed),
    }
}

fn connect(world: &mut World, index: usize, link: LinkId) {
    if let Some(old) = world.agents[index].link.take() {
        world.close(old, End::Client);
    }
    let life = world.agents[index].process.life;
    let cut_off = world.agents[index].cut_off_until > world.queue.now();
    let master = world.find_master().filter(|_| !cut_off);
    let Some(master) = master else {
        let wait = match cut_off {
            true => between(&mut world.rng, SECOND, 10 * SECOND),
            false => mostly(&mut world.rng, MS, 10 * MS, 0.1, 5 * SECOND),
        };
        return world.queue.after(wait, Event::Unreachable { agent: index, life, link });
    };
    let conn = world.open(Kind::Link, Client::Agent { index, life, link }, Node::Master(master));
    world.agents[index].link = Some(conn);
    world.send(conn, End::Client, Message::LinkOpen);
}

fn send_to_master(
    world: &mut World,
    index: usize,
    link: LinkId,
    call: Box<tepui_proto::tepui::agent::v1::Call>,
) {
    let Some(conn) = world.agents[index].link else { return };
    let current = world.net.conns.get(&conn).map(|conn| conn.client.clone());
    if matches!(current, Some(Client::Agent { link: newest, .. }) if newest == link) {
        world.send(conn, End::Server, Message::AgentCall(call));
    }
}

fn answered(world: &mut World, exchange: ConnId, answer: &Answer<pb::agent::Response>) {
    let (refused, body) = match answer {
        Answer::Accepted | Answer::Ok | Answer::NoContent => (None, None),
        Answer::Body(body) => (None, Some(body.clone())),
        Answer::Refused(refusal) => (Some((refusal.status.code(), refusal.message.clone())), None),
    };
    let conn = world.end_exchange(exchange);
    let kind = world.net.conns.get(&conn).map(|conn| conn.kind);
    let goes_on = kind == Some(Kind::Session) && refused.is_none();
    let over = conn == exchange && !goes_on;
    world.send(conn, End::Client, Message::Answer { exchange, refused, body });
    if over {
        world.close(conn, End::Server);
    }
}

/// The agent exits. After a requested exit an operator wipes the machine for a new agent.
fn exit(world: &mut World, index: usize, message: &str, failed: bool) {
    world.trace_line(|| format!("A{index} exits: {message}"));
    crash(world, index);
    if !failed {
        host::expect_empty(world, index);
        wipe(world, index);
    }
    let wait = between(&mut world.rng, 100 * MS, 5 * SECOND);
    world.queue.after(wait, Event::Start { node: Node::Agent(index) });
}

/// Checks the agent's state after every turn.
pub(crate) fn check(world: &mut World, index: usize) {
    if let Some(machine) = &world.agents[index].process.machine {
        let (host, now) = (&world.agents[index].host, world.queue.now());
        world.checks.observe(&Fact::AgentTurn { agent: index, machine, host, now });
    }
}
