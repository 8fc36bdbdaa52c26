//! The world around the manager: a master with its agents, one Docker engine each, and the executors between them.
//!
//! Deliberately small: it keeps what a real cluster promises (offers are void once rescinded, updates are sent until they are
//! acknowledged, an executor creates its container once) and nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::{Resources, Revocable, Role, parse};
use tepui_swarm::{Effect, Engine, EngineAddress, EngineOperation, Input, Launch, Occupant, Offer, Update};
use tepui_types::{AgentId, OfferId, TaskId, TaskStateExt};

pub const CREATE_LABEL: &str = "create";

#[derive(Default)]
pub struct Cluster {
    pub agents: Vec<Agent>,
    pub offers: BTreeMap<OfferId, (usize, Resources)>,
    pub tasks: BTreeMap<TaskId, Task>,
    pub connected: bool,
    /// Events on their way to the manager. Lost with the connection.
    pub events: VecDeque<Input>,
    /// Calls on their way to the master. Lost with the connection.
    pub calls: VecDeque<Effect>,
    next: u64,
}

pub struct Agent {
    pub id: AgentId,
    pub link: Link,
    pub total: Resources,
    pub engine_up: bool,
    pub containers: BTreeMap<String, Container>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Registered,
    Unreachable,
    Gone,
}

pub struct Container {
    pub name: String,
    pub task: TaskId,
    pub labels: BTreeMap<String, String>,
    pub auto_remove: bool,
    pub running: bool,
    pub renamed: bool,
    pub starts: u32,
}

pub struct Task {
    pub agent: usize,
    pub resources: Resources,
    pub launch: Launch,
    pub state: TaskState,
    /// Of its terminal state.
    pub reason: Option<Reason>,
    pub container: Option<String>,
    /// What the agent sends until it is acknowledged, in order.
    updates: VecDeque<Update>,
}

impl Container {
    pub fn create(&self) -> u64 {
        self.labels.get(CREATE_LABEL).and_then(|text| text.parse().ok()).expect("every create has a number")
    }
}

pub fn resources(text: &str) -> Resources {
    parse::resources(text, "*").expect("resources").into_iter().collect()
}

impl Cluster {
    pub fn add_agent(&mut self, regular: &str, revocable: &str) {
        let id = AgentId::new(format!("A{}", self.agents.len()));
        let total = resources(regular) + &resources(revocable).flatten(Revocable::UsageSlack);
        let total = total.allocate(&Role::from("*"));
        self.agents.push(Agent {
            id,
            link: Link::Registered,
            total,
            engine_up: true,
            containers: BTreeMap::new(),
        });
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn free(&self, agent: usize) -> Resources {
        let offered = self.offers.values().filter(|(on, _)| *on == agent).map(|(_, part)| part);
        let used = self.tasks.values().filter(|task| task.agent == agent && !task.state.is_terminal());
        let taken: Resources = offered.chain(used.map(|task| &task.resources)).sum();
        self.agents[agent].total.checked_sub(&taken).expect("no more is given away than there is")
    }

    /// Offers what is free on an agent, or the part of it that `wanted` selects.
    pub fn offer(&mut self, agent: usize, wanted: impl Fn(&tepui_resources::Resource) -> bool) {
        if self.agents[agent].link != Link::Registered || !self.connected {
            return;
        }
        let part = self.free(agent).filter(wanted);
        if part.is_empty() {
            return;
        }
        let id = OfferId::new(format!("O{}", self.number()));
        self.offers.insert(id.clone(), (agent, part.clone()));
        let agent = self.agents[agent].id.clone();
        self.events.push_back(Input::Offers(vec![Offer {
            id,
            hostname: agent.as_str().to_lowercase(),
            engine: EngineAddress::Tcp { host: agent.as_str().to_lowercase(), port: 2375 },
            socket: "/run/docker.sock".into(),
            agent,
            resources: part,
        }]));
    }

    pub fn rescind(&mut self, offer: &OfferId) {
        if self.offers.remove(offer).is_some() {
            self.send(Input::Rescinded(offer.clone()));
        }
    }

    fn rescind_all(&mut self, agent: usize) {
        let ids: Vec<OfferId> =
            self.offers.iter().filter(|(_, (on, _))| *on == agent).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.rescind(id));
    }

    fn send(&mut self, event: Input) {
        if self.connected {
            self.events.push_back(event);
        }
    }

    /// The stream of events breaks: what was on its way is lost, and all offers are void.
    pub fn disconnect(&mut self) {
        self.connected = false;
        self.events.clear();
        self.calls.clear();
        self.offers.clear();
    }

