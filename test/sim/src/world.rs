//! The world: one clock, one generator, one queue, and all simulated entities.
//!
//! `run` dispatches one event after the other; handlers change the world and add events to the queue. Absent: anything that
//! differs between two runs of the same seed.

use crate::agent::AgentNode;
use crate::chance::{Rng, Source};
use crate::check::{Checks, Violation};
use crate::counts::Counts;
use crate::election::{self, Etcd, MasterNode};
use crate::event::Event;
use crate::framework::Framework;
use crate::framework::service::Service;
use crate::heal;
use crate::history::MAIN;
use crate::net::{End, Message, Net, Node};
use crate::plan::Plan;
use crate::process::Hardware;
use crate::sabotage::Sabotage;
use crate::swarm::{self, Swarm};
use crate::trace::Trace;
use crate::{agent, caller, disk, executor, fault, framework, host, master, measure};

/// More events in one run indicate an endless loop.
const EVENTS_MAX: u64 = 2_000_000;

/// Makes another seed of a seed.
const BUDGET_SEED: u64 = 0x7475_726e_735f_3033;

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) sabotage: Sabotage,
    pub(crate) source: Source,
    pub(crate) rng: Rng,
    /// For the length of turns: seeds without short turns do not use it.
    pub(crate) budget_rng: Rng,
    pub(crate) queue: Queue,
    pub(crate) net: Net,
    pub(crate) masters: Vec<MasterNode>,
    pub(crate) etcd: Etcd,
    /// Counts the terms of masters: no two have the same name.
    pub(crate) terms: u32,
    pub(crate) agents: Vec<AgentNode>,
    pub(crate) frameworks: Vec<Framework>,
    pub(crate) swarm: Option<Box<Swarm>>,
    pub(crate) callers: caller::Callers,
    pub(crate) phase: Phase,
    pub(crate) checks: Checks,
    pub(crate) audits: Audits,
    pub(crate) counts: Counts,
    pub(crate) trace: Trace,
}

/// Turns that changed nothing a reader of the master sees, of which one is audited: the allocator has state of its own.
const QUIET_TURNS: u64 = 16;

/// When the master's counters are compared with a walk over its state, which costs more than the run itself. Errors
/// persist, so that a later audit finds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Audits {
    every: u64,
    turns: u64,
    quiet_turns: u64,
    /// Master, life and version of the state of the turn before.
    seen: (usize, u32, u64),
}

impl Audits {
    pub(crate) fn every(turns: u64) -> Self {
        Audits { every: turns.max(1), turns: 0, quiet_turns: 0, seen: (0, 0, 0) }
    }

    /// Asked after each turn of this master, in this life, with the version of its state.
    pub(crate) fn is_due(&mut self, master: usize, life: u32, version: u64) -> bool {
        let now = (master, life, version);
        if std::mem::replace(&mut self.seen, now) == now {
            self.quiet_turns += 1;
            return self.quiet_turns.is_multiple_of(QUIET_TURNS);
        }
        self.turns += 1;
        self.turns.is_multiple_of(self.every)
    }
}

pub(crate) type Queue = crate::queue::Queue<Event>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Faults,
    /// `until`: by then the stage must be done.
    Healing {
        stage: Stage,
        until: u64,
    },
    Over,
}

/// How far the world has healed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Settling,
    /// Settled once; since then all processes were restarted.
    Restarted,
    /// Frameworks revive.
    Offering,
}

impl World {
    pub(crate) fn new(source: Source, sabotage: Sabotage, trace: Trace, audits: Audits) -> Self {
        let mut rng = source.rng(MAIN, 0);
        let plan = Plan::draw(&source, &mut rng);
        let agents = (0..plan.agents).map(|index| {
            source.enter(|| format!("agent:A{index}"));
            AgentNode::new(index, &mut rng)
        });
        let agents = agents.collect();
        let frameworks = (0..plan.frameworks).map(|index| {
            source.enter(|| format!("framework:F{index}"));
            Framework::new(index, &plan, &mut rng)
        });
        let mut frameworks: Vec<Framework> = frameworks.collect();
        if plan.slack || plan.oversubscribed_cpus.is_some() {
            frameworks.iter_mut().step_by(2).for_each(Framework::borrow_resources);
        }
        let swarm = plan.swarm.is_some().then(|| {
            source.enter(|| "swarm".into());
            Box::new(Swarm::new(&plan, &mut rng))
        });
        if Service::is_drawn(&source) {
            let mut framework = Framework::new(frameworks.len(), &plan, &mut rng);
            framework.service = Some(Box::new(Service::new(&plan, &source)));
            frameworks.push(framework);
        }
        let counts = Counts { large: u64::from(plan.agents >= 20), ..Counts::default() };
        let (masters, lease) = (plan.masters, plan.lease);
        World {
            plan,
            sabotage,
            rng,
            budget_rng: source.rng("patience", BUDGET_SEED),
            queue: Queue::new(),
            net: Net::default(),
            masters: (0..masters).map(|_| MasterNode::new()).collect(),
            etcd: Etcd::new(lease),
            terms: 0,
            agents,
            frameworks,
            swarm,
            callers: caller::Callers::new(&source),
            phase: Phase::Faults,
            checks: Checks::new(),
            audits,
            counts,
            trace,
            source,
        }
    }

