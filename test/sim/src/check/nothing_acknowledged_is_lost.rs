//! Nothing acknowledged is lost: an update that the agent confirmed to its executor reaches the framework in the end.
//!
//! Not promised: to frameworks that do not checkpoint, to those that ended, of agents that were wiped or asked to leave,
//! and of tasks that the agent itself had declared over.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_master::Effect;
use tepui_proto::mesos::v1::task_status::Source;
use tepui_proto::tepui::agent::v1::event::Type;
use tepui_types::TaskStateExt;

use super::{Check, Fact, short};

#[derive(Debug, Default)]
pub(super) struct NothingAcknowledgedIsLost {
    /// By update: the framework, the task and the agent.
    confirmed: BTreeMap<Vec<u8>, (String, String, usize)>,
    heard: BTreeSet<Vec<u8>>,
    /// Tasks that an agent declared over.
    declared_over: BTreeSet<String>,
    ended: BTreeSet<String>,
    left: BTreeSet<usize>,
}

impl Check for NothingAcknowledgedIsLost {
    fn name(&self) -> &'static str {
        "nothing_acknowledged_is_lost"
    }

    fn see(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::ExecutorConfirmed { agent, executor, task, uuid } if executor.checkpoint => {
                let whose = (executor.framework_id.clone(), (*task).to_string(), *agent);
                self.confirmed.insert(uuid.to_vec(), whose);
            }
            Fact::FrameworkSees { status, .. } => {
                self.heard.extend(status.uuid.clone());
                if status.source == Some(Source::SOURCE_AGENT) && status.state.is_terminal() {
                    self.declared_over.insert(status.task_id.value.clone());
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
            Fact::AgentWiped { agent } => self.confirmed.retain(|_, (_, _, on)| on != agent),
            Fact::Settled => return self.all_heard(),
            _ => (),
        }
        Ok(())
    }
}

impl NothingAcknowledgedIsLost {
    fn all_heard(&self) -> Result<(), String> {
        let lost = self.confirmed.iter().find(|(uuid, (framework, task, agent))| {
            let excused = self.declared_over.contains(task)
                || self.ended.contains(framework)
                || self.left.contains(agent);
            !self.heard.contains(*uuid) && !excused
        });
        lost.map_or(Ok(()), |(uuid, (framework, task, agent))| {
            Err(format!("A{agent} confirmed {} of {task}, {framework} never heard it", short(uuid)))
        })
    }
}
