//! From the ids that the master speaks of to slots: found by a hash, so that long common beginnings are not compared.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;

#[derive(Clone, Debug)]
pub(crate) struct Ids<K, S> {
    by_hash: BTreeMap<u64, (K, S)>,
    /// Those that came when their hash was another's already.
    clashing: BTreeMap<K, S>,
}

impl<K: Ord + AsRef<str>, S: Copy> Ids<K, S> {
    pub(crate) const fn new() -> Self {
        Self { by_hash: BTreeMap::new(), clashing: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_hash.len() + self.clashing.len()
    }

    pub(crate) fn get(&self, id: &K) -> Option<S> {
        match self.by_hash.get(&hash(id.as_ref())) {
            Some((own, slot)) if own == id => Some(*slot),
            Some(_) | None => self.clashing.get(id).copied(),
        }
    }

    pub(crate) fn insert(&mut self, id: K, slot: S) {
        match self.by_hash.entry(hash(id.as_ref())) {
            Entry::Vacant(entry) => drop(entry.insert((id, slot))),
            Entry::Occupied(mut entry) if entry.get().0 == id => drop(entry.insert((id, slot))),
            Entry::Occupied(_) => drop(self.clashing.insert(id, slot)),
        }
    }

    pub(crate) fn remove(&mut self, id: &K) -> Option<S> {
        match self.by_hash.entry(hash(id.as_ref())) {
            Entry::Occupied(entry) if entry.get().0 == *id => Some(entry.remove().1),
            Entry::Occupied(_) | Entry::Vacant(_) => self.clashing.remove(id),
        }
    }
}

/// Eight bytes at a time. Whoever makes ids clash gains nothing: they are found by comparing then.
fn hash(text: &str) -> u64 {
    let mut hash = text.len() as u64;
    for chunk in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_also_if_their_hashes_clash() {
        let mut ids: Ids<&str, u32> = Ids::new();
        ids.insert("x", 1);
        // As if "z" had the hash of "y".
        ids.by_hash.insert(hash("y"), ("z", 9));
        ids.insert("y", 2);
        assert_eq!((ids.get(&"x"), ids.get(&"y"), ids.get(&"q"), ids.len()), (Some(1), Some(2), None, 3));
        ids.insert("x", 3);
        assert_eq!((ids.remove(&"y"), ids.remove(&"y"), ids.remove(&"x")), (Some(2), None, Some(3)));
        assert_eq!((ids.get(&"x"), ids.get(&"y"), ids.len()), (None, None, 1));
    }
}
