//! From the master's ids to slots, by a hash table of our own: an id is hashed once and compared once.
//!
//! Each id is within a few places of its hash, and no place before it is free. One that finds no place there is
//! stored in a separate map, so that deliberate collisions have no effect.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// An id is looked for in so many places.
const PROBES_MAX: usize = 16;
/// The first table.
const PLACES_MIN: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Ids<K, S> {
    /// As many as a power of two, or none. At most half of them are taken.
    places: Vec<Option<Place<K, S>>>,
    taken: usize,
    /// Those that found no place.
    crowded_out: BTreeMap<K, S>,
}

#[derive(Clone, Debug)]
struct Place<K, S> {
    hash: u64,
    id: K,
    slot: S,
}

impl<K: Ord + AsRef<str>, S: Copy> Ids<K, S> {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), taken: 0, crowded_out: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.taken + self.crowded_out.len()
    }

    pub(crate) fn get(&self, id: &K) -> Option<S> {
        self.get_hashed(hash(id.as_ref()), id)
    }

    fn get_hashed(&self, hash: u64, id: &K) -> Option<S> {
        match self.find(hash, id) {
            Some(at) => self.places[at].as_ref().map(|place| place.slot),
            None if self.crowded_out.is_empty() => None,
            None => self.crowded_out.get(id).copied(),
        }
    }

    /// The slot that the id had before.
    pub(crate) fn insert(&mut self, id: K, slot: S) -> Option<S> {
        let hash = hash(id.as_ref());
        if let Some(at) = self.find(hash, &id)
            && let Some(place) = &mut self.places[at]
        {
            return Some(core::mem::replace(&mut place.slot, slot));
        }
        if let Some(old) = self.crowded_out.get_mut(&id) {
            return Some(core::mem::replace(old, slot));
        }
        self.add(Place { hash, id, slot });
        None
    }

    pub(crate) fn get_or_insert(&mut self, id: &K, make: impl FnOnce() -> S) -> S
    where
        K: Clone,
    {
        let hash = hash(id.as_ref());
        self.get_hashed(hash, id).unwrap_or_else(|| {
            let slot = make();
            self.add(Place { hash, id: id.clone(), slot });
            slot
        })
    }

    /// One that is not there.
    fn add(&mut self, place: Place<K, S>) {
        if self.taken * 2 >= self.places.len() {
            self.grow();
        }
        self.put(place);
    }

    pub(crate) fn remove(&mut self, id: &K) -> Option<S> {
        match self.find(hash(id.as_ref()), id) {
            Some(at) => Some(self.take(at)),
            None => self.crowded_out.remove(id),
        }
    }

    /// The places where an id with this hash may be.
    fn probes(&self, hash: u64) -> impl Iterator<Item = usize> + use<K, S> {
        let (begin, mask) = (hash as usize, self.places.len().wrapping_sub(1));
        let probes = if self.places.is_empty() { 0 } else { PROBES_MAX };
        (0..probes).map(move |step| begin.wrapping_add(step) & mask)
    }

    fn find(&self, hash: u64, id: &K) -> Option<usize> {
        for at in self.probes(hash) {
            let place = self.places[at].as_ref()?;
            if place.hash == hash && place.id == *id {
                return Some(at);
            }
        }
        None
    }

    /// Empties a place and lets those move up that would have had it.
    fn take(&mut self, at: usize) -> S {
        let mask = self.places.len() - 1;
        let taken = self.places[at].take().expect("an id was found there");
        let (mut free, mut next) = (at, (at + 1) & mask);
        while let Some(place) = &self.places[next] {
            let from_home = next.wrapping_sub(place.hash as usize) & mask;
            if from_home >= next.wrapping_sub(free) & mask {
                self.places.swap(free, next);
                free = next;
            }
            next = (next + 1) & mask;
        }
        self.taken -= 1;
        taken.slot
    }

    fn put(&mut self, place: Place<K, S>) {
        match self.probes(place.hash).find(|at| self.places[*at].is_none()) {
            Some(at) => {
                self.places[at] = Some(place);
                self.taken += 1;
            }
            None => drop(self.crowded_out.insert(place.id, place.slot)),
        }
    }

    fn grow(&mut self) {
        let room = (self.places.len() * 2).max(PLACES_MIN);
        let old = core::mem::take(&mut self.places);
        self.places.resize_with(room, || None);
        self.taken = 0;
        old.into_iter().flatten().for_each(|place| self.put(place));
    }
}

/// Eight bytes at a time; at the end mixed once more, as ids that only count up differ in a few bits.
fn hash(text: &str) -> u64 {
    let mut hash = text.len() as u64;
    for chunk in text.as_bytes().chunks(8) {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ids_are_a_map(steps in proptest::collection::vec((0..200u32, any::<bool>()), 0..600)) {
            let (mut ids, mut map): (Ids<String, u32>, BTreeMap<String, u32>) = (Ids::new(), BTreeMap::new());
            for (step, (number, insert)) in steps.into_iter().enumerate() {
                let id = format!("some-long-id-{number}");
                match insert {
                    true => prop_assert_eq!(ids.insert(id.clone(), step as u32), map.insert(id.clone(), step as u32)),
                    false => prop_assert_eq!(ids.remove(&id), map.remove(&id)),
                }
                if step % 3 == 0 {
                    let slot = step as u32;
                    prop_assert_eq!(ids.get_or_insert(&id, || slot), *map.entry(id.clone()).or_insert(slot));
                }
                prop_assert_eq!((ids.get(&id), ids.len()), (map.get(&id).copied(), map.len()));
            }
            for (id, slot) in map {
                prop_assert_eq!(ids.get(&id), Some(slot));
            }
        }
    }

    #[test]
    fn ids_are_found_when_all_probes_collide() {
        let mut ids: Ids<&str, u32> = Ids::new();
        assert_eq!((ids.get(&"x"), ids.remove(&"x")), (None, None));
        ids.grow();
        // As if others had the hash of "x".
        for at in ids.probes(hash("x")).collect::<Vec<_>>() {
            ids.places[at] = Some(Place { hash: hash("x"), id: "another", slot: 9 });
        }
        assert_eq!(ids.insert("x", 1), None);
        assert_eq!((ids.get(&"x"), ids.crowded_out.len()), (Some(1), 1));
        assert_eq!((ids.insert("x", 2), ids.remove(&"x"), ids.get(&"x")), (Some(1), Some(2), None));
    }
}
