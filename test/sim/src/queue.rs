//! What will happen, in the order in which it happens: by time, then by the order in which it was decided.

use std::collections::BTreeMap;

/// The virtual clock and everything that waits for it.
#[derive(Debug)]
pub(crate) struct Queue<E> {
    now: u64,
    decided: u64,
    waiting: BTreeMap<(u64, u64), E>,
}

impl<E> Queue<E> {
    pub(crate) fn new() -> Self {
        Self { now: 0, decided: 0, waiting: BTreeMap::new() }
    }

    /// Nanoseconds since the world began.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// Lets `event` happen at `at`, or now if that has passed.
    pub(crate) fn at(&mut self, at: u64, event: E) {
        self.decided += 1;
        self.waiting.insert((at.max(self.now), self.decided), event);
    }

    pub(crate) fn after(&mut self, wait: u64, event: E) {
        self.at(self.now.saturating_add(wait), event);
    }

    /// The next event; advances the clock.
    pub(crate) fn next(&mut self) -> Option<E> {
        let ((at, _), event) = self.waiting.pop_first()?;
        self.now = at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_then_insertion() {
        let mut queue = Queue::new();
        queue.at(20, "c");
        queue.at(10, "a");
        queue.at(10, "b");
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(order, ["a", "b", "c"]);
        queue.at(5, "late");
        assert_eq!((queue.next(), queue.now()), (Some("late"), 20));
    }
}
