//! Dense storage under small numbers, so that the inner loops compare and copy no strings.
//!
//! A number is reused after its entry is removed: copies of it must be dropped before.

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

/// Entries lie in pieces of so many: a piece never moves, however many there come to be.
const PIECE: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Slab<S, T> {
    pieces: Vec<Vec<Option<T>>>,
    vacant: Vec<S>,
    slots: PhantomData<S>,
}

impl<S: Slot, T> Slab<S, T> {
    pub(crate) const fn new() -> Self {
        Self { pieces: Vec::new(), vacant: Vec::new(), slots: PhantomData }
    }

    pub(crate) fn insert(&mut self, entry: T) -> S {
        match self.vacant.pop() {
            Some(slot) => {
                self.pieces[slot.index() / PIECE][slot.index() % PIECE] = Some(entry);
                slot
            }
            None => self.append(entry),
        }
    }

    fn append(&mut self, entry: T) -> S {
        if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
            // Most of the small ones never fill their first piece.
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        let before = (self.pieces.len() - 1) * PIECE;
        let last = self.pieces.last_mut().expect("there is one now");
        last.push(Some(entry));
        S::new(u32::try_from(before + last.len() - 1).expect("fewer than 2^32 entries fit into memory"))
    }

    pub(crate) fn remove(&mut self, slot: S) -> T {
        self.vacant.push(slot);
        self.pieces[slot.index() / PIECE][slot.index() % PIECE].take().expect(IN_USE)
    }

    #[inline]
    pub(crate) fn get(&self, slot: S) -> Option<&T> {
        self.pieces.get(slot.index() / PIECE)?.get(slot.index() % PIECE)?.as_ref()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (S, &T)> + '_ {
        let entries = self.pieces.iter().flatten().enumerate();
        entries.filter_map(|(index, entry)| Some((S::new(index as u32), entry.as_ref()?)))
    }

    /// Those from this place on.
    pub(crate) fn slots_from(&self, index: usize) -> impl Iterator<Item = S> + use<'_, S, T> {
        let pieces = self.pieces.iter().enumerate().skip(index / PIECE);
        let entries = pieces.flat_map(|(piece, entries)| {
            entries.iter().enumerate().map(move |(at, entry)| (piece * PIECE + at, entry))
        });
        let rest = entries.skip(index % PIECE);
        rest.filter(|(_, entry)| entry.is_some()).map(|(index, _)| S::new(index as u32))
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = S> + use<'_, S, T> {
        self.iter().map(|(slot, _)| slot)
    }
}

const IN_USE: &str = "a slot is forgotten when its entry is removed";

impl<S: Slot, T> Index<S> for Slab<S, T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: S) -> &T {
        self.pieces[slot.index() / PIECE][slot.index() % PIECE].as_ref().expect(IN_USE)
    }
}

impl<S: Slot, T> IndexMut<S> for Slab<S, T> {
    #[inline]
    fn index_mut(&mut self, slot: S) -> &mut T {
        self.pieces[slot.index() / PIECE][slot.index() % PIECE].as_mut().expect(IN_USE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slab_entries_are_found_in_every_chunk() {
        let mut slab: Slab<AgentSlot, usize> = Slab::new();
        let slots: Vec<AgentSlot> = (0..3 * PIECE + 1).map(|n| slab.insert(n)).collect();
        assert!(slots.iter().enumerate().all(|(n, slot)| slot.index() == n && slab[*slot] == n));
        assert_eq!(slab.remove(slots[PIECE]), PIECE);
        assert_eq!((slab.get(slots[PIECE]), slab.get(AgentSlot::new(9999))), (None, None));
        let from: Vec<usize> = slab.slots_from(PIECE - 1).map(Slot::index).take(2).collect();
        assert_eq!((from, slab.slots().count()), ([PIECE - 1, PIECE + 1].into(), 3 * PIECE));
        assert_eq!((slab.insert(7), slab[slots[PIECE]]), (slots[PIECE], 7));
    }
}