    pub fn subscribe(&mut self) {
        self.disconnect();
        self.connected = true;
        self.events.push_back(Input::Subscribed { framework_id: "F".into() });
    }

    /// The master takes one call. The agent does what it is told at once; its answers wait in its queues.
    pub fn call(&mut self, call: Effect) {
        match call {
            Effect::Accept(launch) => self.accept(*launch),
            Effect::Decline(offers) => offers.iter().for_each(|offer| drop(self.offers.remove(offer))),
            Effect::Acknowledge { task, uuid, .. } => {
                if let Some(task) = self.tasks.get_mut(&task)
                    && task.updates.front().is_some_and(|update| update.uuid.as_ref() == Some(&uuid))
                {
                    task.updates.pop_front();
                }
            }
            Effect::Revive => (),
            Effect::Kill { task, .. } => self.kill(&task),
            Effect::Reconcile(tasks) if tasks.is_empty() => {
                let live: Vec<TaskId> =
                    self.tasks.iter().filter(|(_, it)| self.is_live(it)).map(|(id, _)| id.clone()).collect();
                live.iter().for_each(|id| self.send_state(id));
            }
            Effect::Reconcile(tasks) => tasks.iter().for_each(|(task, agent)| self.reconcile(task, agent)),
            other => panic!("{other} is no call"),
        }
    }

    fn is_live(&self, task: &Task) -> bool {
        !task.state.is_terminal() && self.agents[task.agent].link == Link::Registered
    }

    fn accept(&mut self, launch: Launch) {
        let agent = self.agents.iter().position(|agent| agent.id == launch.agent).expect("an agent of ours");
        let held: Option<Resources> =
            launch.offers.iter().map(|id| self.offers.get(id).map(|(_, part)| part)).sum();
        launch.offers.iter().for_each(|id| drop(self.offers.remove(id)));
        match held {
            Some(held) => {
                assert!(held.contains(&launch.resources), "{} is not in {held}", launch.resources);
                let resources = launch.resources.clone();
                let state = TaskState::TASK_STAGING;
                let task = launch.task.clone();
                let (reason, container, updates) = (None, None, VecDeque::new());
                let it = Task { agent, resources, launch, state, reason, container, updates };
                assert!(self.tasks.insert(task, it).is_none(), "a task id is used once");
            }
            None => {
                let mut update = update(&launch.task, &launch.agent, TaskState::TASK_DROPPED);
                update.reason = Some(Reason::REASON_INVALID_OFFERS);
                update.message = "Offer is no longer valid".into();
                self.send(Input::Update(update));
            }
        }
    }

    fn reconcile(&mut self, task: &TaskId, agent: &AgentId) {
        if self.tasks.contains_key(task) {
            return self.send_state(task);
        }
        let link = self.agents.iter().find(|it| it.id == *agent).map(|it| it.link);
        let state = match link {
            Some(Link::Registered) => TaskState::TASK_GONE,
            Some(Link::Unreachable) => TaskState::TASK_UNREACHABLE,
            Some(Link::Gone) => TaskState::TASK_GONE_BY_OPERATOR,
            None => TaskState::TASK_UNKNOWN,
        };
        self.send(Input::Update(update(task, agent, state)));
    }

    /// The latest state, as the master has it: without the data of the executor.
    fn send_state(&mut self, task: &TaskId) {
        let it = &self.tasks[task];
        let agent = &self.agents[it.agent];
        let state = match agent.link {
            Link::Registered => it.state,
            Link::Unreachable => TaskState::TASK_UNREACHABLE,
            Link::Gone => TaskState::TASK_GONE_BY_OPERATOR,
        };
        let mut update = update(task, &agent.id, state);
        update.reason = Some(Reason::REASON_RECONCILIATION);
        update.has_executor = agent.link == Link::Registered;
        self.send(Input::Update(update));
    }

    fn kill(&mut self, task: &TaskId) {
        let Some(it) = self.tasks.get(task).filter(|it| self.is_live(it)) else { return };
        let (agent, container) = (it.agent, it.container.clone());
        if let Some(id) = container {
            self.stop(agent, &id);
        }
        self.end(task, TaskState::TASK_KILLED, None, true);
    }

    fn stop(&mut self, agent: usize, id: &str) {
        let containers = &mut self.agents[agent].containers;
        let Some(container) = containers.get_mut(id) else { return };
        let was_running = std::mem::take(&mut container.running);
        if container.auto_remove && was_running {
            containers.remove(id);
        }
    }

