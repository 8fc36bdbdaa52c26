//! A queue of state transitions, and the thread that logs them.
//!
//! The machine hands over values; formatting happens on the thread. The sender never waits: when the queue is full,
//! transitions are dropped, and a line reports how many.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::SystemTime;

/// Transitions that may wait for the thread; more are dropped.
pub const QUEUE_TRANSITIONS_MAX: usize = 64 * 1024;

thread_local! {
    /// When the transition happened that is being logged on this thread.
    static HAPPENED: Cell<Option<SystemTime>> = const { Cell::new(None) };
}

/// The time that a line shows: that of the transition it is about, else now.
pub(crate) fn time_of_event() -> SystemTime {
    HAPPENED.get().unwrap_or_else(SystemTime::now)
}

/// The sender. Dropping it stops the thread after all queued transitions are logged.
#[derive(Debug)]
pub struct TransitionLog<T> {
    queue: Sender<Batch<T>>,
    counts: Arc<Counts>,
    /// Transitions that may wait.
    limit: usize,
}

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    dropped: AtomicU64,
}

#[derive(Debug)]
struct Batch<T> {
    at: SystemTime,
    transitions: Vec<T>,
}

impl<T: Send + 'static> TransitionLog<T> {
    /// Starts a thread that calls `log` for each transition, in order.
    pub fn start(name: &str, log: impl FnMut(T) + Send + 'static) -> io::Result<Self> {
        Self::with_limit(name, QUEUE_TRANSITIONS_MAX, log)
    }

    fn with_limit(name: &str, limit: usize, log: impl FnMut(T) + Send + 'static) -> io::Result<Self> {
        let (queue, batches) = channel();
        let counts = Arc::new(Counts::default());
        let shared = Arc::clone(&counts);
        // After a panic of this thread `push` counts transitions as dropped.
        thread::Builder::new().name(name.to_owned()).spawn(move || run(&batches, &shared, log))?;
        Ok(Self { queue, counts, limit })
    }

    /// Queues transitions that happened now. Never blocks.
    pub fn push(&self, transitions: Vec<T>) {
        if transitions.is_empty() {
            return;
        }
        let count = transitions.len();
        let waiting = self.counts.waiting.fetch_add(count, Ordering::Relaxed) + count;
        let batch = Batch { at: SystemTime::now(), transitions };
        if waiting > self.limit || self.queue.send(batch).is_err() {
            self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
            self.counts.dropped.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

fn run<T>(batches: &Receiver<Batch<T>>, counts: &Counts, mut log: impl FnMut(T)) {
    while let Ok(batch) = batches.recv() {
        HAPPENED.set(Some(batch.at));
        let count = batch.transitions.len();
        batch.transitions.into_iter().for_each(&mut log);
        counts.waiting.fetch_sub(count, Ordering::Relaxed);
        match counts.dropped.swap(0, Ordering::Relaxed) {
            0 => (),
            dropped => tracing::warn!(dropped, "state transitions were not logged: the queue was full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitions_arrive_in_order_with_the_time_they_happened() {
        let (seen, arrived) = channel();
        let log =
            TransitionLog::start("test", move |number: u32| seen.send((number, time_of_event())).unwrap());
        let (before, log) = (SystemTime::now(), log.unwrap());
        log.push(vec![1, 2]);
        log.push(vec![3]);
        let all: Vec<(u32, SystemTime)> = arrived.iter().take(3).collect();
        assert_eq!(all.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(all[0].1 >= before && all[0].1 == all[1].1);
    }

    #[test]
    fn full_queue_drops_and_counts_transitions() {
        let (held, hold) = channel::<()>();
        let (seen, arrived) = channel();
        let log = TransitionLog::with_limit("test", 2, move |number: u32| {
            seen.send(number).unwrap();
            // Blocks until the test releases it.
            let _ = hold.recv();
        })
        .unwrap();
        log.push(vec![1, 2]);
        assert_eq!(arrived.recv(), Ok(1));
        log.push(vec![3, 4, 5]);
        assert_eq!(log.counts.dropped.load(Ordering::Relaxed), 3);
        drop(held);
        assert_eq!(arrived.recv(), Ok(2));
    }
}
