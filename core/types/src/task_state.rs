//! Task states of v1: which are terminal, and the state of a lost task.
//!
//! Absent: notifications of changes.

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

/// The state sent to a framework: the precise one if it is partition-aware, else TASK_LOST.
pub fn lost_as(partition_aware: bool, precise: TaskState) -> TaskState {
    if partition_aware { precise } else { TaskState::TASK_LOST }
}
