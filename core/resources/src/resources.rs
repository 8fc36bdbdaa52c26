//! A collection of resources and its algebra.
//!
//! Invariant: entries are sorted by `Resource::cmp_entry` and each key occurs once; no entry is empty. Two collections
//! that hold the same things are therefore equal, however they came about, and combining them is one pass over both.
//! Never: a resource below zero; subtracting more than there is leaves nothing of it.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::name::Name;
use crate::quantities::Quantities;
use crate::ranges::Ranges;
use crate::resource::{Resource, Value};
use crate::scalar::Scalar;
use crate::set::Set;

/// Above this many entries to add, merging into a new list is cheaper than inserting one by one.
const INSERTED_ENTRIES_MAX: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    resource: Resource,
    /// How many times an indivisible resource is held: tasks using a shared volume, or equal disks. Else 1.
    copies: u32,
}

impl Resources {
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many different resources there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// In their order; a shared resource once however many copies are held, equal disks each.
    pub fn iter(&self) -> impl Iterator<Item = &Resource> + '_ {
        self.entries.iter().flat_map(|entry| core::iter::repeat_n(&entry.resource, entry.visible_copies()))
    }

    pub fn insert(&mut self, resource: Resource) {
        if !resource.is_empty() {
            self.add_entry(0, Entry { resource, copies: 1 });
        }
    }

    /// Takes away what there is of it: all of an indivisible resource that is equal, else at most the amount held.
    pub fn remove(&mut self, resource: &Resource) {
        if let Ok(at) = self.find(resource)
            && !self.entries[at].subtract(resource, 1)
        {
            self.entries.remove(at);
        }
    }

    pub fn contains(&self, other: &Resources) -> bool {
        let mut own = self.entries.as_slice();
        other.entries.iter().all(|wanted| {
            let skipped = own.iter().take_while(|entry| entry.cmp(wanted).is_lt()).count();
            own = &own[skipped..];
            own.first().is_some_and(|entry| entry.contains(wanted))
        })
    }

    pub fn contains_resource(&self, resource: &Resource) -> bool {
        resource.is_empty()
            || self
                .find(resource)
                .is_ok_and(|at| self.entries[at].resource.value().contains(resource.value()))
    }

    /// `self - other`, or `None` if `other` is not contained.
    pub fn checked_sub(&self, other: &Resources) -> Option<Resources> {
        self.contains(other).then(|| self - other)
    }

    /// What both have.
    pub fn intersect(&self, other: &Resources) -> Resources {
        let common = self.entries.iter().filter_map(|entry| {
            let at = other.find(&entry.resource).ok()?;
            entry.intersect(&other.entries[at])
        });
        Resources { entries: common.collect() }
    }

    /// How many copies of a shared resource are held.
    pub fn copies(&self, resource: &Resource) -> u32 {
        self.find(resource).map_or(0, |at| self.entries[at].copies)
    }

    /// The sum of the scalars of this name, whatever else distinguishes them; a shared one counts once.
    pub fn amount(&self, name: &Name) -> Scalar {
        let amounts =
            self.named(name).filter_map(|entry| Some(entry.resource.amount()?.times(entry.weight())));
        amounts.sum()
    }

    pub fn ranges(&self, name: &Name) -> Ranges {
        let all = self.named(name).filter_map(|entry| match entry.resource.value() {
            Value::Ranges(ranges) => Some(ranges),
            Value::Scalar(_) | Value::Set(_) => None,
        });
        all.fold(
            Ranges::default(),
            |sum, ranges| if sum.is_empty() { ranges.clone() } else { sum.union(ranges) },
        )
    }

    pub fn set(&self, name: &Name) -> Set {
        let all = self.named(name).filter_map(|entry| match entry.resource.value() {
            Value::Set(set) => Some(set),
            Value::Scalar(_) | Value::Ranges(_) => None,
        });
        all.fold(Set::default(), |sum, set| sum.union(set))
    }

    pub fn cpus(&self) -> Scalar {
        self.amount(&Name::Cpus)
    }

    pub fn mem(&self) -> Scalar {
        self.amount(&Name::Mem)
    }

    pub fn disk(&self) -> Scalar {
        self.amount(&Name::Disk)
    }

    pub fn gpus(&self) -> Scalar {
        self.amount(&Name::Gpus)
    }

    pub fn ports(&self) -> Ranges {
        self.ranges(&Name::Ports)
    }

    /// Each name once.
    pub fn names(&self) -> impl Iterator<Item = &Name> + '_ {
        self.entries
            .chunk_by(|a, b| a.resource.name() == b.resource.name())
            .map(|same| same[0].resource.name())
    }

    /// How much there is under each name; ranges and sets by their number of elements.
    pub fn quantities(&self) -> Quantities {
        let mut sum = Quantities::default();
        for entry in &self.entries {
            sum.increase(entry.resource.name(), entry.resource.value().quantity().times(entry.weight()));
        }
        sum
    }

    /// [`Resources::quantities`] of the scalars alone.
    pub fn scalar_quantities(&self) -> Quantities {
        let mut sum = Quantities::default();
        for entry in &self.entries {
            let amount = entry.resource.amount().unwrap_or_default();
            sum.increase(entry.resource.name(), amount.times(entry.weight()));
        }
        sum
    }

    /// Those that are wanted, with all their copies.
    pub fn filter(&self, wanted: impl Fn(&Resource) -> bool) -> Resources {
        Resources { entries: self.entries.iter().filter(|entry| wanted(&entry.resource)).cloned().collect() }
    }

    /// Drops those that are not wanted.
    pub fn retain(&mut self, wanted: impl Fn(&Resource) -> bool) {
        self.entries.retain(|entry| wanted(&entry.resource));
    }

    /// Each resource changed; copies are kept, and what becomes the same is merged.
    pub fn map(self, change: impl Fn(Resource) -> Resource) -> Resources {
        let changed =
            self.entries.into_iter().map(|entry| Entry { resource: change(entry.resource), ..entry });
        Resources::merged(changed.filter(|entry| !entry.resource.is_empty()).collect())
    }

    /// Cuts each resource to what `take` grants, given its name, its quantity and whether it is divisible.
    pub(crate) fn shrink_by(&mut self, mut take: impl FnMut(&Name, Scalar, bool) -> Scalar) {
        self.entries.retain_mut(|entry| {
            let have = entry.resource.value().quantity().times(entry.weight());
            let granted = take(entry.resource.name(), have, !entry.resource.is_indivisible());
            if granted < have {
                *entry.resource.value_mut() = entry.resource.value().first(granted);
            }
            !entry.resource.is_empty()
        });
    }

    /// Like [`Resources::map`] where nothing becomes empty; cheaper if what comes out is in order.
    pub(crate) fn map_in_place(mut self, change: impl Fn(&mut Resource)) -> Resources {
        for entry in &mut self.entries {
            change(&mut entry.resource);
        }
        match self.entries.is_sorted_by(|a, b| a.cmp(b).is_lt()) {
            true => self,
            false => Resources::merged(self.entries),
        }
    }

    /// One copy of each shared resource.
    pub fn single_copies(mut self) -> Resources {
        for entry in &mut self.entries {
            if entry.resource.is_shared() {
                entry.copies = 1;
            }
        }
        self
    }

    fn named(&self, name: &Name) -> impl Iterator<Item = &Entry> + '_ {
        let begin = self.entries.partition_point(|entry| entry.resource.name() < name);
        let rest = &self.entries[begin..];
        let end = rest.partition_point(|entry| entry.resource.name() == name);
        rest[..end].iter()
    }

    fn find(&self, resource: &Resource) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.resource.cmp_entry(resource))
    }

    /// Adds to the entries from `at` on; returns where it went.
    fn add_entry(&mut self, at: usize, entry: Entry) -> usize {
        match self.entries[at..].binary_search_by(|own| own.cmp(&entry)) {
            Ok(found) => {
                self.entries[at + found].absorb(&entry);
                at + found
            }
            Err(place) => {
                self.entries.insert(at + place, entry);
                at + place
            }
        }
    }

    fn merged(mut entries: Vec<Entry>) -> Resources {
        entries.sort_by(Entry::cmp);
        entries.dedup_by(|next, kept| {
            let same = kept.cmp(next).is_eq();
            if same {
                kept.absorb(next);
            }
            same
        });
        Resources { entries }
    }
}

