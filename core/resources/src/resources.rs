//! A collection of resources and its algebra.
//!
//! Invariant: entries are sorted by `Resource::cmp_entry` and each key occurs once; no entry is empty. Two collections
//! with the same content are therefore equal, and combining them is one pass over both. Clones share their entries until
//! one of them changes. Absent: negative amounts; subtraction stops at zero.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::entry::{Entry, Iter};
use crate::name::Name;
use crate::quantities::Quantities;
use crate::ranges::Ranges;
use crate::resource::{Resource, Value};
use crate::role::Role;
use crate::scalar::Scalar;
use crate::set::Set;

/// Above this many entries to add, merging into a new list is cheaper than inserting one by one.
const INSERTED_ENTRIES_MAX: usize = 16;
/// The places of so many entries are remembered on the stack.
const PLACES_MAX: usize = 16;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Nothing instead of an empty list.
    entries: Option<Arc<Vec<Entry>>>,
}

impl Resources {
    pub const fn new() -> Self {
        Self { entries: None }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_none()
    }

    /// How many different resources there are.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// In their order; a shared resource once however many copies are held, equal disks each.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self.entries())
    }

    /// Each different one once, in their order.
    pub fn distinct(&self) -> impl Iterator<Item = &Resource> + '_ {
        self.entries().iter().map(|entry| &entry.resource)
    }

    pub fn insert(&mut self, resource: Resource) {
        *self += &Resources::from(resource);
    }

    /// Subtracts a resource: an indivisible one as a whole if equal, others down to zero.
    pub fn remove(&mut self, resource: &Resource) {
        if let Ok(at) = self.find(resource) {
            self.change(|entries| {
                if !entries[at].subtract(resource, 1) {
                    entries.remove(at);
                }
            });
        }
    }

    pub fn contains(&self, other: &Resources) -> bool {
        self.is_same_list(other) || self.contains_by(other, Entry::cmp)
    }

    /// Removes a part, regardless of its allocation, from the unallocated resources. Returns false and changes nothing
    /// unless all of it is contained.
    pub fn take(&mut self, part: &Resources) -> bool {
        if !part.is_for_one_role() {
            return self.take(&part.clone().unallocate());
        }
        if part.len() > PLACES_MAX {
            let taken = self.contains_by(part, Entry::cmp_unallocated);
            if taken {
                self.subtract_by(part, Entry::cmp_unallocated);
            }
            return taken;
        }
        let Some(places) = self.places_of(part) else { return false };
        if !part.is_empty() {
            self.change(|entries| {
                // In reverse order, so that earlier positions stay valid.
                for (at, entry) in places.iter().zip(part.entries()).rev() {
                    if !entries[*at].subtract(&entry.resource, entry.copies) {
                        entries.remove(*at);
                    }
                }
            });
        }
        true
    }

    /// The position of each entry of a part, regardless of allocation; `None` unless all of it is contained.
    fn places_of(&self, part: &Resources) -> Option<[usize; PLACES_MAX]> {
        let mut places = [0; PLACES_MAX];
        let (own, mut at) = (self.entries(), 0);
        for (place, wanted) in places.iter_mut().zip(part.entries()) {
            let entry = loop {
                let entry = own.get(at)?;
                match entry.cmp_unallocated(wanted) {
                    Ordering::Less => at += 1,
                    Ordering::Equal => break entry,
                    Ordering::Greater => return None,
                }
            };
            *place = entry.holds(wanted).then_some(at)?;
        }
        Some(places)
    }

    /// Reverts [`Resources::take`].
    pub fn put_back(&mut self, part: &Resources) {
        if self.is_empty() || !part.is_for_one_role() {
            *self += part.clone().unallocate();
        } else {
            self.add_by(part, Entry::cmp_unallocated, |entry| entry.clone_allocated(None));
        }
    }

    pub fn contains_resource(&self, resource: &Resource) -> bool {
        resource.is_empty()
            || self
                .find(resource)
                .is_ok_and(|at| self.entries()[at].resource.value().contains(resource.value()))
    }

    /// `self - other`, or `None` if `other` is not contained.
    pub fn checked_sub(&self, other: &Resources) -> Option<Resources> {
        self.contains(other).then(|| self - other)
    }

    /// What both have.
    pub fn intersect(&self, other: &Resources) -> Resources {
        let common = self.entries().iter().filter_map(|entry| {
            let at = other.find(&entry.resource).ok()?;
            entry.intersect(&other.entries()[at])
        });
        Resources::of(common.collect())
    }

    /// How many copies of a shared resource are held.
    pub fn copies(&self, resource: &Resource) -> u32 {
        self.find(resource).map_or(0, |at| self.entries()[at].copies)
    }

    /// The sum of the scalars of this name, whatever else distinguishes them; a shared one counts once.
    pub fn amount(&self, name: &Name) -> Scalar {
        let amounts = self.named(name).filter_map(|entry| Some(entry.all_copies(entry.resource.amount()?)));
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
        self.entries()
            .chunk_by(|a, b| a.resource.name() == b.resource.name())
            .map(|same| same[0].resource.name())
    }

    /// The quantity of each name; ranges and sets count their elements.
    pub fn quantities(&self) -> Quantities {
        self.quantities_of(|_| true)
    }

    /// The same for resources that satisfy the predicate.
    pub fn quantities_of(&self, wanted: impl Fn(&Resource) -> bool) -> Quantities {
        let mut sum = Quantities::default();
        for entry in self.entries().iter().filter(|entry| wanted(&entry.resource)) {
            sum.increase(entry.resource.name(), entry.all_copies(entry.resource.value().quantity()));
        }
        sum
    }

    /// [`Resources::quantities`] of the scalars alone.
    pub fn scalar_quantities(&self) -> Quantities {
        let mut sum = Quantities::default();
        for entry in self.entries() {
            if let Some(amount) = entry.resource.amount() {
                sum.increase(entry.resource.name(), entry.all_copies(amount));
            }
        }
        sum
    }

    /// Those that are wanted, with all their copies.
    pub fn filter(&self, mut wanted: impl FnMut(&Resource) -> bool) -> Resources {
        let all = self.entries();
        match all.iter().position(|entry| !wanted(&entry.resource)) {
            None => self.clone(),
            Some(at) => {
                // Often no resource is wanted: allocate only if one is.
                let mut some = Vec::with_capacity(if at == 0 { 0 } else { all.len() - 1 });
                some.extend_from_slice(&all[..at]);
                some.extend(all[at + 1..].iter().filter(|entry| wanted(&entry.resource)).cloned());
                Resources::of(some)
            }
        }
    }

    /// Removes resources that do not satisfy the predicate.
    pub fn retain(&mut self, wanted: impl Fn(&Resource) -> bool) {
        if !self.entries().iter().all(|entry| wanted(&entry.resource)) {
            self.change(|entries| entries.retain(|entry| wanted(&entry.resource)));
        }
    }

    /// Changes each resource; copies are preserved, and resources that become equal are merged.
    pub fn map(self, change: impl Fn(Resource) -> Resource) -> Resources {
        let changed =
            self.into_entries().into_iter().map(|entry| Entry { resource: change(entry.resource), ..entry });
        Resources::merged(changed.filter(|entry| !entry.resource.is_empty()).collect())
    }

    /// Shrinks each resource to the result of `take` for its name, quantity and divisibility.
    pub(crate) fn shrink_by(&mut self, mut take: impl FnMut(&Name, Scalar, bool) -> Scalar) {
        self.change(|entries| {
            entries.retain_mut(|entry| {
                let have = entry.all_copies(entry.resource.value().quantity());
                let granted = take(entry.resource.name(), have, !entry.resource.is_indivisible());
                if granted < have {
                    *entry.resource.value_mut() = entry.resource.value().first(granted);
                }
                !entry.resource.is_empty()
            });
        });
    }

    /// Sets the allocation of every resource.
    pub(crate) fn allocated_to(mut self, role: Option<&Role>) -> Resources {
        if self.iter().all(|resource| resource.allocation() == role) {
            return self;
        }
        let keeps_order = self.is_for_one_role();
        match self.entries.as_mut().and_then(Arc::get_mut) {
            Some(own) => own.iter_mut().for_each(|entry| entry.resource.set_allocation(role.cloned())),
            None => {
                self = Resources::of(self.entries().iter().map(|it| it.clone_allocated(role)).collect());
            }
        }
        if keeps_order { self } else { Resources::merged(self.into_entries()) }
    }

    /// One copy of each shared resource.
    pub fn single_copies(mut self) -> Resources {
        let several = |entry: &Entry| entry.resource.is_shared() && entry.copies != 1;
        if self.entries().iter().any(several) {
            self.change(|entries| {
                entries.iter_mut().filter(|entry| several(entry)).for_each(|entry| entry.copies = 1);
            });
        }
        self
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        match &self.entries {
            Some(entries) => entries,
            None => &[],
        }
    }

    /// Sorted, each key once, none of them empty.
    fn of(entries: Vec<Entry>) -> Resources {
        Resources { entries: (!entries.is_empty()).then(|| Arc::new(entries)) }
    }

    fn into_entries(self) -> Vec<Entry> {
        self.entries.map_or_else(Vec::new, Arc::unwrap_or_clone)
    }

    /// Changes the list, which is its own from now on.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Entry>)) {
        let mut entries = self.entries.take().unwrap_or_default();
        change(Arc::make_mut(&mut entries));
        self.entries = (!entries.is_empty()).then_some(entries);
    }

    /// Whether both share the same entries, which implies equality.
    fn is_same_list(&self, other: &Resources) -> bool {
        match (&self.entries, &other.entries) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    /// Whether all entries have the same allocation: then the order does not depend on it.
    fn is_for_one_role(&self) -> bool {
        let mut roles = self.entries().iter().map(|entry| entry.resource.allocation());
        roles.next().is_none_or(|first| roles.all(|role| role == first))
    }

    fn contains_by(&self, other: &Resources, cmp: impl Fn(&Entry, &Entry) -> Ordering) -> bool {
        let mut own = self.entries().iter();
        other.entries().iter().all(|wanted| {
            for entry in own.by_ref() {
                match cmp(entry, wanted) {
                    Ordering::Less => (),
                    Ordering::Equal => return entry.holds(wanted),
                    Ordering::Greater => return false,
                }
            }
            false
        })
    }

    fn subtract_by(&mut self, other: &Resources, cmp: impl Fn(&Entry, &Entry) -> Ordering) {
        let mut gone = other.entries().iter().peekable();
        self.change(|entries| {
            entries.retain_mut(|own| {
                while let Some(entry) = gone.peek() {
                    match cmp(entry, own) {
                        Ordering::Less => drop(gone.next()),
                        Ordering::Equal => return own.subtract(&entry.resource, entry.copies),
                        Ordering::Greater => return true,
                    }
                }
                true
            });
        });
    }

    fn add_by(
        &mut self,
        other: &Resources,
        cmp: impl Fn(&Entry, &Entry) -> Ordering,
        new: impl Fn(&Entry) -> Entry,
    ) {
        self.change(|entries| {
            let mut at = 0;
            for entry in other.entries() {
                match entries[at..].binary_search_by(|own| cmp(own, entry)) {
                    Ok(found) => {
                        at += found;
                        entries[at].absorb(entry);
                    }
                    Err(place) => {
                        at += place;
                        entries.insert(at, new(entry));
                    }
                }
            }
        });
    }

    fn named(&self, name: &Name) -> impl Iterator<Item = &Entry> + '_ {
        let all = self.entries();
        let begin = all.partition_point(|entry| entry.resource.name() < name);
        let rest = &all[begin..];
        let end = rest.partition_point(|entry| entry.resource.name() == name);
        rest[..end].iter()
    }

    fn find(&self, resource: &Resource) -> Result<usize, usize> {
        self.entries().binary_search_by(|entry| entry.resource.cmp_entry(resource))
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
        Resources::of(entries)
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
        if self.is_empty() {
            *self = other.clone();
        } else if other.len() <= INSERTED_ENTRIES_MAX {
            self.add_by(other, Entry::cmp, Entry::clone);
        } else {
            let mut all = core::mem::take(self).into_entries();
            all.extend_from_slice(other.entries());
            *self = Resources::merged(all);
        }
    }
}

impl SubAssign<&Resources> for Resources {
    fn sub_assign(&mut self, other: &Resources) {
        match self.is_same_list(other) {
            true => self.entries = None,
            false if other.is_empty() => (),
            false => self.subtract_by(other, Entry::cmp),
        }
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

impl<'a> IntoIterator for &'a Resources {
    type Item = &'a Resource;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
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
    fn path_disks_add_up_and_mount_disks_do_not() {
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
    fn shared_volume_copies_are_counted_and_contribute_once() {
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
    fn resources_with_different_attributes_are_not_merged() {
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
    fn zero_resources_are_dropped() {
        let none = Resource::scalar("cpus", Scalar::ZERO);
        assert!(Resources::from(none.clone()).is_empty());
        assert!(Resources::new().contains_resource(&none));
        assert_eq!(Resources::new().to_string(), "{}");
    }
}
