//! The manager: which container is which task, where, and who waits for it.
//!
//! Fed with events of the master, of engines and of clients. A record of a container is written before its task is launched, so
//! that a manager that was killed at any moment finds every container again and asks the master about it.
//! Invariants: a name belongs to one container or one pending create; an accepted offer is held no longer; a container
//! that waits is either in the queue or launching, never both.

mod create;
mod effect;
mod input;
mod offers;
mod queue;
mod record;
mod update;
mod view;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Budget, Deadlines, Fsm, Mono, Now, Outbox, Rng};
use tepui_types::{AgentId, OfferId, TaskId};

pub use effect::{Created, Effect, EngineOperation, Launch};
pub use input::{EngineEvent, Input, Offer, RequestId, Update};
pub use record::{AgentRecord, Container, Phase, Record, RecoverError};
pub use view::View;

use crate::agent::{Agent, EngineLink};
use crate::schedule::{ScheduleError, Scheduler};
use crate::spec::ContainerSpec;

/// Creates that wait for offers. One more is rejected.
pub const PENDING_CREATES_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub struct Config {
    pub scheduler: Scheduler,
    /// How long a create waits for a node.
    pub task_timeout: Duration,
    /// How long an offer is held.
    pub offer_timeout: Duration,
    /// How long what is left of an accepted offer is not offered again.
    pub refuse_timeout: Duration,
    /// Whether revocable resources are used.
    pub revocable: bool,
}

#[derive(Debug)]
pub struct Manager {
    config: Config,
    rng: Rng,
    framework_id: Option<String>,
    connected: bool,
    agents: view::Map<AgentId, Arc<Agent>>,
    containers: view::Map<TaskId, Arc<Container>>,
    /// Of containers and of creates that wait.
    names: BTreeSet<String>,
    /// In the order of their arrival.
    pending: BTreeMap<PendingId, Pending>,
    next_pending: u64,
    launching: BTreeMap<TaskId, Pending>,
    timers: Deadlines<Timer>,
    /// Agents from the records, whose engines are to be connected.
    unconnected: Vec<AgentId>,
    /// Creates to be tried in the next turns.
    untried: VecDeque<PendingId>,
    changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingId(u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Create(PendingId),
    Offer(AgentId, OfferId),
}

/// A container that has no agent yet.
#[derive(Clone, Debug)]
struct Pending {
    /// The client that waits; none after it left, and for a container that is placed again.
    request: Option<RequestId>,
    /// The client left before the container was there: nobody wants it.
    abandoned: bool,
    name: Option<String>,
    spec: Arc<ContainerSpec>,
    /// None: waits until there is a node.
    deadline: Option<Mono>,
    error: Option<ScheduleError>,
    /// The task whose container is placed again after its node failed; it ran, so it is started again.
    replaces: Option<TaskId>,
}

impl Manager {
    /// A manager that continues from its records; without any, a new one.
    pub fn recover(
        config: Config,
        records: impl IntoIterator<Item = (String, Vec<u8>)>,
        rng: Rng,
    ) -> Result<Self, RecoverError> {
        let mut manager = Self {
            config,
            rng,
            framework_id: None,
            connected: false,
            agents: view::Map::new_sync(),
            containers: view::Map::new_sync(),
            names: BTreeSet::new(),
            pending: BTreeMap::new(),
            next_pending: 0,
            launching: BTreeMap::new(),
            timers: Deadlines::new(),
            unconnected: Vec::new(),
            untried: VecDeque::new(),
            changed: true,
        };
        for (key, value) in records {
            match record::read(&key, &value)? {
                record::Stored::Framework(id) => manager.framework_id = Some(id),
                record::Stored::Agent(agent) => manager.adopt_agent(agent),
                record::Stored::Container(container) => manager.adopt(*container)?,
            }
        }
        Ok(manager)
    }

    pub fn framework_id(&self) -> Option<&str> {
        self.framework_id.as_deref()
    }

    pub fn view(&self) -> View {
        View {
            framework_id: self.framework_id.clone(),
            connected: self.connected,
            agents: self.agents.clone(),
            containers: self.containers.clone(),
            pending: self.pending.len(),
        }
    }

