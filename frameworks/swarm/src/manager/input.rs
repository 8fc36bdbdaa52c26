//! What the manager learns.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_resources::Resources;
use tepui_types::{AgentId, OfferId, TaskId};

use crate::address::EngineAddress;
use crate::agent::Engine;
use crate::spec::ContainerSpec;

/// A call of a client that waits for an answer. Given by the shell, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

#[derive(Debug)]
pub enum Input {
    Subscribed {
        framework_id: String,
    },
    /// The offers held are void.
    Disconnected,
    Offers(Vec<Offer>),
    Rescinded(OfferId),
    /// The agent is no more part of the cluster.
    AgentFailed(AgentId),
    Update(Update),
    Engine {
        agent: AgentId,
        event: EngineEvent,
    },
    Create {
        request: RequestId,
        name: Option<String>,
        spec: Box<ContainerSpec>,
    },
    /// A client is about to start a container whose task has terminated: another task is to hold its resources first.
    Hold {
        request: RequestId,
        task: TaskId,
    },
    /// The client of a create or a hold has closed its connection.
    Abandoned(RequestId),
    /// The container is removed from its engine.
    Removed(TaskId),
    /// A client asks for another name. Answered as a create is; then the name is reserved until the engine has it.
    Rename {
        request: RequestId,
        task: TaskId,
        name: String,
    },
    /// The container has another name on its engine.
    Renamed {
        task: TaskId,
        name: String,
    },
    /// The engine rejected the name that was reserved.
    RenameFailed {
        name: String,
    },
}

#[derive(Clone, Debug)]
pub struct Offer {
    pub id: OfferId,
    pub agent: AgentId,
    pub hostname: String,
    pub engine: EngineAddress,
    /// The Unix socket of the engine on the agent's machine.
    pub socket: String,
    pub resources: Resources,
}

#[derive(Clone, Debug)]
pub enum EngineEvent {
    /// Connected, or something on it has changed.
    Up(Arc<Engine>),
    Down(String),
}

/// A status update of a task.
#[derive(Clone, Debug)]
pub struct Update {
    pub task: TaskId,
    pub agent: Option<AgentId>,
    pub state: TaskState,
    pub reason: Option<Reason>,
    pub message: String,
    /// To be acknowledged.
    pub uuid: Option<Vec<u8>>,
    /// Id and name that the engine gave to the container, from the executor.
    pub container: Option<(String, String)>,
    /// The image that the engine could not pull, from the executor.
    pub missing_image: Option<String>,
    /// Whether the executor itself says so: then the container has really terminated.
    pub by_executor: bool,
    /// Whether the task has an executor: in an answer to a reconciliation, whether the master knows the task.
    pub has_executor: bool,
}
