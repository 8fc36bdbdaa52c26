//! The manager: which container is which task, where, and who waits for it.
//!
//! Fed with events of the master, of engines and of clients. A record of a container is written before its task is launched, so
//! that a manager that was killed at any moment finds every container again and asks the master about it.
//! Invariants: a name belongs to one container or one pending create; an accepted offer is held no longer; a container
//! that waits is either in the queue or launching, never both.

mod adopt;
mod create;
mod effect;
mod engine;
mod input;
mod occupancy;
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

use occupancy::Occupancy;

use crate::agent::Agent;
use crate::schedule::{ScheduleError, Scheduler};
use crate::spec::ContainerSpec;

/// Creates that wait for offers. One more is rejected.
pub const PENDING_CREATES_MAX: usize = 4096;
/// Between two questions to the master about launches that it has not answered: a master may fail with a launch in its hands.
const LAUNCH_RECONCILE_INTERVAL: Duration = Duration::from_secs(15);
/// Between two questions about all tasks.
const RECONCILE_INTERVAL: Duration = Duration::from_secs(600);
/// How long the list of an engine may take to show that a container was created or has exited.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Config {
    pub scheduler: Scheduler,
    /// How long a create waits for a node.
    pub task_timeout: Duration,
    /// How long an offer is held.
    pub offer_timeout: Duration,
    /// How long what is left of an accepted offer is not offered again.
    pub refuse_timeout: Duration,
    /// How long an offer that was held in vain is not made again while no create waits.
    pub idle_refuse_timeout: Duration,
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
    occupancies: BTreeMap<AgentId, Occupancy>,
    /// The agent of each offer held.
    holders: BTreeMap<OfferId, AgentId>,
    containers: view::Map<TaskId, Arc<Container>>,
    by_name: view::Map<String, TaskId>,
    by_id: view::Map<String, TaskId>,
    /// Of containers, of creates that wait, and reserved for a rename.
    names: BTreeSet<String>,
    /// Names that engines are about to give to containers, with the ids of those.
    renaming: BTreeMap<String, String>,
    /// Containers whose names are to be compared with the engine's: of the records, and of renames without an answer. It may have
    /// renamed them before that was recorded.
    recovered: BTreeSet<TaskId>,
    /// Containers of this life that their engine has not shown yet. A list may be older than a container.
    unseen: BTreeSet<TaskId>,
    /// In the order of their arrival.
    pending: BTreeMap<PendingId, Pending>,
    next_pending: u64,
    launching: BTreeMap<TaskId, Pending>,
    timers: Deadlines<Timer>,
    /// Agents from the records, whose engines are to be connected.
    unconnected: Vec<AgentId>,
    /// Creates to be tried in the next turns.
    untried: VecDeque<PendingId>,
    /// Of this round, which ends when no create is untried, or after one attempt for each.
    attempts: usize,
    /// Whether a create found no node, or lost the rest of an offer to another one, since filters were cleared last.
    needs_offers: bool,
    changed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PendingId(u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Create(PendingId),
    Offer(AgentId, OfferId),
    ReconcileLaunches,
    ReconcileAll,
    /// Whether a container that has terminated runs again, or is gone.
    List(TaskId),
}

/// A container that has no agent yet.
#[derive(Clone, Debug)]
struct Pending {
    /// The client that waits; none after it left, and for a container that is placed again.
    request: Option<RequestId>,
    /// The client left before the container existed: it is removed.
    abandoned: bool,
    name: Option<String>,
    spec: Arc<ContainerSpec>,
    /// None: waits until there is a node.
    deadline: Option<Mono>,
    error: Option<ScheduleError>,
    /// The task whose container is placed again after its node failed.
    replaces: Option<TaskId>,
    /// The container is on its engine already, only its task has terminated.
    adopts: Option<Adoption>,
}