impl Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.resource.cmp_entry(&other.resource)
    }

    /// How often it counts: several equal disks are several disks, copies of a shared volume are one volume.
    fn weight(&self) -> u32 {
        if self.resource.is_shared() { 1 } else { self.copies }
    }

    fn visible_copies(&self) -> usize {
        self.weight() as usize
    }

    /// Adds an entry of the same key.
    fn absorb(&mut self, other: &Entry) {
        if self.resource.is_indivisible() {
            self.copies = self.copies.saturating_add(other.copies);
        } else {
            self.resource.value_mut().add(other.resource.value());
        }
    }

    /// Takes away a resource of the same key; whether anything is left.
    fn subtract(&mut self, resource: &Resource, copies: u32) -> bool {
        if self.resource.is_indivisible() {
            self.copies = self.copies.saturating_sub(copies);
            return self.copies > 0;
        }
        self.resource.value_mut().subtract(resource.value());
        !self.resource.is_empty()
    }

    fn contains(&self, wanted: &Entry) -> bool {
        self.cmp(wanted).is_eq()
            && self.copies >= wanted.copies
            && self.resource.value().contains(wanted.resource.value())
    }

    /// With an entry of the same key.
    fn intersect(&self, other: &Entry) -> Option<Entry> {
        let copies = self.copies.min(other.copies);
        let value = self.resource.value().intersect(other.resource.value());
        (!value.is_empty()).then(|| Entry { resource: self.resource.clone().with_value(value), copies })
    }
}

