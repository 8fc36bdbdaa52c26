//! Everything the master owns: the published state, the registry, the allocator, and indexes over them; look-ups and
//! sending.
//!
//! Invariant: everything indexed here is in `state`, and the other way round. Absent: decisions (handlers) and the
//! dispatch of inputs (`machine`).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_allocator::Allocator;
use tepui_fsm::{Deadlines, Mono, Now, Outbox, Rng};
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::{master, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::{Operation as Record, Registry};
use tepui_types::{AgentId, Answer, ConnId, FrameworkId, OfferId, Rejection, TaskId};

use crate::state::transition::Transition;
use crate::state::{Agent, Framework, Liveness, Map, Offers, Operations, Recent, State, Tallies, Task};
use crate::values::counters::Counters;
use crate::values::explain::Inquiries;
use crate::values::isolations::Isolations;
use crate::values::terminal_acknowledgements::TerminalAcknowledgements;
use crate::values::timers::Timer;
use crate::{Config, Effect};

pub(crate) type Out = Outbox<Master>;

/// The answer to a call of an unknown type.
pub(crate) const NOT_IMPLEMENTED: &str = "501 Not Implemented.";

/// The master's context: its complete state. Its decisions go to the outbox.
#[derive(Debug)]
pub struct Master {
    pub(crate) config: Config,
    pub(crate) state: State,
    pub(crate) registry: Registry,
    pub(crate) allocator: Allocator,
    pub(crate) rng: Rng,
    pub(crate) timers: Deadlines<Timer>,
    /// The subscriber of a connection.
    pub(crate) schedulers: BTreeMap<ConnId, FrameworkId>,
    /// Which agent is at the other end of a connection.
    pub(crate) links: BTreeMap<ConnId, AgentId>,
    /// Operators' event streams, oldest first.
    pub(crate) operators: VecDeque<ConnId>,
    pub(crate) operations: Operations,
    pub(crate) offers: Offers,
    pub(crate) inverse_offers: Offers,
    /// Agents that are draining, registered or not.
    pub(crate) draining: BTreeSet<AgentId>,
    /// How many tasks and executors a framework has on each agent.
    pub(crate) footprint: BTreeMap<FrameworkId, BTreeMap<AgentId, usize>>,
    /// The unreachable tasks of frameworks, by the agent they were on.
    pub(crate) unreachable_tasks: BTreeMap<AgentId, BTreeSet<(FrameworkId, TaskId)>>,
    /// Tasks with a pending kill: sent again to an agent that re-registers.
    pub(crate) kills: BTreeMap<AgentId, BTreeMap<(FrameworkId, TaskId), Option<pb::KillPolicy>>>,
    pub(crate) ends: TerminalAcknowledgements,
    pub(crate) isolations: Isolations,
    /// The agent registered under each pid.
    pub(crate) pids: BTreeMap<Arc<str>, AgentId>,
    pub(crate) liveness: Liveness,
    pub(crate) inquiries: Inquiries,
    /// Since when more is lent of an agent than is idle.
    pub(crate) wanted_back: BTreeMap<AgentId, Mono>,
    pub(crate) serial: Serial,
    /// What must be recorded before anything else: set once, by `new`.
    pub(crate) first_records: Vec<Record>,
    /// Something readers can see changed since the last snapshot.
    pub(crate) changed: bool,
    /// Something was counted since then.
    pub(crate) counted: bool,
}

/// Counters behind the ids this master gives.
#[derive(Debug, Default)]
pub(crate) struct Serial {
    framework: u64,
    agent: u64,
    offer: u64,
}

impl Master {
    /// What readers would see if it were published now.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the allocator's books are right; what is wrong if not.
    pub fn audit(&self) -> Result<(), String> {
        self.allocator.audit()
    }

    /// Makes a change durable before any later effect.
    pub(crate) fn record(&mut self, record: Record, out: &mut Out) {
        self.registry.apply(&record);
        out.record(record);
    }
}

/// Look-ups and changes: a `_mut` look-up marks the snapshot as changed.
impl Master {
    pub(crate) fn framework(&self, id: &FrameworkId) -> Option<&Arc<Framework>> {
        self.state.frameworks.get(id)
    }

    pub(crate) fn framework_mut(&mut self, id: &FrameworkId) -> Option<&mut Framework> {
        self.changed = true;
        self.state.frameworks.get_mut(id).map(Arc::make_mut)
    }

    pub(crate) fn agent(&self, id: &AgentId) -> Option<&Arc<Agent>> {
        self.state.agents.get(id)
    }

    pub(crate) fn agent_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        self.changed = true;
        self.state.agents.get_mut(id).map(Arc::make_mut)
    }

    /// A live task.
    pub(crate) fn task(&self, framework_id: &FrameworkId, task_id: &TaskId) -> Option<&Arc<Task>> {
        self.framework(framework_id)?.tasks.get(task_id)
    }

    /// Registered, or remembered by the registry in whatever way.
    fn is_known_agent(&self, id: &AgentId) -> bool {
        let registry = &self.registry;
        self.state.agents.contains_key(id)
            || registry.agents.contains_key(id)
            || registry.unreachable.contains_key(id)
            || registry.gone.contains_key(id)
    }

    pub(crate) fn is_partition_aware(&self, framework_id: &FrameworkId) -> bool {
        self.framework(framework_id).is_some_and(|framework| framework.is_partition_aware())
    }
}

