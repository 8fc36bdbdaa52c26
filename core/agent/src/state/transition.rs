//! State transitions of entities, for the log: compact values, made where the state changes, formatted elsewhere.
//!
//! Of messages only what a line shows. Never here: secrets, `data`, environments, commands.

use alloc::string::String;
use alloc::sync::Arc;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::{Reason, Source};
use tepui_types::{ContainerId, ExecutorId, FrameworkId, LaunchStage, TaskId, Termination};

use crate::state::Container;

/// One entity is in another state.
#[derive(Clone, Debug)]
pub enum Transition {
    /// After a start: which containers of the last run are alive is known.
    Recovered {
        alive: usize,
        terminated: usize,
    },
    /// A master admitted the agent.
    Registered {
        agent_id: String,
        master: Arc<pb::MasterInfo>,
    },
    /// The link with the master that had admitted the agent is gone.
    Disconnected {
        master: Arc<pb::MasterInfo>,
        cause: Disconnection,
    },
    FrameworkAdded {
        framework_id: FrameworkId,
        info: Arc<pb::FrameworkInfo>,
    },
    /// Its executors are shut down.
    FrameworkTerminating {
        framework_id: FrameworkId,
    },
    FrameworkRemoved {
        framework_id: FrameworkId,
    },
    TaskReceived {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
        task_id: TaskId,
        /// It waits until borrowers have released what it needs.
        pending: bool,
    },
    TaskUpdated(TaskUpdate),
    TaskKill {
        framework_id: FrameworkId,
        task_id: TaskId,
    },
    ExecutorLaunched {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
        container_id: ContainerId,
        /// Unset: the agent's own user.
        user: Option<Arc<str>>,
        sandbox: Arc<str>,
    },
    ExecutorSubscribed {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
    },
    ExecutorDisconnected {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
    },
    ExecutorTerminated {
        framework_id: FrameworkId,
        executor_id: ExecutorId,
        /// As of wait(2).
        status: Option<i32>,
        reason: Option<Reason>,
        message: Option<String>,
    },
    /// A container was requested by an operator or executor.
    ContainerRequested {
        container: Arc<Container>,
    },
    ContainerLaunched {
        container_id: ContainerId,
        pid: u32,
    },
    ContainerLaunchFailed {
        container_id: ContainerId,
        stage: LaunchStage,
        message: String,
    },
    ContainerUpdateFailed {
        container_id: ContainerId,
        message: String,
    },
    ContainerTerminated {
        container_id: ContainerId,
        termination: Arc<Termination>,
    },
    OperationUpdated {
        operation: Arc<pb::Operation>,
    },
    /// The disk of the records has become short of room, or is so no longer.
    DiskPressure {
        is_on: bool,
        available_bytes: u64,
    },
    DrainStarted,
    DrainCompleted,
    Terminating,
}

/// Why the agent lost its master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disconnection {
    /// The link broke.
    Broken(String),
    /// Nothing came for too long.
    Silence,
}

/// The status of a task, as far as a line shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskUpdate {
    pub framework_id: FrameworkId,
    pub task_id: TaskId,
    pub state: pb::TaskState,
    pub reason: Option<Reason>,
    pub source: Option<Source>,
    pub message: Option<String>,
    pub healthy: Option<bool>,
}

impl TaskUpdate {
    pub(crate) fn new(framework_id: FrameworkId, task_id: TaskId, status: &pb::TaskStatus) -> Self {
        Self {
            framework_id,
            task_id,
            state: status.state,
            reason: status.reason,
            source: status.source,
            message: status.message.clone(),
            healthy: status.healthy,
        }
    }
}
