//! State transitions of entities, for the log: compact values, made where the state changes, formatted elsewhere.
//!
//! Shared entities are passed as they are; of messages only what a line shows. Never here: secrets, `data`, environments.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::Call;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{AgentId, ConnId, DiskPressure, ExecutorId, FrameworkId, TaskId};

use crate::state::{Agent, Framework, Offer, Operation, Task};

/// One entity is in another state.
#[derive(Clone, Debug)]
pub enum Transition {
    AgentRegistered {
        agent: Arc<Agent>,
        registration: Registration,
    },
    /// Its link broke; it may re-register.
    AgentDisconnected {
        agent: Arc<Agent>,
    },
    /// It is no longer among the registered agents.
    AgentRemoved {
        agent_id: AgentId,
        /// Unset for an agent that has not reregistered with this master.
        agent: Option<Arc<Agent>>,
        removal: AgentRemoval,
    },
    AgentRejected {
        conn: ConnId,
        /// Unset for an agent that was never admitted.
        agent_id: Option<AgentId>,
        hostname: String,
        pid: Arc<str>,
        reason: String,
    },
    /// Its disk has become short of room, or is so no longer.
    AgentDiskPressure {
        agent_id: AgentId,
        hostname: String,
        pressure: Option<DiskPressure>,
    },
    /// The same of the registry's disk.
    RegistryDiskPressure {
        is_on: bool,
        available_bytes: u64,
    },
    /// The drain of an agent is complete.
    AgentDrained {
        agent_id: AgentId,
    },
    FrameworkSubscribed {
        framework: Arc<Framework>,
        /// This master knew it before.
        known: bool,
    },
    FrameworkUpdated {
        framework: Arc<Framework>,
    },
    /// An agent reported it to a new master; its scheduler has not subscribed yet.
    FrameworkRecovered {
        framework: Arc<Framework>,
    },
    FrameworkDisconnected {
        framework: Arc<Framework>,
        failover_timeout: Duration,
    },
    FrameworkRemoved {
        framework: Arc<Framework>,
        cause: FrameworkRemoval,
    },
    FrameworkRejected {
        conn: ConnId,
        info: Box<pb::FrameworkInfo>,
        reason: String,
    },
    OfferRescinded {
        offer: Arc<Offer>,
    },
    TaskLaunched {
        task: Arc<Task>,
    },
    TaskUpdated(TaskUpdate),
    /// A scheduler requested the kill of a task.
    TaskKill {
        framework_id: FrameworkId,
        task_id: TaskId,
        agent_id: AgentId,
    },
    ExecutorLaunched {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
        agent_id: AgentId,
    },
    ExecutorTerminated {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
        agent_id: AgentId,
        /// As of wait(2).
        status: i32,
    },
    /// An operation on resources was sent to its agent, or came to another state.
    OperationUpdated {
        operation: Arc<Operation>,
        state: pb::OperationState,
        message: Option<String>,
    },
    OperationRejected {
        framework_id: FrameworkId,
        operation_id: Option<String>,
        kind: OperationType,
        reason: String,
    },
    /// A call of an operator that changes something.
    OperatorCall {
        principal: Option<String>,
        call: Box<Call>,
        /// Unset if the call was carried out.
        rejection: Option<String>,
    },
}

/// How an agent came to be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    New,
    /// After a broken link or a restart of the agent.
    Reconnected,
    /// After it was unreachable, or with another master.
    Returned,
}

/// Why an agent is no longer registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentRemoval {
    Unreachable,
    Gone,
    /// It unregistered, or another agent took its place.
    Removed,
    MachineDown,
}

/// Why a framework was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameworkRemoval {
    Teardown,
    TeardownByOperator,
    FailoverTimeout,
}

/// The status of a task, as far as a line shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskUpdate {
    pub framework_id: FrameworkId,
    pub task_id: TaskId,
    pub agent_id: AgentId,
    pub state: pb::TaskState,
    pub reason: Option<Reason>,
    pub source: Option<Source>,
    pub message: Option<String>,
    pub healthy: Option<bool>,
}

impl TaskUpdate {
    /// Of a task that is not in the books.
    pub(crate) fn of(framework_id: &FrameworkId, status: &pb::TaskStatus) -> Self {
        let (task_id, agent_id) = (TaskId::from(&*status.task_id), AgentId::from(&*status.agent_id));
        Self::new(framework_id.clone(), task_id, agent_id, status)
    }

    pub(crate) fn new(
        framework_id: FrameworkId,
        task_id: TaskId,
        agent_id: AgentId,
        status: &pb::TaskStatus,
    ) -> Self {
        Self {
            framework_id,
            task_id,
            agent_id,
            state: status.state,
            reason: status.reason,
            source: status.source,
            message: status.message.clone(),
            healthy: status.healthy,
        }
    }
}
