//! What v1 says about task states: which are final, and what a lost task is called.
//!
//! Never here: who is told about a change.

use tepui_proto::mesos::v1::TaskState;

/// Questions about a task's state.
pub trait TaskStateExt {
    /// No state follows a terminal one.
    fn is_terminal(&self) -> bool;
}

impl TaskStateExt for TaskState {
    fn is_terminal(&self) -> bool {
        match self {
            TaskState::TASK_FINISHED
            | TaskState::TASK_FAILED
            | TaskState::TASK_KILLED
            | TaskState::TASK_ERROR
            | TaskState::TASK_LOST
            | TaskState::TASK_DROPPED
            | TaskState::TASK_GONE
            | TaskState::TASK_GONE_BY_OPERATOR => true,
            TaskState::TASK_STAGING
            | TaskState::TASK_STARTING
            | TaskState::TASK_RUNNING
            | TaskState::TASK_KILLING
            | TaskState::TASK_UNREACHABLE
            | TaskState::TASK_UNKNOWN => false,
        }
    }
}

/// The state a framework is told of: the precise one if it is partition aware, TASK_LOST otherwise.
pub fn lost_as(partition_aware: bool, precise: TaskState) -> TaskState {
    if partition_aware { precise } else { TaskState::TASK_LOST }
}
