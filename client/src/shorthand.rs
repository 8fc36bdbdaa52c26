//! Short ways to write common pieces of messages.

use std::time::Duration;

use tepui_proto::mesos::v1::framework_info::{Capability, capability};
use tepui_proto::mesos::v1::value::{Scalar, Type};
use tepui_proto::mesos::v1::{
    AgentID, CommandInfo, ContainerID, DurationInfo, ExecutorID, FrameworkID, OfferID, Resource, TaskID,
    TaskState,
};

macro_rules! ids {
    ($($name:ident -> $id:ident),*) => {
        $(pub fn $name(value: impl Into<String>) -> $id {
            $id { value: value.into(), ..Default::default() }
        })*
    };
}

ids!(
    agent_id -> AgentID, container_id -> ContainerID, executor_id -> ExecutorID, framework_id -> FrameworkID,
    offer_id -> OfferID, task_id -> TaskID
);

/// An amount of an unreserved resource, such as 0.5 `cpus`.
pub fn scalar(name: &str, value: f64) -> Resource {
    Resource {
        name: name.into(),
        r#type: Type::SCALAR,
        scalar: Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    }
}

/// A command for `sh -c`.
pub fn shell(command: impl Into<String>) -> CommandInfo {
    CommandInfo { value: Some(command.into()), ..Default::default() }
}

pub fn capability(kind: capability::Type) -> Capability {
    Capability { r#type: Some(kind), ..Default::default() }
}

/// Saturates at about 292 years.
pub fn duration_info(duration: Duration) -> DurationInfo {
    let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    DurationInfo { nanoseconds, ..Default::default() }
}

/// A negative duration counts as none.
pub fn from_duration_info(duration: &DurationInfo) -> Duration {
    Duration::from_nanos(u64::try_from(duration.nanoseconds).unwrap_or(0))
}

/// Whether a task in this state has ended for good.
pub fn is_terminal(state: TaskState) -> bool {
    match state {
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
