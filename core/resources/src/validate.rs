//! Validation of a peer's resources in protobuf form. The first violated rule is reported.
//!
//! [`resource`] is the basic part, required before conversion; [`extended`] adds the rules for tasks, executors and
//! operations; the other functions check several resources together.
//! Absent: authorization, and whether the agent has the resources.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;
use tepui_types::check_id;

use crate::error::{Fault, ReservationFault, ResourceError, TogetherFault};
use crate::labels::Labels;
use crate::name::Name;
use crate::resource::Resource;
use crate::resources::Resources;
use crate::role::{Role, check_role};
use crate::scalar::Scalar;

use pb::resource::disk_info::source::Type as SourceType;
use pb::resource::reservation_info::Type as ReservationType;

/// Basic validity of each `Resource` in a call, as in v1.
pub fn basic(resources: &[pb::Resource]) -> Result<(), ResourceError> {
    resources.iter().try_for_each(resource)
}

/// Basic validity of one.
pub fn resource(resource: &pb::Resource) -> Result<(), ResourceError> {
    let check = || {
        if resource.name.is_empty() {
            return Err(Fault::EmptyName);
        }
        value(resource)?;
        disk(resource)?;
        reservations(resource)?;
        match resource.shared.is_set() && !resource.disk.persistence.is_set() {
            true => Err(Fault::SharedNotPersistent),
            false => Ok(()),
        }
    };
    check().map_err(|fault| invalid(resource, fault))
}

/// The rules for tasks, executors and operations: basic validity, whole gpus, valid disks and reservations.
pub fn extended(resources: &[pb::Resource]) -> Result<(), ResourceError> {
    basic(resources)?;
    let gpus = resources.iter().filter(|resource| resource.name == "gpus" && resource.scalar.is_set());
    let gpus: Scalar = gpus.filter_map(|resource| Scalar::from_f64(resource.scalar.value).ok()).sum();
    if !gpus.is_whole() {
        return Err(ResourceError::Together(TogetherFault::FractionalGpus));
    }
    for resource in resources {
        disk_use(resource).map_err(|fault| unusable(resource, fault))?;
    }
    match resources.iter().find(|resource| resource.revocable.is_set() && is_dynamically_reserved(resource)) {
        Some(resource) => Err(unusable(resource, Fault::DynamicRevocable)),
        None => Ok(()),
    }
}

/// No two persistent volumes of a role have the same id.
pub fn unique_persistence_ids<'a>(
    resources: impl IntoIterator<Item = &'a pb::Resource>,
) -> Result<(), ResourceError> {
    let mut seen = BTreeSet::new();
    for resource in resources {
        let Some(persistence) = resource.disk.persistence.as_option() else { continue };
        let role = reservation_role(resource).unwrap_or("*");
        if !seen.insert((role, persistence.id.as_str())) {
            let (id, role) = (persistence.id.clone(), role.to_string());
            return Err(ResourceError::Together(TogetherFault::DuplicatePersistence { id, role }));
        }
    }
    Ok(())
}

/// No name is both revocable and non-revocable.
pub fn no_revocable_mix<'a>(
    resources: impl IntoIterator<Item = &'a pb::Resource>,
) -> Result<(), ResourceError> {
    let mut revocable: BTreeMap<&str, bool> = BTreeMap::new();
    for resource in resources {
        let is_revocable = resource.revocable.is_set();
        if *revocable.entry(&resource.name).or_insert(is_revocable) != is_revocable {
            let name = resource.name.clone();
            return Err(ResourceError::Together(TogetherFault::RevocableMix { name }));
        }
    }
    Ok(())
}

/// All are allocated, and to the same role; which, unless there are none.
pub fn single_allocation_role<'a>(
    resources: impl IntoIterator<Item = &'a pb::Resource>,
) -> Result<Option<&'a str>, ResourceError> {
    let mut role = None;
    for resource in resources {
        let Some(own) = resource.allocation_info.role.as_deref() else {
            let resource = resource.name.clone();
            return Err(ResourceError::Together(TogetherFault::NotAllocated { resource }));
        };
        if let Some(other) = role.replace(own).filter(|other| *other != own) {
            let roles = [other.into(), own.into()];
            return Err(ResourceError::Together(TogetherFault::SeveralAllocations { roles }));
        }
    }
    Ok(role)
}

