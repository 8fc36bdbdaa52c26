//! Why an operation of an ACCEPT, or a task of it, is not carried out, and how v1 reports that.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::task_status::Reason;
use tepui_types::lost_as;

use crate::state::status::Verdict;

/// A fault of the peer, with the sentence that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// The offers are not the framework's, not live, or cannot be used together.
    InvalidOffers(String),
    Unauthorized(String),
    Invalid(String),
}

/// What was rejected, and why. Boxed by its makers: it is large, and rare.
#[derive(Debug)]
pub(crate) struct Rejected<T> {
    pub(crate) subject: T,
    pub(crate) rejection: Rejection,
}

/// What a launch starts: a task by itself, or a group, all or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchUnit {
    Task,
    Group,
}

impl Rejection {
    /// State, reason and message of each task that is not launched.
    pub(crate) fn verdict(&self, unit: LaunchUnit, partition_aware: bool) -> Verdict {
        let error = pb::TaskState::TASK_ERROR;
        match (self, unit) {
            (Self::InvalidOffers(why), _) => Verdict::new(
                lost_as(partition_aware, pb::TaskState::TASK_DROPPED),
                Reason::REASON_INVALID_OFFERS,
                format!("Task launched with invalid offers: {why}"),
            ),
            (Self::Unauthorized(why), LaunchUnit::Task) => {
                Verdict::new(error, Reason::REASON_TASK_UNAUTHORIZED, why)
            }
            (Self::Unauthorized(why), LaunchUnit::Group) => {
                Verdict::new(error, Reason::REASON_TASK_GROUP_UNAUTHORIZED, why)
            }
            (Self::Invalid(why), LaunchUnit::Task) => Verdict::new(error, Reason::REASON_TASK_INVALID, why),
            (Self::Invalid(why), LaunchUnit::Group) => {
                Verdict::new(error, Reason::REASON_TASK_GROUP_INVALID, why)
            }
        }
    }

    /// Message of an operation status.
    pub(crate) fn operation_message(&self) -> String {
        match self {
            Self::InvalidOffers(why) => format!("Operation attempted with invalid offers: {why}"),
            Self::Unauthorized(why) | Self::Invalid(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    /// Every kind of rejected launch; the sentences are rows of `validate::tests` and of the scripts.
    #[test]
    fn every_rejected_launch_has_state_reason_and_message() {
        use LaunchUnit::{Group, Task};
        use Reason::*;
        use pb::TaskState::*;
        let why = || "why".to_string();
        let offers = "Task launched with invalid offers: why";
        for (rejection, unit, partition_aware, expected) in [
            (Rejection::InvalidOffers(why()), Task, true, (TASK_DROPPED, REASON_INVALID_OFFERS, offers)),
            (Rejection::InvalidOffers(why()), Group, false, (TASK_LOST, REASON_INVALID_OFFERS, offers)),
            (Rejection::Unauthorized(why()), Task, true, (TASK_ERROR, REASON_TASK_UNAUTHORIZED, "why")),
            (
                Rejection::Unauthorized(why()),
                Group,
                true,
                (TASK_ERROR, REASON_TASK_GROUP_UNAUTHORIZED, "why"),
            ),
            (Rejection::Invalid(why()), Task, false, (TASK_ERROR, REASON_TASK_INVALID, "why")),
            (Rejection::Invalid(why()), Group, true, (TASK_ERROR, REASON_TASK_GROUP_INVALID, "why")),
        ] {
            let verdict = rejection.verdict(unit, partition_aware);
            assert_eq!(
                (verdict.state, verdict.reason, verdict.message.as_str()),
                expected,
                "{rejection:?} {unit:?}"
            );
        }
    }
}