/// A container that gets another task.
#[derive(Clone, Debug)]
struct Adoption {
    container: Arc<Container>,
    /// It runs without resources, because its executor died or because it was started at the engine: if no task can be had, it is
    /// killed.
    is_orphan: bool,
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
            occupancies: BTreeMap::new(),
            holders: BTreeMap::new(),
            containers: view::Map::new_sync(),
            by_name: view::Map::new_sync(),
            by_id: view::Map::new_sync(),
            names: BTreeSet::new(),
            renaming: BTreeMap::new(),
            recovered: BTreeSet::new(),
            unseen: BTreeSet::new(),
            pending: BTreeMap::new(),
            next_pending: 0,
            launching: BTreeMap::new(),
            timers: Deadlines::new(),
            unconnected: Vec::new(),
            untried: VecDeque::new(),
            attempts: 0,
            needs_offers: false,
            changed: true,
        };
        for (key, value) in records {
            match record::read(&key, &value)? {
                record::Stored::Framework(id) => manager.framework_id = Some(id),
                record::Stored::Agent(agent) => manager.restore_agent(agent),
                record::Stored::Container(container) => manager.restore(*container)?,
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
            by_name: self.by_name.clone(),
            by_id: self.by_id.clone(),
            pending: self.pending.len(),
        }
    }

    fn restore_agent(&mut self, record: AgentRecord) {
        let id = AgentId::new(record.id);
        self.agents
            .insert_mut(id.clone(), Arc::new(Agent::new(record.hostname, record.engine, record.socket)));
        self.unconnected.push(id);
    }

    fn restore(&mut self, container: Container) -> Result<(), RecoverError> {
        self.names.extend(Some(container.occupant.name.clone()).filter(|name| !name.is_empty()));
        if container.phase == Phase::Rescheduling {
            self.requeue_replacement(&container)?;
        }
        self.recovered.insert(TaskId::new(&*container.task));
        self.index(Arc::new(container));
        Ok(())
    }

    fn put_container(&mut self, container: Container, out: &mut Outbox<Self>) {
        let container = Arc::new(container);
        self.index(container.clone());
        self.changed = true;
        out.record(Record::Container(container));
    }

    fn index(&mut self, container: Arc<Container>) {
        let task = TaskId::new(&*container.task);
        if let Some(before) = self.containers.get(&task) {
            self.by_name.remove_mut(&before.occupant.name);
        }
        self.by_name.insert_mut(container.occupant.name.clone(), task.clone());
        if !container.occupant.id.is_empty() {
            self.by_id.insert_mut(container.occupant.id.clone(), task.clone());
        }
        let occupancy = self.occupancies.entry(AgentId::new(&*container.agent)).or_default();
        occupancy.put(task.clone(), container.clone());
        self.containers.insert_mut(task, container);
    }

    fn forget_container(&mut self, task: &TaskId, out: &mut Outbox<Self>) -> Option<Arc<Container>> {
        let container = self.unindex(task)?;
        out.record(Record::Forgotten(task.clone()));
        self.forget_failed(&AgentId::new(&*container.agent), out);
        Some(container)
    }

    /// Another task takes over: no moment without a record of the container, and none with two.
    fn replace_container(
        &mut self,
        task: TaskId,
        container: Container,
        out: &mut Outbox<Self>,
    ) -> Option<Arc<Container>> {
        // A list that is older than the container says no more about it because another task holds it now.
        let is_unseen = self.unseen.contains(&task) && !container.occupant.id.is_empty();
        let before = self.unindex(&task);
        let container = Arc::new(container);
        self.unseen.extend(is_unseen.then(|| TaskId::new(&*container.task)));
        self.index(container.clone());
        out.record(Record::Replaced(task, container));
        before
    }

    fn unindex(&mut self, task: &TaskId) -> Option<Arc<Container>> {
        let container = self.containers.get(task)?.clone();
        self.containers.remove_mut(task);
        self.by_name.remove_mut(&container.occupant.name);
        self.by_id.remove_mut(&container.occupant.id);
        self.unseen.remove(task);
        self.recovered.remove(task);
        let agent = AgentId::new(&*container.agent);
        if let Some(occupancy) = self.occupancies.get_mut(&agent) {
            occupancy.remove(task);
        }
        self.changed = true;
        Some(container)
    }

    fn agent_mut(&mut self, id: &AgentId) -> Option<&mut Agent> {
        self.changed = true;
        self.agents.get_mut(id).map(Arc::make_mut)
    }
}

impl Fsm for Manager {
    type Input = Input;
    type Record = Record;
    type Effect = Effect;

    fn step(&mut self, now: Now, input: Input, out: &mut Outbox<Self>) {
        match input {
            Input::Subscribed { framework_id } => self.on_subscribed(now, framework_id, out),
            Input::Disconnected => self.on_disconnected(),
            Input::Offers(offers) => self.on_offers(now, offers, out),
            Input::Rescinded(offer) => self.on_rescinded(&offer),
            Input::AgentFailed(agent) => self.on_agent_failed(&agent, out),
            Input::Update(update) => self.on_update(now, update, out),
            Input::Engine { agent, event } => self.on_engine(now, &agent, event, out),
            Input::Create { request, name, spec } => self.on_create(now, request, name, spec, out),
            Input::Hold { request, task } => self.on_hold(now, request, &task, out),
            Input::Abandoned(request) => self.on_abandoned(request, out),
            Input::Removed(task) => self.on_removed(&task, out),
            Input::Rename { request, task, name } => self.on_rename(request, task, name, out),
            Input::Renamed { task, name } => self.on_renamed(&task, name, out),
            Input::RenameFailed { name } => self.on_rename_failed(&name),
        }
    }

    fn settle(&mut self, now: Now, budget: &mut Budget<'_>, out: &mut Outbox<Self>) {
        for agent in core::mem::take(&mut self.unconnected) {
            self.connect_again(agent, out);
        }
        self.try_pending(now, budget, out);
        self.ask_for_offers(out);
        while let Some(timer) = self.timers.pop_due(now.mono) {
            match timer {
                Timer::Create(id) => self.on_create_timeout(id, out),
                Timer::Offer(agent, offer) => self.on_offer_timeout(&agent, &offer, out),
                Timer::ReconcileLaunches => self.reconcile_launches(now, out),
                Timer::List(task) => self.on_list_check(now, &task, out),
                Timer::ReconcileAll => self.on_reconcile_all(now, out),
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