/// No port, and no item of a set, is in both: a task and its executor cannot have the same one.
pub fn disjoint(left: &Resources, right: &Resources) -> Result<(), ResourceError> {
    let overlap = |name: &&Name| {
        !left.ranges(name).intersection(&right.ranges(name)).is_empty()
            || !left.set(name).intersection(&right.set(name)).is_empty()
    };
    match left.names().find(overlap) {
        Some(name) => Err(ResourceError::Together(TogetherFault::Overlap { name: name.to_string() })),
        None => Ok(()),
    }
}

fn invalid(resource: &pb::Resource, fault: Fault) -> ResourceError {
    ResourceError::Invalid { resource: resource.name.clone(), fault }
}

/// For a resource with basic validity, which can be shown.
fn unusable(resource: &pb::Resource, fault: Fault) -> ResourceError {
    match Resource::from_proto(resource) {
        Ok(resource) => ResourceError::Invalid { resource: resource.to_string(), fault },
        Err(error) => error,
    }
}

fn value(resource: &pb::Resource) -> Result<(), Fault> {
    let set = [resource.scalar.is_set(), resource.ranges.is_set(), resource.set.is_set()];
    match resource.r#type {
        pb::value::Type::SCALAR if set == [true, false, false] => scalar(resource.scalar.value),
        pb::value::Type::RANGES if set == [false, true, false] => ranges(&resource.ranges.range),
        pb::value::Type::SET if set == [false, false, true] => items(&resource.set.item),
        pb::value::Type::SCALAR => Err(Fault::ValueField("scalar")),
        pb::value::Type::RANGES => Err(Fault::ValueField("ranges")),
        pb::value::Type::SET => Err(Fault::ValueField("set")),
        pb::value::Type::TEXT => Err(Fault::UnsupportedType),
    }
}

pub(crate) fn scalar(value: f64) -> Result<(), Fault> {
    match Scalar::from_f64(value) {
        Err(error) => Err(Fault::Scalar(error)),
        Ok(Scalar::ZERO) if value != 0.0 => Err(Fault::RoundsToZero),
        Ok(_) => Ok(()),
    }
}

fn ranges(ranges: &[pb::value::Range]) -> Result<(), Fault> {
    if let Some(range) = ranges.iter().find(|range| range.begin > range.end) {
        return Err(Fault::RangeReversed { begin: range.begin, end: range.end });
    }
    let mut sorted: Vec<(u64, u64)> = ranges.iter().map(|range| (range.begin, range.end)).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[1].0 <= pair[0].1) {
        Some(pair) => Err(Fault::RangesOverlap { value: pair[1].0 }),
        None => Ok(()),
    }
}

fn items(items: &[String]) -> Result<(), Fault> {
    let mut seen = BTreeSet::new();
    match items.iter().find(|item| !seen.insert(item.as_str())) {
        Some(item) => Err(Fault::SetDuplicate(item.clone())),
        None => Ok(()),
    }
}

fn disk(resource: &pb::Resource) -> Result<(), Fault> {
    let Some(disk) = resource.disk.as_option() else { return Ok(()) };
    if resource.name != "disk" {
        return Err(Fault::DiskOnOther);
    }
    let Some(source) = disk.source.as_option() else { return Ok(()) };
    let whole = match source.r#type {
        SourceType::PATH | SourceType::MOUNT => return Ok(()),
        SourceType::BLOCK => "BLOCK",
        SourceType::RAW => "RAW",
        SourceType::UNKNOWN => return Err(Fault::DiskSourceUnknown),
    };
    match (source.path.is_set(), source.mount.is_set()) {
        (true, _) => Err(Fault::DiskSourceField { source: whole, field: "path" }),
        (false, true) => Err(Fault::DiskSourceField { source: whole, field: "mount" }),
        (false, false) => Ok(()),
    }
}

fn reservations(resource: &pb::Resource) -> Result<(), ReservationFault> {
    match resource.reservations.as_slice() {
        [] => old_reservation(resource),
        [only] => {
            stack(&resource.reservations)?;
            agrees(resource, only)
        }
        several => {
            stack(several)?;
            match (&resource.role, resource.reservation.is_set()) {
                (Some(_), _) => Err(ReservationFault::FormatsMixed("role")),
                (None, true) => Err(ReservationFault::FormatsMixed("reservation")),
                (None, false) => Ok(()),
            }
        }
    }
}

