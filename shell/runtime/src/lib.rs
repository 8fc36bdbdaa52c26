//! Drives any [`Fsm`](tepui_fsm::Fsm): a bounded mailbox, turns, deadlines, and the outbox barrier.
//!
//! The machine runs on a thread of its own and never waits for the disk. Records go to a commit thread where those of
//! many turns share one commit; an effect is released only after every record before it is durable. The clocks are
//! read here and nowhere else.
//!
//! Never here: what inputs, records and effects mean.
#![forbid(unsafe_code)]

mod barrier;
mod clock;
mod entropy;
mod mailbox;
mod room;
mod timings;
mod turns;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use barrier::Barrier;
pub use barrier::Commits;
pub use clock::Clock;
pub use entropy::entropy;
pub use mailbox::{Closed, Handle, Mailbox, mailbox};
pub use room::pass_room;
use tepui_fsm::{Durable, Fsm};
use tepui_store::{Store, StoreFault};
pub use timings::{Statistics, Timings};
use tokio::sync::watch;
pub use turns::TurnTimes;

/// How much is done at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Inputs taken in before the machine settles; bounds how long a reader waits for a snapshot.
    pub turn_inputs_max: usize,
    /// How long a machine may take inputs in before it settles; the rest waits for the next turn.
    pub step_time_max: Duration,
    /// How long a machine may decide while it settles; it leaves the rest to the next turn, so that inputs need not wait
    /// for it. Telling what was decided comes on top: offers take three times as long to write as to decide on.
    pub settle_time_max: Duration,
    /// A turn that takes longer is logged.
    pub slow_turn: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turn_inputs_max: 512,
            step_time_max: Duration::from_micros(250),
            settle_time_max: Duration::from_micros(100),
            slow_turn: Duration::from_millis(500),
        }
    }
}

/// Why a machine stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeFault {
    #[error("{name} exits: cannot make its records durable")]
    Store {
        name: String,
        #[source]
        fault: StoreFault,
    },
    #[error("{name} stops: its {thread} thread panicked: {what}")]
    Panicked { name: String, thread: &'static str, what: String },
    #[error("{name} stops: cannot start a thread")]
    Thread {
        name: String,
        #[source]
        err: std::io::Error,
    },
}

/// A running machine. Dropping it lets the machine end on its own once every [`Handle`] is gone.
#[derive(Debug)]
pub struct Running {
    name: String,
    machine: JoinHandle<()>,
    commits: JoinHandle<Result<(), StoreFault>>,
    stop: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
    watched: Arc<Commits>,
    times: Arc<TurnTimes>,
}

/// Starts `machine` on what arrives in `mailbox`. Its first turn has no input, so that the initial state is published.
///
/// `sink` makes effects visible: those of one turn, in order. It is called in order, from one thread at a time, and must
/// not wait: neither for a peer nor for room in the mailbox.
pub fn start<M, S>(
    name: &str,
    machine: M,
    mailbox: Mailbox<M::Input>,
    store: Store,
    clock: Clock,
    limits: Limits,
    sink: S,
) -> Result<Running, RuntimeFault>
where
    M: Fsm + Send + 'static,
    M::Input: Send + 'static,
    M::Record: Durable + Send + 'static,
    M::Effect: Send + 'static,
    S: FnMut(Vec<M::Effect>) + Send + 'static,
{
    let thread_fault = |err| RuntimeFault::Thread { name: name.to_owned(), err };
    let (stop, stop_requested) = watch::channel(false);
    let (ended_sender, ended) = watch::channel(false);
    let (barrier, committer) = Barrier::new(store, M::is_independent, stop.subscribe(), sink);
    let watched = barrier.commits();
    let stop_machine = stop.clone();
    let commits = thread::Builder::new()
        .name(format!("{name}-commit"))
        .spawn(move || {
            let result = committer.run();
            // After a failed commit a silent machine must not sit there as if all were well.
            stop_machine.send_replace(true);
            result
        })
        .map_err(thread_fault)?;
    let times = Arc::new(TurnTimes::default());
    let turns = turns::Turns {
        name: name.to_owned(),
        machine,
        mailbox,
        barrier,
        clock,
        limits,
        times: times.clone(),
        stop_requested,
    };
    // A current-thread runtime: only for waiting on the mailbox and the deadline together.
    let waiter = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(thread_fault)?;
    let machine = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            // Dropped at the end of the thread, panicking or not: `ended` resolves then.
            let _ended = ended_sender;
            waiter.block_on(turns.run());
        })
        .map_err(thread_fault)?;
    Ok(Running { name: name.to_owned(), machine, commits, stop, ended, watched, times })
}

impl Running {
    /// How making records durable goes.
    pub fn commits(&self) -> Arc<Commits> {
        self.watched.clone()
    }

    /// How long turns take.
    pub fn turns(&self) -> Arc<TurnTimes> {
        self.times.clone()
    }

    /// Waits until the machine ends by itself, which means that something is wrong. Cancel safe.
    pub async fn ended(&mut self) {
        while self.ended.changed().await.is_ok() {}
    }

    /// Stops the machine in order: inputs in the mailbox are handled, decisions are made durable and visible. Returns
    /// the error if it had stopped by itself.
    pub async fn stop(self) -> Result<(), RuntimeFault> {
        self.stop.send_replace(true);
        let name = self.name;
        let (machine, commits) = (self.machine, self.commits);
        let joined = tokio::task::spawn_blocking(move || (machine.join(), commits.join())).await;
        let (machine, commits) = joined.map_err(|err| panicked(&name, "join", Box::new(err.to_string())))?;
        match commits {
            Ok(Ok(())) => (),
            Ok(Err(fault)) => return Err(RuntimeFault::Store { name, fault }),
            Err(panic) => return Err(panicked(&name, "commit", panic)),
        }
        machine.map_err(|panic| panicked(&name, "machine", panic))
    }
}

fn panicked(name: &str, thread: &'static str, panic: Box<dyn std::any::Any + Send>) -> RuntimeFault {
    let what = match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => panic.downcast_ref::<&str>().copied().unwrap_or("unknown").to_owned(),
    };
    RuntimeFault::Panicked { name: name.to_owned(), thread, what }
}

#[cfg(test)]
mod tests;
