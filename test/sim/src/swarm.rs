//! The manager of `tepui swarm` with everything it talks to: the real machine on a simulated disk, the real client session
//! ([`session`]), a Docker engine per agent ([`engine`]), the manager's connections to engines ([`watch`]) and clients of
//! the Docker API ([`client`]).
//!
//! The manager is killed between any two of its turns and writes; only synced records survive. Engines outlive agents and
//! their executors. Absent: the front end's HTTP; clients act on the published view as the front end does.

mod client;
pub(crate) mod engine;
mod heal;
mod session;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use tepui_fsm::{Item, Mono, Now, Rng as MachineRng, Wall, unlimited};
use tepui_swarm::{Command, Config, Effect, Input, Manage, Manager, View};
use tepui_types::AgentId;

use crate::chance::{MS, Rng, SECOND, between, mostly};
use crate::check::Fact;
use crate::event::Event;
use crate::net::{Client, End};
use crate::plan::Plan;
use crate::process::{Process, Schedule};
use crate::users;
use crate::world::World;
use client::Clients;
pub(crate) use client::KINDS_LABEL;
pub(crate) use engine::CREATE_LABEL;
use engine::Engine;
pub(crate) use heal::{advance, begin_healing, unsettled};
use session::Link;
pub(crate) use session::{closed, on_event};
use watch::Watch;

/// Inputs of one turn.
const TURN_INPUTS_MAX: u64 = 8;
/// The user of executors: every framework may use it.
const USER: &str = "nobody";
const EXECUTOR: &str = "/bin/tepui";

pub(crate) struct Swarm {
    pub(crate) process: Process<Manager>,
    manage: Manage,
    link: Link,
    /// Published last, by this or an earlier process.
    view: Arc<View>,
    /// By the index of the agent on the same machine.
    engines: Vec<Engine>,
    watches: BTreeMap<AgentId, Watch>,
    clients: Clients,
    /// Partitioned from the master until then.
    pub(crate) cut_off_until: u64,
    rest: heal::Rest,
}

/// A planned step of the manager or of what surrounds it.
#[derive(Debug)]
pub(crate) enum Step {
    Start,
    Turn {
        life: u32,
        at: u64,
    },
    Synced {
        life: u32,
    },
    /// The session's deadline.
    Wake {
        life: u32,
    },
    /// Offers of lost calls are declined.
    Decline {
        life: u32,
    },
    Engine(engine::Step),
    Watch(watch::Step),
    Client(client::Step),
}

impl Step {
    /// As recorded histories name it.
    pub(crate) fn name(&self) -> String {
        match self {
            Step::Start => "start".into(),
            Step::Turn { .. } => "turn".into(),
            Step::Synced { .. } => "synced".into(),
            Step::Wake { .. } => "wake".into(),
            Step::Decline { .. } => "decline".into(),
            Step::Engine(step) => step.name(),
            Step::Watch(step) => step.name().into(),
            Step::Client(step) => step.name().into(),
        }
    }
}

impl Swarm {
    pub(crate) fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let roles = ["*", "role0", "role0,role1"][rng.below(3) as usize];
        let revocable = !rng.chance(0.2);
        let options = [
            format!("mesos.role={roles}"),
            format!("mesos.enablerevocable={revocable}"),
            format!("mesos.tasktimeout={}s", between(rng, 2, 20)),
            format!("mesos.offertimeout={}s", between(rng, 2, 30)),
        ];
        let options = options.into_iter().flat_map(|option| ["--cluster-opt".into(), option]);
        let strategy = ["spread", "binpack", "random"][rng.below(3) as usize];
        let words = ["manage".into(), "--strategy".into(), strategy.into()].into_iter().chain(options);
        let words: Vec<String> = words.chain(["master:5050".into()]).collect();
        let Ok(Command::Manage(manage)) = Command::parse(&words, |_| None) else {
            panic!("these are options of the manager: {words:?}");
        };
        let view = Manager::recover(config(&manage), [], MachineRng::seeded(0)).expect("no records").view();
        let principal = plan.authorization.then_some(users::TRUSTED);
        Swarm {
            process: Process::new(),
            link: Link::new(&manage, principal),
            manage,
            view: Arc::new(view),
            engines: (0..plan.agents).map(|_| Engine::new()).collect(),
            watches: BTreeMap::new(),
            clients: Clients::default(),
            cut_off_until: 0,
            rest: heal::Rest::Working,
        }
    }

    /// The id of its framework, once it has one.
    pub(crate) fn framework_id(&self) -> Option<&str> {
        self.link.framework_id()
    }
}

fn config(manage: &Manage) -> Config {
    let cluster = &manage.cluster;
    Config {
        scheduler: manage.scheduler.clone(),
        task_timeout: cluster.task_timeout,
        offer_timeout: cluster.offer_timeout,
        refuse_timeout: cluster.refuse_timeout,
        idle_refuse_timeout: cluster.idle_refuse_timeout(),
        revocable: cluster.revocable,
    }
}

