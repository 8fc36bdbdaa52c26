//! What the manager decides to make visible.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use tepui_placement::Kind;
use tepui_resources::{Name, Resources, Scalar};
use tepui_types::{AgentId, OfferId, TaskId};

use super::{RequestId, View};
use crate::address::EngineAddress;
use crate::rejection::Rejection;

#[derive(Clone, Debug)]
pub enum Effect {
    Accept(Box<Launch>),
    /// Without `refuse` for as long as v1 filters by default.
    Decline {
        offers: Vec<OfferId>,
        refuse: Option<Duration>,
    },
    /// Clear all filters: a create waits.
    Revive,
    Acknowledge {
        agent: AgentId,
        task: TaskId,
        uuid: Vec<u8>,
    },
    Kill {
        task: TaskId,
        agent: AgentId,
    },
    Reconcile(Vec<(TaskId, AgentId)>),
    Reply {
        request: RequestId,
        answer: Result<Created, Rejection>,
    },
    /// Connect to the engine of an agent and keep the connection.
    Connect {
        agent: AgentId,
        address: EngineAddress,
    },
    Disconnect(AgentId),
    Engine {
        agent: AgentId,
        operation: EngineOperation,
    },
    Publish(Arc<View>),
}

/// A container that the engine has created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    pub task: TaskId,
    pub id: String,
}

/// The task of a container.
#[derive(Clone, Debug)]
pub struct Launch {
    pub task: TaskId,
    pub agent: AgentId,
    pub offers: Vec<OfferId>,
    pub kind: Kind,
    pub resources: Resources,
    pub limits: Vec<(Name, Scalar)>,
    pub name: Option<String>,
    pub image: String,
    /// The Unix socket of the engine, for the executor.
    pub socket: String,
    /// The document of the engine's create call, as JSON.
    pub document: String,
    /// Start it at once: it is placed again after it ran elsewhere. One that never ran is only created.
    pub start: bool,
    /// The engine's id of the container, if it is there already and only its task is new.
    pub adopt: Option<String>,
    /// It is adopted because it runs without a task; if it does not run any more, there is nothing to hold.
    pub is_orphan: bool,
    pub refuse: Duration,
}

/// By the engine's id of the container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineOperation {
    Kill(String),
    Remove(String),
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ids: &[OfferId]| ids.iter().map(OfferId::as_str).collect::<Vec<_>>().join(",");
        match self {
            Effect::Accept(launch) => {
                let Launch { task, agent, offers, kind, resources, .. } = &**launch;
                write!(f, "accept {} launch {task} on {agent} {kind} {resources}", list(offers))?;
                if launch.start { f.write_str(", start") } else { Ok(()) }
            }
            Effect::Decline { offers, refuse: None } => write!(f, "decline {}", list(offers)),
            Effect::Decline { offers, refuse: Some(refuse) } => {
                write!(f, "decline {} for {refuse:?}", list(offers))
            }
            Effect::Revive => f.write_str("revive"),
            Effect::Acknowledge { task, .. } => write!(f, "acknowledge {task}"),
            Effect::Kill { task, agent } => write!(f, "kill {task} on {agent}"),
            Effect::Reconcile(tasks) => {
                write!(f, "reconcile")?;
                tasks.iter().try_for_each(|(task, _)| write!(f, " {task}"))
            }
            Effect::Reply { request, answer: Ok(created) } => {
                write!(f, "reply {} created {}", request.0, created.id)
            }
            Effect::Reply { request, answer: Err(rejection) } => {
                write!(f, "reply {} {} {rejection}", request.0, rejection.status())
            }
            Effect::Connect { agent, address } => write!(f, "connect {agent} {address}"),
            Effect::Disconnect(agent) => write!(f, "disconnect {agent}"),
            Effect::Engine { agent, operation: EngineOperation::Kill(id) } => {
                write!(f, "engine {agent} kill {id}")
            }
            Effect::Engine { agent, operation: EngineOperation::Remove(id) } => {
                write!(f, "engine {agent} remove {id}")
            }
            Effect::Publish(_) => f.write_str("publish"),
        }
    }
}
