//! Visible is durable: no message contains what a crash could still undo.
//!
//! Master: an agent receives its id, and frameworks are informed that an agent is unreachable or gone, only once that is
//! durable; the next master has it. Agent: it sends its id to the master, sends updates, launches containers and delivers
//! tasks (of frameworks that checkpoint; also containers of the API) only once they are durable, and acknowledges updates
//! to executors only then.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent as agent;
use tepui_core_master as master;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_proto::mesos::v1::{TaskState, TaskStatus, executor, scheduler};
use tepui_proto::tepui::agent::v1 as link;
use tepui_registry::{Operation, Registry};
use tepui_types::{AgentId, ContainerId, ContainerOp, LaunchSpec};

use super::{Check, Fact, short};

#[derive(Debug, Default)]
pub(super) struct VisibleIsDurable {
    /// Tasks reported as gone by their agents because an operator drains them.
    reported_by_agents: BTreeSet<String>,
    registry: Registry,
    /// Agents that an operator drained with `mark_gone`, perhaps followed by another drain: they act on the one they received.
    drained_away: BTreeSet<AgentId>,
    /// Ids sent to agents and not removed since.
    registered: BTreeSet<AgentId>,
    agents: BTreeMap<usize, Stored>,
    checkpoints: BTreeSet<String>,
    /// Tasks of frameworks that checkpoint.
    tasks: BTreeSet<String>,
}

/// What is on an agent's disk.
#[derive(Debug, Default)]
struct Stored {
    id: String,
    updates: BTreeSet<Vec<u8>>,
    /// Updates acknowledged to executors without being stored: valid only if they were acknowledged before.
    confirmed: BTreeSet<Vec<u8>>,
    containers: BTreeSet<ContainerId>,
    tasks: BTreeSet<String>,
}

