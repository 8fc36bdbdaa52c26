//! One resource: an amount and its identity.
//!
//! Made by `proto` and `parse`; combined by `Resources`. A plain resource owns no heap memory; rare parts (reservations,
//! disk, sharing, provider) are behind one shared pointer.
//! Absent: protobuf, except a volume that is passed through.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::disk::Disk;
use crate::name::Name;
use crate::ranges::Ranges;
use crate::reservation::Reservation;
use crate::role::Role;
use crate::scalar::Scalar;
use crate::set::Set;

#[derive(Clone, Debug)]
pub struct Resource {
    name: Name,
    value: Value,
    allocation: Option<Role>,
    revocable: Revocable,
    rare: Option<Arc<Rare>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Scalar(Scalar),
    Ranges(Ranges),
    Set(Set),
}

/// Whether and why a resource can be reclaimed at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revocable {
    #[default]
    No,
    /// Revocable as in v1, without a kind.
    Plain,
    /// Allocated but currently unused.
    UsageSlack,
    /// Reserved but currently not allocated.
    AllocationSlack,
}

/// The parts that few resources have.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rare {
    pub(crate) reservations: Vec<Reservation>,
    pub(crate) disk: Option<Disk>,
    pub(crate) shared: bool,
    pub(crate) provider: Option<Arc<str>>,
}

impl Resource {
    pub fn new(name: impl Into<Name>, value: Value) -> Self {
        Self { name: name.into(), value, allocation: None, revocable: Revocable::No, rare: None }
    }

    pub fn scalar(name: impl Into<Name>, amount: Scalar) -> Self {
        Self::new(name, Value::Scalar(amount))
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The amount, if it is one.
    pub fn amount(&self) -> Option<Scalar> {
        match self.value {
            Value::Scalar(amount) => Some(amount),
            Value::Ranges(_) | Value::Set(_) => None,
        }
    }

    /// The role this is offered to or used by.
    pub fn allocation(&self) -> Option<&Role> {
        self.allocation.as_ref()
    }

    pub fn revocable(&self) -> Revocable {
        self.revocable
    }

    pub fn is_revocable(&self) -> bool {
        self.revocable != Revocable::No
    }

    /// The stack, outermost (first made) first; empty for unreserved.
    pub fn reservations(&self) -> &[Reservation] {
        self.rare.as_ref().map_or(&[], |rare| &rare.reservations)
    }

    /// The innermost reservation, which is the effective one.
    pub fn reservation(&self) -> Option<&Reservation> {
        self.reservations().last()
    }

    pub fn reservation_role(&self) -> Option<&Role> {
        self.reservation().map(|reservation| &reservation.role)
    }

    pub fn is_reserved(&self) -> bool {
        self.reservation().is_some()
    }

    pub fn is_dynamically_reserved(&self) -> bool {
        self.reservation().is_some_and(Reservation::is_dynamic)
    }

    /// Reserved more than once.
    pub fn is_refined(&self) -> bool {
        self.reservations().len() > 1
    }

    /// Unreserved, or reserved to `role` or one of its ancestors.
    pub fn is_allocatable_to(&self, role: &Role) -> bool {
        self.reservation_role().is_none_or(|owner| role == owner || role.is_strict_subrole_of(owner))
    }

    pub fn disk(&self) -> Option<&Disk> {
        self.rare.as_ref()?.disk.as_ref()
    }

    pub fn is_persistent_volume(&self) -> bool {
        self.persistence_id().is_some()
    }

    pub fn persistence_id(&self) -> Option<&str> {
        self.disk()?.persistence.as_ref().map(|persistence| &*persistence.id)
    }

    pub fn is_shared(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.shared)
    }

    /// The resource provider it comes from; `None` for the agent itself.
    pub fn provider(&self) -> Option<&Arc<str>> {
        self.rare.as_ref()?.provider.as_ref()
    }

