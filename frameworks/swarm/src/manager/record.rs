//! What survives the manager: its framework id and one record per container.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use tepui_fsm::{Durable, Write};
use tepui_placement::Kind;
use tepui_types::{AgentId, TaskId};

use crate::address::EngineAddress;
use crate::occupant::Occupant;

const FRAMEWORK_KEY: &str = "framework";
const AGENT_PREFIX: &str = "agent/";
const CONTAINER_PREFIX: &str = "container/";

#[derive(Clone, Debug)]
pub enum Record {
    Framework(String),
    /// Where the engine of an agent is: containers there must be reached without an offer.
    Agent(AgentRecord),
    AgentForgotten(AgentId),
    Container(Arc<Container>),
    Forgotten(TaskId),
    /// The container of the first task has another; one write.
    Replaced(TaskId, Arc<Container>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    pub id: String,
    pub hostname: String,
    pub engine: EngineAddress,
    pub socket: String,
}

/// A container that has a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    pub task: String,
    pub agent: String,
    /// Whether its cpus and memory can be taken back.
    pub revocable: bool,
    pub cpus_thousandths: i64,
    pub memory_bytes: i64,
    pub phase: Phase,
    pub occupant: Occupant,
    /// The body of the call that created it: it may be placed again.
    pub body: String,
    pub created_nanos: u64,
    /// Placed again after its node failed: it must not be lost if that fails, and no client waits for it.
    #[serde(default)]
    pub restarted: bool,
    /// It has run, on this node or an earlier one: it is started if it is placed again. Older records do not say it.
    #[serde(default = "assume_started")]
    pub started: bool,
}

fn assume_started() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The task is on its way; the engine has not created the container as far as we know.
    Launching,
    /// The engine has the container, started or not, and the task holds its resources.
    Created,
    /// Its node failed; it waits for another.
    Rescheduling,
    /// The task has terminated. The engine keeps the container until it is removed.
    Ended { state: String, reason: Option<String>, message: String },
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoverError {
    pub key: String,
    pub error: String,
}

pub(super) enum Stored {
    Framework(String),
    Agent(AgentRecord),
    Container(Box<Container>),
}

impl Container {
    /// Its task holds resources, as far as is known.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Launching | Phase::Created)
    }

    pub fn kind(&self) -> Kind {
        if self.revocable { Kind::Revocable } else { Kind::Regular }
    }
}

impl Durable for Record {
    fn writes(&self, into: &mut Vec<Write>) {
        let forget = |task: &TaskId| Write::delete(format!("{CONTAINER_PREFIX}{task}"));
        let put = |container: &Container| {
            let value = serde_json::to_vec(container).expect("a container is plain data");
            Write::put(format!("{CONTAINER_PREFIX}{}", container.task), value)
        };
        match self {
            Record::Framework(id) => into.push(Write::put(FRAMEWORK_KEY, id.as_bytes())),
            Record::Agent(agent) => {
                let value = serde_json::to_vec(agent).expect("an agent is plain data");
                into.push(Write::put(format!("{AGENT_PREFIX}{}", agent.id), value));
            }
            Record::AgentForgotten(agent) => into.push(Write::delete(format!("{AGENT_PREFIX}{agent}"))),
            Record::Container(container) => into.push(put(container)),
            Record::Forgotten(task) => into.push(forget(task)),
            Record::Replaced(task, container) => into.extend([forget(task), put(container)]),
        }
    }
}

pub(super) fn read(key: &str, value: &[u8]) -> Result<Stored, RecoverError> {
    let fault = |error: String| RecoverError { key: key.into(), error };
    if key == FRAMEWORK_KEY {
        let id = core::str::from_utf8(value).map_err(|error| fault(format!("{error}")))?;
        return Ok(Stored::Framework(id.into()));
    }
    if key.starts_with(AGENT_PREFIX) {
        let agent = serde_json::from_slice(value).map_err(|error| fault(format!("{error}")))?;
        return Ok(Stored::Agent(agent));
    }
    if !key.starts_with(CONTAINER_PREFIX) {
        return Err(fault("the key is unknown".into()));
    }
    let container = serde_json::from_slice(value).map_err(|error| fault(format!("{error}")))?;
    Ok(Stored::Container(Box::new(container)))
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Record::Framework(id) => write!(f, "record framework {id}"),
            Record::Agent(agent) => write!(f, "record agent {} {}", agent.id, agent.engine),
            Record::AgentForgotten(agent) => write!(f, "record agent {agent} forgotten"),
            Record::Replaced(task, container) => {
                write!(f, "{}, replaces {task}", Record::Container(container.clone()))
            }
            Record::Container(it) => {
                let phase = match &it.phase {
                    Phase::Launching => "launching".into(),
                    Phase::Created => format!("created as {}", it.occupant.id),
                    Phase::Rescheduling => "rescheduling".into(),
                    Phase::Ended { state, reason, .. } => {
                        format!(
                            "ended {state}{}",
                            reason.as_ref().map(|it| format!(" {it}")).unwrap_or_default()
                        )
                    }
                };
                write!(f, "record {} on {} {} {phase}", it.task, it.agent, it.kind())
            }
            Record::Forgotten(task) => write!(f, "record {task} forgotten"),
        }
    }
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read the record {:?}: {}", self.key, self.error)
    }
}

impl core::error::Error for RecoverError {}
