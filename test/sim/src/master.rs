//! The master's process: the real machine between a simulated network and a simulated disk.

use std::time::Duration;

use tepui_core_master::{Config, Effect, Input, Master};
use tepui_fsm::Item;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::Registry;
use tepui_types::{AgentId, Answer, ConnId};

use crate::check::Fact;
use crate::net::{End, Kind, Message, Node};
use crate::show;
use crate::world::World;

/// A new master over what is on the disk.
pub(crate) fn start(world: &mut World) {
    if world.master.is_up() {
        return;
    }
    let registry = Registry::load(world.master.disk.clone()).expect("the master wrote it");
    world.tell(|| format!("master starts {}", known(&registry)));
    world.checks.see(&Fact::MasterRestarts(&registry));
    let config = config(world);
    let now = world.now();
    world.master.start(Master::new(config, registry, now));
    // A first turn: what it has to record at the start is recorded before anybody speaks to it.
    let at = world.queue.now();
    world.master.wake = Some(at);
    let life = world.master.life;
    world.queue.at(at, crate::event::Event::Turn { node: Node::Master, life, at });
}

fn known(registry: &Registry) -> String {
    let (agents, unreachable, gone) =
        (registry.agents.len(), registry.unreachable.len(), registry.gone.len());
    format!("with {agents} agents, {unreachable} unreachable, {gone} gone")
}

fn config(world: &mut World) -> Config {
    let life = world.master.life + 1;
    let plan = &world.plan;
    let master_info = pb::MasterInfo {
        id: format!("M{life}"),
        port: 5050,
        pid: Some("master@10.0.0.1:5050".into()),
        hostname: Some("master".into()),
        version: Some("1.12.0".into()),
        ..Default::default()
    };
    Config {
        master_info,
        offer_timeout: plan.offer_timeout.map(Duration::from_nanos),
        agent_ping_timeout: Duration::from_nanos(plan.ping_timeout),
        max_agent_ping_timeouts: 3,
        max_completed_tasks_per_framework: plan.history_max,
        max_unreachable_tasks_per_framework: plan.history_max,
        agent_removal_rate_limit: plan.removal_pace.map(|pace| (1, Duration::from_nanos(pace))),
        agent_reregister_timeout: Duration::from_nanos(plan.reregister_timeout),
        seed: world.rng.next_u64(),
        ..Config::default()
    }
}

/// The process dies; its peers notice soon.
pub(crate) fn crash(world: &mut World) {
    if !world.master.is_up() {
        return;
    }
    world.tell(|| "master crashes".into());
    let lucky = world.rng.below(4) as usize;
    for record in world.master.crash(lucky) {
        world.tell(|| format!("master stored while it crashed: {record}"));
        world.checks.see(&Fact::MasterStores(&record));
    }
    for conn in world.conns_where(|conn| conn.server == Node::Master) {
        world.drop_end(conn, End::Server, crate::chance::SECOND);
    }
}

pub(crate) fn hear(world: &mut World, conn: ConnId, message: Message) {
    let input = match message {
        Message::SchedulerCall { exchange, stream_id, call } => {
            Input::Scheduler { conn: exchange, stream_id, principal: None, call }
        }
        Message::AgentCall(call) => Input::Agent { conn, principal: None, call },
        Message::ExecutorCall { .. }
        | Message::ContainerCall(_)
        | Message::LinkOpen
        | Message::StreamOpen { .. }
        | Message::SchedulerEvent(_)
        | Message::LinkEvent(_)
        | Message::ExecutorEvent(_)
        | Message::Answer { .. }
        | Message::Close => return,
    };
    world.tell(|| format!("master <- {}", show::master_input(&input)));
    world.master.hear(input);
    world.plan_turn(Node::Master);
}

/// A stream or link ended from the outside.
pub(crate) fn closed(world: &mut World, conn: ConnId, kind: Kind) {
    let input = match kind {
        Kind::Stream => Input::SchedulerClosed { conn },
        Kind::Link => Input::AgentClosed { conn },
        Kind::Calls | Kind::Request | Kind::Session => return,
    };
    world.tell(|| format!("master <- {}", show::master_input(&input)));
    world.master.hear(input);
    world.plan_turn(Node::Master);
}

/// An operator's call, made without a network in between: the answer does not matter.
pub(crate) fn operator_call(world: &mut World, call: pb::master::Call) {
    if !world.master.is_up() {
        return;
    }
    let conn = world.open(Kind::Calls, crate::net::Client::Operator, Node::Master);
    world.tell(|| format!("master <- operator {:?}", call.r#type));
    world.master.hear(Input::Operator { conn, principal: None, call: Box::new(call) });
    world.plan_turn(Node::Master);
}

/// An operator says that an agent never comes back.
pub(crate) fn mark_gone(world: &mut World, id: &AgentId) {
    let mark = pb::master::call::MarkAgentGone { agent_id: id.to_proto().into(), ..Default::default() };
    let call = pb::master::Call {
        r#type: Some(pb::master::call::Type::MARK_AGENT_GONE),
        mark_agent_gone: mark.into(),
        ..Default::default()
    };
    operator_call(world, call);
}

pub(crate) fn synced(world: &mut World) {
    for item in world.master.synced(|_| false) {
        match item {
            Item::Record(record) => {
                world.tell(|| format!("master stored: {record}"));
                world.checks.see(&Fact::MasterStores(&record));
            }
            Item::Effect(effect) => make_visible(world, effect),
        }
    }
}

pub(crate) fn make_visible(world: &mut World, effect: Effect) {
    if let Some(line) = show::master_effect(&effect) {
        world.tell(|| format!("master -> {line}"));
    }
    world.checks.see(&Fact::MasterSays(&effect));
    match effect {
        Effect::Answer { conn, answer } => answered(world, conn, &answer),
        Effect::OpenScheduler { conn, stream_id } => {
            world.send(conn, End::Client, Message::StreamOpen { stream_id: Some(stream_id) });
        }
        Effect::Scheduler { conn, event } => world.send(conn, End::Client, Message::SchedulerEvent(event)),
        Effect::CloseScheduler { conn } | Effect::CloseAgent { conn } => world.close(conn, End::Server),
        Effect::OpenAgent { .. } => (),
        Effect::Agent { conn, event } => world.send(conn, End::Client, Message::LinkEvent(event)),
        Effect::OpenOperator { .. }
        | Effect::Operator { .. }
        | Effect::CloseOperator { .. }
        | Effect::SlackTakenBack { .. }
        | Effect::Explained { .. } => (),
        Effect::Halt { why } => panic!("the simulator sets no limit: {why}"),
        Effect::Publish { .. } | Effect::Transition(_) => (),
    }
}

fn answered(world: &mut World, exchange: ConnId, answer: &Answer<pb::master::Response>) {
    let refused = match answer {
        Answer::Accepted | Answer::Ok | Answer::NoContent | Answer::Body(_) => None,
        Answer::Refused(refusal) => Some((refusal.status.code(), refusal.message.clone())),
    };
    let conn = world.end_exchange(exchange);
    let over = conn == exchange;
    world.send(conn, End::Client, Message::Answer { exchange, refused });
    if over {
        world.close(conn, End::Server);
    }
}

/// After every turn: what must hold of the master's books.
pub(crate) fn check(world: &mut World) {
    if let Some(master) = &world.master.machine {
        world.checks.see(&Fact::MasterTurn(master));
    }
}