    /// Can only be allocated as a whole.
    pub fn is_indivisible(&self) -> bool {
        self.is_shared() || self.disk().is_some_and(Disk::is_indivisible)
    }

    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Whether both have the same identity.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.cmp_identity(other).is_eq()
    }

    /// Orders by everything but the value.
    pub(crate) fn cmp_identity(&self, other: &Self) -> Ordering {
        self.cmp_common(other)
            .then_with(|| self.allocation.cmp(&other.allocation))
            .then_with(|| cmp_rare(self.rare.as_ref(), other.rare.as_ref()))
    }

    /// Orders by the fields that must be equal for two resources to merge into one entry.
    #[inline]
    pub(crate) fn cmp_entry(&self, other: &Self) -> Ordering {
        self.cmp_common(other)
            .then_with(|| self.allocation.cmp(&other.allocation))
            .then_with(|| self.cmp_special(other))
    }

    /// The same, regardless of allocation.
    #[inline]
    pub(crate) fn cmp_entry_unallocated(&self, other: &Self) -> Ordering {
        self.cmp_common(other).then_with(|| self.cmp_special(other))
    }

    #[inline]
    fn cmp_common(&self, other: &Self) -> Ordering {
        self.name
            .cmp(&other.name)
            .then_with(|| self.value.kind().cmp(&other.value.kind()))
            .then_with(|| self.revocable.cmp(&other.revocable))
    }

    #[inline]
    fn cmp_special(&self, other: &Self) -> Ordering {
        // Plain resources are divisible.
        if self.rare.is_none() && other.rare.is_none() {
            return Ordering::Equal;
        }
        cmp_rare(self.rare.as_ref(), other.rare.as_ref()).then_with(|| match self.is_indivisible() {
            true => self.value.cmp(&other.value),
            false => Ordering::Equal,
        })
    }

    /// As [`Resource::with_allocation`] of a clone.
    pub(crate) fn clone_allocated(&self, role: Option<&Role>) -> Self {
        Self {
            name: self.name.clone(),
            value: self.value.clone(),
            allocation: role.cloned(),
            revocable: self.revocable,
            rare: self.rare.clone(),
        }
    }
}

/// Building and changing.
impl Resource {
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = value;
        self
    }

    pub fn with_allocation(mut self, role: Option<Role>) -> Self {
        self.allocation = role;
        self
    }

    pub fn with_revocable(mut self, revocable: Revocable) -> Self {
        self.revocable = revocable;
        self
    }

    pub fn with_reservations(self, reservations: Vec<Reservation>) -> Self {
        self.with_rare(|rare| rare.reservations = reservations)
    }

    /// Adds a reservation inside the existing ones.
    pub fn push_reservation(self, reservation: Reservation) -> Self {
        self.with_rare(|rare| rare.reservations.push(reservation))
    }

    /// Undoes the innermost reservation; an unreserved resource stays as it is.
    pub fn pop_reservation(self) -> Self {
        self.with_rare(|rare| drop(rare.reservations.pop()))
    }

    pub fn with_disk(self, disk: Option<Disk>) -> Self {
        self.with_rare(|rare| rare.disk = disk)
    }

    pub fn with_shared(self, shared: bool) -> Self {
        self.with_rare(|rare| rare.shared = shared)
    }

    pub fn with_provider(self, provider: Option<Arc<str>>) -> Self {
        self.with_rare(|rare| rare.provider = provider)
    }

    /// The disk a persistent volume lies on, without the volume.
    pub fn without_volume(self) -> Self {
        self.with_rare(|rare| {
            rare.disk = rare.disk.as_ref().and_then(Disk::without_volume);
            rare.shared = false;
        })
    }

    /// At most `target` of this: the lowest values, the first words. `None` if the result is empty or the resource would
    /// have to be divided and is indivisible.
    pub fn shrink(self, target: Scalar) -> Option<Self> {
        if self.value.quantity() <= target {
            return Some(self);
        }
        let value = self.value.first(target);
        (!self.is_indivisible() && !value.is_empty()).then(|| self.with_value(value))
    }

    pub(crate) fn set_allocation(&mut self, role: Option<Role>) {
        self.allocation = role;
    }

    pub(crate) fn value_mut(&mut self) -> &mut Value {
        &mut self.value
    }

    fn with_rare(mut self, change: impl FnOnce(&mut Rare)) -> Self {
        let mut rare = self.rare.take().map(Arc::unwrap_or_clone).unwrap_or_default();
        change(&mut rare);
        // A canonical form without rare parts, so that identities usually compare by pointer.
        self.rare = (rare != Rare::default()).then(|| Arc::new(rare));
        self
    }
}

impl Value {
    pub fn is_empty(&self) -> bool {
        match self {
            Value::Scalar(amount) => *amount <= Scalar::ZERO,
            Value::Ranges(ranges) => ranges.is_empty(),
            Value::Set(set) => set.is_empty(),
        }
    }

    /// The amount, or how many elements there are.
    pub fn quantity(&self) -> Scalar {
        match self {
            Value::Scalar(amount) => *amount,
            Value::Ranges(ranges) => Scalar::from_count(ranges.count()),
            Value::Set(set) => Scalar::from_count(set.len() as u128),
        }
    }

