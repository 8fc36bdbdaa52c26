//! Nothing acknowledged is lost: an update that the agent acknowledged to its executor eventually reaches the framework.
//!
//! Not guaranteed: for frameworks without checkpointing, for removed frameworks, and for tasks that the agent itself had
//! reported as terminated. Nor for agents that were wiped, marked gone or unregistered by an operator or by maintenance:
//! their tasks are reported as lost.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_agent::{Phase, Record};
use tepui_core_master::Effect;
use tepui_proto::mesos::v1::task_status::Source;
use tepui_proto::tepui::agent::v1::event::Type;
use tepui_registry::Operation;
use tepui_types::{ContainerId, TaskStateExt};

use super::{Check, Fact, short};

/// Framework, task, and the how manieth launch under its id it is.
type Life = (String, String, usize);

#[derive(Debug, Default)]
pub(super) struct NothingAcknowledgedIsLost {
    /// By update.
    confirmed: BTreeMap<Vec<u8>, Confirmed>,
    received: BTreeSet<Vec<u8>>,
    launches: BTreeMap<(String, String), usize>,
    /// The lives that began in a container, by task.
    begun: BTreeMap<(ContainerId, String), usize>,
    /// Tasks that an agent declared over.
    declared_over: BTreeSet<Life>,
    ended: BTreeSet<String>,
    left: BTreeSet<usize>,
    /// The ids of agents, and those marked gone.
    ids: BTreeMap<usize, String>,
    gone: BTreeSet<String>,
}

/// Who confirmed an update, under which id.
#[derive(Debug)]
struct Confirmed {
    life: Life,
    agent: usize,
    id: String,
}

impl Check for NothingAcknowledgedIsLost {
    fn name(&self) -> &'static str {
        "nothing_acknowledged_is_lost"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::FrameworkLaunches { id, task } => {
                *self.launches.entry(((*id).into(), (*task).into())).or_default() += 1;
            }
            Fact::TaskStarts { framework, container, task, .. } => {
                let (_, _, launch) = self.life(framework, task);
                self.begun.insert(((*container).clone(), (*task).into()), launch);
            }
            Fact::ExecutorConfirmed { agent, executor, container, task, uuid } if executor.checkpoint => {
                let launch = self.begun.get(&((*container).clone(), (*task).into())).copied();
                let life = (executor.framework_id.clone(), (*task).into(), launch.unwrap_or_default());
                let id = self.ids.get(agent).cloned().unwrap_or_default();
                self.confirmed.insert(uuid.to_vec(), Confirmed { life, agent: *agent, id });
            }
            Fact::FrameworkSees { id, status } => {
                let is_new = status.uuid.clone().is_none_or(|uuid| self.received.insert(uuid));
                if is_new && status.source == Some(Source::SOURCE_AGENT) && status.state.is_terminal() {
                    self.declared_over.insert(self.life(id, &status.task_id.value));
                }
            }
            Fact::FrameworkEnds { id } => {
                self.ended.insert((*id).into());
            }
            // The leader removed it; a later one may admit it again. One that was deposed cannot remove it.
            Fact::MasterEffect(Effect::Agent { event, .. })
                if event.r#type == Some(Type::SHUTDOWN_FRAMEWORK) =>
            {
                self.ended.insert(event.shutdown_framework.framework_id.value.clone());
            }
            Fact::AgentLeaves { agent } => {
                self.left.insert(*agent);
            }
            Fact::AgentTurn { agent, machine, .. } if machine.state().phase == Phase::Terminating => {
                self.left.insert(*agent);
            }
            Fact::AgentWiped { agent } => {
                self.confirmed.retain(|_, confirmed| confirmed.agent != *agent);
                self.left.remove(agent);
            }
            Fact::AgentStores { agent, record: Record::Agent(record) } => {
                self.ids.insert(*agent, record.info.id.value.clone());
            }
            Fact::MasterStores(Operation::MarkGone { id, .. }) => {
                self.gone.insert(id.to_string());
            }
            Fact::Settled => return self.all_received(),
            _ => (),
        }
        Ok(())
    }
}

impl NothingAcknowledgedIsLost {
    /// The present life under an id.
    fn life(&self, framework: &str, task: &str) -> Life {
        let key = (framework.to_string(), task.to_string());
        let launch = self.launches.get(&key).copied().unwrap_or_default();
        (key.0, key.1, launch)
    }

    fn all_received(&self) -> Result<(), String> {
        let lost = self.confirmed.iter().find(|(uuid, Confirmed { life, agent, id })| {
            let excused = self.declared_over.contains(life)
                || self.ended.contains(&life.0)
                || self.left.contains(agent)
                || self.gone.contains(id);
            !self.received.contains(*uuid) && !excused
        });
        lost.map_or(Ok(()), |(uuid, Confirmed { life: (framework, task, _), agent, .. })| {
            Err(format!("A{agent} confirmed {} of {task}, {framework} never received it", short(uuid)))
        })
    }
}
