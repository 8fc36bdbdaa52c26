//! What can happen to the registry: each change as a value.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use tepui_fsm::{Durable, Wall, Write};
use tepui_proto::mesos::v1::maintenance::Schedule;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_proto::mesos::v1::{AgentInfo, DrainInfo, MachineInfo};
use tepui_proto::tepui::registry::v1 as stored;
use tepui_proto::{MessageField, Wire, wire};
use tepui_types::{AgentId, FrameworkId};

use crate::Machine;
use crate::key::{FENCE, Key};

/// Incremented when the stored format changes. A registry of a higher version is not opened.
///
/// 1: agents and weights. 2: quotas, maintenance, deactivated agents, minimum capabilities; the default weight is not
/// stored.
pub const SCHEMA_VERSION: u32 = 2;

/// The weight of a role that has none.
pub const WEIGHT_DEFAULT: f64 = 1.0;

/// What a master must be able to do while there are quotas.
pub const QUOTA_V2: &str = "QUOTA_V2";
/// What a master must be able to do while agents are deactivated.
pub const AGENT_DRAINING: &str = "AGENT_DRAINING";

/// One durable change. An `AgentInfo` in it always has its id.
///
/// Operations are idempotent: each states the new value, not a difference. An operation becomes durable as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// The first start with an empty store.
    Initialize { cluster_id: String },
    /// The first start over a registry of an older version.
    Upgrade,
    /// A new agent.
    AdmitAgent(AgentInfo),
    /// An admitted agent reregistered with a different description.
    UpdateAgent(AgentInfo),
    /// An admitted agent went silent.
    MarkUnreachable { id: AgentId, at: Wall, hostname: String },
    /// An unreachable agent, or one that is no longer in the registry, reregistered.
    MarkReachable(AgentInfo),
    /// The agent unregistered.
    RemoveAgent { id: AgentId },
    /// The agent can never register again.
    MarkGone { id: AgentId, at: Wall },
    /// Old entries to remove.
    Prune { unreachable: Vec<AgentId>, gone: Vec<AgentId> },
    /// New weights of these roles; others are unchanged. The default weight is not stored.
    SetWeights(BTreeMap<String, f64>),
    /// New quotas of these roles, or none; others are unchanged. `any`: some role has a quota afterwards.
    SetQuotas { configs: BTreeMap<String, Option<QuotaConfig>>, any: bool },
    /// The new maintenance schedule and the new state of its machines; `None`: the machine is up and its entry is removed.
    SetSchedule { schedule: Schedule, machines: BTreeMap<Machine, Option<MachineInfo>> },
    /// Nothing of this agent is offered from now on.
    Deactivate { id: AgentId, deactivation: Deactivation },
    /// It is used again. `any`: others are still deactivated.
    Reactivate { id: AgentId, any: bool },
    /// Tasks of this framework are about to be killed. Frameworks are not stored: the write proves that this master still
    /// leads.
    RemoveFramework { id: FrameworkId },
}

/// The reason why no resources of an agent are offered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deactivation {
    /// It is to be empty, or is.
    pub drain: Option<DrainInfo>,
    /// When the drain began.
    pub since: Option<Wall>,
}

/// The id of an agent whose description the registry holds.
pub(crate) fn id_of(info: &AgentInfo) -> AgentId {
    AgentId::from(&*info.id)
}

