//! The facts themselves, in memory.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;

use tepui_fsm::Wall;
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::mesos::v1::{AgentInfo, MachineInfo};
use tepui_types::AgentId;

use crate::operation::{AGENT_DRAINING, QUOTA_V2, SCHEMA_VERSION, WEIGHT_DEFAULT, id_of};
use crate::{Deactivation, Machine, Operation};

/// What outlives the master. Invariant: an agent is in at most one of `agents`, `unreachable` and `gone`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    /// None until the first start is recorded: an empty registry is a new one.
    pub schema_version: Option<u32>,
    pub cluster_id: Option<String>,
    /// What a master must be able to do to open this registry.
    pub minimum_capabilities: BTreeSet<String>,
    /// Admitted and neither unreachable nor gone.
    pub agents: BTreeMap<AgentId, AgentInfo>,
    pub unreachable: BTreeMap<AgentId, Wall>,
    /// Hostnames of unreachable agents, as far as they were recorded with them.
    pub unreachable_hostnames: BTreeMap<AgentId, String>,
    pub gone: BTreeMap<AgentId, Wall>,
    /// Agents without offers, admitted or unreachable. Shared with readers and copied on change.
    pub deactivated: Arc<BTreeMap<AgentId, Deactivation>>,
    /// Weights that are not the default.
    pub weights: BTreeMap<String, f64>,
    /// Quotas that are not the default.
    pub quotas: BTreeMap<String, QuotaConfig>,
    pub schedule: Schedule,
    /// Machines that are scheduled for maintenance or down; all others are up.
    pub machines: BTreeMap<Machine, MachineInfo>,
}

impl Registry {
    /// Nothing was ever recorded here.
    pub fn is_new(&self) -> bool {
        self.schema_version.is_none()
    }

    /// Written by an older version, and to be brought up to this one.
    pub fn is_old(&self) -> bool {
        self.schema_version.is_some_and(|version| version < SCHEMA_VERSION)
    }

    /// Makes `operation` true. The writes of the same operation make it durable.
    pub fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Initialize { cluster_id } => {
                self.schema_version = Some(SCHEMA_VERSION);
                self.cluster_id = Some(cluster_id.clone());
            }
            Operation::Upgrade => self.schema_version = Some(SCHEMA_VERSION),
            Operation::AdmitAgent(info) | Operation::UpdateAgent(info) => {
                self.agents.insert(id_of(info), info.clone());
            }
            Operation::MarkUnreachable { id, at, hostname } => {
                self.agents.remove(id);
                self.unreachable.insert(id.clone(), *at);
                self.unreachable_hostnames.insert(id.clone(), hostname.clone());
            }
            Operation::MarkReachable(info) => {
                self.forget_unreachable(&id_of(info));
                self.agents.insert(id_of(info), info.clone());
            }
            Operation::RemoveAgent { id } => {
                self.agents.remove(id);
                Arc::make_mut(&mut self.deactivated).remove(id);
            }
            Operation::MarkGone { id, at } => {
                self.agents.remove(id);
                self.forget_unreachable(id);
                Arc::make_mut(&mut self.deactivated).remove(id);
                self.gone.insert(id.clone(), *at);
            }
            Operation::Prune { unreachable, gone } => {
                for id in unreachable {
                    self.forget_unreachable(id);
                    Arc::make_mut(&mut self.deactivated).remove(id);
                }
                self.gone.retain(|id, _| !gone.contains(id));
            }
            Operation::SetWeights(weights) => {
                let entries = weights.iter().map(|(role, weight)| (role, Some(*weight)));
                let entries = entries.map(|(role, weight)| (role, weight.filter(|it| *it != WEIGHT_DEFAULT)));
                entries.for_each(|(role, weight)| set(&mut self.weights, role, weight));
            }
            Operation::SetQuotas { configs, any } => {
                configs.iter().for_each(|(role, config)| set(&mut self.quotas, role, config.clone()));
                self.require(QUOTA_V2, *any);
            }
            Operation::SetSchedule { schedule, machines } => {
                self.schedule = schedule.clone();
                machines.iter().for_each(|(id, info)| set(&mut self.machines, id, info.clone()));
            }
            Operation::Deactivate { id, deactivation } => {
                Arc::make_mut(&mut self.deactivated).insert(id.clone(), deactivation.clone());
                self.require(AGENT_DRAINING, true);
            }
            Operation::Reactivate { id, any } => {
                Arc::make_mut(&mut self.deactivated).remove(id);
                self.require(AGENT_DRAINING, *any);
            }
            Operation::RemoveFramework { .. } => (),
        }
    }

    fn forget_unreachable(&mut self, id: &AgentId) {
        self.unreachable.remove(id);
        self.unreachable_hostnames.remove(id);
    }

    fn require(&mut self, capability: &str, needed: bool) {
        match needed {
            true => self.minimum_capabilities.insert(capability.into()),
            false => self.minimum_capabilities.remove(capability),
        };
    }
}

/// Operations that depend on the current registry.
impl Registry {
    /// New quotas of these roles; none: no quota any more.
    pub fn set_quotas(&self, configs: BTreeMap<String, Option<QuotaConfig>>) -> Operation {
        let kept = self.quotas.keys().any(|role| !configs.contains_key(role));
        let any = kept || configs.values().any(Option::is_some);
        Operation::SetQuotas { configs, any }
    }

    /// The agent is used again.
    pub fn reactivate(&self, id: &AgentId) -> Operation {
        let any = self.deactivated.keys().any(|other| other != id);
        Operation::Reactivate { id: id.clone(), any }
    }
}

fn set<K: Ord + Clone, V>(map: &mut BTreeMap<K, V>, key: &K, value: Option<V>) {
    match value {
        Some(value) => drop(map.insert(key.clone(), value)),
        None => drop(map.remove(key)),
    }
}

#[cfg(test)]
mod tests;