    /// Lives until everything has healed or something is wrong.
    pub(crate) fn run(&mut self) -> Result<(), Violation> {
        self.begin();
        while self.phase != Phase::Over {
            let Some(event) = self.queue.next() else {
                return Err(Violation::new("heals", "nothing is left that could happen".into()));
            };
            self.counts.events += 1;
            self.source.enter(|| event.name(&self.net));
            self.dispatch(event);
            if let Some(violation) = self.checks.violation() {
                return Err(violation);
            }
            if self.counts.events > EVENTS_MAX {
                return Err(Violation::new("heals", format!("more than {EVENTS_MAX} events")));
            }
        }
        Ok(())
    }

    fn begin(&mut self) {
        for index in 0..self.masters.len() {
            self.queue.at(0, Event::Start { node: Node::Master(index) });
        }
        for index in 0..self.agents.len() {
            self.queue.at(0, Event::Start { node: Node::Agent(index) });
            measure::plan(self, index);
        }
        for index in 0..self.frameworks.len() {
            self.source.enter(|| format!("begin:F{index}"));
            framework::start(self, index);
        }
        swarm::begin(self);
        fault::plan_all(self);
        self.source.enter(|| "begin:callers".into());
        caller::plan(self);
        self.queue.at(self.plan.faults_for, Event::Heal);
    }

    fn dispatch(&mut self, event: Event) {
        match event {
            Event::Turn { node, life, at } => self.turn(node, life, at),
            Event::Synced { node, life } => self.synced(node, life),
            Event::Start { node: Node::Master(index) } => election::start(self, index),
            Event::Start { node: Node::Agent(index) } => agent::start(self, index),
            Event::Deliver { conn, to, message } => self.deliver(conn, to, message),
            Event::Broken { conn, to } => self.on_disconnect(conn, to),
            Event::Unreachable { agent, life, link } => agent::unreachable(self, agent, life, link),
            Event::ContainerStarts { agent, id, fails } => host::on_start(self, agent, &id, fails),
            Event::ContainerEnds { agent, id, status, oom } => host::on_exit(self, agent, &id, status, oom),
            Event::Container { agent, life, event } => agent::container_event(self, agent, life, event),
            Event::Executor { agent, container, step } => executor::step(self, agent, &container, step),
            Event::Framework { index, life, step } => framework::step(self, index, life, step),
            Event::Swarm(step) => swarm::step(self, step),
            Event::Measure { agent } => measure::sample(self, agent),
            Event::Election { master, step } => election::step(self, master, step),
            Event::Caller(turn) => caller::step(self, turn),
            Event::Fault(fault) => fault::inject(self, fault),
            Event::Room { node } => disk::check_room(self, node),
            Event::Heal => heal::begin(self),
            Event::Settled => heal::check_progress(self),
        }
    }

    /// Frameworks only kill and reconcile.
    pub(crate) fn is_settling(&self) -> bool {
        matches!(self.phase, Phase::Healing { stage: Stage::Settling | Stage::Restarted, .. })
    }

    pub(crate) fn is_healing(&self) -> bool {
        matches!(self.phase, Phase::Healing { .. })
    }

    /// For sessions, which count from the beginning of the world.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.queue.now())
    }

    pub(crate) fn trace_line(&mut self, line: impl FnOnce() -> String) {
        self.trace.line(self.queue.now(), line);
    }

    pub(crate) fn life_of(&self, node: Node) -> u32 {
        match node {
            Node::Master(index) => self.masters[index].process.life,
            Node::Agent(index) => self.agents[index].process.life,
        }
    }

    pub(crate) fn is_up(&self, node: Node) -> bool {
        match node {
            Node::Master(index) => self.masters[index].process.is_up(),
            Node::Agent(index) => self.agents[index].process.is_up(),
        }
    }

    pub(crate) fn hardware(&self, node: Node) -> &Hardware {
        match node {
            Node::Master(index) => &self.masters[index].process.hardware,
            Node::Agent(index) => &self.agents[index].process.hardware,
        }
    }

    pub(crate) fn hardware_mut(&mut self, node: Node) -> &mut Hardware {
        match node {
            Node::Master(index) => &mut self.masters[index].process.hardware,
            Node::Agent(index) => &mut self.agents[index].process.hardware,
        }
    }

    /// Delivers a message to the process, framework or executor at that end.
    pub(crate) fn deliver_to(&mut self, conn: tepui_types::ConnId, to: End, message: Message) {
        let Some(open) = self.net.conns.get(&conn) else { return };
        let (client, server) = (open.client.clone(), open.server);
        match (to, server) {
            (End::Server, Node::Master(index)) => master::on_event(self, index, conn, message),
            (End::Server, Node::Agent(index)) => agent::on_event(self, index, conn, message),
            (End::Client, _) => self.deliver_to_client(conn, client, message),
        }
    }
}
