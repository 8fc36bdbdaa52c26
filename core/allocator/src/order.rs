//! Siblings in the order in which they are served.

use alloc::collections::VecDeque;
use core::cmp::Ordering;

use tepui_fsm::Rng;

use crate::share::Share;

/// The sort key of siblings: the smallest share first, then the fewest grants, then by lot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Key {
    share: Share,
    grants: u64,
    lot: u64,
}

impl Key {
    pub(crate) fn drawn(rng: &mut Rng) -> Self {
        Self { share: Share::ZERO, grants: 0, lot: rng.next_u64() }
    }

    pub(crate) fn with(self, share: Share, grants: u64) -> Self {
        Self { share, grants, ..self }
    }

    /// What decides between equal shares.
    #[cfg(test)]
    pub(crate) fn tie(&self) -> (u64, u64) {
        (self.grants, self.lot)
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let shares = self.share.cmp(&other.share);
        shares.then(self.grants.cmp(&other.grants)).then(self.lot.cmp(&other.lot))
    }
}

/// So many newcomers are put in their places one by one; more are sorted in together.
const INSERTED_MAX: usize = 16;

/// Sorted by key. The caller stores each item's key.
///
/// A first item that gets a grant moves to the end, or near it: from one end to the other, a deque moves little.
#[derive(Clone, Debug)]
pub(crate) struct Order<T> {
    items: VecDeque<(Key, T)>,
    /// Number of last items that are new and wait for `settle`; until then no look-up by key.
    waiting: usize,
}

impl<T: Copy + PartialEq> Order<T> {
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.items.get(index).map(|(_, item)| *item)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, T)> + '_ {
        self.items.iter().copied()
    }

    pub(crate) fn is_sorted(&self) -> bool {
        self.waiting == 0 && self.items.iter().is_sorted_by(|(a, _), (b, _)| a.cmp(b).is_le())
    }

    /// True if `settle` must follow, and no earlier newcomer needed it.
    pub(crate) fn join(&mut self, key: Key, item: T) -> bool {
        let is_last = self.items.back().is_none_or(|(last, _)| last.cmp(&key).is_lt());
        self.items.push_back((key, item));
        let waits = self.waiting > 0 || !is_last;
        self.waiting += usize::from(waits);
        waits && self.waiting == 1
    }

    /// Puts newcomers in their places.
    pub(crate) fn settle(&mut self) {
        let waiting = core::mem::take(&mut self.waiting);
        if waiting > INSERTED_MAX {
            self.items.make_contiguous().sort_by(|(a, _), (b, _)| a.cmp(b));
            return;
        }
        let newcomers: [Option<(Key, T)>; INSERTED_MAX] =
            core::array::from_fn(|n| if n < waiting { self.items.pop_back() } else { None });
        newcomers.into_iter().flatten().for_each(|(key, item)| self.insert(key, item));
    }

    fn insert(&mut self, key: Key, item: T) {
        let at = self.items.partition_point(|(own, _)| own.cmp(&key).is_lt());
        self.items.insert(at, (key, item));
    }

    pub(crate) fn remove(&mut self, key: Key, item: T) {
        let at = self.position(key, item);
        self.items.remove(at);
    }

    pub(crate) fn replace(&mut self, old: Key, new: Key, item: T) {
        if old == new {
            return;
        }
        let at = if self.get(0) == Some(item) { 0 } else { self.position(old, item) };
        let after = |neighbour: Option<usize>| {
            neighbour.and_then(|at| self.items.get(at)).is_none_or(|(key, _)| key.cmp(&new).is_lt())
        };
        let before = self.items.get(at + 1).is_none_or(|(key, _)| new.cmp(key).is_lt());
        if before && after(at.checked_sub(1)) {
            self.items[at].0 = new;
            return;
        }
        self.items.remove(at);
        match self.items.back().is_none_or(|(last, _)| last.cmp(&new).is_lt()) {
            true => self.items.push_back((new, item)),
            false => self.insert(new, item),
        }
    }

    fn position(&self, key: Key, item: T) -> usize {
        let from = self.items.partition_point(|(own, _)| own.cmp(&key).is_lt());
        let offset = self.items.range(from..).position(|(_, own)| *own == item);
        from + offset.expect("an item is found under the key it was inserted with")
    }

    pub(crate) fn sort_by(&mut self, key: impl Fn(T) -> Key) {
        for (own, item) in &mut self.items {
            *own = key(*item);
        }
        self.waiting = 0;
        self.items.make_contiguous().sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), waiting: 0 }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use tepui_fsm::Rng;

    use super::*;

    proptest! {
        /// Few or many at a time: every item is at the place of its key.
        #[test]
        fn order_is_sorted_after_joins_of_any_size(crowds in proptest::collection::vec(0..2 * INSERTED_MAX, 0..8)) {
            let (mut order, mut all, mut rng) = (Order::default(), Vec::new(), Rng::seeded(1));
            for crowd in crowds {
                for _ in 0..crowd {
                    let newcomer = (Key::drawn(&mut rng), all.len());
                    order.join(newcomer.0, newcomer.1);
                    all.push(newcomer);
                }
                order.settle();
                all.sort_by(|(a, _), (b, _)| a.cmp(b));
                prop_assert!(order.is_sorted());
                prop_assert_eq!(order.iter().collect::<Vec<_>>(), all.clone());
            }
        }
    }
}
