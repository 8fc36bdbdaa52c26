//! Parts and other forms of a collection: by reservation, revocability, sharing, allocation; and cut to size.

use alloc::collections::BTreeMap;

use crate::quantities::{Limits, Quantities};
use crate::reservation::Reservation;
use crate::resource::{Resource, Revocable, Value};
use crate::resources::Resources;
use crate::role::Role;

/// Parts.
impl Resources {
    pub fn reserved(&self) -> Resources {
        self.filter(Resource::is_reserved)
    }

    pub fn unreserved(&self) -> Resources {
        self.filter(|resource| !resource.is_reserved())
    }

    /// Those whose innermost reservation is this role's own.
    pub fn reserved_to(&self, role: &Role) -> Resources {
        self.filter(|resource| resource.reservation_role() == Some(role))
    }

    /// Unreserved, or reserved to the role or one of its ancestors.
    pub fn allocatable_to(&self, role: &Role) -> Resources {
        self.filter(|resource| resource.is_allocatable_to(role))
    }

    pub fn revocable(&self) -> Resources {
        self.filter(Resource::is_revocable)
    }

    pub fn non_revocable(&self) -> Resources {
        self.filter(|resource| !resource.is_revocable())
    }

    pub fn revocable_as(&self, kind: Revocable) -> Resources {
        self.filter(|resource| resource.revocable() == kind)
    }

    pub fn persistent_volumes(&self) -> Resources {
        self.filter(Resource::is_persistent_volume)
    }

    /// All resources without persistent data.
    pub fn stateless(&self) -> Resources {
        self.filter(|resource| !resource.is_persistent_volume())
    }

    pub fn shared(&self) -> Resources {
        self.filter(Resource::is_shared)
    }

    pub fn non_shared(&self) -> Resources {
        self.filter(|resource| !resource.is_shared())
    }

    pub fn scalars(&self) -> Resources {
        self.filter(|resource| matches!(resource.value(), Value::Scalar(_)))
    }

    pub fn non_scalars(&self) -> Resources {
        self.filter(|resource| !matches!(resource.value(), Value::Scalar(_)))
    }

    /// By the role of the innermost reservation.
    pub fn by_reservation(&self) -> BTreeMap<Role, Resources> {
        self.group(Resource::reservation_role)
    }

    /// Grouped by allocation role, without unallocated resources.
    pub fn by_allocation(&self) -> BTreeMap<Role, Resources> {
        self.group(Resource::allocation)
    }

    fn group(&self, role_of: impl Fn(&Resource) -> Option<&Role>) -> BTreeMap<Role, Resources> {
        let mut roles = BTreeMap::new();
        for role in self.iter().filter_map(&role_of) {
            if !roles.contains_key(role) {
                roles.insert(role.clone(), self.filter(|resource| role_of(resource) == Some(role)));
            }
        }
        roles
    }
}

/// Other forms.
impl Resources {
    pub fn allocate(self, role: &Role) -> Resources {
        self.allocated_to(Some(role))
    }

    pub fn unallocate(self) -> Resources {
        self.allocated_to(None)
    }

    /// Allocates unallocated resources to the role.
    pub fn allocate_missing(self, role: &Role) -> Resources {
        self.map(|resource| match resource.allocation() {
            Some(_) => resource,
            None => resource.with_allocation(Some(role.clone())),
        })
    }

    pub fn push_reservation(self, reservation: &Reservation) -> Resources {
        self.map(|resource| resource.push_reservation(reservation.clone()))
    }

    pub fn pop_reservation(self) -> Resources {
        self.map(Resource::pop_reservation)
    }

    pub fn to_unreserved(&self) -> Resources {
        self.clone().map(|resource| resource.with_reservations(Default::default()))
    }

    /// The same resources with the given revocable kind.
    pub fn flatten(self, kind: Revocable) -> Resources {
        self.map(|resource| resource.with_revocable(kind))
    }

    /// The allocation slack as it is lent: unreserved. Resources reserved to `role` or its ancestors are omitted: a role
    /// does not borrow its own resources.
    pub fn allocation_slack(&self, role: Option<&Role>) -> Resources {
        let own = |resource: &Resource| {
            resource.is_reserved() && role.is_some_and(|role| resource.is_allocatable_to(role))
        };
        let lendable =
            |resource: &Resource| resource.revocable() == Revocable::AllocationSlack && !own(resource);
        self.filter(lendable).to_unreserved()
    }
}