impl Durable for Operation {
    fn writes(&self, into: &mut Vec<Write>) {
        match self {
            Operation::Initialize { cluster_id } => {
                let cluster = stored::Cluster { id: cluster_id.clone(), ..Default::default() };
                into.extend([put_schema(), put(Key::Cluster, &cluster)]);
            }
            Operation::Upgrade => into.push(put_schema()),
            Operation::AdmitAgent(info) | Operation::UpdateAgent(info) => into.push(put_agent(info)),
            Operation::MarkUnreachable { id, at, hostname } => {
                let absence = put_absence(Key::Unreachable(id.clone()), *at, Some(hostname));
                into.extend([delete(Key::Agent(id.clone())), absence]);
            }
            Operation::MarkReachable(info) => {
                into.extend([delete(Key::Unreachable(id_of(info))), put_agent(info)]);
            }
            Operation::RemoveAgent { id } => {
                into.extend([delete(Key::Agent(id.clone())), delete(Key::Deactivated(id.clone()))]);
            }
            Operation::MarkGone { id, at } => into.extend([
                delete(Key::Agent(id.clone())),
                delete(Key::Unreachable(id.clone())),
                delete(Key::Deactivated(id.clone())),
                put_absence(Key::Gone(id.clone()), *at, None),
            ]),
            Operation::Prune { unreachable, gone } => {
                into.extend(unreachable.iter().map(|id| delete(Key::Unreachable(id.clone()))));
                into.extend(unreachable.iter().map(|id| delete(Key::Deactivated(id.clone()))));
                into.extend(gone.iter().map(|id| delete(Key::Gone(id.clone()))));
            }
            Operation::SetWeights(weights) => into.extend(weights.iter().map(set_weight)),
            Operation::SetQuotas { configs, any } => {
                into.extend(configs.iter().map(set_quota));
                into.push(set_capability(QUOTA_V2, *any));
            }
            Operation::SetSchedule { schedule, machines } => {
                into.push(set_schedule(schedule));
                into.extend(machines.iter().map(set_machine));
            }
            Operation::Deactivate { id, deactivation } => {
                into.extend([put_deactivation(id, deactivation), set_capability(AGENT_DRAINING, true)]);
            }
            Operation::Reactivate { id, any } => {
                into.extend([delete(Key::Deactivated(id.clone())), set_capability(AGENT_DRAINING, *any)]);
            }
            Operation::RemoveFramework { .. } => into.push(Write::delete(FENCE)),
        }
    }
}

fn put(key: Key, value: &impl Wire) -> Write {
    Write::put(key.text(), wire::encode(value))
}

fn delete(key: Key) -> Write {
    Write::delete(key.text())
}

fn put_schema() -> Write {
    put(Key::Schema, &stored::Schema { version: SCHEMA_VERSION, ..Default::default() })
}

fn put_agent(info: &AgentInfo) -> Write {
    let agent = stored::Agent { info: MessageField::some(info.clone()), ..Default::default() };
    put(Key::Agent(id_of(info)), &agent)
}

fn put_absence(key: Key, at: Wall, hostname: Option<&String>) -> Write {
    put(key, &stored::Absence { since_nanos: at.0, hostname: hostname.cloned(), ..Default::default() })
}

fn set_weight((role, weight): (&String, &f64)) -> Write {
    let key = Key::Weight(role.clone());
    match *weight == WEIGHT_DEFAULT {
        true => delete(key),
        false => put(key, &stored::Weight { weight: *weight, ..Default::default() }),
    }
}

fn set_quota((role, config): (&String, &Option<QuotaConfig>)) -> Write {
    let key = Key::Quota(role.clone());
    match config {
        Some(config) => put(key, &stored::Quota { config: config.clone().into(), ..Default::default() }),
        None => delete(key),
    }
}

fn set_schedule(schedule: &Schedule) -> Write {
    match schedule.windows.is_empty() {
        true => delete(Key::Schedule),
        false => {
            let stored = stored::Schedule { schedule: schedule.clone().into(), ..Default::default() };
            put(Key::Schedule, &stored)
        }
    }
}

fn set_machine((machine, info): (&Machine, &Option<MachineInfo>)) -> Write {
    let key = Key::Machine(machine.clone());
    match info {
        Some(info) => put(key, &stored::Machine { info: info.clone().into(), ..Default::default() }),
        None => delete(key),
    }
}

fn put_deactivation(id: &AgentId, deactivation: &Deactivation) -> Write {
    let stored = stored::Deactivation {
        drain: deactivation.drain.clone().into(),
        since_nanos: deactivation.since.map(|since| since.0),
        ..Default::default()
    };
    put(Key::Deactivated(id.clone()), &stored)
}

fn set_capability(name: &str, needed: bool) -> Write {
    let key = Key::Capability(name.into());
    match needed {
        true => put(key, &stored::Capability::default()),
        false => delete(key),
    }
}
