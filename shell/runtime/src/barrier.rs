//! The outbox barrier: an effect is released only after every record before it is durable.
//!
//! The machine's thread passes in the outbox of each turn. While nothing waits for the disk, a turn without records is
//! released at once, on that thread; everything else goes through the commit thread, which makes the records of all
//! waiting turns durable in one commit and then releases their effects in order. The effects of a turn are released
//! together, so that none becomes visible before the snapshot that its turn ends with.
//! While a disk is full beyond its reserve, the machine continues to decide until its queue is full, and only effects that
//! are independent of records become visible. Any other failed commit stops the machine: nothing decided after it becomes
//! visible.
//!
//! The commit thread also measures the space for records, while it is idle and while it waits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use tepui_fsm::{Durable, Item, Write};
use tepui_store::{Room, Store, StoreFault};
use tokio::sync::watch;

use crate::Timings;

/// Turns that may wait for the commit thread; with more the machine waits for the disk.
const COMMIT_QUEUE_TURNS_MAX: u64 = 256;

/// The same while nothing can be written at all: the machine has to go on for the sake of what it may still say.
const STUCK_QUEUE_TURNS_MAX: u64 = 16 * 1024;

/// The machine looks at least so often whether it still has to wait.
const FULL_QUEUE_PAUSE: Duration = Duration::from_millis(100);

/// How often the room for records is looked at.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);

/// How long the times of commits are kept.
const COMMIT_TIMES_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Turns whose records share one commit.
const COMMIT_TURNS_MAX: usize = 256;

/// Between tries while the disk is full or etcd is away.
const PASSING_FAULT_PAUSE: Duration = Duration::from_millis(500);

type Items<R, E> = Vec<Item<R, E>>;

/// The commit thread has ended, because a commit failed.
pub(crate) struct BarrierGone;

/// What both threads share. The sink is used by one of them at a time: by the machine's thread only while nothing
/// that it handed over is still on its way, or the commit thread waits for room.
struct Shared<S> {
    sink: Mutex<S>,
    commits: Arc<Commits>,
}

/// State and statistics of commits, for observers.
#[derive(Debug)]
pub struct Commits {
    /// How many turns were handed over to be made durable, and how many of them are completely released.
    handed: AtomicU64,
    released: AtomicU64,
    /// How long commits took, of the last day.
    pub timings: Timings,
    /// Whether nothing becomes durable at the moment: a commit was tried again in vain, and will be.
    stuck: watch::Sender<bool>,
    /// None if it is not measured.
    room: watch::Sender<Option<Room>>,
    /// The commit thread has ended.
    gone: AtomicBool,
    /// Some of the turns that waited are released, or the commit thread is stuck or gone.
    progress: (Mutex<()>, Condvar),
}

impl Commits {
    /// Whether it may take long until something becomes durable.
    pub fn is_stuck(&self) -> bool {
        *self.stuck.borrow()
    }

    /// Waits until that is so. Cancel safe.
    pub async fn stuck(&self) {
        self.stuck.subscribe().wait_for(|stuck| *stuck).await.expect("the sender lives as long as this");
    }

    /// The room for records as it was last seen.
    pub fn room(&self) -> Option<Room> {
        *self.room.borrow()
    }

    /// As [`room`](Self::room), with notification of changes.
    pub fn watch_room(&self) -> watch::Receiver<Option<Room>> {
        self.room.subscribe()
    }

    fn has_queue_room(&self) -> bool {
        let most = if self.is_stuck() { STUCK_QUEUE_TURNS_MAX } else { COMMIT_QUEUE_TURNS_MAX };
        self.waiting() < most || self.gone.load(Ordering::Acquire)
    }

    /// Waits until one more turn may be handed over.
    fn wait_for_queue_room(&self) {
        let (lock, changed) = &self.progress;
        let mut guard = lock.lock().expect("no code panics while it holds this lock");
        while !self.has_queue_room() {
            let waited = changed.wait_timeout(guard, FULL_QUEUE_PAUSE);
            guard = waited.expect("no code panics while it holds this lock").0;
        }
    }

    fn set_stuck(&self, stuck: bool) {
        self.stuck.send_replace(stuck);
        self.progress.1.notify_all();
    }

    /// Turns that wait for the disk.
    pub fn waiting(&self) -> u64 {
        let released = self.released.load(Ordering::Acquire);
        self.handed.load(Ordering::Acquire).saturating_sub(released)
    }
}

/// The machine's end.
pub(crate) struct Barrier<R, E, S> {
    shared: Arc<Shared<S>>,
    commits: Sender<Items<R, E>>,
    is_independent: fn(&E) -> bool,
}

/// The commit thread's end.
pub(crate) struct Committer<R, E, S> {
    shared: Arc<Shared<S>>,
    turns: Receiver<Items<R, E>>,
    store: Store,
    /// Whether the machine was asked to stop, which ends waiting.
    stop_requested: watch::Receiver<bool>,
    /// When the room for records was last looked at.
    looked: Instant,
}

