//! When a snapshot is published: at once for a reader that waits, else at an interval while the state changes.
//!
//! A snapshot that is held makes every change of what it shares with the state a copy, so none is made for nothing. That
//! of the interval is what readers get while nothing becomes durable.

use core::time::Duration;

use tepui_fsm::Mono;

#[derive(Debug)]
pub(crate) struct Snapshots {
    interval: Duration,
    last: Mono,
    /// The state has changed since the last snapshot.
    is_outdated: bool,
    /// One is due at the end of this turn.
    is_required: bool,
    /// The newest reader.
    ticket: u64,
}

impl Snapshots {
    /// The initial state is published by the first turn.
    pub(crate) fn new(interval: Duration) -> Self {
        Self { interval, last: Mono(0), is_outdated: false, is_required: true, ticket: 0 }
    }

    pub(crate) fn require(&mut self) {
        self.is_required = true;
    }

    pub(crate) fn request(&mut self, ticket: u64) {
        self.is_required |= ticket > self.ticket;
        self.ticket = self.ticket.max(ticket);
    }

    pub(crate) fn on_change(&mut self) {
        self.is_outdated = true;
    }

    /// The newest ticket, if a snapshot is due now.
    pub(crate) fn take_due(&mut self, now: Mono) -> Option<u64> {
        let is_due = self.is_required || self.deadline().is_some_and(|deadline| deadline <= now);
        if is_due {
            (self.is_outdated, self.is_required, self.last) = (false, false, now);
        }
        is_due.then_some(self.ticket)
    }

    /// When the next snapshot is due without a reader.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.is_outdated.then(|| self.last + self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_due_for_readers_at_once_and_for_changes_at_an_interval() {
        let at = |ms: u64| Mono(ms * 1_000_000);
        let mut snapshots = Snapshots::new(Duration::from_millis(10));
        assert_eq!(snapshots.take_due(at(1)), Some(0), "the initial state");
        assert_eq!(snapshots.take_due(at(100)), None, "nothing has changed");
        snapshots.on_change();
        assert_eq!(snapshots.take_due(at(100)), Some(0), "the last one is old");
        snapshots.on_change();
        assert_eq!(snapshots.take_due(at(105)), None, "the last one is new");
        assert_eq!(snapshots.deadline(), Some(at(110)));
        snapshots.request(7);
        snapshots.request(6);
        assert_eq!(snapshots.take_due(at(106)), Some(7), "a reader waits");
        snapshots.request(7);
        assert_eq!(snapshots.take_due(at(107)), None, "it was answered");
        assert_eq!(snapshots.deadline(), None);
    }
}