/// Sending.
impl Master {
    pub(crate) fn answer(conn: ConnId, answer: Answer<master::Response>, out: &mut Out) {
        out.effect(Effect::Answer { conn, answer });
    }

    pub(crate) fn reject(conn: ConnId, refusal: Rejection, out: &mut Out) {
        out.effect(Effect::Answer { conn, answer: Answer::Refused(refusal) });
    }

    /// Sends to a framework if it is connected; otherwise the event is dropped.
    pub(crate) fn send_to_framework(&self, id: &FrameworkId, event: Arc<scheduler::Event>, out: &mut Out) {
        if let Some(conn) = self.framework(id).and_then(|framework| framework.conn()) {
            out.effect(Effect::Scheduler { conn, event });
        }
    }

    /// Sends to every connected framework.
    pub(crate) fn send_to_frameworks(&self, event: &Arc<scheduler::Event>, out: &mut Out) {
        for conn in self.schedulers.keys() {
            out.effect(Effect::Scheduler { conn: *conn, event: Arc::clone(event) });
        }
    }

    /// Sends to an agent if it is connected; otherwise its next SUBSCRIBE settles the matter.
    pub(crate) fn send_to_agent(&self, id: &AgentId, event: link::Event, out: &mut Out) {
        if let Some(conn) = self.agent(id).and_then(|agent| agent.conn()) {
            out.effect(Effect::Agent { conn, event: Box::new(event) });
        }
    }

    /// Passes a transition to the log.
    pub(crate) fn log(transition: Transition, out: &mut Out) {
        out.effect(Effect::Transition(Box::new(transition)));
    }

    /// Sends to operators; the event is made only if there are subscribers.
    pub(crate) fn notify(&self, event: impl FnOnce() -> master::Event, out: &mut Out) {
        if !self.operators.is_empty() {
            out.effect(Effect::Operator { event: Arc::new(event()) });
        }
    }
}

/// Giving ids.
impl Master {
    pub(crate) fn next_framework_id(&mut self) -> FrameworkId {
        loop {
            let id = FrameworkId::new(format!("{}-{:04}", self.state.master_info.id, self.serial.framework));
            self.serial.framework += 1;
            // A framework may bring any id, also one that looks like ours.
            if !self.state.frameworks.contains_key(&id) && !self.state.completed_frameworks.contains(&id) {
                return id;
            }
        }
    }

    pub(crate) fn next_agent_id(&mut self) -> AgentId {
        loop {
            let id = AgentId::new(format!("{}-S{}", self.state.master_info.id, self.serial.agent));
            self.serial.agent += 1;
            // An agent may come with any id, also one that looks like ours.
            if !self.is_known_agent(&id) {
                return id;
            }
        }
    }

    pub(crate) fn next_offer_id(&mut self) -> OfferId {
        let id = OfferId::new(format!("{}-O{}", self.state.master_info.id, self.serial.offer));
        self.serial.offer += 1;
        id
    }
}

/// A state without anything in it.
pub(crate) fn empty_state(config: &Config, now: Now) -> State {
    State {
        version: 0,
        master_info: Arc::new(config.master_info.clone()),
        started_at: now.wall,
        elected_at: now.wall,
        agents: Map::new_sync(),
        recovered_agents: Map::new_sync(),
        unreachable_agents: Map::new_sync(),
        gone_agents: Map::new_sync(),
        deactivated_agents: Arc::default(),
        frameworks: Map::new_sync(),
        completed_frameworks: Recent::new(),
        tallies: Tallies::default(),
        offers: Map::new_sync(),
        inverse_offers: Map::new_sync(),
        counters: Counters::default(),
        framework_counters: Map::new_sync(),
        weights: Map::new_sync(),
        offer_filters: Map::new_sync(),
        quotas: Map::new_sync(),
        schedule: Arc::default(),
        machines: Map::new_sync(),
        disk_pressure: None,
        roles: config.roles.clone().map(|roles: Vec<String>| Arc::new(roles)),
        slack_opt_out: config.allocation_slack.then(|| Arc::new(config.allocation_slack_opt_out.clone())),
    }
}