    fn adopt_agent(&mut self, record: AgentRecord) {
        let id = AgentId::new(record.id);
        self.agents
            .insert_mut(id.clone(), Arc::new(Agent::new(record.hostname, record.engine, record.socket)));
        self.unconnected.push(id);
    }

    fn adopt(&mut self, container: Container) -> Result<(), RecoverError> {
        self.names.extend(Some(container.occupant.name.clone()).filter(|name| !name.is_empty()));
        if container.phase == Phase::Rescheduling {
            self.requeue_replacement(&container)?;
        }
        self.containers.insert_mut(TaskId::new(&*container.task), Arc::new(container));
        Ok(())
    }

    fn put_container(&mut self, container: Container, out: &mut Outbox<Self>) {
        let container = Arc::new(container);
        self.containers.insert_mut(TaskId::new(&*container.task), container.clone());
        self.changed = true;
        out.record(Record::Container(container));
    }

    fn forget_container(&mut self, task: &TaskId, out: &mut Outbox<Self>) -> Option<Arc<Container>> {
        let container = self.containers.get(task)?.clone();
        self.containers.remove_mut(task);
        self.changed = true;
        out.record(Record::Forgotten(task.clone()));
        Some(container)
    }

    fn agent_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        self.changed = true;
        self.agents.get_mut(id).map(Arc::make_mut)
    }

    fn on_engine(&mut self, id: &AgentId, event: EngineEvent, out: &mut Outbox<Self>) {
        let Some(agent) = self.agent_mut(id) else { return };
        match event {
            EngineEvent::Up(engine) => {
                let occupants: BTreeSet<String> = engine.occupants.iter().map(|it| it.id.clone()).collect();
                agent.engine = EngineLink::Up(engine);
                self.forget_removed(id, &occupants, out);
                self.try_all();
            }
            EngineEvent::Down(error) => {
                let last = agent.engine().cloned();
                agent.engine = EngineLink::Down { error, last };
                self.decline_all(id, out);
            }
        }
    }

    /// Containers that terminated and that their engine has no more: removed by the engine itself or by somebody else.
    fn forget_removed(&mut self, agent: &AgentId, occupants: &BTreeSet<String>, out: &mut Outbox<Self>) {
        let is_removed = |it: &Container| {
            it.agent == agent.as_str()
                && matches!(it.phase, Phase::Ended { .. })
                && !occupants.contains(&it.occupant.id)
        };
        let removed = self.containers.iter().filter(|(_, it)| is_removed(it)).map(|(task, _)| task.clone());
        let removed: Vec<TaskId> = removed.collect();
        for task in removed {
            self.on_removed(&task, out);
        }
    }
}

impl Fsm for Manager {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Outbox<Self>) {
        match input {
            Input::Subscribed { framework_id } => self.on_subscribed(framework_id, out),
            Input::Disconnected => self.on_disconnected(),
            Input::Offers(offers) => self.on_offers(now, offers, out),
            Input::Rescinded(offer) => self.on_rescinded(&offer),
            Input::AgentFailed(agent) => self.on_agent_failed(&agent, out),
            Input::Update(update) => self.on_update(now, update, out),
            Input::Engine { agent, event } => self.on_engine(&agent, event, out),
            Input::Create { request, name, spec } => self.on_create(now, request, name, spec, out),
            Input::Abandoned(request) => self.on_abandoned(request, out),
            Input::Removed(task) => self.on_removed(&task, out),
            Input::Renamed { task, name } => self.on_renamed(&task, name, out),
        }
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        for agent in core::mem::take(&mut self.unconnected) {
            if let Some(address) = self.agents.get(&agent).map(|it| it.address.clone()) {
                out.effect(Effect::Connect { agent, address });
            }
        }
        self.try_pending(now, budget, out);
        while let Some(timer) = self.timers.pop_due(now.mono) {
            match timer {
                Timer::Create(id) => self.on_create_timeout(id, out),
                Timer::Offer(agent, offer) => self.on_offer_timeout(&agent, &offer, out),
            }
        }
        if core::mem::take(&mut self.changed) {
            out.effect(Effect::Publish(Arc::new(self.view())));
        }
    }

    fn deadline(&self) -> Option<Mono> {
        if self.untried.is_empty() { self.timers.next() } else { Some(Mono(0)) }
    }
}

#[cfg(test)]
mod tests;