fn plan(world: &mut World, wait: u64, step: Step) {
    world.queue.after(wait, Event::Swarm(step));
}

/// The manager and its clients begin; nothing in worlds without them.
pub(crate) fn begin(world: &mut World) {
    if world.swarm.is_some() {
        world.source.enter(|| "begin:swarm".into());
        let wait = between(&mut world.rng, 10 * MS, 3 * SECOND);
        plan(world, wait, Step::Start);
        client::begin(world);
    }
}

pub(crate) fn step(world: &mut World, step: Step) {
    match step {
        Step::Start => start(world),
        Step::Turn { life, at } => turn(world, life, at),
        Step::Synced { life } => synced(world, life),
        Step::Wake { life } => session::wake(world, life),
        Step::Decline { life } => session::decline_lost(world, life),
        Step::Engine(step) => engine::step(world, step),
        Step::Watch(step) => watch::step(world, step),
        Step::Client(step) => client::step(world, step),
    }
}

fn start(world: &mut World) {
    let seed = world.rng.next_u64();
    let Some(swarm) = world.swarm.as_mut().filter(|swarm| !swarm.process.is_up()) else { return };
    let records = swarm.process.disk.clone();
    let manager = Manager::recover(config(&swarm.manage), records, MachineRng::seeded(seed));
    let manager = manager.expect("the manager wrote its records");
    swarm.link.restart(manager.framework_id());
    swarm.view = Arc::new(manager.view());
    swarm.process.start(manager);
    let life = swarm.process.life;
    world.trace_line(|| "swarm starts".into());
    session::wake(world, life);
    // Its first turn connects to the engines of its records.
    plan_turn_at(world, world.queue.now() + MS);
}

/// The process dies; its records and its containers do not. Clients lose their connections.
pub(crate) fn crash(world: &mut World) {
    let lucky = world.rng.below(4) as usize;
    let Some(swarm) = world.swarm.as_mut().filter(|swarm| swarm.process.is_up()) else { return };
    swarm.process.crash(lucky);
    swarm.watches.clear();
    swarm.clients.disconnect();
    world.counts.swarm_crashes += 1;
    world.trace_line(|| "swarm crashes".into());
    for conn in world.conns_where(|conn| matches!(conn.client, Client::Swarm { .. })) {
        world.drop_end(conn, End::Client, 2 * SECOND);
    }
    let wait = mostly(&mut world.rng, 50 * MS, 3 * SECOND, 0.2, 30 * SECOND);
    plan(world, wait, Step::Start);
}

/// An executor of a container dies without a word; its container goes on.
pub(crate) fn kill_executor(world: &mut World) {
    let hosts = world.agents.iter().enumerate();
    let all: Vec<_> =
        hosts.flat_map(|(agent, node)| node.host.holders().map(move |id| (agent, id))).collect();
    let chosen = crate::chance::pick(&mut world.rng, &all).map(|(agent, id)| (*agent, (*id).clone()));
    if let Some((agent, id)) = chosen {
        world.counts.killed_holders += 1;
        world.queue.after(MS, Event::ContainerEnds { agent, id, status: 9, oom: false });
    }
}

/// An engine stops, with all of its containers, and comes back.
pub(crate) fn restart_engine(world: &mut World) {
    let machine = crate::fault::any_agent(world);
    let wait = mostly(&mut world.rng, 200 * MS, 5 * SECOND, 0.2, 40 * SECOND);
    world.counts.engine_restarts += 1;
    engine::stop(world, machine, wait);
}

/// The machine of an agent powers off, and its engine with it.
pub(crate) fn power_off(world: &mut World, machine: usize) {
    if world.swarm.is_some() {
        let wait = between(&mut world.rng, SECOND, 20 * SECOND);
        engine::stop(world, machine, wait);
    }
}

/// The manager and the master cannot reach each other.
pub(crate) fn cut_off(world: &mut World, until: u64) {
    if let Some(swarm) = &mut world.swarm {
        swarm.cut_off_until = until;
    }
}

/// The manager's connections to an engine break.
pub(crate) fn break_watch(world: &mut World) {
    let machine = crate::fault::any_agent(world);
    watch::lose(world, machine);
}

fn input(world: &mut World, input: Input) {
    let Some(swarm) = &mut world.swarm else { return };
    swarm.process.on_event(input);
    plan_turn(world);
}

/// Soon if it has mail, else when its next timer is due.
fn plan_turn(world: &mut World) {
    let Some(swarm) = &world.swarm else { return };
    let now = world.queue.now();
    let Schedule { has_mail, deadline, .. } = swarm.process.schedule();
    match (has_mail, deadline) {
        (true, _) => {
            let at = now + mostly(&mut world.rng, 1000, MS, 0.005, 300 * MS);
            plan_turn_at(world, at);
        }
        (false, Some(deadline)) => plan_turn_at(world, deadline.0.max(now + MS)),
        (false, None) => (),
    }
}