    /// The terminal update of a task.
    pub fn end(&mut self, task: &TaskId, state: TaskState, reason: Option<Reason>, by_executor: bool) {
        let number = self.number();
        let Some(it) = self.tasks.get_mut(task).filter(|it| !it.state.is_terminal()) else { return };
        (it.state, it.reason) = (state, reason);
        let mut update = update(task, &self.agents[it.agent].id, state);
        update.reason = reason;
        update.uuid = Some(number.to_be_bytes().to_vec());
        update.by_executor = by_executor;
        it.updates.push_back(update);
    }

    /// The executor of a staging task creates its container; the engine rejects a name that it has already.
    pub fn create_container(&mut self, task: &TaskId) {
        let id = format!("{:064x}", self.number());
        let Some(it) = self.tasks.get_mut(task) else { return };
        let agent = &mut self.agents[it.agent];
        if it.state != TaskState::TASK_STAGING || !agent.engine_up || agent.link == Link::Gone {
            return;
        }
        if let Some(adopted) = it.launch.adopt.clone() {
            return self.adopt_container(task, &adopted);
        }
        let document: Value = serde_json::from_str(&it.launch.document).expect("a document");
        let name = it.launch.name.clone().expect("engines would choose names that are not unique");
        if agent.containers.values().any(|container| container.name == name) {
            return self.end(task, TaskState::TASK_FAILED, None, true);
        }
        let labels = document["Labels"].as_object().expect("labels");
        let labels = labels.iter().map(|(key, value)| (key.clone(), value.as_str().expect("text").into()));
        let container = Container {
            name: name.clone(),
            task: task.clone(),
            labels: labels.collect(),
            auto_remove: document["HostConfig"]["AutoRemove"] == Value::Bool(true),
            running: it.launch.start,
            renamed: false,
            starts: u32::from(it.launch.start),
        };
        agent.containers.insert(id.clone(), container);
        it.container = Some(id);
        let is_started = it.launch.start;
        self.report(task, TaskState::TASK_STARTING);
        if is_started {
            self.report(task, TaskState::TASK_RUNNING);
        }
    }

    /// The executor of another task follows a container that is there.
    fn adopt_container(&mut self, task: &TaskId, id: &str) {
        let Some(it) = self.tasks.get_mut(task) else { return };
        let Some(container) = self.agents[it.agent].containers.get_mut(id) else {
            return self.end(task, TaskState::TASK_FAILED, None, true);
        };
        if it.launch.is_orphan && !container.running {
            return self.end(task, TaskState::TASK_FAILED, None, true);
        }
        let before = std::mem::replace(&mut container.task, task.clone());
        it.container = Some(id.to_owned());
        let is_running = container.running;
        assert!(
            self.tasks.get(&before).is_none_or(|it| it.state.is_terminal()),
            "{task} and {before} hold {id}"
        );
        self.report(task, TaskState::TASK_STARTING);
        if is_running {
            self.report(task, TaskState::TASK_RUNNING);
        }
    }

    /// The executor of a task dies; its container goes on.
    pub fn kill_executor(&mut self, task: &TaskId) {
        if self.tasks.get(task).is_some_and(|it| self.is_live(it)) {
            let reason = Some(Reason::REASON_EXECUTOR_TERMINATED);
            self.end(task, TaskState::TASK_FAILED, reason, false);
        }
    }

    /// The executor says that the container is created, or started.
    fn report(&mut self, task: &TaskId, state: TaskState) {
        let number = self.number();
        let Some(it) = self.tasks.get_mut(task) else { return };
        let agent = &self.agents[it.agent];
        it.state = state;
        let mut update = update(task, &agent.id, state);
        update.uuid = Some(number.to_be_bytes().to_vec());
        update.container = it.container.as_ref().map(|id| (id.clone(), agent.containers[id].name.clone()));
        update.by_executor = true;
        it.updates.push_back(update);
    }

    /// A client starts a container.
    pub fn start(&mut self, agent: usize, id: &str) {
        let Some(container) = self.agents[agent].containers.get_mut(id) else { return };
        container.running = true;
        container.starts += 1;
        let task = container.task.clone();
        self.report(&task, TaskState::TASK_RUNNING);
    }

    /// A running container exits by itself.
    pub fn exit(&mut self, agent: usize, id: &str) {
        let Some(container) = self.agents[agent].containers.get(id).filter(|it| it.running) else { return };
        let task = container.task.clone();
        self.stop(agent, id);
        self.end(&task, TaskState::TASK_FINISHED, None, true);
    }

