//! A cluster in a few lines: agents, their resources, what runs on them, and how they answer an ACCEPT.
//!
//! Strict where the master is: an offer is used once, an operation needs its resources, an executor stays as it was launched.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::TaskState as State;
use tepui_resources::{Format, Operation, Resources, Role, parse};
use tepui_types::OfferId;

use crate::scheduler::{Accept, AgentFacts, Input};

#[derive(Clone, Debug)]
pub struct Agent {
    pub total: Resources,
    pub attributes: Vec<(String, String)>,
    pub is_reachable: bool,
    /// It takes no tasks and makes no offers.
    pub is_drained: bool,
    pub executors: BTreeMap<String, Executor>,
}

impl Agent {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// `feedback=no`: the master rejects operations with an id.
    fn lacks_feedback(&self) -> bool {
        self.attribute("feedback") == Some("no")
    }

    /// `zone=z1` is also the fault domain.
    fn domain(&self) -> Option<pb::DomainInfo> {
        use pb::domain_info::{FaultDomain, fault_domain};
        let zone = fault_domain::ZoneInfo { name: self.attribute("zone")?.to_owned(), ..Default::default() };
        let fault_domain = FaultDomain { zone: zone.into(), ..Default::default() };
        Some(pb::DomainInfo { fault_domain: fault_domain.into(), ..Default::default() })
    }
}

#[derive(Clone, Debug)]
pub struct Executor {
    pub info: pb::ExecutorInfo,
    pub resources: Resources,
    pub tasks: BTreeMap<String, Task>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub info: pb::TaskInfo,
    pub resources: Resources,
    pub state: State,
}

#[derive(Debug, Default)]
pub struct Cluster {
    pub agents: BTreeMap<String, Agent>,
    /// Agents that never come back.
    pub gone: BTreeSet<String>,
    /// Offers that are out: agent and resources.
    pub offers: BTreeMap<String, (String, Resources)>,
    pub role: String,
    next_offer: u64,
    next_uuid: u64,
    /// Operations with feedback that was not acknowledged.
    pub feedback: BTreeMap<String, pb::OperationState>,
    /// Terminal statuses that agents send until they are acknowledged, by task.
    pub unacknowledged: BTreeMap<String, pb::TaskStatus>,
    /// Whether the scheduler knows the isolators of all agents.
    pub lists_isolators: bool,
    /// Events for the scheduler.
    pub events: VecDeque<Input>,
    /// Launches in all, by task instance.
    pub launches: BTreeMap<String, u32>,
    /// Tasks whose agent was out of contact at some time: a replacement may run beside them.
    pub lost: BTreeSet<String>,
}

impl Cluster {
    pub fn new(role: &str) -> Cluster {
        Cluster { role: role.to_owned(), ..Cluster::default() }
    }

    pub fn add_agent(&mut self, id: &str, resources: &str, attributes: Vec<(String, String)>) {
        let total = parse::resources(resources, "*").expect("resources").into_iter().collect();
        let executors = BTreeMap::new();
        let agent = Agent { total, attributes, is_reachable: true, is_drained: false, executors };
        self.agents.insert(id.to_owned(), agent);
    }

    /// Sends an offer of everything that is free on an agent and not offered.
    pub fn offer(&mut self, id: &str) -> bool {
        let Some(agent) = self.agents.get(id).filter(|agent| agent.is_reachable && !agent.is_drained) else {
            return false;
        };
        let mut free = agent.total.clone();
        for executor in agent.executors.values() {
            free -= &executor.resources;
            executor.tasks.values().for_each(|task| free -= &task.resources);
        }
        for (_, resources) in self.offers.values().filter(|(agent, _)| agent == id) {
            free -= resources;
        }
        if free.is_empty() {
            return false;
        }
        self.next_offer += 1;
        let offer_id = format!("O{}", self.next_offer);
        let allocated = free.clone().allocate(&Role::from(self.role.as_str()));
        let attribute = |(name, value): &(String, String)| pb::Attribute {
            name: name.clone(),
            r#type: pb::value::Type::TEXT,
            text: pb::value::Text { value: value.clone(), ..Default::default() }.into(),
            ..Default::default()
        };
        let executor = |id: &String| pb::ExecutorID { value: id.clone(), ..Default::default() };
        let offer = pb::Offer {
            id: pb::OfferID { value: offer_id.clone(), ..Default::default() }.into(),
            agent_id: pb::AgentID { value: id.to_owned(), ..Default::default() }.into(),
            hostname: format!("host-{}", id.to_lowercase()),
            resources: allocated.to_proto(Format::Post),
            attributes: agent.attributes.iter().map(attribute).collect(),
            executor_ids: agent.executors.keys().map(executor).collect(),
            domain: agent.domain().into(),
            ..Default::default()
        };
        self.offers.insert(offer_id, (id.to_owned(), free));
        self.events.push_back(Input::Offers(vec![offer]));
        true
    }

