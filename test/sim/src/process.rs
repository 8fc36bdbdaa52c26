//! A process with a machine: mailbox, turns, disk, and the barrier between them.
//!
//! Invariant (unless sabotaged): `ready` returns an effect only after every record before it is on the disk. A crash
//! preserves the disk and a prefix of the records being written.

use std::collections::{BTreeMap, VecDeque};

use tepui_fsm::{Budget, Durable, Fsm, Item, Mono, Now, Outbox, Write};

use crate::disk::Damage;

/// What survives a crash.
pub(crate) type Disk = BTreeMap<String, Vec<u8>>;

pub(crate) struct Process<M: Fsm> {
    pub(crate) machine: Option<M>,
    /// Counts the starts, to recognise events for an earlier process.
    pub(crate) life: u32,
    pub(crate) disk: Disk,
    mailbox: VecDeque<M::Input>,
    outbox: VecDeque<Item<M::Record, M::Effect>>,
    /// The number of items at the head of the outbox that are being written.
    syncing: usize,
    /// Until then it has no turns.
    pub(crate) paused_until: u64,
    /// When the next turn is planned.
    pub(crate) wake: Option<u64>,
    pub(crate) hardware: Hardware,
    /// What the newest commit replaced.
    undo: Vec<(String, Option<Vec<u8>>)>,
    /// There is no room for the current write: meanwhile only effects that depend on no record become visible.
    stuck: bool,
    /// What turns decided since, and may become visible.
    passing: Vec<M::Effect>,
}

/// What a process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hardware {
    /// By how many nanoseconds its wall clock is wrong.
    pub(crate) clock_error: i64,
    /// From then on there is room for records in the reserve only.
    pub(crate) full_from: u64,
    pub(crate) full_until: u64,
    /// Under disk pressure until then.
    pub(crate) short_until: u64,
    /// Records that fit into the reserve while the disk is full.
    pub(crate) reserve: usize,
    /// The last observation of the process.
    pub(crate) observed_short: bool,
    /// The next write fails.
    pub(crate) write_fails: bool,
    /// What opening the file will find.
    pub(crate) damage: Option<Damage>,
}

/// When a process should have its next turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) has_mail: bool,
    pub(crate) deadline: Option<Mono>,
    pub(crate) wake: Option<u64>,
    pub(crate) life: u32,
    pub(crate) paused_until: u64,
}

