//! The values of v1 enums as metrics spell them: lower case, and agents under their old name.

use std::sync::LazyLock;

use tepui_proto::Enumeration;
use tepui_proto::mesos::v1::offer::operation::Type as OperationType;
use tepui_proto::mesos::v1::scheduler::call::Type as CallType;
use tepui_proto::mesos::v1::scheduler::event::Type as EventType;
use tepui_proto::mesos::v1::{OperationState, TaskState};

/// Values with their names.
pub(super) type Names<T> = LazyLock<Vec<(T, String)>>;

pub(super) static CALLS: Names<CallType> = LazyLock::new(|| named(CallType::values(), &[CallType::UNKNOWN]));

pub(super) static EVENTS: Names<EventType> =
    LazyLock::new(|| named(EventType::values(), &[EventType::UNKNOWN]));

pub(super) static OPERATIONS: Names<OperationType> =
    LazyLock::new(|| named(OperationType::values(), &[OperationType::UNKNOWN]));

/// States that a task leaves again.
pub(super) static ACTIVE_TASKS: Names<TaskState> = LazyLock::new(|| {
    use TaskState as S;
    named(
        &[
            S::TASK_STAGING,
            S::TASK_STARTING,
            S::TASK_RUNNING,
            S::TASK_KILLING,
            S::TASK_UNREACHABLE,
            S::TASK_UNKNOWN,
        ],
        &[],
    )
});

pub(super) static TERMINAL_TASKS: Names<TaskState> = LazyLock::new(|| {
    use TaskState as S;
    let terminal = [
        S::TASK_FINISHED,
        S::TASK_FAILED,
        S::TASK_KILLED,
        S::TASK_ERROR,
        S::TASK_LOST,
        S::TASK_DROPPED,
        S::TASK_GONE,
        S::TASK_GONE_BY_OPERATOR,
    ];
    named(&terminal, &[])
});

/// States of operations that are counted, without their common beginning.
pub(super) const OPERATION_STATES: [(OperationState, &str); 8] = [
    (OperationState::OPERATION_PENDING, "pending"),
    (OperationState::OPERATION_RECOVERING, "recovering"),
    (OperationState::OPERATION_UNREACHABLE, "unreachable"),
    (OperationState::OPERATION_FINISHED, "finished"),
    (OperationState::OPERATION_FAILED, "failed"),
    (OperationState::OPERATION_ERROR, "error"),
    (OperationState::OPERATION_DROPPED, "dropped"),
    (OperationState::OPERATION_GONE_BY_OPERATOR, "gone_by_operator"),
];

/// `REASON_AGENT_REMOVED` as `reason_slave_removed`.
pub(super) fn legacy(value: impl Enumeration) -> String {
    value.proto_name().to_lowercase().replace("agent", "slave")
}

fn named<T: Enumeration>(values: &[T], but: &[T]) -> Vec<(T, String)> {
    values.iter().filter(|value| !but.contains(value)).map(|value| (*value, legacy(*value))).collect()
}