impl<R, E, S> Barrier<R, E, S>
where
    R: Durable,
    S: FnMut(Vec<E>),
{
    pub fn new(
        store: Store,
        is_independent: fn(&E) -> bool,
        stop_requested: watch::Receiver<bool>,
        sink: S,
    ) -> (Self, Committer<R, E, S>) {
        let commits = Commits {
            handed: AtomicU64::new(0),
            released: AtomicU64::new(0),
            timings: Timings::new(COMMIT_TIMES_KEPT),
            stuck: watch::channel(false).0,
            room: watch::channel(None).0,
            gone: AtomicBool::new(false),
            progress: Default::default(),
        };
        let shared = Arc::new(Shared { sink: Mutex::new(sink), commits: Arc::new(commits) });
        let (commits, turns) = channel();
        let barrier = Self { shared: shared.clone(), commits, is_independent };
        (barrier, Committer { shared, turns, store, stop_requested, looked: Instant::now() })
    }

    pub fn commits(&self) -> Arc<Commits> {
        self.shared.commits.clone()
    }

    /// Takes over what one turn decided.
    pub fn release(&mut self, items: Items<R, E>) -> Result<(), BarrierGone> {
        let has_records = || items.iter().any(|item| matches!(item, Item::Record(_)));
        let (visible, waiting) = if self.is_idle() && !has_records() {
            (items, Vec::new())
        } else if self.shared.commits.is_stuck() {
            items.into_iter().partition(|item| self.passes(item))
        } else {
            (Vec::new(), items)
        };
        self.shared.emit(visible);
        if waiting.is_empty() {
            return Ok(());
        }
        self.shared.commits.wait_for_queue_room();
        self.shared.commits.handed.fetch_add(1, Ordering::Release);
        self.commits.send(waiting).map_err(|_| BarrierGone)
    }

    /// Whether something need not wait for records that cannot be written.
    fn passes(&self, item: &Item<R, E>) -> bool {
        match item {
            Item::Effect(effect) => (self.is_independent)(effect),
            Item::Record(_) => false,
        }
    }

    /// Whether everything that was handed over is durable and visible.
    fn is_idle(&self) -> bool {
        self.shared.commits.waiting() == 0
    }
}

impl<R, E, S> Committer<R, E, S>
where
    R: Durable,
    S: FnMut(Vec<E>),
{
    /// Runs until the machine's end is dropped and everything is released, or until a commit fails.
    pub fn run(mut self) -> Result<(), StoreFault> {
        self.measure_room()?;
        while let Some(first) = self.next_turn()? {
            let mut turns = vec![first];
            turns.extend(self.turns.try_iter().take(COMMIT_TURNS_MAX - 1));
            let count = turns.len() as u64;
            self.make_durable(turns.iter().flatten())?;
            turns.into_iter().for_each(|items| self.shared.emit(items));
            self.shared.commits.released.fetch_add(count, Ordering::Release);
            self.shared.commits.progress.1.notify_all();
        }
        Ok(())
    }

    /// Waits for the next turn, looking at the room for records now and then; none if the state machine has terminated.
    fn next_turn(&mut self) -> Result<Option<Items<R, E>>, StoreFault> {
        loop {
            if self.shared.commits.room().is_none() {
                return Ok(self.turns.recv().ok());
            }
            if self.looked.elapsed() >= ROOM_INTERVAL {
                self.measure_room()?;
            }
            match self.turns.recv_timeout(ROOM_INTERVAL.saturating_sub(self.looked.elapsed())) {
                Ok(turn) => return Ok(Some(turn)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => (),
            }
        }
    }

    /// Commits the records among `items`: together, or each by itself.
    fn make_durable<'i>(&mut self, items: impl Iterator<Item = &'i Item<R, E>>) -> Result<(), StoreFault>
    where
        R: 'i,
        E: 'i,
    {
        let mut writes = Vec::new();
        for item in items {
            let Item::Record(record) = item else { continue };
            record.writes(&mut writes);
        }
        self.commit(&writes)
    }
}

impl<R, E, S> Committer<R, E, S> {
    fn measure_room(&mut self) -> Result<(), StoreFault> {
        self.looked = Instant::now();
        let room = self.store.measure_room()?;
        self.shared.commits.room.send_replace(room);
        Ok(())
    }

    fn commit(&mut self, writes: &[Write]) -> Result<(), StoreFault> {
        if writes.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        self.commit_or_wait(writes)?;
        self.shared.commits.timings.add(began, began.elapsed());
        Ok(())
    }

    /// Tries again for as long as the fault is passing.
    fn commit_or_wait(&mut self, writes: &[Write]) -> Result<(), StoreFault> {
        let used_reserve = self.store.uses_reserve();
        let mut result = self.store.commit(writes);
        // The machine is informed at once that it should make few records now.
        if !used_reserve && self.store.uses_reserve() {
            self.measure_room()?;
        }
        if let Err(fault) = &result
            && fault.is_passing()
        {
            match fault {
                StoreFault::DiskFull { .. } => {
                    tracing::warn!(
                        "disk full and reserve used up: only effects without records are released"
                    );
                }
                other => tracing::warn!(%other, "waiting for the store"),
            }
            while matches!(&result, Err(fault) if fault.is_passing()) && !*self.stop_requested.borrow() {
                thread::sleep(PASSING_FAULT_PAUSE);
                result = self.store.reopen().and_then(|()| self.store.commit(writes));
                self.shared.commits.set_stuck(result.is_err());
                self.measure_room()?;
            }
            tracing::info!(durable = result.is_ok(), "records can be committed again");
        }
        result
    }
}

impl<R, E, S> Drop for Committer<R, E, S> {
    fn drop(&mut self) {
        self.shared.commits.gone.store(true, Ordering::Release);
        self.shared.commits.progress.1.notify_all();
    }
}

impl<S> Shared<S> {
    /// Releases the effects among `items`, whose records are durable.
    fn emit<R, E>(&self, items: Items<R, E>)
    where
        S: FnMut(Vec<E>),
    {
        let effects = items.into_iter().filter_map(|item| match item {
            Item::Effect(effect) => Some(effect),
            Item::Record(_) => None,
        });
        let effects: Vec<E> = effects.collect();
        if !effects.is_empty() {
            let mut sink =
                self.sink.lock().expect("a sink that panicked has ended its thread and the machine");
            sink(effects);
        }
    }
}
