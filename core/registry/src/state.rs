//! The facts themselves, in memory.

use alloc::collections::BTreeMap;
use alloc::string::String;

use tepui_fsm::Wall;
use tepui_proto::mesos::v1::AgentInfo;
use tepui_types::AgentId;

use crate::Operation;
use crate::operation::id_of;

/// Raised when what is stored changes its form. A registry of a higher version is not opened.
pub const SCHEMA_VERSION: u32 = 1;

/// What outlives the master. Invariant: an agent is in at most one of `agents`, `unreachable` and `gone`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    /// None until the first start is recorded: an empty registry is a new one.
    pub schema_version: Option<u32>,
    pub cluster_id: Option<String>,
    /// Admitted and not known to be away.
    pub agents: BTreeMap<AgentId, AgentInfo>,
    pub unreachable: BTreeMap<AgentId, Wall>,
    pub gone: BTreeMap<AgentId, Wall>,
    pub weights: BTreeMap<String, f64>,
}

impl Registry {
    /// Nothing was ever recorded here.
    pub fn is_new(&self) -> bool {
        self.schema_version.is_none()
    }

    /// Makes `operation` true. The writes of the same operation make it durable.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Initialize { cluster_id } => {
                self.schema_version = Some(SCHEMA_VERSION);
                self.cluster_id = Some(cluster_id.clone());
            }
            Operation::AdmitAgent(info) | Operation::UpdateAgent(info) => {
                self.agents.insert(id_of(info), info.clone());
            }
            Operation::MarkUnreachable { id, at } => {
                self.agents.remove(id);
                self.unreachable.insert(id.clone(), *at);
            }
            Operation::MarkReachable(info) => {
                self.unreachable.remove(&id_of(info));
                self.agents.insert(id_of(info), info.clone());
            }
            Operation::RemoveAgent { id } => {
                self.agents.remove(id);
            }
            Operation::MarkGone { id, at } => {
                self.agents.remove(id);
                self.unreachable.remove(id);
                self.gone.insert(id.clone(), *at);
            }
            Operation::Prune { unreachable, gone } => {
                for id in unreachable {
                    self.unreachable.remove(id);
                }
                for id in gone {
                    self.gone.remove(id);
                }
            }
            Operation::SetWeights(weights) => {
                self.weights.extend(weights.iter().map(|(role, weight)| (role.clone(), *weight)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
