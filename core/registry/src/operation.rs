//! What can happen to the registry: each change as a value.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::{Durable, Wall, Write};
use tepui_proto::mesos::v1::AgentInfo;
use tepui_proto::tepui::registry::v1 as stored;
use tepui_proto::{Message, MessageField};
use tepui_types::AgentId;

use crate::SCHEMA_VERSION;
use crate::key::Key;

/// One durable change. An `AgentInfo` in here always has its id.
///
/// Replaying an operation changes nothing: each says what is true from now on, not what to add.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// The first start ever: nothing was stored before.
    Initialize { cluster_id: String },
    /// A new agent.
    AdmitAgent(AgentInfo),
    /// An admitted agent came back with another description.
    UpdateAgent(AgentInfo),
    /// An admitted agent went silent.
    MarkUnreachable { id: AgentId, at: Wall },
    /// An unreachable agent, or one nobody remembers, came back.
    MarkReachable(AgentInfo),
    /// It left for good and may be forgotten.
    RemoveAgent { id: AgentId },
    /// It must never come back.
    MarkGone { id: AgentId, at: Wall },
    /// Old entries to forget.
    Prune { unreachable: Vec<AgentId>, gone: Vec<AgentId> },
    /// New weights of these roles; others keep theirs.
    SetWeights(BTreeMap<String, f64>),
}

/// The id of an agent whose description the registry holds.
pub(crate) fn id_of(info: &AgentInfo) -> AgentId {
    AgentId::from(&*info.id)
}

impl Durable for Operation {
    fn writes(&self, into: &mut Vec<Write>) {
        match self {
            Operation::Initialize { cluster_id } => {
                let schema = stored::Schema { version: SCHEMA_VERSION, ..Default::default() };
                let cluster = stored::Cluster { id: cluster_id.clone(), ..Default::default() };
                into.extend([put(Key::Schema, &schema), put(Key::Cluster, &cluster)]);
            }
            Operation::AdmitAgent(info) | Operation::UpdateAgent(info) => into.push(put_agent(info)),
            Operation::MarkUnreachable { id, at } => {
                into.extend([delete(Key::Agent(id.clone())), put_absence(Key::Unreachable(id.clone()), *at)]);
            }
            Operation::MarkReachable(info) => {
                into.extend([delete(Key::Unreachable(id_of(info))), put_agent(info)]);
            }
            Operation::RemoveAgent { id } => into.push(delete(Key::Agent(id.clone()))),
            Operation::MarkGone { id, at } => into.extend([
                delete(Key::Agent(id.clone())),
                delete(Key::Unreachable(id.clone())),
                put_absence(Key::Gone(id.clone()), *at),
            ]),
            Operation::Prune { unreachable, gone } => {
                into.extend(unreachable.iter().map(|id| delete(Key::Unreachable(id.clone()))));
                into.extend(gone.iter().map(|id| delete(Key::Gone(id.clone()))));
            }
            Operation::SetWeights(weights) => into.extend(weights.iter().map(put_weight)),
        }
    }
}

fn put(key: Key, value: &impl Message) -> Write {
    Write::put(key.text(), value.encode_to_vec())
}

fn delete(key: Key) -> Write {
    Write::delete(key.text())
}

fn put_agent(info: &AgentInfo) -> Write {
    let agent = stored::Agent { info: MessageField::some(info.clone()), ..Default::default() };
    put(Key::Agent(id_of(info)), &agent)
}

fn put_absence(key: Key, at: Wall) -> Write {
    put(key, &stored::Absence { since_nanos: at.0, ..Default::default() })
}

fn put_weight((role, weight): (&String, &f64)) -> Write {
    put(Key::Weight(role.clone()), &stored::Weight { weight: *weight, ..Default::default() })
}

/// One line for the log.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = |f: &mut fmt::Formatter<'_>, what: &str, info: &AgentInfo| {
            write!(f, "{what} agent {} at {}", id_of(info), info.hostname)
        };
        match self {
            Operation::Initialize { cluster_id } => write!(f, "initialize cluster {cluster_id}"),
            Operation::AdmitAgent(info) => agent(f, "admit", info),
            Operation::UpdateAgent(info) => agent(f, "update", info),
            Operation::MarkReachable(info) => agent(f, "mark reachable", info),
            Operation::MarkUnreachable { id, at } => {
                write!(f, "mark unreachable agent {id} since {:.3}", at.as_secs_f64())
            }
            Operation::RemoveAgent { id } => write!(f, "remove agent {id}"),
            Operation::MarkGone { id, at } => write!(f, "mark gone agent {id} since {:.3}", at.as_secs_f64()),
            Operation::Prune { unreachable, gone } => {
                write!(f, "prune {} unreachable and {} gone agents", unreachable.len(), gone.len())
            }
            Operation::SetWeights(weights) => {
                f.write_str("set weights")?;
                weights.iter().try_for_each(|(role, weight)| write!(f, " {role}={weight}"))
            }
        }
    }
}
