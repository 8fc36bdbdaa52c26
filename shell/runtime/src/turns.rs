//! Turns: take in a bounded batch of inputs, settle, hand the outbox to the barrier, wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
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
    /// Of the last minute, by the clock: with the time for which the thread was kept from running.
    pub wall: Timings,
    /// The same, by the processor: what the thread itself did.
    pub cpu: Timings,
    turns: AtomicU64,
    long: AtomicU64,
    long_cpu: AtomicU64,
}

impl Default for TurnTimes {
    fn default() -> Self {
        let [wall, cpu] = [TURN_TIMES_KEPT; 2].map(Timings::new);
        let [turns, long, long_cpu] = [const { AtomicU64::new(0) }; 3];
        Self { wall, cpu, turns, long, long_cpu }
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

    /// How many of them took more than a millisecond of processor time.
    pub fn long_cpu(&self) -> u64 {
        self.long_cpu.load(Ordering::Relaxed)
    }

    fn add(&self, stopwatch: &Stopwatch) {
        self.turns.fetch_add(1, Ordering::Relaxed);
        let (wall, cpu) = (stopwatch.began.elapsed(), processor_time().saturating_sub(stopwatch.cpu));
        for (took, timings, long) in [(wall, &self.wall, &self.long), (cpu, &self.cpu, &self.long_cpu)] {
            timings.add(stopwatch.began, took);
            if took > LONG_TURN {
                long.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// When a turn began, by both clocks.
struct Stopwatch {
    began: Instant,
    cpu: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self { began: Instant::now(), cpu: processor_time() }
    }
}

/// What this thread has used of a processor.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
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
    pub stop_requested: watch::Receiver<bool>,
}

impl<M, S> Turns<M, S>
where
    M: Fsm,
    M::Record: Durable,
    S: FnMut(Vec<M::Effect>),
{
    /// Runs until it is stopped, until all senders are dropped, or until records can no longer be made durable.
    pub async fn run(mut self) {
        let mut inputs = Vec::with_capacity(self.limits.turn_inputs_max);
        loop {
            if self.turn(&mut inputs).is_err() {
                return;
            }
            // What there was no time for comes first.
            if inputs.is_empty() && !self.wait(&mut inputs).await {
                return;
            }
        }
    }

    /// One turn over `inputs`, the next of which is the last one. Those that there is no time for are left.
    fn turn(&mut self, inputs: &mut Vec<M::Input>) -> Result<(), BarrierGone> {
        let stopwatch = Stopwatch::start();
        let mut out = Outbox::new();
        let now = self.clock.now();
        let count = self.ingest_inputs(now, inputs, &mut out);
        let (settling, most) = (Instant::now(), self.limits.settle_time_max);
        self.machine.settle(now, &mut || settling.elapsed() < most, &mut out);
        self.log_if_slow(now, count, out.len());
        let released = self.barrier.release(out.take());
        self.times.add(&stopwatch);
        released
    }

    /// Lets the machine take in one input at least, and more while there is time; how many it took.
    fn ingest_inputs(&mut self, now: Now, inputs: &mut Vec<M::Input>, out: &mut Outbox<M>) -> usize {
        let (stepping, most, there) = (Instant::now(), self.limits.step_time_max, inputs.len());
        while let Some(input) = inputs.pop() {
            self.machine.step(now, input, out);
            if stepping.elapsed() >= most {
                break;
            }
        }
        there - inputs.len()
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
            // An error means that the `Running` was dropped: then the mailbox alone determines the end.
            Ok(()) = self.stop_requested.changed() => receiver.close(),
            count = receiver.recv_many(inputs, self.limits.turn_inputs_max) => {
                inputs.reverse();
                return count > 0;
            }
            () = due => return true,
        }
        // Closed: what is left in the mailbox is still worked off, turn by turn.
        let count = receiver.recv_many(inputs, self.limits.turn_inputs_max).await;
        inputs.reverse();
        count > 0
    }

    fn log_if_slow(&self, began: Now, inputs: usize, items: usize) {
        let took = self.clock.now().mono.since(began.mono);
        if took > self.limits.slow_turn {
            let took_ms = took.as_millis() as u64;
            tracing::warn!(machine = %self.name, took_ms, inputs, items, "slow turn");
        }
    }
}