    /// The agent takes its resources back. Its executor may not get as far as to stop the container.
    pub fn preempt(&mut self, task: &TaskId, is_left_running: bool) {
        let Some(it) = self.tasks.get(task).filter(|it| self.is_live(it)) else { return };
        if let (Some(id), false) = (it.container.clone(), is_left_running) {
            self.stop(it.agent, &id);
        }
        self.end(task, TaskState::TASK_GONE, Some(Reason::REASON_CONTAINER_PREEMPTED), false);
    }

    /// An agent sends the first update that is not acknowledged once more.
    pub fn send_update(&mut self, task: &TaskId) {
        let Some(it) = self.tasks.get(task).filter(|it| self.agents[it.agent].link == Link::Registered)
        else {
            return;
        };
        if let Some(update) = it.updates.front().cloned() {
            self.send(Input::Update(update));
        }
    }

    pub fn lose_agent(&mut self, agent: usize, link: Link) {
        if self.agents[agent].link == Link::Gone {
            return;
        }
        self.rescind_all(agent);
        self.agents[agent].link = link;
        if link == Link::Gone {
            self.agents[agent].engine_up = false;
            self.agents[agent].containers.values_mut().for_each(|it| it.running = false);
        }
        let id = self.agents[agent].id.clone();
        self.send(Input::AgentFailed(id));
        let lost = self.tasks.iter().filter(|(_, it)| it.agent == agent && !it.state.is_terminal());
        let lost: Vec<TaskId> = lost.map(|(id, _)| id.clone()).collect();
        lost.iter().for_each(|task| self.send_state(task));
    }

    pub fn restore_agent(&mut self, agent: usize) {
        if self.agents[agent].link != Link::Unreachable {
            return;
        }
        self.agents[agent].link = Link::Registered;
        let tasks = self.tasks.iter().filter(|(_, it)| it.agent == agent && !it.state.is_terminal());
        let tasks: Vec<TaskId> = tasks.map(|(id, _)| id.clone()).collect();
        tasks.iter().for_each(|task| self.send_state(task));
    }

    /// The engine restarts: what ran is stopped, and its executors say so.
    pub fn stop_engine(&mut self, agent: usize) {
        self.agents[agent].engine_up = false;
        let running = self.agents[agent].containers.iter().filter(|(_, it)| it.running);
        let running: Vec<(String, TaskId)> = running.map(|(id, it)| (id.clone(), it.task.clone())).collect();
        for (id, task) in running {
            self.stop(agent, &id);
            self.end(&task, TaskState::TASK_FAILED, None, true);
        }
    }

    pub fn operate(&mut self, agent: usize, operation: &EngineOperation) {
        if !self.agents[agent].engine_up {
            return;
        }
        match operation {
            EngineOperation::Kill(id) => self.exit_or_stop(agent, id),
            EngineOperation::Remove(id) => {
                self.exit_or_stop(agent, id);
                self.agents[agent].containers.remove(id);
            }
        }
    }

    fn exit_or_stop(&mut self, agent: usize, id: &str) {
        self.exit(agent, id);
        self.stop(agent, id);
    }

    /// Removed by a client: the executor of a container that never ran notices as well.
    pub fn remove_container(&mut self, agent: usize, id: &str) {
        self.exit_or_stop(agent, id);
        if let Some(container) = self.agents[agent].containers.remove(id) {
            self.end(&container.task, TaskState::TASK_KILLED, None, true);
        }
    }

    /// What the engine shows at this moment.
    pub fn snapshot(&self, agent: usize) -> Arc<Engine> {
        let occupants = self.agents[agent].containers.iter().map(|(id, it)| Occupant {
            id: id.clone(),
            name: it.name.clone(),
            labels: it.labels.clone(),
            is_running: it.running,
            ..Occupant::default()
        });
        let id = format!("engine-{agent}");
        Arc::new(Engine {
            id,
            name: format!("node-{agent}"),
            occupants: occupants.collect(),
            ..Engine::default()
        })
    }
}

/// An update of the master itself.
fn update(task: &TaskId, agent: &AgentId, state: TaskState) -> Update {
    Update {
        task: task.clone(),
        agent: Some(agent.clone()),
        state,
        reason: None,
        message: String::new(),
        uuid: None,
        container: None,
        missing_image: None,
        by_executor: false,
        has_executor: false,
    }
}
