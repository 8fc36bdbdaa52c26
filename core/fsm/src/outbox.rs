//! The outbox: records and effects of a step, in the order of the decisions.
//!
//! Filled by an [`Fsm`](crate::Fsm), drained by its driver. The driver guarantees that an effect is released only
//! after every record before it is durable.

use alloc::vec::Vec;

use crate::Fsm;

/// One decision of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<R, E> {
    Record(R),
    Effect(E),
}

/// The ordered list of records and effects of one turn.
#[derive(Debug)]
pub struct Outbox<M: Fsm> {
    items: Vec<Item<M::Record, M::Effect>>,
}

impl<M: Fsm> Outbox<M> {
    pub fn new() -> Self {
        Self { items: Vec::new() }
    }

    /// Appends something to be made durable.
    pub fn record(&mut self, record: impl Into<M::Record>) {
        self.items.push(Item::Record(record.into()));
    }

    /// Appends something to be made visible once everything recorded so far is durable.
    pub fn effect(&mut self, effect: impl Into<M::Effect>) {
        self.items.push(Item::Effect(effect.into()));
    }

    /// What was appended so far, in order.
    pub fn items(&self) -> &[Item<M::Record, M::Effect>] {
        &self.items
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Takes everything out, in order.
    pub fn take(&mut self) -> Vec<Item<M::Record, M::Effect>> {
        core::mem::take(&mut self.items)
    }
}

/// For a machine that drives another: continues with the items decided so far.
impl<M: Fsm> From<Vec<Item<M::Record, M::Effect>>> for Outbox<M> {
    fn from(items: Vec<Item<M::Record, M::Effect>>) -> Self {
        Self { items }
    }
}

impl<M: Fsm> Default for Outbox<M> {
    fn default() -> Self {
        Self::new()
    }
}