fn plan_turn_at(world: &mut World, at: u64) {
    let Some(swarm) = &mut world.swarm else { return };
    if swarm.process.wake.is_some_and(|wake| wake <= at) {
        return;
    }
    swarm.process.wake = Some(at);
    let life = swarm.process.life;
    world.queue.at(at, Event::Swarm(Step::Turn { life, at }));
}

fn turn(world: &mut World, life: u32, at: u64) {
    let now = Now { mono: Mono(world.queue.now()), wall: Wall(world.queue.now()) };
    let inputs_max = 1 + world.rng.below(TURN_INPUTS_MAX) as usize;
    let Some(swarm) = &mut world.swarm else { return };
    if swarm.process.life != life || swarm.process.wake != Some(at) {
        return;
    }
    swarm.process.wake = None;
    for input in swarm.process.mail().take(inputs_max) {
        world.checks.observe(&Fact::SwarmInput(input));
        world.trace.line(world.queue.now(), || format!("swarm <- {}", show(input)));
    }
    let (short, budget_rng) = (world.plan.short_turns, &mut world.budget_rng);
    let mut budget = || !short || budget_rng.chance(0.5);
    match short {
        true => swarm.process.turn(now, inputs_max, &mut budget),
        false => swarm.process.turn(now, inputs_max, &mut unlimited),
    };
    if let Some(machine) = &swarm.process.machine {
        world.checks.observe(&Fact::SwarmTurn(&machine.view()));
    }
    release(world);
    plan_turn(world);
}

/// Releases effects that may become visible, and starts to write pending records.
fn release(world: &mut World) {
    let sabotage = world.sabotage;
    let Some(swarm) = &mut world.swarm else { return };
    let effects = swarm.process.ready(|_| sabotage.bypasses_swarm_barrier());
    effects.into_iter().for_each(|effect| make_visible(world, effect));
    let Some(swarm) = &mut world.swarm else { return };
    if swarm.process.begin_sync() {
        let life = swarm.process.life;
        // Effects that do not wait for a record are noticed if that is lost: few crashes would hit a fast disk.
        let slow = if sabotage.bypasses_swarm_barrier() { 0.5 } else { world.plan.slow_disk };
        let wait = mostly(&mut world.rng, MS / 10, 5 * MS, slow, 3 * SECOND);
        plan(world, wait, Step::Synced { life });
    }
}

fn synced(world: &mut World, life: u32) {
    let sabotage = world.sabotage;
    let Some(swarm) = &mut world.swarm else { return };
    if swarm.process.life != life || !swarm.process.is_up() {
        return;
    }
    for item in swarm.process.synced(|record| sabotage.loses_swarm_record(record)) {
        match item {
            Item::Record(record) => world.trace_line(|| format!("swarm stored: {record}")),
            Item::Effect(effect) => make_visible(world, effect),
        }
    }
    release(world);
}

fn make_visible(world: &mut World, effect: Effect) {
    let Some(swarm) = world.swarm.as_mut().filter(|swarm| swarm.process.is_up()) else {
        return; // An earlier effect terminated the process.
    };
    if let Effect::Publish(view) = effect {
        swarm.view = view;
        return;
    }
    let effect = world.sabotage.forge_kind(effect);
    world.trace_line(|| format!("swarm -> {effect}"));
    world.checks.observe(&Fact::SwarmEffect(&effect));
    match effect {
        Effect::Publish(_) => (), // Above.
        Effect::Reply { request, answer } => client::on_reply(world, request, answer),
        Effect::Connect { agent, address } => watch::connect(world, agent, &address),
        Effect::Disconnect(agent) => watch::disconnect(world, &agent),
        Effect::Engine { agent, operation } => {
            if let Some(machine) = watch::machine_of(world, &agent) {
                engine::request(world, machine, engine::Request::Operate(operation));
            }
        }
        Effect::Accept(launch) => session::accept(world, *launch),
        Effect::Decline { .. }
        | Effect::Revive
        | Effect::Acknowledge { .. }
        | Effect::Kill { .. }
        | Effect::Reconcile(_) => session::send(world, effect),
    }
}

/// One line of a trace.
fn show(input: &Input) -> String {
    use tepui_swarm::EngineEvent;
    match input {
        Input::Offers(offers) => {
            let offers = offers.iter().map(|it| format!("{} of {}: {}", it.id, it.agent, it.resources));
            format!("offers {}", offers.collect::<Vec<_>>().join(", "))
        }
        Input::Engine { agent, event: EngineEvent::Up(engine) } => {
            let shown = engine
                .occupants
                .iter()
                .map(|it| format!("{}{}", it.name, if it.is_running { "+" } else { "" }));
            format!("engine {agent} up {:?}", shown.collect::<Vec<_>>())
        }
        Input::Create { request, name, .. } => format!("create {} {name:?}", request.0),
        Input::Update(update) => {
            let id = update.container.as_ref().map(|(id, _)| id.trim_start_matches('0'));
            format!("update {} {:?} {:?} {id:?} {}", update.task, update.state, update.reason, update.message)
        }
        other => format!("{other:?}"),
    }
}
