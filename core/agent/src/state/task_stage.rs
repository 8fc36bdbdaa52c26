//! The life of a task: its stages and every transition between them.

use tepui_proto::mesos::v1 as pb;

#[derive(Clone, Debug, PartialEq)]
pub enum TaskStage {
    /// Waits for its executor. `held_back`: its executor had tasks already when it came, and could not be given it at
    /// once. Recorded: of other tasks, an executor without any delivery implies that they wait.
    Queued { held_back: bool },
    /// Delivered to its executor.
    Launched { kill: Kill, completion: Completion },
    /// In a terminal state; its last update is not acknowledged.
    Terminated,
}

/// A requested kill.
#[derive(Clone, Debug, PartialEq)]
pub enum Kill {
    NotRequested,
    /// The executor has its grace period.
    Requested {
        policy: Option<pb::KillPolicy>,
    },
    /// The executor did not kill the task in time.
    Overdue {
        policy: Option<pb::KillPolicy>,
    },
}

/// The time that a task has for itself, its `max_completion_time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Not over, or unlimited.
    InTime,
    /// It is over, and so is the executor's time to kill the task.
    Overdue,
}

#[derive(Clone, Debug)]
pub(crate) enum TaskEvent {
    Delivered,
    KillRequested {
        policy: Option<pb::KillPolicy>,
    },
    KillTimedOut,
    CompletionTimedOut,
    /// A terminal update.
    Terminated,
}

impl TaskStage {
    /// The stage of a task that was just delivered.
    pub(crate) const LAUNCHED: Self =
        Self::Launched { kill: Kill::NotRequested, completion: Completion::InTime };

    /// The stage after an event; `None` if the event changes nothing.
    pub(crate) fn after(&self, event: TaskEvent) -> Option<Self> {
        use TaskEvent::{CompletionTimedOut, Delivered, KillRequested, KillTimedOut};
        match (self, event) {
            (Self::Queued { .. }, Delivered) => Some(Self::LAUNCHED),
            (Self::Launched { kill, completion }, KillRequested { policy }) => {
                Some(Self::Launched { kill: kill.requested(policy), completion: *completion })
            }
            (Self::Launched { kill: Kill::Requested { policy }, completion }, KillTimedOut) => {
                let kill = Kill::Overdue { policy: policy.clone() };
                Some(Self::Launched { kill, completion: *completion })
            }
            (Self::Launched { kill, .. }, CompletionTimedOut) => {
                Some(Self::Launched { kill: kill.clone(), completion: Completion::Overdue })
            }
            (Self::Queued { .. } | Self::Launched { .. }, TaskEvent::Terminated) => Some(Self::Terminated),
            // A queued task is killed by the agent, without its executor.
            (Self::Queued { .. }, KillRequested { .. } | KillTimedOut | CompletionTimedOut) => None,
            (Self::Launched { .. }, Delivered) => None,
            (Self::Launched { kill: Kill::NotRequested | Kill::Overdue { .. }, .. }, KillTimedOut) => None,
            (Self::Terminated, _) => None, // Terminal states are final.
        }
    }

    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Queued { .. })
    }

    pub fn is_launched(&self) -> bool {
        matches!(self, Self::Launched { .. })
    }

    pub fn is_terminated(&self) -> bool {
        matches!(self, Self::Terminated)
    }

    pub(crate) fn is_held_back(&self) -> bool {
        matches!(self, Self::Queued { held_back: true })
    }

    /// The kill of a delivered task.
    pub(crate) fn kill(&self) -> &Kill {
        match self {
            Self::Launched { kill, .. } => kill,
            Self::Queued { .. } | Self::Terminated => &Kill::NotRequested,
        }
    }
}

impl Kill {
    pub(crate) fn is_requested(&self) -> bool {
        match self {
            Self::NotRequested => false,
            Self::Requested { .. } | Self::Overdue { .. } => true,
        }
    }

    pub(crate) fn policy(&self) -> Option<&pb::KillPolicy> {
        match self {
            Self::NotRequested => None,
            Self::Requested { policy } | Self::Overdue { policy } => policy.as_ref(),
        }
    }

    /// A repeated request changes the policy; it does not give an executor its time again.
    fn requested(&self, policy: Option<pb::KillPolicy>) -> Self {
        match self {
            Self::NotRequested | Self::Requested { .. } => Self::Requested { policy },
            Self::Overdue { .. } => Self::Overdue { policy },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(events: &[TaskEvent]) -> TaskStage {
        let queued = TaskStage::Queued { held_back: false };
        events.iter().fold(queued, |stage, event| stage.after(event.clone()).unwrap_or(stage))
    }

    #[test]
    fn a_repeated_kill_does_not_restart_the_grace_period() {
        let request = || TaskEvent::KillRequested { policy: Some(pb::KillPolicy::default()) };
        let overdue = stage(&[
            TaskEvent::Delivered,
            TaskEvent::KillRequested { policy: None },
            TaskEvent::KillTimedOut,
            request(),
        ]);
        assert_eq!(*overdue.kill(), Kill::Overdue { policy: Some(pb::KillPolicy::default()) });
    }

    #[test]
    fn only_delivered_tasks_are_killed_by_their_executor() {
        assert!(stage(&[TaskEvent::KillRequested { policy: None }]).is_queued());
        assert!(stage(&[TaskEvent::Terminated, TaskEvent::Delivered]).is_terminated());
        let in_time = stage(&[TaskEvent::Delivered, TaskEvent::KillTimedOut]);
        assert_eq!(in_time, TaskStage::LAUNCHED);
    }
}
