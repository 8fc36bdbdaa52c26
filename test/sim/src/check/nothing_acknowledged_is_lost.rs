//! Nothing acknowledged is lost: an update that the agent confirmed to its executor reaches the framework in the end.
//!
//! Not promised: to frameworks that do not checkpoint, to those that ended, and of tasks that the agent itself had declared
//! over. Nor of agents that were wiped, marked gone or told to leave, by an operator or by a master that was told that their
//! machine goes down: their tasks are reported as lost, and nobody waits for them to deliver anything more.

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
    heard: BTreeSet<Vec<u8>>,
    launches: BTreeMap<(String, String), usize>,
    /// The lives that began in a container, by task.
    begun: BTreeMap<(ContainerId, String), usize>,
    /// Tasks that an agent declared over.
    declared_over: BTreeSet<Life>,
    ended: BTreeSet<String>,
    left: BTreeSet<usize>,
    /// The ids that agents have, and those that were marked gone.
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

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
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
                let is_new = status.uuid.clone().is_none_or(|uuid| self.heard.insert(uuid));
                if is_new && status.source == Some(Source::SOURCE_AGENT) && status.state.is_terminal() {
                    self.declared_over.insert(self.life(id, &status.task_id.value));
                }
            }
            Fact::FrameworkEnds { id } => {
                self.ended.insert((*id).into());
            }
            // It ended for this master; another one may take it in again.
            Fact::MasterSays(Effect::Agent { event, .. })
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
            Fact::Settled => return self.all_heard(),
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

    fn all_heard(&self) -> Result<(), String> {
        let lost = self.confirmed.iter().find(|(uuid, Confirmed { life, agent, id })| {
            let excused = self.declared_over.contains(life)
                || self.ended.contains(&life.0)
                || self.left.contains(agent)
                || self.gone.contains(id);
            !self.heard.contains(*uuid) && !excused
        });
        lost.map_or(Ok(()), |(uuid, Confirmed { life: (framework, task, _), agent, .. })| {
            Err(format!("A{agent} confirmed {} of {task}, {framework} never heard it", short(uuid)))
        })
    }
}
