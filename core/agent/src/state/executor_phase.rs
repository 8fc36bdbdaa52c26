//! The life of an executor: its phases and every transition between them.

use alloc::sync::Arc;

use tepui_types::ConnId;

use super::Cause;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorPhase {
    /// Its container is not requested yet: it waits for resources that were lent to others.
    Pending,
    /// Its container was requested, or is left over from before a restart; it has not subscribed.
    Registering,
    /// It subscribed; `conn` is its event stream, if that is open.
    Running { conn: Option<ConnId> },
    /// It is shutting down, or is being destroyed; by the agent's decision if there is a cause.
    Terminating { conn: Option<ConnId>, cause: Option<Arc<Cause>> },
    /// Its container terminated; updates of its tasks may still wait for their acknowledgement.
    Terminated { cause: Option<Arc<Cause>> },
}

#[derive(Clone, Debug)]
pub(crate) enum ExecutorEvent {
    /// Its container is requested.
    Started,
    Subscribed(ConnId),
    Disconnected(ConnId),
    /// It is to terminate.
    Stopped(Option<Arc<Cause>>),
    /// Its container terminated, or never came to be. An earlier cause stands.
    Exited(Option<Arc<Cause>>),
}

impl ExecutorPhase {
    /// The phase after an event; `None` if the event changes nothing.
    pub(crate) fn after(&self, event: ExecutorEvent) -> Option<Self> {
        use ExecutorEvent::{Disconnected, Exited, Started, Stopped, Subscribed};
        use ExecutorPhase::{Pending, Registering, Running, Terminated, Terminating};
        match (self, event) {
            (Pending, Started) => Some(Registering),
            (Registering | Running { .. }, Subscribed(conn)) => Some(Running { conn: Some(conn) }),
            (Running { conn: Some(open) }, Disconnected(conn)) if *open == conn => {
                Some(Running { conn: None })
            }
            (Terminating { conn: Some(open), cause }, Disconnected(conn)) if *open == conn => {
                Some(Terminating { conn: None, cause: cause.clone() })
            }
            (Registering, Stopped(cause)) => Some(Terminating { conn: None, cause }),
            (Running { conn }, Stopped(cause)) => Some(Terminating { conn: *conn, cause }),
            (Pending | Registering | Running { .. }, Exited(cause)) => Some(Terminated { cause }),
            (Terminating { cause: earlier, .. }, Exited(cause)) => {
                Some(Terminated { cause: earlier.clone().or(cause) })
            }
            // Without a container there is nothing to stop: it is over at once.
            (Pending, Stopped(_)) => None,
            (Pending | Terminating { .. }, Subscribed(_)) => None,
            (Registering | Running { .. } | Terminating { .. }, Started) => None,
            (Pending | Registering | Running { .. } | Terminating { .. }, Disconnected(_)) => None,
            (Terminating { .. }, Stopped(_)) => None,
            (Terminated { .. }, Started | Subscribed(_) | Disconnected(_) | Stopped(_) | Exited(_)) => None,
        }
    }

    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Running { conn } | Self::Terminating { conn, .. } => *conn,
            Self::Pending | Self::Registering | Self::Terminated { .. } => None,
        }
    }

    /// Why the agent ends it, if it does.
    pub(crate) fn cause(&self) -> Option<&Arc<Cause>> {
        match self {
            Self::Terminating { cause, .. } | Self::Terminated { cause } => cause.as_ref(),
            Self::Pending | Self::Registering | Self::Running { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn termination_is_final_and_keeps_the_first_cause() {
        let cause = |message: &str| Some(Arc::new(Cause { message: message.into(), ..Cause::default() }));
        let terminating = ExecutorPhase::Running { conn: Some(ConnId(1)) }
            .after(ExecutorEvent::Stopped(cause("first")))
            .expect("a running executor can be stopped");
        assert_eq!(terminating.conn(), Some(ConnId(1)));
        assert_eq!(terminating.after(ExecutorEvent::Stopped(cause("second"))), None);
        assert_eq!(terminating.after(ExecutorEvent::Subscribed(ConnId(2))), None);
        let terminated = terminating.after(ExecutorEvent::Exited(cause("third"))).expect("it exits once");
        assert_eq!(terminated, ExecutorPhase::Terminated { cause: cause("first") });
        assert_eq!(terminated.after(ExecutorEvent::Exited(None)), None);
    }

    #[test]
    fn a_pending_executor_cannot_subscribe_or_be_stopped() {
        assert_eq!(ExecutorPhase::Pending.after(ExecutorEvent::Subscribed(ConnId(1))), None);
        assert_eq!(ExecutorPhase::Pending.after(ExecutorEvent::Stopped(None)), None);
        assert_eq!(ExecutorPhase::Pending.after(ExecutorEvent::Started), Some(ExecutorPhase::Registering));
    }

    #[test]
    fn only_the_open_stream_disconnects() {
        let running = ExecutorPhase::Running { conn: Some(ConnId(2)) };
        assert_eq!(running.after(ExecutorEvent::Disconnected(ConnId(1))), None);
        assert_eq!(
            running.after(ExecutorEvent::Disconnected(ConnId(2))),
            Some(ExecutorPhase::Running { conn: None })
        );
    }
}
