//! Turns: take in a bounded batch of inputs, settle, hand the outbox to the barrier, wait.

use std::time::Instant;

use tepui_fsm::{Durable, Fsm, Now, Outbox};
use tokio::sync::watch;

use crate::barrier::{Barrier, BarrierGone};
use crate::{Clock, Limits, Mailbox};

/// Everything the machine's thread owns.
pub(crate) struct Turns<M: Fsm, S> {
    pub name: String,
    pub machine: M,
    pub mailbox: Mailbox<M::Input>,
    pub barrier: Barrier<M::Record, M::Effect, S>,
    pub clock: Clock,
    pub limits: Limits,
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
        let mut out = Outbox::new();
        let now = self.clock.now();
        let count = inputs.len();
        for input in inputs.drain(..) {
            self.machine.step(now, input, &mut out);
        }
        let (settling, most) = (Instant::now(), self.limits.settle_time_max);
        self.machine.settle(now, &mut || settling.elapsed() < most, &mut out);
        self.log_if_slow(now, count, out.len());
        self.barrier.release(out.take())
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