    pub fn offer_at_once(&mut self) {
        let agents: Vec<String> = self.agents.keys().cloned().collect();
        let mut all = Vec::new();
        for agent in agents {
            if self.offer(&agent)
                && let Some(Input::Offers(offers)) = self.events.pop_back()
            {
                all.extend(offers);
            }
        }
        self.events.push_back(Input::Offers(all));
    }

    pub fn rescind(&mut self, offer: &str) {
        if self.offers.remove(offer).is_some() {
            self.events.push_back(Input::Rescinded(OfferId::new(offer)));
        }
    }

    pub fn rescind_all(&mut self, agent: &str) {
        let own: Vec<String> =
            self.offers.iter().filter(|(_, (own, _))| own == agent).map(|(id, _)| id.clone()).collect();
        own.iter().for_each(|offer| self.rescind(offer));
    }

    pub fn accept(&mut self, accept: &Accept) {
        let known = accept.offers.iter().all(|id| self.offers.contains_key(id.as_str()));
        let mut pool = Resources::new();
        for id in &accept.offers {
            if let Some((_, resources)) = self.offers.remove(id.as_str()) {
                pool += &resources;
            }
        }
        for operation in &accept.operations {
            match operation.r#type {
                Some(pb::offer::operation::Type::LAUNCH_GROUP) => {
                    let group = &operation.launch_group;
                    for task in &group.task_group.tasks {
                        let result = match known {
                            true => self.launch(accept.agent.as_str(), &group.executor, task, &mut pool),
                            false => Err((State::TASK_DROPPED, "invalid offers".to_owned())),
                        };
                        if let Err((state, message)) = result {
                            self.update(accept.agent.as_str(), &task.task_id.value, state, &message, false);
                        }
                    }
                }
                _ => self.operate(accept.agent.as_str(), operation, known, &mut pool),
            }
        }
    }

    fn operate(&mut self, agent: &str, operation: &pb::offer::Operation, known: bool, pool: &mut Resources) {
        let own = Operation::from_proto(operation).expect("an operation").expect("known").unallocate();
        let is_valid = |agent: &&Agent| known && !(agent.lacks_feedback() && operation.id.is_set());
        let total = self.agents.get(agent).filter(is_valid).map(|agent| agent.total.clone());
        let result = total.ok_or("invalid offers".to_owned()).and_then(|total| {
            let left = pool.apply(&own).map_err(|error| error.to_string())?;
            Ok((left, total.apply(&own).map_err(|error| error.to_string())?))
        });
        let state = match result {
            Ok((left, total)) => {
                *pool = left;
                if let Some(agent) = self.agents.get_mut(agent) {
                    agent.total = total;
                }
                pb::OperationState::OPERATION_FINISHED
            }
            Err(_) => pb::OperationState::OPERATION_ERROR,
        };
        if let Some(id) = operation.id.as_option() {
            self.feedback.insert(id.value.clone(), state);
            self.operation_status(&id.value, state);
        }
    }

    /// Sends the state of an operation; it stays known until it is acknowledged.
    pub fn operation_status(&mut self, id: &str, state: pb::OperationState) {
        self.next_uuid += 1;
        let uuid = pb::UUID { value: self.next_uuid.to_be_bytes().to_vec(), ..Default::default() };
        let status = pb::OperationStatus {
            operation_id: pb::OperationID { value: id.to_owned(), ..Default::default() }.into(),
            state,
            uuid: uuid.into(),
            ..Default::default()
        };
        self.events.push_back(Input::OperationUpdate(Box::new(status)));
    }

    fn launch(
        &mut self,
        agent: &str,
        executor: &pb::ExecutorInfo,
        task: &pb::TaskInfo,
        pool: &mut Resources,
    ) -> Result<(), (State, String)> {
        let bad = |message: String| (State::TASK_ERROR, message);
        let own = |all: &[pb::Resource]| -> Resources {
            Resources::from_proto(all).expect("resources").unallocate()
        };
        if self.agents.contains_key(agent) {
            self.check_volumes(agent, task);
        }
        let resources = own(&task.resources);
        let executor_resources = own(&executor.resources);
        let mut state_of_others = self.tasks();
        state_of_others.retain(|(_, id, ..)| !self.lost.contains(id));
        let state = self.agents.get_mut(agent).ok_or_else(|| bad("no agent".to_owned()))?;
        let id = executor.executor_id.value.clone();
        let mut needed = resources.clone();
        if let Some(running) = state.executors.get(&id) {
            assert_eq!(running.info, *executor, "an executor stays as it was launched");
        } else {
            needed += &executor_resources;
        }
        let left = pool.checked_sub(&needed);
        *pool = left.ok_or_else(|| bad(format!("{needed} is not in {pool}")))?;
        let double = state_of_others.iter().find(|(name, ..)| *name == task.name);
        assert!(double.is_none(), "{} runs already: {double:?}", task.name);
        let entry = state.executors.entry(id).or_insert_with(|| Executor {
            info: executor.clone(),
            resources: executor_resources,
            tasks: BTreeMap::new(),
        });
        let own = Task { info: task.clone(), resources, state: State::TASK_STAGING };
        entry.tasks.insert(task.task_id.value.clone(), own);
        *self.launches.entry(task.name.clone()).or_default() += 1;
        Ok(())
    }

    /// Where a task is.
    pub fn find(&self, task_id: &str) -> Option<(String, String)> {
        self.agents.iter().find_map(|(agent, own)| {
            let executor = own.executors.iter().find(|(_, executor)| executor.tasks.contains_key(task_id))?;
            Some((agent.clone(), executor.0.clone()))
        })
    }

    /// The command of a task that runs somewhere.
    pub fn command(&self, task_id: &str) -> Option<String> {
        let (agent, executor) = self.find(task_id)?;
        self.agents[&agent].executors[&executor].tasks[task_id].info.command.value.clone()
    }

    /// Tasks that run somewhere, with their agents, by instance name.
    pub fn tasks(&self) -> Vec<(String, String, String, State)> {
        let mut all = Vec::new();
        for (agent, own) in &self.agents {
            for (id, task) in own.executors.values().flat_map(|executor| &executor.tasks) {
                all.push((task.info.name.clone(), id.clone(), agent.clone(), task.state));
            }
        }
        all
    }

    /// A task gets a state; a terminal one frees its resources, and those of its executor with the last task.
    pub fn set_state(&mut self, task_id: &str, state: State, message: &str, ready: bool) {
        let Some((agent, executor)) = self.find(task_id) else { return };
        let is_terminal = crate::scheduler::task::life(state) == crate::scheduler::task::Life::Dead;
        let executors = &mut self.agents.get_mut(&agent).expect("the agent").executors;
        let own = executors.get_mut(&executor).expect("the executor");
        if is_terminal {
            own.tasks.remove(task_id);
        } else if let Some(task) = own.tasks.get_mut(task_id) {
            task.state = state;
        }
        if own.tasks.is_empty() {
            executors.remove(&executor);
        }
        let status = self.status(&agent, task_id, state, message, ready);
        if is_terminal {
            self.unacknowledged.insert(task_id.to_owned(), status.clone());
        }
        self.events.push_back(Input::Update(Box::new(status)));
    }

    pub fn acknowledge(&mut self, task_id: &str, uuid: &[u8]) {
        let is_it = self.unacknowledged.get(task_id).is_some_and(|own| own.uuid.as_deref() == Some(uuid));
        if is_it {
            self.unacknowledged.remove(task_id);
        }
    }

    /// Agents resend unacknowledged updates.
    pub fn resend(&mut self) {
        let is_reachable = |agent: &str| self.agents.get(agent).is_some_and(|agent| agent.is_reachable);
        let due = self.unacknowledged.values().filter(|status| is_reachable(&status.agent_id.value));
        let due: Vec<Input> = due.map(|status| Input::Update(Box::new(status.clone()))).collect();
        self.events.extend(due);
    }

    pub fn update(&mut self, agent: &str, task_id: &str, state: State, message: &str, ready: bool) {
        let status = self.status(agent, task_id, state, message, ready);
        self.events.push_back(Input::Update(Box::new(status)));
    }

    fn status(
        &mut self,
        agent: &str,
        task_id: &str,
        state: State,
        message: &str,
        ready: bool,
    ) -> pb::TaskStatus {
        self.next_uuid += 1;
        let check = pb::check_status_info::Command { exit_code: ready.then_some(0), ..Default::default() };
        pb::TaskStatus {
            task_id: pb::TaskID { value: task_id.to_owned(), ..Default::default() }.into(),
            state,
            message: Some(message.to_owned()).filter(|text| !text.is_empty()),
            reason: match message {
                "draining" => Some(pb::task_status::Reason::REASON_AGENT_DRAINING),
                "reconciled" => Some(pb::task_status::Reason::REASON_RECONCILIATION),
                "reregistered" => Some(pb::task_status::Reason::REASON_AGENT_REREGISTERED),
                _ => None,
            },
            executor_id: (message == "reconciled")
                .then(|| pb::ExecutorID { value: "executor".to_owned(), ..Default::default() })
                .into(),
            agent_id: pb::AgentID { value: agent.to_owned(), ..Default::default() }.into(),
            uuid: Some(self.next_uuid.to_be_bytes().to_vec()),
            check_status: pb::CheckStatusInfo { command: check.into(), ..Default::default() }.into(),
            ..Default::default()
        }
    }

    /// The answer of the master to a reconciliation.
    pub fn reconcile(&mut self, task_id: &str, agent: Option<&str>) {
        if let Some(status) = self.unacknowledged.get(task_id)
            && self.agents.get(&status.agent_id.value).is_some_and(|agent| agent.is_reachable)
        {
            // The master repeats the state without its reason; the agent sends the status itself.
            let executor = pb::ExecutorID { value: "executor".to_owned(), ..Default::default() };
            let reason = Some(pb::task_status::Reason::REASON_RECONCILIATION);
            let answer =
                pb::TaskStatus { uuid: None, reason, executor_id: executor.into(), ..status.clone() };
            return self.events.push_back(Input::Update(Box::new(answer)));
        }
        let found = self.find(task_id);
        let (agent, state) = match (&found, agent) {
            (Some((agent, executor)), _) => {
                let own = &self.agents[agent];
                let state = own.executors[executor].tasks[task_id].state;
                (agent.clone(), if own.is_reachable { state } else { State::TASK_UNREACHABLE })
            }
            (None, Some(agent)) if self.gone.contains(agent) => {
                (agent.to_owned(), State::TASK_GONE_BY_OPERATOR)
            }
            (None, Some(agent)) => {
                let state = match self.agents.get(agent) {
                    Some(own) if own.is_reachable => State::TASK_GONE,
                    Some(_) => State::TASK_UNREACHABLE,
                    None => State::TASK_UNKNOWN,
                };
                (agent.to_owned(), state)
            }
            (None, None) => return,
        };
        self.update(&agent, task_id, state, "", state == State::TASK_RUNNING);
    }

    /// The master does not know the agent any more, and the scheduler has missed what it said of it.
    pub fn forget_agent(&mut self, id: &str) {
        self.rescind_all(id);
        self.agents.remove(id);
        self.unacknowledged.retain(|_, status| status.agent_id.value != id);
        self.events.clear();
    }

    /// The agent and all on it is gone for good.
    pub fn remove_agent(&mut self, id: &str) {
        self.rescind_all(id);
        let Some(agent) = self.agents.remove(id) else { return };
        self.gone.insert(id.to_owned());
        self.unacknowledged.retain(|_, status| status.agent_id.value != id);
        for task in agent.executors.values().flat_map(|executor| executor.tasks.keys()) {
            self.update(id, task, State::TASK_GONE_BY_OPERATOR, "", false);
        }
        self.events.push_back(Input::AgentFailed(tepui_types::AgentId::new(id)));
    }

    /// Kills the tasks of an agent, which makes no offers until it is reactivated.
    pub fn drain(&mut self, id: &str) {
        self.rescind_all(id);
        let Some(agent) = self.agents.get_mut(id).filter(|agent| agent.is_reachable) else { return };
        agent.is_drained = true;
        let tasks: Vec<String> =
            agent.executors.values().flat_map(|executor| executor.tasks.keys()).cloned().collect();
        for task in tasks {
            self.set_state(&task, State::TASK_KILLED, "draining", false);
        }
    }

    pub fn reactivate(&mut self, id: &str) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.is_drained = false;
        }
    }

    /// External volumes need an agent that mounts them; those that are not shared belong to one pod instance.
    fn check_volumes(&self, agent: &str, task: &pb::TaskInfo) {
        let names = |task: &pb::TaskInfo| -> Vec<String> {
            let volumes = task.container.volumes.iter().filter_map(|volume| volume.source.as_option());
            volumes
                .filter_map(|source| source.docker_volume.as_option())
                .map(|own| own.name.clone())
                .collect()
        };
        let pod = |name: &str| name.rsplit_once('-').map(|(pod, _)| pod.to_owned());
        for volume in names(task) {
            let can = self.agents[agent].attributes.iter().any(|(_, value)| value == "docker/volume");
            assert!(can || !self.lists_isolators, "{} with {volume} on {agent}", task.name);
            let is_exclusive = volume.ends_with(|last: char| last.is_ascii_digit());
            let others = self.agents.values().flat_map(|agent| agent.executors.values());
            let others = others.flat_map(|executor| executor.tasks.values());
            for other in others.filter(|other| is_exclusive && names(&other.info).contains(&volume)) {
                assert_eq!(pod(&other.info.name), pod(&task.name), "{volume} is mounted twice");
            }
        }
    }

    pub fn lose_agent(&mut self, id: &str, state: State) {
        self.set_reachable(id, false);
        for (task, _) in self.tasks_on(id) {
            self.update(id, &task, state, "", false);
        }
    }

    pub fn return_agent(&mut self, id: &str) {
        self.set_reachable(id, true);
        for (task, state) in self.tasks_on(id) {
            self.update(id, &task, state, "", state == State::TASK_RUNNING);
        }
    }

    /// The agent was out of contact while it was drained to be marked gone: the master repeats its report.
    pub fn return_drained_agent(&mut self, id: &str) {
        self.set_reachable(id, true);
        for (task, _) in self.tasks_on(id) {
            self.set_state(&task, State::TASK_GONE_BY_OPERATOR, "reregistered", false);
        }
    }

    fn set_reachable(&mut self, id: &str, is_reachable: bool) {
        self.rescind_all(id);
        if let Some(agent) = self.agents.get_mut(id) {
            agent.is_reachable = is_reachable;
        }
        let tasks = self.tasks_on(id);
        self.lost.extend(tasks.into_iter().map(|(task, _)| task));
    }

    fn tasks_on(&self, agent: &str) -> Vec<(String, State)> {
        let all = self.tasks().into_iter().filter(|(_, _, at, _)| at == agent);
        all.map(|(_, id, _, state)| (id, state)).collect()
    }

    pub fn facts(&self) -> Vec<AgentFacts> {
        let facts = |(id, agent): (&String, &Agent)| AgentFacts {
            id: tepui_types::AgentId::new(id.as_str()),
            hostname: format!("host-{}", id.to_lowercase()),
            region: None,
            zone: None,
            attributes: agent.attributes.clone(),
            total: agent.total.clone(),
            is_deactivated: agent.is_drained,
            is_draining: agent.is_drained,
            isolators: Some(
                agent
                    .attributes
                    .iter()
                    .filter(|(name, _)| name == "isolation")
                    .map(|(_, value)| value.clone())
                    .collect(),
            ),
            volume_plugins: None,
            lacks_operation_feedback: agent.lacks_feedback(),
        };
        self.agents.iter().map(facts).collect()
    }

    /// Reservations on all agents: `agent: id`.
    pub fn reservations(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (id, agent) in &self.agents {
            let reserved = agent.total.iter().filter(|resource| resource.is_dynamically_reserved());
            all.extend(reserved.map(|resource| format!("{id}: {resource}")));
        }
        all
    }
}
