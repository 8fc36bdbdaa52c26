//! Timers as state: at most one deadline per key, the earliest first.
//!
//! A machine owns one of these, returns `next` from `deadline()`, and pops due keys in `settle`.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::Mono;

#[derive(Clone, Debug)]
pub struct Deadlines<K> {
    by_time: BTreeSet<(Mono, K)>,
    by_key: BTreeMap<K, Mono>,
}

impl<K: Ord + Clone> Deadlines<K> {
    pub fn new() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new() }
    }

    /// Sets the deadline of `key`, replacing an earlier one.
    pub fn set(&mut self, key: K, at: Mono) {
        self.clear(&key);
        self.by_time.insert((at, key.clone()));
        self.by_key.insert(key, at);
    }

    /// Removes the deadline of `key`; true if there was one.
    pub fn clear(&mut self, key: &K) -> bool {
        match self.by_key.remove(key) {
            Some(at) => self.by_time.remove(&(at, key.clone())),
            None => false,
        }
    }

    pub fn get(&self, key: &K) -> Option<Mono> {
        self.by_key.get(key).copied()
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Mono> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Removes and returns the earliest key that is due.
    pub fn pop_due(&mut self, now: Mono) -> Option<K> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }
}

impl<K: Ord + Clone> Default for Deadlines<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_keys_are_popped_in_order_and_once() {
        let mut timers = Deadlines::new();
        timers.set("b", Mono(20));
        timers.set("a", Mono(10));
        timers.set("c", Mono(30));
        timers.set("c", Mono(5));
        assert_eq!(timers.next(), Some(Mono(5)));
        assert!(timers.clear(&"b"));
        assert_eq!(timers.pop_due(Mono(10)), Some("c"));
        assert_eq!(timers.pop_due(Mono(10)), Some("a"));
        assert_eq!(timers.pop_due(Mono(99)), None);
        assert!(timers.is_empty());
    }
}
