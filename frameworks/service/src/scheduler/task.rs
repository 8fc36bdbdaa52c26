//! A task instance as the scheduler holds it: its last launch, its last status, its override.

use std::sync::Arc;

use tepui_proto::Enumeration as _;
use tepui_proto::mesos::v1::TaskState as State;
use tepui_proto::mesos::v1::task_status::Reason;

use super::record::{Launch, Override, OverrideTarget, Status};
use crate::plan::TaskState;

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub launch: Arc<Launch>,
    pub status: Arc<Status>,
    pub override_: Option<Override>,
}

/// Whether a task may still do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Live,
    /// Its agent is out of contact, or the master does not know it any more: it may run on, and come back.
    Unreachable,
    Dead,
}

impl Task {
    pub(super) fn state(&self) -> State {
        State::from_proto_name(&self.status.state).unwrap_or(State::TASK_UNKNOWN)
    }

    pub(super) fn life(&self) -> Life {
        life(self.state())
    }

    /// Of a task that is out of contact.
    pub(super) fn agent_state(&self) -> &'static str {
        match self.state() {
            State::TASK_UNKNOWN => "unknown to the master",
            _ => "unreachable",
        }
    }

    pub(super) fn plan_state(&self) -> TaskState {
        let reason = self.status.reason.as_deref().and_then(Reason::from_proto_name);
        plan_state(self.state(), reason, self.status.is_ready)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.override_.is_some_and(|own| own.target == OverrideTarget::Paused)
    }
}

pub(super) fn life(state: State) -> Life {
    match state {
        State::TASK_STAGING | State::TASK_STARTING | State::TASK_RUNNING | State::TASK_KILLING => Life::Live,
        State::TASK_UNREACHABLE | State::TASK_UNKNOWN => Life::Unreachable,
        State::TASK_FINISHED
        | State::TASK_FAILED
        | State::TASK_KILLED
        | State::TASK_ERROR
        | State::TASK_LOST
        | State::TASK_DROPPED
        | State::TASK_GONE
        | State::TASK_GONE_BY_OPERATOR => Life::Dead,
    }
}

pub(super) fn plan_state(state: State, reason: Option<Reason>, is_ready: bool) -> TaskState {
    match state {
        // The same launch would be rejected again: it is delayed like one that failed.
        State::TASK_DROPPED | State::TASK_LOST if is_rejection(reason) => TaskState::Failed,
        State::TASK_STAGING | State::TASK_STARTING => TaskState::Starting,
        State::TASK_RUNNING => TaskState::Running { ready: is_ready },
        State::TASK_FINISHED => TaskState::Finished,
        State::TASK_FAILED | State::TASK_ERROR => TaskState::Failed,
        State::TASK_KILLED
        | State::TASK_KILLING
        | State::TASK_LOST
        | State::TASK_GONE
        | State::TASK_DROPPED
        | State::TASK_UNREACHABLE
        | State::TASK_UNKNOWN => TaskState::Lost,
        State::TASK_GONE_BY_OPERATOR => TaskState::GoneByOperator,
    }
}

/// Whether a launch was rejected for its content, and not because of lost offers or agents.
fn is_rejection(reason: Option<Reason>) -> bool {
    matches!(
        reason,
        Some(
            Reason::REASON_TASK_INVALID
                | Reason::REASON_TASK_GROUP_INVALID
                | Reason::REASON_TASK_UNAUTHORIZED
                | Reason::REASON_TASK_GROUP_UNAUTHORIZED
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_rejected_for_their_content_are_delayed_and_others_are_not() {
        let cases = [
            (State::TASK_DROPPED, Some(Reason::REASON_TASK_INVALID), TaskState::Failed),
            (State::TASK_DROPPED, Some(Reason::REASON_TASK_GROUP_UNAUTHORIZED), TaskState::Failed),
            (State::TASK_LOST, Some(Reason::REASON_TASK_GROUP_INVALID), TaskState::Failed),
            (State::TASK_DROPPED, Some(Reason::REASON_INVALID_OFFERS), TaskState::Lost),
            (State::TASK_DROPPED, None, TaskState::Lost),
            (State::TASK_KILLED, Some(Reason::REASON_TASK_INVALID), TaskState::Lost),
            (State::TASK_ERROR, None, TaskState::Failed),
        ];
        for (state, reason, expected) in cases {
            assert_eq!(plan_state(state, reason, false), expected, "{state:?} {reason:?}");
        }
    }
}
