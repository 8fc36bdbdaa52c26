//! Dense storage under small numbers, so that the inner loops compare and copy no strings.
//!
//! A number is used again after its entry is removed: whoever keeps one must forget it in time.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// A number that names an entry of one slab only.
pub(crate) trait Slot: Copy {
    fn new(index: u32) -> Self;
    fn index(self) -> usize;
}

macro_rules! slot {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(u32);

        impl Slot for $name {
            fn new(index: u32) -> Self {
                Self(index)
            }

            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

slot!(AgentSlot);
slot!(FrameworkSlot);
slot!(
    /// A role in the tree.
    NodeSlot
);
slot!(
    /// A framework in one of its roles.
    ClientSlot
);

#[derive(Clone, Debug)]
pub(crate) struct Slab<S, T> {
    entries: Vec<Option<T>>,
    vacant: Vec<S>,
    slots: PhantomData<S>,
}

impl<S: Slot, T> Slab<S, T> {
    pub(crate) const fn new() -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), slots: PhantomData }
    }

    pub(crate) fn insert(&mut self, entry: T) -> S {
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(None);
            S::new(u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 entries fit into memory"))
        });
        self.entries[slot.index()] = Some(entry);
        slot
    }

    pub(crate) fn remove(&mut self, slot: S) -> T {
        self.vacant.push(slot);
        self.entries[slot.index()].take().expect(IN_USE)
    }

    pub(crate) fn get(&self, slot: S) -> Option<&T> {
        self.entries.get(slot.index())?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (S, &T)> + '_ {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(|(index, entry)| Some((S::new(index as u32), entry.as_ref()?)))
    }

    /// Those from this place on.
    pub(crate) fn slots_from(&self, index: usize) -> impl Iterator<Item = S> + use<'_, S, T> {
        let rest = self.entries.iter().enumerate().skip(index);
        rest.filter(|(_, entry)| entry.is_some()).map(|(index, _)| S::new(index as u32))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = S> + use<'_, S, T> {
        self.iter().map(|(slot, _)| slot)
    }
}

const IN_USE: &str = "a slot is forgotten when its entry is removed";

impl<S: Slot, T> Index<S> for Slab<S, T> {
    type Output = T;

    fn index(&self, slot: S) -> &T {
        self.entries[slot.index()].as_ref().expect(IN_USE)
    }
}

impl<S: Slot, T> IndexMut<S> for Slab<S, T> {
    fn index_mut(&mut self, slot: S) -> &mut T {
        self.entries[slot.index()].as_mut().expect(IN_USE)
    }
}