impl FromIterator<Resource> for Resources {
    fn from_iter<I: IntoIterator<Item = Resource>>(resources: I) -> Self {
        let present = resources.into_iter().filter(|resource| !resource.is_empty());
        Resources::merged(present.map(|resource| Entry { resource, copies: 1 }).collect())
    }
}

impl From<Resource> for Resources {
    fn from(resource: Resource) -> Self {
        [resource].into_iter().collect()
    }
}

impl AddAssign<&Resources> for Resources {
    fn add_assign(&mut self, other: &Resources) {
        if self.entries.is_empty() {
            self.entries.clone_from(&other.entries);
        } else if other.entries.len() <= INSERTED_ENTRIES_MAX {
            let mut at = 0;
            for entry in &other.entries {
                at = self.add_entry(at, entry.clone());
            }
        } else {
            let mut all = core::mem::take(&mut self.entries);
            all.extend_from_slice(&other.entries);
            *self = Resources::merged(all);
        }
    }
}

impl SubAssign<&Resources> for Resources {
    fn sub_assign(&mut self, other: &Resources) {
        let mut gone = other.entries.iter().peekable();
        self.entries.retain_mut(|own| {
            while gone.next_if(|entry| entry.cmp(own).is_lt()).is_some() {}
            match gone.next_if(|entry| entry.cmp(own).is_eq()) {
                Some(entry) => own.subtract(&entry.resource, entry.copies),
                None => true,
            }
        });
    }
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Resources) {
        if self.is_empty() {
            *self = other;
        } else {
            *self += &other;
        }
    }
}

impl SubAssign for Resources {
    fn sub_assign(&mut self, other: Resources) {
        *self -= &other;
    }
}

impl Add<&Resources> for &Resources {
    type Output = Resources;

    fn add(self, other: &Resources) -> Resources {
        self.clone() + other
    }
}

impl Add<&Resources> for Resources {
    type Output = Resources;

    fn add(mut self, other: &Resources) -> Resources {
        self += other;
        self
    }
}

impl Sub<&Resources> for &Resources {
    type Output = Resources;

    fn sub(self, other: &Resources) -> Resources {
        self.clone() - other
    }
}

