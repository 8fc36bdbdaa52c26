//! Statuses of steps, phases and plans, and how a parent's follows from its children's.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    Error,
    Delayed,
    Waiting,
    Pending,
    Prepared,
    Starting,
    Started,
    InProgress,
    Complete,
}

impl Status {
    /// Whether work is under way.
    pub fn is_running(self) -> bool {
        matches!(self, Status::Prepared | Status::Starting | Status::Started | Status::InProgress)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Status::Error => "ERROR",
            Status::Delayed => "DELAYED",
            Status::Waiting => "WAITING",
            Status::Pending => "PENDING",
            Status::Prepared => "PREPARED",
            Status::Starting => "STARTING",
            Status::Started => "STARTED",
            Status::InProgress => "IN_PROGRESS",
            Status::Complete => "COMPLETE",
        })
    }
}

/// A parent's own part in its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parent {
    pub has_errors: bool,
    pub interrupted: bool,
}

/// The status of a parent. `eligible` are the children that its strategy lets go on, delayed ones included.
pub fn aggregate(parent: Parent, children: &[Status], eligible: &[Status]) -> Status {
    let any = |statuses: &[Status], status: Status| statuses.contains(&status);
    let all = |statuses: &[Status], status: Status| statuses.iter().all(|own| *own == status);
    let running = |status: &Status| matches!(status, Status::Pending | Status::Starting | Status::Started);
    if parent.has_errors || any(children, Status::Error) {
        Status::Error
    } else if all(children, Status::Complete) {
        Status::Complete
    } else if parent.interrupted {
        Status::Waiting
    } else if !eligible.is_empty() && all(eligible, Status::Delayed) {
        Status::Delayed
    } else if any(children, Status::Prepared) {
        Status::InProgress
    } else if any(eligible, Status::Waiting) {
        Status::Waiting
    } else if any(eligible, Status::InProgress)
        || (any(children, Status::Complete) && eligible.iter().any(running))
    {
        Status::InProgress
    } else if any(eligible, Status::Pending) {
        Status::Pending
    } else if any(children, Status::Waiting) {
        Status::Waiting
    } else if any(eligible, Status::Starting) {
        Status::Starting
    } else if any(eligible, Status::Started) {
        Status::Started
    } else {
        // Nothing may go on, and nothing is complete: what is left is held back by a dependency.
        Status::Pending
    }
}

#[cfg(test)]
mod tests {
    use Status::{Complete, Delayed, Error, InProgress, Pending, Prepared, Started, Starting, Waiting};

    use super::*;

    #[test]
    fn parents_follow_their_children() {
        let cases: &[(&[Status], &[Status], Status)] = &[
            (&[], &[], Complete),
            (&[Complete, Complete], &[], Complete),
            (&[Complete, Error], &[], Error),
            (&[Pending, Pending], &[Pending], Pending),
            (&[Complete, Pending], &[Pending], InProgress),
            (&[Complete, Starting], &[Starting], InProgress),
            (&[Complete, Started], &[Started], InProgress),
            (&[Prepared, Pending], &[Prepared], InProgress),
            (&[Starting, Pending], &[Starting], Starting),
            (&[Started, Pending], &[Started], Started),
            (&[InProgress, Pending], &[InProgress], InProgress),
            (&[Waiting, Pending], &[Waiting], Waiting),
            (&[Waiting, Waiting, Pending], &[], Waiting),
            (&[Delayed, Delayed], &[Delayed, Delayed], Delayed),
            // The SDK shows ERROR for these two until the delay ends.
            (&[Complete, Delayed], &[Delayed], Delayed),
            (&[Delayed, Pending], &[Delayed], Delayed),
            (&[Delayed, Pending], &[Delayed, Pending], Pending),
        ];
        for (children, eligible, expected) in cases {
            assert_eq!(
                aggregate(Parent::default(), children, eligible),
                *expected,
                "{children:?} {eligible:?}"
            );
        }
    }

    #[test]
    fn errors_and_interruptions_of_the_parent_count_before_its_children() {
        let interrupted = Parent { interrupted: true, has_errors: false };
        assert_eq!(aggregate(interrupted, &[Pending], &[]), Waiting);
        assert_eq!(aggregate(interrupted, &[Complete], &[]), Complete);
        let failed = Parent { interrupted: true, has_errors: true };
        assert_eq!(aggregate(failed, &[Complete], &[]), Error);
    }
}