/// `role` and `reservation`, from before reservations could be refined.
fn old_reservation(resource: &pb::Resource) -> Result<(), ReservationFault> {
    let role = resource.role.as_deref().unwrap_or("*");
    checked_role(role)?;
    let Some(reservation) = resource.reservation.as_option() else { return Ok(()) };
    if reservation.r#type.is_some() {
        return Err(ReservationFault::OldReservationField("type"));
    }
    if reservation.role.is_some() {
        return Err(ReservationFault::OldReservationField("role"));
    }
    if role == "*" { Err(ReservationFault::StarReserved) } else { Ok(()) }
}

/// Each level complete, and each inside the one before.
fn stack(reservations: &[pb::resource::ReservationInfo]) -> Result<(), ReservationFault> {
    let mut outer: Option<Role> = None;
    for (index, reservation) in reservations.iter().enumerate() {
        let kind = reservation.r#type.filter(|kind| *kind != ReservationType::UNKNOWN);
        let kind = kind.ok_or(ReservationFault::ReservationWithout { index, field: "type" })?;
        let role = reservation
            .role
            .as_deref()
            .ok_or(ReservationFault::ReservationWithout { index, field: "role" })?;
        checked_role(role)?;
        if role == "*" {
            return Err(ReservationFault::StarReserved);
        }
        let role = Role::from(role);
        if let Some(outer) = &outer {
            if kind != ReservationType::DYNAMIC {
                return Err(ReservationFault::RefinedStatic { index });
            }
            if !role.is_strict_subrole_of(outer) {
                return Err(ReservationFault::NotRefined {
                    role: role.to_string(),
                    parent: outer.to_string(),
                });
            }
        }
        outer = Some(role);
    }
    Ok(())
}

/// If both formats are set they must agree.
fn agrees(
    resource: &pb::Resource,
    reservation: &pb::resource::ReservationInfo,
) -> Result<(), ReservationFault> {
    if resource.role.is_some() && resource.role != reservation.role {
        return Err(ReservationFault::FormatsDisagree("role"));
    }
    let Some(old) = resource.reservation.as_option() else {
        let dynamic_role = resource.role.is_some() && reservation.r#type == Some(ReservationType::DYNAMIC);
        return if dynamic_role { Err(ReservationFault::FormatsDisagree("role")) } else { Ok(()) };
    };
    if reservation.r#type == Some(ReservationType::STATIC) {
        return Err(ReservationFault::FormatsMixed("reservation"));
    }
    let labels = |info: &pb::resource::ReservationInfo| info.labels.as_option().map(Labels::from);
    let same = old.principal == reservation.principal && labels(old) == labels(reservation);
    if resource.role.is_none() || !same {
        return Err(ReservationFault::FormatsDisagree("reservation"));
    }
    Ok(())
}

fn checked_role(role: &str) -> Result<(), ReservationFault> {
    check_role(role).map_err(|error| ReservationFault::Role { role: role.into(), error })
}

fn disk_use(resource: &pb::Resource) -> Result<(), Fault> {
    let Some(disk) = resource.disk.as_option() else { return Ok(()) };
    let Some(persistence) = disk.persistence.as_option() else {
        return match (disk.volume.is_set(), disk.source.is_set()) {
            (true, _) => Err(Fault::VolumeNotPersistent),
            (false, true) => Ok(()),
            (false, false) => Err(Fault::DiskEmpty),
        };
    };
    if resource.revocable.is_set() {
        return Err(Fault::VolumeRevocable);
    }
    if reservation_role(resource).is_none() {
        return Err(Fault::VolumeUnreserved);
    }
    let volume = disk.volume.as_option().ok_or(Fault::VolumeMissing)?;
    if volume.host_path.is_some() {
        return Err(Fault::VolumeHostPath);
    }
    check_id(&persistence.id).map_err(Fault::PersistenceId)
}

/// The innermost reservation's role, in any format; `None` for unreserved.
fn reservation_role(resource: &pb::Resource) -> Option<&str> {
    match resource.reservations.last() {
        Some(reservation) => reservation.role.as_deref(),
        None => resource.role.as_deref().filter(|role| *role != "*"),
    }
}

fn is_dynamically_reserved(resource: &pb::Resource) -> bool {
    match resource.reservations.last() {
        Some(reservation) => reservation.r#type == Some(ReservationType::DYNAMIC),
        None => resource.reservation.is_set(),
    }
}

#[cfg(test)]
mod tests;
