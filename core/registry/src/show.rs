//! Operations in one line each, for the log.

use core::fmt;

use tepui_proto::mesos::v1::machine_info::Mode;
use tepui_proto::mesos::v1::{AgentInfo, DrainState};

use crate::Operation;
use crate::operation::id_of;

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = |f: &mut fmt::Formatter<'_>, verb: &str, info: &AgentInfo| {
            write!(f, "{verb} agent {} at {}", id_of(info), info.hostname)
        };
        match self {
            Operation::Initialize { cluster_id } => write!(f, "initialize cluster {cluster_id}"),
            Operation::Upgrade => write!(f, "upgrade to schema {}", crate::SCHEMA_VERSION),
            Operation::AdmitAgent(info) => agent(f, "admit", info),
            Operation::UpdateAgent(info) => agent(f, "update", info),
            Operation::MarkReachable(info) => agent(f, "mark reachable", info),
            Operation::MarkUnreachable { id, at, .. } => {
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
            Operation::SetQuotas { configs, .. } => {
                f.write_str("set quota of")?;
                configs.keys().try_for_each(|role| write!(f, " {role}"))
            }
            Operation::SetSchedule { schedule, machines } => {
                write!(f, "schedule maintenance in {} windows,", schedule.windows.len())?;
                machines.iter().try_for_each(|(machine, info)| match info {
                    Some(info) => write!(f, " {machine} {:?}", info.mode.unwrap_or(Mode::UP)),
                    None => write!(f, " {machine} UP"),
                })
            }
            Operation::Deactivate { id, deactivation } => match deactivation.drain.as_ref() {
                None => write!(f, "deactivate agent {id}"),
                Some(drain) if drain.state == DrainState::DRAINED => write!(f, "mark drained agent {id}"),
                Some(_) => write!(f, "drain agent {id}"),
            },
            Operation::Reactivate { id, .. } => write!(f, "reactivate agent {id}"),
            Operation::RemoveFramework { id } => write!(f, "remove framework {id}"),
        }
    }
}
