//! A queue of state transitions, and the thread that logs them.
//!
//! The machine hands over values; formatting happens on the thread, for the transitions of a few milliseconds together:
//! each wake of it costs the machine's thread a system call. The sender never waits: when the queue is full, transitions
//! are dropped, and a line reports how many.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

/// Transitions that may wait for the thread; more are dropped.
pub const QUEUE_TRANSITIONS_MAX: usize = 64 * 1024;

/// How long transitions are gathered.
const GATHER: Duration = Duration::from_millis(10);

thread_local! {
    /// When the transition happened that is being logged on this thread.
    static HAPPENED: Cell<Option<SystemTime>> = const { Cell::new(None) };
}

/// The time that a line shows: that of the transition it is about, else now.
pub(crate) fn time_of_event() -> SystemTime {
    HAPPENED.get().unwrap_or_else(SystemTime::now)
}

/// The sender. Dropping it logs all queued transitions and stops the thread.
#[derive(Debug)]
pub struct TransitionLog<T> {
    /// None: it is being dropped.
    queue: Option<Sender<Batch<T>>>,
    thread: Option<JoinHandle<()>>,
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
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || run(&batches, &shared, log))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), counts, limit })
    }

    /// Queues transitions that happened now. Never blocks.
    pub fn push(&self, transitions: Vec<T>) {
        if transitions.is_empty() {
            return;
        }
        let count = transitions.len();
        let waiting = self.counts.waiting.fetch_add(count, Ordering::Relaxed) + count;
        let batch = Batch { at: SystemTime::now(), transitions };
        let send = |queue: &Sender<Batch<T>>| queue.send(batch).is_ok();
        if waiting > self.limit || !self.queue.as_ref().is_some_and(send) {
            self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
            self.counts.dropped.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for TransitionLog<T> {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join(); // After a panic nothing is left to log.
        }
    }
}

fn run<T>(batches: &Receiver<Batch<T>>, counts: &Counts, mut log: impl FnMut(T)) {
    while let Ok(first) = batches.recv() {
        thread::park_timeout(GATHER);
        for batch in std::iter::once(first).chain(batches.try_iter()) {
            HAPPENED.set(Some(batch.at));
            let count = batch.transitions.len();
            batch.transitions.into_iter().for_each(&mut log);
            counts.waiting.fetch_sub(count, Ordering::Relaxed);
            report_dropped(counts); // Batches may arrive faster than they are logged.
        }
    }
}

fn report_dropped(counts: &Counts) {
    match counts.dropped.swap(0, Ordering::Relaxed) {
        0 => (),
        dropped => tracing::warn!(dropped, "state transitions were not logged: the queue was full"),
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
    fn dropped_log_has_logged_everything() {
        let (seen, arrived) = channel();
        let log = TransitionLog::start("test", move |number: u32| seen.send(number).unwrap()).unwrap();
        (0..3).for_each(|number| log.push(vec![number]));
        drop(log);
        assert_eq!(arrived.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
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
        let held = held; // Dropped before the log, which a failed assertion must not make wait.
        log.push(vec![1, 2]);
        assert_eq!(arrived.recv(), Ok(1));
        log.push(vec![3, 4, 5]);
        assert_eq!(log.counts.dropped.load(Ordering::Relaxed), 3);
        drop(held);
        assert_eq!(arrived.recv(), Ok(2));
    }

    #[test]
    fn dropped_transitions_are_reported_while_batches_keep_coming() {
        let (queue, batches) = channel();
        let batch = |number: u32| Batch { at: SystemTime::now(), transitions: vec![number] };
        let counts = Counts::default();
        counts.waiting.store(2, Ordering::Relaxed);
        counts.dropped.store(3, Ordering::Relaxed);
        queue.send(batch(1)).unwrap();
        let (mut queue, mut unreported) = (Some(queue), Vec::new());
        run(&batches, &counts, |_| {
            unreported.push(counts.dropped.load(Ordering::Relaxed));
            queue.take().into_iter().for_each(|queue| queue.send(batch(2)).unwrap());
        });
        assert_eq!(unreported, [3, 0]);
    }
}