impl Check for VisibleIsDurable {
    fn name(&self) -> &'static str {
        "visible_is_durable"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterRestarts(registry) => self.check_restart(registry),
            Fact::MasterStores(operation) => {
                self.registry.apply(operation);
                let drains = self.registry.deactivated.iter().filter(|(_, it)| {
                    it.drain.as_ref().is_some_and(|drain| drain.config.mark_gone == Some(true))
                });
                self.drained_away.extend(drains.map(|(id, _)| id.clone()));
                if let Operation::RemoveAgent { id } = operation {
                    self.registered.remove(id);
                }
                Ok(())
            }
            Fact::MasterEffect(effect) => self.check_master_effect(effect),
            Fact::AgentStores { agent, record } => {
                self.agents.entry(*agent).or_default().ingest_record(record)
            }
            Fact::AgentWiped { agent } => {
                self.agents.remove(agent);
                Ok(())
            }
            Fact::AgentEffect { agent, effect } => self.check_agent_effect(*agent, effect),
            Fact::FrameworkIs { id, checkpoint: true, .. } => {
                self.checkpoints.insert((*id).into());
                Ok(())
            }
            Fact::FrameworkLaunches { id, task } if self.checkpoints.contains(*id) => {
                self.tasks.insert((*task).into());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl VisibleIsDurable {
    fn check_restart(&mut self, registry: &Registry) -> Result<(), String> {
        self.registry = registry.clone();
        let forgotten = self.registered.iter().find(|id| !is_registered(registry, id));
        forgotten
            .map_or(Ok(()), |id| Err(format!("agent {id} was told its id, the next master does not know it")))
    }

    fn check_master_effect(&mut self, effect: &master::Effect) -> Result<(), String> {
        match effect {
            master::Effect::Agent { event, .. } if event.r#type == Some(link::event::Type::SUBSCRIBED) => {
                let id = AgentId::from(&*event.subscribed.agent_id);
                if !self.registry.agents.contains_key(&id) {
                    return Err(format!("agent {id} is told its id before it is stored"));
                }
                self.registered.insert(id);
                Ok(())
            }
            master::Effect::Scheduler { event, .. }
                if event.r#type == Some(scheduler::event::Type::UPDATE) =>
            {
                self.check_status(&event.update.status)
            }
            _ => Ok(()),
        }
    }

    /// Updates of the master for tasks of an unreachable agent.
    fn check_status(&mut self, status: &TaskStatus) -> Result<(), String> {
        let id = AgentId::from(&*status.agent_id);
        let stored = match status.state {
            TaskState::TASK_UNREACHABLE => self.registry.unreachable.contains_key(&id),
            TaskState::TASK_LOST if status.unreachable_time.is_set() => {
                self.registry.unreachable.contains_key(&id)
            }
            // Draining agents that will be gone report it themselves, with an update that requires an acknowledgement.
            TaskState::TASK_GONE_BY_OPERATOR if status.uuid.is_some() => {
                self.reported_by_agents.insert(status.task_id.value.clone());
                true
            }
            TaskState::TASK_GONE_BY_OPERATOR => {
                self.registry.gone.contains_key(&id)
                    || self.reported_by_agents.contains(&status.task_id.value)
                    || self.drained_away.contains(&id)
            }
            _ => true,
        };
        let (task, state) = (&status.task_id.value, status.state);
        stored.then_some(()).ok_or_else(|| format!("{task} is {state:?} before {id} is stored as such"))
    }

    fn check_agent_effect(&mut self, index: usize, effect: &agent::Effect) -> Result<(), String> {
        let stored = self.agents.entry(index).or_default();
        match effect {
            agent::Effect::Master { call, .. } => stored.check_sent_to_master(index, &self.checkpoints, call),
            agent::Effect::Container(ContainerOp::Launch(spec)) => {
                let lost = stored.should_keep(spec) && !stored.containers.contains(&spec.id);
                match lost {
                    true => Err(format!("A{index} launches container {} before it is stored", spec.id)),
                    false => Ok(()),
                }
            }
            agent::Effect::Executor { event, .. } => {
                stored.confirms(event);
                let lost = handed_over(event)
                    .into_iter()
                    .find(|task| self.tasks.contains(*task) && !stored.tasks.contains(*task));
                lost.map_or(Ok(()), |task| Err(format!("A{index} hands {task} over before it is stored")))
            }
            _ => Ok(()),
        }
    }
}

fn is_registered(registry: &Registry, id: &AgentId) -> bool {
    registry.agents.contains_key(id)
        || registry.unreachable.contains_key(id)
        || registry.gone.contains_key(id)
}

/// Whether the agent never had the task or rejected it under disk pressure: such updates need not survive a crash.
fn is_of_unknown_task(status: &TaskStatus) -> bool {
    match status.reason {
        Some(Reason::REASON_RECONCILIATION) => true,
        Some(Reason::REASON_CONTAINER_LIMITATION_DISK) => {
            matches!(status.state, TaskState::TASK_DROPPED | TaskState::TASK_LOST)
        }
        _ => false,
    }
}

fn handed_over(event: &executor::Event) -> Vec<&str> {
    match event.r#type {
        Some(executor::event::Type::LAUNCH) => vec![&event.launch.task.task_id.value],
        Some(executor::event::Type::LAUNCH_GROUP) => {
            let tasks = event.launch_group.task_group.tasks.iter();
            tasks.map(|task| task.task_id.value.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

impl Stored {
    /// Executors of frameworks that checkpoint; containers of the API if their parents are checkpointed. Never sessions.
    fn should_keep(&self, spec: &LaunchSpec) -> bool {
        match spec.environment.get("MESOS_CHECKPOINT") {
            Some(value) => value == "1",
            None => {
                let mut around = std::iter::successors(spec.id.parent(), |id| id.parent());
                !spec.is_session && around.all(|id| self.containers.contains(id))
            }
        }
    }

    fn confirms(&mut self, event: &executor::Event) {
        let uuid = &event.acknowledged.uuid;
        if event.r#type == Some(executor::event::Type::ACKNOWLEDGED) && !self.updates.contains(uuid) {
            self.confirmed.insert(uuid.clone());
        }
    }

    fn ingest_record(&mut self, record: &agent::Record) -> Result<(), String> {
        match record {
            agent::Record::Agent(agent) => self.id = agent.info.id.value.clone(),
            agent::Record::Update { update, .. } => {
                let uuid = update.status.uuid.clone().unwrap_or_default();
                if self.confirmed.contains(&uuid) {
                    let task = &update.status.task_id.value;
                    return Err(format!("{} of {task} was confirmed before it was stored", short(&uuid)));
                }
                self.updates.insert(uuid);
            }
            agent::Record::Executor(executor) => {
                self.containers.insert(ContainerId::from(&*executor.container_id));
            }
            agent::Record::Container(container) => {
                self.containers.insert(ContainerId::from(&*container.container_id));
            }
            agent::Record::Task(task) => {
                self.tasks.insert(task.info.task_id.value.clone());
            }
            _ => (), // Other records have no visible effect.
        }
        Ok(())
    }

    fn check_sent_to_master(
        &self,
        index: usize,
        checkpoints: &BTreeSet<String>,
        call: &link::Call,
    ) -> Result<(), String> {
        match call.r#type {
            Some(link::call::Type::SUBSCRIBE) => {
                let id = &call.subscribe.agent_info.id.value;
                (id.is_empty() || *id == self.id)
                    .then_some(())
                    .ok_or_else(|| format!("A{index} says that it is {id} before that is stored"))
            }
            Some(link::call::Type::UPDATE) => {
                let status = &call.update.status;
                let uuid = status.uuid.clone().unwrap_or_default();
                let kept =
                    checkpoints.contains(&call.update.framework_id.value) && !is_of_unknown_task(status);
                let lost = kept && !self.updates.contains(&uuid);
                let task = &status.task_id.value;
                match lost {
                    true => Err(format!("A{index} sends {} of {task} before it is stored", short(&uuid))),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
