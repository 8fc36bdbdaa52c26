//! One entry of a collection: a resource and the number of its copies.
//!
//! Owned by `Resources`, which keeps entries sorted and each key once.

use core::cmp::Ordering;

use crate::resource::Resource;
use crate::role::Role;
use crate::scalar::Scalar;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) resource: Resource,
    /// How many times an indivisible resource is held: tasks using a shared volume, or equal disks. Else 1.
    pub(crate) copies: u32,
}

impl Entry {
    #[inline]
    pub(crate) fn cmp(&self, other: &Entry) -> Ordering {
        self.resource.cmp_entry(&other.resource)
    }

    /// The order of unallocated resources.
    #[inline]
    pub(crate) fn cmp_unallocated(&self, other: &Entry) -> Ordering {
        self.resource.cmp_entry_unallocated(&other.resource)
    }

    /// How often it counts: several equal disks are several disks, copies of a shared volume are one volume.
    pub(crate) fn weight(&self) -> u32 {
        if self.resource.is_shared() { 1 } else { self.copies }
    }

    /// So much of each copy.
    pub(crate) fn all_copies(&self, amount: Scalar) -> Scalar {
        if self.copies == 1 { amount } else { amount.times(self.weight()) }
    }

    pub(crate) fn clone_allocated(&self, role: Option<&Role>) -> Entry {
        Entry { resource: self.resource.clone_allocated(role), copies: self.copies }
    }

    /// Adds an entry of the same key.
    pub(crate) fn absorb(&mut self, other: &Entry) {
        if self.resource.is_indivisible() {
            self.copies = self.copies.saturating_add(other.copies);
        } else {
            self.resource.value_mut().add(other.resource.value());
        }
    }

    /// Takes away a resource of the same key; whether anything is left.
    pub(crate) fn subtract(&mut self, resource: &Resource, copies: u32) -> bool {
        if self.resource.is_indivisible() {
            self.copies = self.copies.saturating_sub(copies);
            return self.copies > 0;
        }
        self.resource.value_mut().subtract(resource.value());
        !self.resource.is_empty()
    }

    /// Whether this contains `wanted`, an entry of the same key.
    pub(crate) fn holds(&self, wanted: &Entry) -> bool {
        self.copies >= wanted.copies && self.resource.value().contains(wanted.resource.value())
    }

    /// With an entry of the same key.
    pub(crate) fn intersect(&self, other: &Entry) -> Option<Entry> {
        let copies = self.copies.min(other.copies);
        let value = self.resource.value().intersect(other.resource.value());
        (!value.is_empty()).then(|| Entry { resource: self.resource.clone().with_value(value), copies })
    }
}

/// See [`crate::Resources::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    entries: core::slice::Iter<'a, Entry>,
    /// One that is listed so many times more.
    again: Option<(&'a Resource, u32)>,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(entries: &'a [Entry]) -> Self {
        Self { entries: entries.iter(), again: None }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a Resource;

    #[inline]
    fn next(&mut self) -> Option<&'a Resource> {
        if let Some((resource, times)) = self.again {
            self.again = (times > 1).then_some((resource, times - 1));
            return Some(resource);
        }
        let entry = self.entries.next()?;
        if entry.copies > 1 && entry.weight() > 1 {
            self.again = Some((&entry.resource, entry.weight() - 1));
        }
        Some(&entry.resource)
    }
}
