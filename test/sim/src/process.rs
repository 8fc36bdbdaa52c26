//! A process around a machine: its mailbox, its turns, its disk, and the barrier between them.
//!
//! Invariant (unless sabotaged): an effect comes out of `ready` only after every record before it is on the disk. A
//! crash keeps the disk and a prefix of what was being written, and nothing else.

use std::collections::{BTreeMap, VecDeque};

use tepui_fsm::{Budget, Durable, Fsm, Item, Mono, Now, Outbox, Write};

use crate::disk::Damage;

/// What survives a crash.
pub(crate) type Disk = BTreeMap<String, Vec<u8>>;

pub(crate) struct Process<M: Fsm> {
    pub(crate) machine: Option<M>,
    /// Counts the starts; what was meant for an earlier life is recognised by it.
    pub(crate) life: u32,
    pub(crate) disk: Disk,
    mailbox: VecDeque<M::Input>,
    outbox: VecDeque<Item<M::Record, M::Effect>>,
    /// How many items at the head of the outbox are covered by the write that is under way.
    syncing: usize,
    /// Until then it has no turns.
    pub(crate) paused_until: u64,
    /// When the next turn is planned.
    pub(crate) wake: Option<u64>,
    pub(crate) hardware: Hardware,
    /// What the newest commit replaced.
    undo: Vec<(String, Option<Vec<u8>>)>,
}

/// What a process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hardware {
    /// By how many nanoseconds its wall clock is wrong.
    pub(crate) clock_error: i64,
    /// Until then there is no room for records.
    pub(crate) full_until: u64,
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
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    pub(crate) fn start(&mut self, machine: M) {
        self.life += 1;
        self.machine = Some(machine);
    }

    /// Ends the process. Of what was being written, the first `lucky` records made it to the disk: these.
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
        records
    }

    /// Takes an input in; the next turn will see it. Nobody hears what is said to the dead.
    pub(crate) fn hear(&mut self, input: M::Input) {
        if self.is_up() {
            self.mailbox.push_back(input);
        }
    }

    /// What says when its next turn is.
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
        self.outbox.extend(out.take());
        count
    }

    /// The effects that may become visible now. `early`: those that the sabotaged barrier does not hold back.
    pub(crate) fn ready(&mut self, early: impl Fn(&M::Effect) -> bool) -> Vec<M::Effect> {
        let (mut effects, mut held, mut waits) = (Vec::new(), VecDeque::new(), false);
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

    /// Begins to write what waits, if nothing is being written; true if it does.
    pub(crate) fn begin_sync(&mut self) -> bool {
        if self.syncing > 0 || self.outbox.is_empty() {
            return false;
        }
        self.syncing = self.outbox.len();
        true
    }

    /// The write is done: these records are on the disk now, and the effects among them may become visible, in this
    /// order. `lose` is the sabotaged disk, which says that it wrote a record and did not.
    pub(crate) fn synced(&mut self, lose: impl Fn(&M::Record) -> bool) -> Vec<Item<M::Record, M::Effect>> {
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