impl Sub<&Resources> for Resources {
    type Output = Resources;

    fn sub(mut self, other: &Resources) -> Resources {
        self -= other;
        self
    }
}

impl core::iter::Sum for Resources {
    fn sum<I: Iterator<Item = Resources>>(all: I) -> Self {
        all.fold(Resources::new(), |mut sum, next| {
            sum += next;
            sum
        })
    }
}

impl<'a> core::iter::Sum<&'a Resources> for Resources {
    fn sum<I: Iterator<Item = &'a Resources>>(all: I) -> Self {
        all.fold(Resources::new(), |sum, next| sum + next)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::disk::{Disk, DiskKind, DiskSource};

    fn disk(count: u128, disk: Disk) -> Resource {
        Resource::scalar("disk", Scalar::from_count(count)).with_disk(Some(disk))
    }

    fn on(kind: DiskKind) -> Disk {
        Disk { source: Some(DiskSource::new(kind)), ..Disk::default() }
    }

    #[test]
    fn paths_add_up_but_mounts_stay_whole() {
        let path: Resources =
            [disk(2, on(DiskKind::Path { root: None })), disk(3, on(DiskKind::Path { root: None }))]
                .into_iter()
                .collect();
        assert_eq!(path.to_string(), "disk[PATH]:5");
        let mount = disk(2, on(DiskKind::Mount { root: None }));
        let mut mounts: Resources =
            [mount.clone(), mount.clone(), disk(3, on(DiskKind::Mount { root: None }))].into_iter().collect();
        assert_eq!(mounts.to_string(), "disk[MOUNT]:2; disk[MOUNT]:2; disk[MOUNT]:3");
        assert_eq!(mounts.disk(), Scalar::from_count(7));
        assert!(!mounts.contains(&disk(1, on(DiskKind::Mount { root: None })).into()));
        mounts.remove(&disk(1, on(DiskKind::Mount { root: None })));
        mounts.remove(&mount);
        assert_eq!(mounts.to_string(), "disk[MOUNT]:2; disk[MOUNT]:3");
    }

    #[test]
    fn copies_of_a_shared_volume_are_counted_but_weigh_once() {
        let volume = disk(8, Disk::persistent("v", "data")).with_shared(true);
        let one = Resources::from(volume.clone());
        let three = &(&one + &one) + &one;
        assert_eq!(three.to_string(), "disk[v:data]<SHARED>:8<3>");
        assert_eq!((three.copies(&volume), three.disk(), three.len()), (3, Scalar::from_count(8), 1));
        assert_eq!(three.quantities(), one.quantities());
        assert!(three.contains(&one) && !one.contains(&three));
        assert_eq!(&(&three - &one) - &one, one);
        assert!((&one - &three).is_empty());
        assert_eq!(three.single_copies(), one);
    }

    #[test]
    fn what_differs_in_anything_stays_apart() {
        use crate::resource::Revocable;
        let cpus = Resource::scalar("cpus", Scalar::ONE);
        let kinds = [
            cpus.clone(),
            cpus.clone().with_revocable(Revocable::Plain),
            cpus.clone().with_revocable(Revocable::UsageSlack),
            cpus.clone().with_allocation(Some("a".into())),
            cpus.clone().with_allocation(Some("b".into())),
            cpus.clone().with_provider(Some("p".into())),
            Resource::new("cpus", Value::Set(["x"].into_iter().collect())),
        ];
        let sum: Resources = kinds.iter().chain(&kinds).cloned().collect();
        assert_eq!(sum.len(), kinds.len());
        assert_eq!(sum.cpus(), Scalar::from_count(12));
        for kind in kinds {
            assert!(sum.contains_resource(&kind));
        }
        assert_eq!(sum.names().count(), 1);
    }

    #[test]
    fn empty_resources_are_nothing() {
        let none = Resource::scalar("cpus", Scalar::ZERO);
        assert!(Resources::from(none.clone()).is_empty());
        assert!(Resources::new().contains_resource(&none));
        assert_eq!(Resources::new().to_string(), "{}");
    }
}