/// Resources are taken in order until the target is met; an indivisible one either fits or is dropped.
impl Resources {
    /// At most the target for each name; names missing in the target are dropped.
    pub fn shrink_to(mut self, target: &Quantities) -> Resources {
        let mut left = target.clone();
        self.shrink_by(|name, have, divisible| left.take(name, have, divisible));
        self
    }

    /// At most the limit under each name that has one.
    pub fn shrink_to_limits(mut self, limits: &Limits) -> Resources {
        let mut left = limits.clone();
        self.shrink_by(|name, have, divisible| left.take(name, have, divisible));
        self
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;
    use crate::disk::Disk;
    use crate::parse;
    use crate::scalar::Scalar;

    fn all(text: &str) -> Resources {
        parse::resources(text, "*").expect("valid").into_iter().collect()
    }

    fn quantities(text: &str) -> Quantities {
        all(text).quantities()
    }

    #[test]
    fn slack_is_lent_to_others_without_its_reservation() {
        let agent = all("cpus:4;cpus(eng):2;cpus(ops):1;mem(eng/web):64");
        let slack = agent.stateless().reserved().flatten(Revocable::AllocationSlack);
        assert_eq!(slack.by_reservation().len(), 3);
        for (role, want) in [
            (None, "cpus{REV: ALLOCATION_SLACK}:3; mem{REV: ALLOCATION_SLACK}:64"),
            (Some("ops"), "cpus{REV: ALLOCATION_SLACK}:2; mem{REV: ALLOCATION_SLACK}:64"),
            (Some("eng"), "cpus{REV: ALLOCATION_SLACK}:1; mem{REV: ALLOCATION_SLACK}:64"),
            (Some("eng/web"), "cpus{REV: ALLOCATION_SLACK}:1"),
        ] {
            assert_eq!(slack.allocation_slack(role.map(Role::from).as_ref()).to_string(), want, "{role:?}");
        }
        assert!(agent.allocation_slack(None).is_empty());
        assert_eq!(slack.flatten(Revocable::No), agent.reserved());
    }

    #[test]
    fn resources_are_split_by_role() {
        let agent = all("cpus:4;cpus(eng):2;cpus(eng/web):1;mem(ops):64");
        for (role, own, usable) in
            [("eng", "2", "6"), ("eng/web", "1", "7"), ("ops", "0", "4"), ("*", "0", "4")]
        {
            let role = Role::from(role);
            assert_eq!(agent.reserved_to(&role).cpus().to_string(), own, "{role}");
            assert_eq!(agent.allocatable_to(&role).cpus().to_string(), usable, "{role}");
        }
        let (eng, ops) = (Role::from("eng"), Role::from("ops"));
        let used = all("cpus:1").allocate(&eng) + &all("cpus:2").allocate_missing(&ops);
        assert_eq!(used.clone().allocate_missing(&eng), used);
        assert_eq!(used.by_allocation()["ops"], all("cpus:2").allocate(&ops));
        assert_eq!(used.to_string(), "cpus(allocated: eng):1; cpus(allocated: ops):2");
        assert_eq!(used.unallocate(), all("cpus:3"));
    }

    #[test]
    fn shrinking_reduces_scalars_and_keeps_volumes_whole() {
        let volume =
            Resource::scalar("disk", Scalar::from_count(8)).with_disk(Some(Disk::persistent("v", "data")));
        let pool = all("cpus:4;cpus(web):2;mem:64;disk:4;ports:[1-9]") + &volume.clone().into();
        let target = quantities("cpus:5;disk:7;ports:[1-3]");
        assert_eq!(
            pool.clone().shrink_to(&target).to_string(),
            "cpus:4; cpus(reservations: [(STATIC,web)]):1; disk:4; ports:[1-3]"
        );
        let limits: Limits = target.iter().map(|(name, amount)| (name.clone(), amount)).collect();
        assert_eq!(pool.shrink_to_limits(&limits).mem(), Scalar::from_count(64));
        assert_eq!(volume.clone().shrink(Scalar::from_count(7)), None);
        assert_eq!(volume.clone().shrink(Scalar::from_count(8)), Some(volume));
        let cpus = Resource::scalar("cpus", Scalar::ONE);
        assert_eq!(cpus.shrink(Scalar::ZERO), None);
    }
}
