//! A bounded list of recent entries, oldest first, with look-up by key. Persistent: a clone is cheap.
//!
//! A key may occur more than once (task ids are reused); a look-up finds the newest entry. Never exceeds the limits
//! of number and weight given with each push.

use alloc::vec::Vec;

use crate::state::Map;

#[derive(Clone, Debug)]
pub struct Recent<K: Ord, V> {
    by_age: Map<u64, Entry<K, V>>,
    newest: Map<K, u64>,
    next: u64,
    /// Of all entries.
    weight: usize,
}

#[derive(Clone, Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    weight: usize,
}

impl<K: Ord + Clone, V: Clone> Recent<K, V> {
    pub fn new() -> Self {
        Self { by_age: Map::new_sync(), newest: Map::new_sync(), next: 0, weight: 0 }
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &V> + '_ {
        self.by_age.values().map(|entry| &entry.value)
    }

    pub fn len(&self) -> usize {
        self.by_age.size()
    }

    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// The newest entry of this key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.by_age.get(self.newest.get(key)?).map(|entry| &entry.value)
    }

    pub fn contains(&self, key: &K) -> bool {
        self.newest.contains_key(key)
    }

    /// The entries of one key.
    pub(crate) fn only(&self, key: &K) -> Self {
        let mut some = Self::new();
        if self.contains(key) {
            let wanted = self.by_age.values().filter(|entry| entry.key == *key);
            wanted.for_each(|entry| drop(some.push(usize::MAX, key.clone(), entry.value.clone())));
        }
        some
    }

    /// Others in the place of some.
    pub(crate) fn filter_map(&self, other: impl Fn(&V) -> Option<V>) -> Self {
        let mut some = Self::new();
        for entry in self.by_age.values() {
            if let Some(value) = other(&entry.value) {
                some.push(usize::MAX, entry.key.clone(), value);
            }
        }
        some
    }

    /// Appends; what had to make room for it, if anything (with a limit of zero: itself).
    pub(crate) fn push(&mut self, limit: usize, key: K, value: V) -> Option<(K, V)> {
        self.append(key, value, 0);
        (self.len() > limit).then(|| self.pop_oldest()).flatten()
    }

    /// Appends an entry that has a weight; what had to make room for it.
    pub(crate) fn push_weighed(
        &mut self,
        (entries_max, weight_max): (usize, usize),
        key: K,
        value: V,
        weight: usize,
    ) -> Vec<V> {
        self.append(key, value, weight);
        let mut forgotten = Vec::new();
        while self.len() > entries_max || self.weight > weight_max {
            match self.pop_oldest() {
                Some((_, value)) => forgotten.push(value),
                None => break,
            }
        }
        forgotten
    }

    fn append(&mut self, key: K, value: V, weight: usize) {
        self.newest.insert_mut(key.clone(), self.next);
        self.by_age.insert_mut(self.next, Entry { key, value, weight });
        self.next += 1;
        self.weight += weight;
    }

    /// Takes out the newest entry of this key.
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let age = *self.newest.get(key)?;
        self.take(age).map(|(_, value)| value)
    }

    fn pop_oldest(&mut self) -> Option<(K, V)> {
        let age = *self.by_age.first()?.0;
        self.take(age)
    }

    fn take(&mut self, age: u64) -> Option<(K, V)> {
        let Entry { key, value, weight } = self.by_age.get(&age)?.clone();
        self.by_age.remove_mut(&age);
        self.weight -= weight;
        if self.newest.get(&key) == Some(&age) {
            self.newest.remove_mut(&key);
        }
        Some((key, value))
    }
}

impl<K: Ord + Clone, V: Clone> Default for Recent<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(recent: &Recent<u8, &'static str>) -> Vec<&'static str> {
        recent.iter().copied().collect()
    }

    #[test]
    fn oldest_entry_is_evicted_at_the_limit() {
        let mut recent = Recent::new();
        assert_eq!(recent.push(2, 1, "a"), None);
        assert_eq!(recent.push(2, 2, "b"), None);
        assert_eq!(recent.push(2, 3, "c"), Some((1, "a")));
        assert_eq!(texts(&recent), ["b", "c"]);
        assert_eq!((recent.get(&1), recent.get(&3)), (None, Some(&"c")));
        assert_eq!(recent.remove(&2), Some("b"));
        assert_eq!(texts(&recent), ["c"]);
        assert_eq!(Recent::new().push(0, 1, "a"), Some((1, "a")));
    }

    #[test]
    fn oldest_entries_are_evicted_until_the_weight_fits() {
        let mut recent = Recent::new();
        assert!(recent.push_weighed((9, 10), 1, "a", 4).is_empty());
        assert!(recent.push_weighed((9, 10), 2, "b", 4).is_empty());
        assert_eq!(recent.push_weighed((9, 10), 3, "c", 7), ["a", "b"]);
        assert_eq!(recent.remove(&3), Some("c"));
        assert!(recent.push_weighed((9, 10), 4, "d", 10).is_empty());
        assert_eq!(recent.push_weighed((9, 10), 5, "e", 11), ["d", "e"], "too heavy for itself");
        assert!(recent.is_empty());
        assert_eq!(recent.push_weighed((0, 10), 6, "f", 1), ["f"]);
    }

    #[test]
    fn reused_key_returns_the_newest_entry() {
        let mut recent = Recent::new();
        recent.push(2, 1, "old");
        recent.push(2, 1, "new");
        assert_eq!(recent.get(&1), Some(&"new"));
        recent.push(2, 2, "x");
        assert_eq!(recent.get(&1), Some(&"new"), "making room for x took the old one");
        assert_eq!(recent.remove(&1), Some("new"));
        assert!(!recent.contains(&1));
    }
}
