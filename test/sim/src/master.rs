//! The master's process: the real machine between a simulated network and a simulated disk.

use std::time::Duration;

use tepui_core_master::{Config, Effect, Input, Master};
use tepui_fsm::Item;
use tepui_proto::mesos::v1 as pb;
use tepui_registry::Registry;
use tepui_types::{AgentId, Answer, ConnId};

use crate::check::Fact;
use crate::disk;
use crate::election;
use crate::net::{End, Kind, Message, Node};
use crate::show;
use crate::users;
use crate::world::World;

/// A new term from the stored registry.
pub(crate) fn start(world: &mut World, index: usize) {
    let node = Node::Master(index);
    if world.is_up(node) || !disk::may_start(world, node) {
        return;
    }
    let registry = Registry::load(world.masters[index].process.disk.clone()).expect("a master wrote it");
    world.trace_line(|| format!("M{index} starts {}", known(&registry)));
    world.checks.observe(&Fact::MasterRestarts(&registry));
    let config = config(world);
    let now = world.now_of(node);
    let process = &mut world.masters[index].process;
    process.start(Master::new(config, registry, now));
    // A first turn: initial records are written before any input.
    let (at, life) = (world.queue.now(), process.life);
    process.wake = Some(at);
    world.queue.at(at, crate::event::Event::Turn { node, life, at });
    if world.hardware(node).short_until > at {
        disk::plan_room_checks(world, node);
    }
}

fn known(registry: &Registry) -> String {
    let (agents, unreachable, gone) =
        (registry.agents.len(), registry.unreachable.len(), registry.gone.len());
    format!("with {agents} agents, {unreachable} unreachable, {gone} gone")
}

fn config(world: &mut World) -> Config {
    world.terms += 1;
    let term = world.terms;
    let plan = &world.plan;
    let master_info = pb::MasterInfo {
        id: format!("M{term}"),
        port: 5050,
        pid: Some("master@10.0.0.1:5050".into()),
        hostname: Some("master".into()),
        version: Some("1.12.0".into()),
        ..Default::default()
    };
    Config {
        master_info,
        authorizer: users::authorizer(plan, world.sabotage),
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
pub(crate) fn crash(world: &mut World, index: usize) {
    if world.is_up(Node::Master(index)) {
        let lucky = world.rng.below(4) as usize;
        stop(world, index, lucky);
    }
}

/// Of the records being written, the first `written` are on its disk.
pub(crate) fn stop(world: &mut World, index: usize, written: usize) {
    world.trace_line(|| format!("M{index} stops"));
    let written = election::written_at_death(world, index, written);
    for record in world.masters[index].process.crash(written) {
        world.trace_line(|| format!("M{index} stored while it stopped: {record}"));
        world.checks.observe(&Fact::MasterStores(&record));
    }
    for conn in world.conns_where(|conn| conn.server == Node::Master(index)) {
        world.drop_end(conn, End::Server, crate::chance::SECOND);
    }
}

pub(crate) fn input(world: &mut World, index: usize, input: Input) {
    world.trace_line(|| format!("M{index} <- {}", show::master_input(&input)));
    world.masters[index].process.on_event(input);
    world.plan_turn(Node::Master(index));
}

pub(crate) fn on_event(world: &mut World, index: usize, conn: ConnId, message: Message) {
    let received = match message {
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
    input(world, index, received);
}

/// A stream or link was closed by its peer.
pub(crate) fn closed(world: &mut World, index: usize, conn: ConnId, kind: Kind) {
    let received = match kind {
        Kind::Stream => Input::SchedulerClosed { conn },
        Kind::Link => Input::AgentClosed { conn },
        Kind::Calls | Kind::Request | Kind::Session => return,
    };
    input(world, index, received);
}

/// An operator's call to the presumed leader, without a network: the answer does not matter.
pub(crate) fn operator_call(world: &mut World, call: pb::master::Call) {
    let Some(index) = world.find_master() else { return };
    let conn = world.open(Kind::Calls, crate::net::Client::Operator, Node::Master(index));
    input(world, index, Input::Operator { conn, principal: None, call: Box::new(call) });
}

/// An operator marks an agent as gone.
pub(crate) fn mark_gone(world: &mut World, id: &AgentId) {
    let mark = pb::master::call::MarkAgentGone { agent_id: id.to_proto().into(), ..Default::default() };
    let call = pb::master::Call {
        r#type: Some(pb::master::call::Type::MARK_AGENT_GONE),
        mark_agent_gone: mark.into(),
        ..Default::default()
    };
    operator_call(world, call);
}

pub(crate) fn synced(world: &mut World, index: usize) {
    if !world.is_seated(index) {
        world.checks.fail("leaders_write_alone", format!("M{index} writes and does not lead"));
    }
    for item in world.masters[index].process.synced(|_| false) {
        match item {
            Item::Record(record) => {
                world.trace_line(|| format!("M{index} stored: {record}"));
                world.checks.observe(&Fact::MasterStores(&record));
            }
            Item::Effect(effect) => make_visible(world, index, effect),
        }
    }
}

pub(crate) fn release(world: &mut World, index: usize, effects: Vec<Effect>) {
    effects.into_iter().for_each(|effect| make_visible(world, index, effect));
}

/// Effects of a master that may have been replaced are discarded. Effects of one that was replaced without having detected
/// it reach its peers, but the checkers observe only its successor.
fn make_visible(world: &mut World, index: usize, effect: Effect) {
    if !world.is_up(Node::Master(index)) || !election::may_send(world, index) {
        return;
    }
    if world.trace.is_on()
        && let Some(line) = show::master_effect(&effect)
    {
        world.trace_line(|| format!("M{index} -> {line}"));
    }
    if world.is_seated(index) {
        world.checks.observe(&Fact::MasterEffect(&effect));
    }
    perform(world, effect);
}

fn perform(world: &mut World, effect: Effect) {
    match effect {
        Effect::Answer { conn, answer } => answered(world, conn, &answer),
        Effect::OpenScheduler { conn, stream_id } => {
            world.send(conn, End::Client, Message::StreamOpen { stream_id: Some(stream_id) });
        }
        Effect::Scheduler { conn, event } => world.send(conn, End::Client, Message::SchedulerEvent(event)),
        Effect::CloseScheduler { conn } | Effect::CloseAgent { conn } => world.close(conn, End::Server),
        Effect::OpenAgent { .. } => (),
        Effect::Agent { conn, event } | Effect::Kill { conn, event } => {
            world.send(conn, End::Client, Message::LinkEvent(event));
        }
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
    world.send(conn, End::Client, Message::Answer { exchange, refused, body: None });
    if over {
        world.close(conn, End::Server);
    }
}

/// Checks the leader's state after every turn.
pub(crate) fn check(world: &mut World, index: usize) {
    if !world.is_seated(index) {
        return;
    }
    let World { masters, checks, audits, .. } = world;
    let process = &masters[index].process;
    if let Some(master) = &process.machine {
        checks.observe(&Fact::MasterTurn(master));
        if audits.is_due(index, process.life, master.state().version) {
            checks.observe(&Fact::MasterBooks(master));
        }
    }
}