impl<M: Fsm> Process<M>
where
    M::Record: Durable,
{
    pub(crate) fn new() -> Self {
        Self {
            machine: None,
            life: 0,
            disk: Disk::new(),
            mailbox: VecDeque::new(),
            outbox: VecDeque::new(),
            syncing: 0,
            paused_until: 0,
            wake: None,
            hardware: Hardware::default(),
            undo: Vec::new(),
            stuck: false,
            passing: Vec::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    pub(crate) fn start(&mut self, machine: M) {
        self.life += 1;
        self.machine = Some(machine);
    }

    /// Terminates the process. Returns the first `lucky` records of the current write, which are on the disk.
    pub(crate) fn crash(&mut self, lucky: usize) -> Vec<M::Record> {
        let written = std::mem::take(&mut self.syncing);
        let outbox = std::mem::take(&mut self.outbox);
        let records = outbox.into_iter().take(written).filter_map(|item| match item {
            Item::Record(record) => Some(record),
            Item::Effect(_) => None,
        });
        let records: Vec<_> = records.take(lucky).collect();
        self.write(records.iter());
        self.machine = None;
        self.mailbox.clear();
        self.paused_until = 0;
        self.wake = None;
        self.hardware.observed_short = false;
        self.stuck = false;
        self.passing.clear();
        records
    }

    /// Queues an input for the next turn; discarded if the process is down.
    pub(crate) fn on_event(&mut self, input: M::Input) {
        if self.is_up() {
            self.mailbox.push_back(input);
        }
    }

    /// Inputs that wait, in order.
    pub(crate) fn mail(&self) -> impl Iterator<Item = &M::Input> {
        self.mailbox.iter()
    }

    /// How many records and effects are not written or visible yet.
    pub(crate) fn pending(&self) -> usize {
        self.outbox.len()
    }

    /// The inputs of the decision about its next turn.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule {
            has_mail: !self.mailbox.is_empty(),
            deadline: self.machine.as_ref().and_then(Fsm::deadline),
            wake: self.wake,
            life: self.life,
            paused_until: self.paused_until,
        }
    }

    /// One turn over at most `inputs_max` inputs; how many there were.
    pub(crate) fn turn(&mut self, now: Now, inputs_max: usize, budget: &mut Budget<'_>) -> usize {
        let Some(machine) = &mut self.machine else { return 0 };
        let mut out = Outbox::new();
        let count = self.mailbox.len().min(inputs_max);
        for input in self.mailbox.drain(..count) {
            machine.step(now, input, &mut out);
        }
        machine.settle(now, budget, &mut out);
        for item in out.take() {
            match item {
                Item::Effect(effect) if self.stuck && M::is_independent(&effect) => self.passing.push(effect),
                item => self.outbox.push_back(item),
            }
        }
        count
    }

    /// The effects that may become visible now. `early`: those that bypass the sabotaged barrier.
    pub(crate) fn ready(&mut self, early: impl Fn(&M::Effect) -> bool) -> Vec<M::Effect> {
        let (mut effects, mut held, mut waits) = (std::mem::take(&mut self.passing), VecDeque::new(), false);
        let syncing = self.syncing;
        for (at, item) in std::mem::take(&mut self.outbox).into_iter().enumerate() {
            match item {
                Item::Effect(effect) if !waits || early(&effect) => {
                    self.syncing -= usize::from(at < syncing);
                    effects.push(effect);
                }
                Item::Effect(_) => held.push_back(item),
                Item::Record(_) => {
                    waits = true;
                    held.push_back(item);
                }
            }
        }
        self.outbox = held;
        effects
    }

    /// Starts to write pending records unless a write is in progress; true if it does.
    pub(crate) fn begin_sync(&mut self) -> bool {
        if self.syncing > 0 || self.outbox.is_empty() {
            return false;
        }
        self.syncing = self.outbox.len();
        true
    }

    /// Uses the reserve for the current write; true if there is not enough room and the write waits.
    pub(crate) fn is_blocked_on_full_disk(&mut self) -> bool {
        let written = self.outbox.iter().take(self.syncing);
        let records = written.filter(|item| matches!(item, Item::Record(_))).count();
        match self.hardware.reserve.checked_sub(records) {
            Some(left) => self.hardware.reserve = left,
            None => self.stuck = true,
        }
        self.stuck
    }

    /// Nothing can be written at the moment.
    pub(crate) fn block_on_full_disk(&mut self) {
        self.stuck = true;
    }

    /// What is being written.
    pub(crate) fn writing(&self) -> impl Iterator<Item = &M::Record> {
        self.outbox.iter().take(self.syncing).filter_map(|item| match item {
            Item::Record(record) => Some(record),
            Item::Effect(_) => None,
        })
    }

    /// What is being written was written, but the answer is lost: it will be written again.
    pub(crate) fn write_unanswered(&mut self) {
        let mut writes = Vec::new();
        self.writing().for_each(|record| record.writes(&mut writes));
        self.commit(writes);
    }

    /// The write completed: returns its records and the effects among them that may become visible, in order. `lose` is
    /// the sabotaged disk, which loses acknowledged records.
    pub(crate) fn synced(&mut self, lose: impl Fn(&M::Record) -> bool) -> Vec<Item<M::Record, M::Effect>> {
        self.stuck = false;
        let items: Vec<_> = self.outbox.drain(..std::mem::take(&mut self.syncing)).collect();
        let records = items.iter().filter_map(|item| match item {
            Item::Record(record) => Some(record).filter(|record| !lose(record)),
            Item::Effect(_) => None,
        });
        self.write(records);
        items
    }

    /// One commit.
    fn write<'r>(&mut self, records: impl Iterator<Item = &'r M::Record>)
    where
        M::Record: 'r,
    {
        let mut writes = Vec::new();
        records.for_each(|record| record.writes(&mut writes));
        self.commit(writes);
    }

    fn commit(&mut self, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        self.undo.clear();
        for Write { key, value } in writes {
            let before = match value {
                Some(value) => self.disk.insert(key.clone(), value),
                None => self.disk.remove(&key),
            };
            self.undo.push((key, before));
        }
    }

    /// The disk is as before the newest commit.
    pub(crate) fn undo_last_write(&mut self) {
        for (key, before) in self.undo.drain(..).rev() {
            match before {
                Some(value) => self.disk.insert(key, value),
                None => self.disk.remove(&key),
            };
        }
    }

    /// Nothing is left on the disk.
    pub(crate) fn wipe(&mut self) {
        self.disk.clear();
        self.undo.clear();
    }
}
