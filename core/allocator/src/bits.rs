//! A set of slots, one bit each: cheap to ask, cheap to unite.

use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::slab::Slot;

const BITS: usize = u64::BITS as usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bits<S> {
    /// The last one is not zero.
    words: Vec<u64>,
    slots: PhantomData<S>,
}

impl<S: Slot> Bits<S> {
    pub(crate) const fn new() -> Self {
        Self { words: Vec::new(), slots: PhantomData }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    pub(crate) fn contains(&self, slot: S) -> bool {
        let (word, bit) = place(slot);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    pub(crate) fn insert(&mut self, slot: S) {
        let (word, bit) = place(slot);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }

    pub(crate) fn remove(&mut self, slot: S) {
        let (word, bit) = place(slot);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !bit;
        }
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    pub(crate) fn set(&mut self, slot: S, member: bool) {
        match member {
            true => self.insert(slot),
            false => self.remove(slot),
        }
    }

    pub(crate) fn unite(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (own, more) in self.words.iter_mut().zip(&other.words) {
            *own |= more;
        }
    }

    /// From the lowest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = S> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(S::new((at * BITS + bit) as u32))
            })
        })
    }
}

fn place<S: Slot>(slot: S) -> (usize, u64) {
    (slot.index() / BITS, 1 << (slot.index() % BITS))
}

impl<S> Default for Bits<S> {
    fn default() -> Self {
        Self { words: Vec::new(), slots: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::slab::AgentSlot;

    proptest! {
        #[test]
        fn bits_are_a_set(steps in proptest::collection::vec((0..200u32, any::<bool>()), 0..100), more in 0..300u32) {
            let (mut bits, mut set) = (Bits::new(), BTreeSet::new());
            for (n, insert) in steps {
                bits.set(AgentSlot::new(n), insert);
                if insert { set.insert(n); } else { set.remove(&n); }
                prop_assert_eq!(bits.contains(AgentSlot::new(n)), insert);
                prop_assert_eq!(bits.is_empty(), set.is_empty());
            }
            let other = { let mut other = Bits::new(); other.insert(AgentSlot::new(more)); other };
            bits.unite(&other);
            set.insert(more);
            let listed: Vec<usize> = bits.iter().map(AgentSlot::index).collect();
            prop_assert_eq!(listed, set.into_iter().map(|n| n as usize).collect::<Vec<_>>());
        }
    }
}
