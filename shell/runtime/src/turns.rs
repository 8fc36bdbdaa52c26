//! Turns: take in a bounded batch of inputs, settle, hand the outbox to the barrier, wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tepui_fsm::{Durable, Fsm, Now, Outbox};
use tokio::sync::watch;

use crate::barrier::{Barrier, BarrierGone};
use crate::{Clock, Limits, Mailbox, Timings};

/// How long the times of turns are kept.
const TURN_TIMES_KEPT: Duration = Duration::from_secs(60);

/// Turns that take longer are counted.
const LONG_TURN: Duration = Duration::from_millis(1);

/// How long the machine's thread is held by turns, from the first input to the release of what was decided.
#[derive(Debug)]
pub struct TurnTimes {
    /// Of the last minute.
    pub timings: Timings,
    turns: AtomicU64,
    long: AtomicU64,
}

impl Default for TurnTimes {
    fn default() -> Self {
        Self { timings: Timings::new(TURN_TIMES_KEPT), turns: AtomicU64::new(0), long: AtomicU64::new(0) }
    }
}

impl TurnTimes {
    /// How many there were.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// How many of them took longer than a millisecond.
    pub fn long(&self) -> u64 {
        self.long.load(Ordering::Relaxed)
    }

    fn add(&self, began: Instant, took: Duration) {
        self.timings.add(began, took);
        self.turns.fetch_add(1, Ordering::Relaxed);
        if took > LONG_TURN {
            self.long.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Everything the machine's thread owns.
pub(crate) struct Turns<M: Fsm, S> {
    pub name: String,
    pub machine: M,
    pub mailbox: Mailbox<M::Input>,
    pub barrier: Barrier<M::Record, M::Effect, S>,
    pub clock: Clock,
    pub limits: Limits,
    pub times: Arc<TurnTimes>,
    pub stop_asked: watch::Receiver<bool>,
}

impl<M, S> Turns<M, S>
where
    M: Fsm,
    M::Record: Durable,
    S: FnMut(Vec<M::Effect>),
{
    /// Runs until asked to stop, until nobody can send any more, or until records can no longer be made durable.
    pub async fn run(mut self) {
        let mut inputs = Vec::with_capacity(self.limits.turn_inputs_max);
        loop {
            if self.turn(&mut inputs).is_err() {
                return;
            }
            if !self.wait(&mut inputs).await {
                return;
            }
        }
    }

    /// One turn over `inputs`, which is empty afterwards.
    fn turn(&mut self, inputs: &mut Vec<M::Input>) -> Result<(), BarrierGone> {
        let began = Instant::now();
        let mut out = Outbox::new();
        let now = self.clock.now();
        let count = inputs.len();
        for input in inputs.drain(..) {
            self.machine.step(now, input, &mut out);
        }
        let (settling, most) = (Instant::now(), self.limits.settle_time_max);
        self.machine.settle(now, &mut || settling.elapsed() < most, &mut out);
        self.log_if_slow(now, count, out.len());
        let released = self.barrier.release(out.take());
        self.times.add(began, began.elapsed());
        released
    }

    /// Waits for inputs or the deadline; false if there will be no more turns.
    async fn wait(&mut self, inputs: &mut Vec<M::Input>) -> bool {
        let deadline = self.machine.deadline().map(|at| self.clock.instant(at));
        let receiver = &mut self.mailbox.receiver;
        let due = async {
            match deadline {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A flood of inputs must not starve the request to stop.
            biased;
            // An error means that the `Running` was dropped: then the mailbox alone says when to end.
            Ok(()) = self.stop_asked.changed() => receiver.close(),
            count = receiver.recv_many(inputs, self.limits.turn_inputs_max) => return count > 0,
            () = due => return true,
        }
        // Closed: what is left in the mailbox is still worked off, turn by turn.
        receiver.recv_many(inputs, self.limits.turn_inputs_max).await > 0
    }

    fn log_if_slow(&self, began: Now, inputs: usize, items: usize) {
        let took = self.clock.now().mono.since(began.mono);
        if took > self.limits.slow_turn {
            let took_ms = took.as_millis() as u64;
            tracing::warn!(machine = %self.name, took_ms, inputs, items, "slow turn");
        }
    }
}