    /// The part of at most the given quantity: the lowest values, the first words.
    pub(crate) fn first(&self, quantity: Scalar) -> Value {
        let elements = (quantity.thousandths().max(0) / 1000) as u64;
        match self {
            Value::Scalar(amount) => Value::Scalar((*amount).min(quantity)),
            Value::Ranges(ranges) => Value::Ranges(ranges.first(u128::from(elements))),
            Value::Set(set) => Value::Set(set.first(usize::try_from(elements).unwrap_or(usize::MAX))),
        }
    }

    /// `false` if the kinds differ.
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => a >= b,
            (Value::Ranges(a), Value::Ranges(b)) => a.contains(b),
            (Value::Set(a), Value::Set(b)) => a.contains(b),
            (Value::Scalar(_) | Value::Ranges(_) | Value::Set(_), _) => false,
        }
    }

    /// Adds a value of the same type; a value of another type is ignored.
    pub(crate) fn add(&mut self, other: &Self) {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => *a += *b,
            (Value::Ranges(a), Value::Ranges(b)) => *a = a.union(b),
            (Value::Set(a), Value::Set(b)) => *a = a.union(b),
            (Value::Scalar(_) | Value::Ranges(_) | Value::Set(_), _) => (),
        }
    }

    /// Subtracts a value of the same type, down to zero.
    pub(crate) fn subtract(&mut self, other: &Self) {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => *a = a.minus_or_zero(*b),
            (Value::Ranges(a), Value::Ranges(b)) => *a = a.difference(b),
            (Value::Set(a), Value::Set(b)) => *a = a.difference(b),
            (Value::Scalar(_) | Value::Ranges(_) | Value::Set(_), _) => (),
        }
    }

    /// The intersection; empty for a value of another type.
    pub(crate) fn intersect(&self, other: &Self) -> Self {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(*a.min(b)),
            (Value::Ranges(a), Value::Ranges(b)) => Value::Ranges(a.intersection(b)),
            (Value::Set(a), Value::Set(b)) => Value::Set(a.intersection(b)),
            (Value::Scalar(_) | Value::Ranges(_) | Value::Set(_), _) => Value::Scalar(Scalar::ZERO),
        }
    }

    pub fn is_same_type(&self, other: &Self) -> bool {
        self.kind() == other.kind()
    }

    fn kind(&self) -> u8 {
        match self {
            Value::Scalar(_) => 0,
            Value::Ranges(_) => 1,
            Value::Set(_) => 2,
        }
    }
}

fn cmp_rare(left: Option<&Arc<Rare>>, right: Option<&Arc<Rare>>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
        (left, right) => left.cmp(&right),
    }
}

/// Equal identity and value.
impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value && self.is_same_kind(other)
    }
}

impl Eq for Resource {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_resource_is_small() {
        assert!(size_of::<Resource>() <= 72, "{}", size_of::<Resource>());
    }

    #[test]
    fn undone_reservation_restores_the_resource() {
        let cpus = Resource::scalar("cpus", Scalar::ONE);
        let reserved = cpus.clone().push_reservation(Reservation::dynamic("web"));
        assert_ne!(cpus, reserved);
        assert!(reserved.is_dynamically_reserved() && !reserved.is_refined());
        let back = reserved.pop_reservation();
        assert_eq!(back, cpus);
        assert!(back.rare.is_none());
        assert_eq!(back.clone().pop_reservation(), back);
    }

    #[test]
    fn container_path_does_not_affect_equality() {
        let disk = |id: &str, path: &str| {
            Resource::scalar("disk", Scalar::ONE).with_disk(Some(Disk::persistent(id, path)))
        };
        assert_eq!(disk("a", "x"), disk("a", "y"));
        assert_ne!(disk("a", "x"), disk("b", "x"));
        assert_eq!(disk("a", "x").without_volume(), Resource::scalar("disk", Scalar::ONE));
    }

    #[test]
    fn reserved_resource_is_allocatable_to_its_role_and_subroles() {
        let cpus = Resource::scalar("cpus", Scalar::ONE);
        let reserved = cpus.clone().push_reservation(Reservation::fixed("eng"));
        for (role, allowed) in
            [("eng", true), ("eng/web", true), ("en", false), ("engine", false), ("*", false)]
        {
            assert_eq!(reserved.is_allocatable_to(&role.into()), allowed, "{role}");
            assert!(cpus.is_allocatable_to(&role.into()));
        }
    }
}
