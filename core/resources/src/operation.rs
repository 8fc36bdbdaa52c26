//! Operations that change the identity of resources, not their quantity: reservations and volumes.
//!
//! An [`Operation`] is validated when it is made from protobuf, as far as the requester and the agent do not matter.
//! Applying one is a pure function of a pool.
//! Absent: roles, principals and capabilities of the requester; operations of resource providers.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use tepui_proto::mesos::v1 as pb;

use crate::error::{OperationFault, ResourceError};
use crate::resource::{Resource, Value};
use crate::resources::Resources;
use crate::role::Role;
use crate::scalar::Scalar;
use crate::validate;

use pb::offer::operation::Type;

/// The resources as sent by the client, not merged.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// With a `source`, its reservations are replaced; without, one level is added.
    Reserve {
        source: Vec<Resource>,
        resources: Vec<Resource>,
    },
    Unreserve {
        resources: Vec<Resource>,
    },
    Create {
        volumes: Vec<Resource>,
    },
    Destroy {
        volumes: Vec<Resource>,
    },
    GrowVolume {
        volume: Resource,
        addition: Resource,
    },
    ShrinkVolume {
        volume: Resource,
        subtract: Scalar,
    },
}

/// A step of an operation: the resources it removes from the pool and those it adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    pub consumed: Resources,
    pub converted: Resources,
}

impl Resources {
    /// This pool after the operation.
    pub fn apply(&self, operation: &Operation) -> Result<Resources, ResourceError> {
        let mut pool = self.clone();
        for Conversion { consumed, converted } in operation.conversions() {
            pool = pool.checked_sub(&consumed).ok_or_else(|| {
                let (pool, wanted) = (pool.to_string(), consumed.to_string());
                ResourceError::Operation(OperationFault::NotContained { pool, wanted })
            })?;
            if let (Operation::Destroy { .. }, true) = (operation, pool.contains(&consumed)) {
                let volume = consumed.to_string();
                return Err(ResourceError::Operation(OperationFault::StillShared { volume }));
            }
            pool += converted;
        }
        Ok(pool)
    }
}

impl Operation {
    /// `None` for operations that are no conversions of the pool: launches, disks made by providers, unknown ones.
    pub fn from_proto(operation: &pb::offer::Operation) -> Result<Option<Self>, ResourceError> {
        let made = match operation.r#type.unwrap_or(Type::UNKNOWN) {
            Type::RESERVE => reserve(operation.reserve.as_option().ok_or(missing("reserve"))?),
            Type::UNRESERVE => unreserve(operation.unreserve.as_option().ok_or(missing("unreserve"))?),
            Type::CREATE => create(operation.create.as_option().ok_or(missing("create"))?),
            Type::DESTROY => destroy(operation.destroy.as_option().ok_or(missing("destroy"))?),
            Type::GROW_VOLUME => grow(operation.grow_volume.as_option().ok_or(missing("grow_volume"))?),
            Type::SHRINK_VOLUME => {
                shrink(operation.shrink_volume.as_option().ok_or(missing("shrink_volume"))?)
            }
            Type::UNKNOWN | Type::LAUNCH | Type::LAUNCH_GROUP | Type::CREATE_DISK | Type::DESTROY_DISK => {
                return Ok(None);
            }
        };
        made.map(Some)
    }

    /// The steps, in order.
    pub fn conversions(&self) -> Vec<Conversion> {
        match self {
            Operation::Reserve { source, resources } if !source.is_empty() => {
                vec![Conversion { consumed: collect(source), converted: collect(resources) }]
            }
            Operation::Reserve { source: _, resources } => {
                each(resources, |reserved| (reserved.clone().pop_reservation(), reserved))
            }
            Operation::Unreserve { resources } => {
                each(resources, |reserved| (reserved.clone(), reserved.pop_reservation()))
            }
            Operation::Create { volumes } => {
                each(volumes, |volume| (volume.clone().without_volume(), volume))
            }
            Operation::Destroy { volumes } => {
                each(volumes, |volume| (volume.clone(), volume.without_volume()))
            }
            Operation::GrowVolume { volume, addition } => {
                let grown = resized(volume, size(volume) + size(addition));
                let consumed = [volume.clone(), addition.clone()].into_iter().collect();
                vec![Conversion { consumed, converted: grown.into() }]
            }
            Operation::ShrinkVolume { volume, subtract } => {
                let shrunk = resized(volume, size(volume).minus_or_zero(*subtract));
                let freed = resized(volume, *subtract).without_volume();
                let converted = [shrunk, freed].into_iter().collect();
                vec![Conversion { consumed: volume.clone().into(), converted }]
            }
        }
    }

    /// Everything that it takes from the pool.
    pub fn consumed(&self) -> Resources {
        self.conversions().into_iter().map(|step| step.consumed).sum()
    }

    /// Everything that it puts into the pool.
    pub fn converted(&self) -> Resources {
        self.conversions().into_iter().map(|step| step.converted).sum()
    }

    /// Allocates unallocated resources to the role.
    pub fn allocate_missing(self, role: &Role) -> Self {
        self.map(|resource| match resource.allocation() {
            Some(_) => resource,
            None => resource.with_allocation(Some(role.clone())),
        })
    }

    pub fn unallocate(self) -> Self {
        self.map(|resource| resource.with_allocation(None))
    }

    /// What it names, as the client gave it, `source` first.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> + '_ {
        let (first, second) = match self {
            Operation::Reserve { source, resources } => (source.as_slice(), resources.as_slice()),
            Operation::Unreserve { resources } => (resources.as_slice(), [].as_slice()),
            Operation::Create { volumes } | Operation::Destroy { volumes } => {
                (volumes.as_slice(), [].as_slice())
            }
            Operation::GrowVolume { volume, addition } => {
                (core::slice::from_ref(volume), core::slice::from_ref(addition))
            }
            Operation::ShrinkVolume { volume, subtract: _ } => (core::slice::from_ref(volume), [].as_slice()),
        };
        first.iter().chain(second)
    }

    fn map(self, change: impl Fn(Resource) -> Resource) -> Self {
        let all = |resources: Vec<Resource>| resources.into_iter().map(&change).collect();
        match self {
            Operation::Reserve { source, resources } => {
                Operation::Reserve { source: all(source), resources: all(resources) }
            }
            Operation::Unreserve { resources } => Operation::Unreserve { resources: all(resources) },
            Operation::Create { volumes } => Operation::Create { volumes: all(volumes) },
            Operation::Destroy { volumes } => Operation::Destroy { volumes: all(volumes) },
            Operation::GrowVolume { volume, addition } => {
                Operation::GrowVolume { volume: change(volume), addition: change(addition) }
            }
            Operation::ShrinkVolume { volume, subtract } => {
                Operation::ShrinkVolume { volume: change(volume), subtract }
            }
        }
    }
}

fn reserve(reserve: &pb::offer::operation::Reserve) -> Result<Operation, ResourceError> {
    let (source, resources) = (extended(&reserve.source)?, extended(&reserve.resources)?);
    single_provider(source.iter().chain(&resources), "reserve.resources")?;
    if resources.is_empty() {
        return Err(OperationFault::Empty("reserve.resources").into());
    }
    if !source.is_empty() {
        same_reservations(&source, "reserve.source")?;
        same_reservations(&resources, "reserve.resources")?;
        let quantities = |resources: &[Resource]| collect(resources).to_unreserved().quantities();
        if quantities(&source) != quantities(&resources) {
            return Err(OperationFault::SourceDiffers.into());
        }
    }
    match resources.iter().find(|resource| !resource.is_dynamically_reserved()) {
        Some(resource) => Err(OperationFault::NotReserved { resource: resource.to_string() }.into()),
        None => Ok(Operation::Reserve { source, resources }),
    }
}

fn unreserve(unreserve: &pb::offer::operation::Unreserve) -> Result<Operation, ResourceError> {
    let resources = extended(&unreserve.resources)?;
    single_provider(&resources, "unreserve.resources")?;
    for resource in &resources {
        if !resource.is_dynamically_reserved() {
            return Err(OperationFault::NotReserved { resource: resource.to_string() }.into());
        }
        if resource.is_persistent_volume() {
            return Err(OperationFault::VolumeReserved { resource: resource.to_string() }.into());
        }
    }
    Ok(Operation::Unreserve { resources })
}

fn create(create: &pb::offer::operation::Create) -> Result<Operation, ResourceError> {
    let volumes = extended(&create.volumes)?;
    single_provider(&volumes, "create.volumes")?;
    persistent(&volumes, "create.volumes")?;
    let read_only = |volume: &&Resource| {
        let volume = volume.disk().and_then(|disk| disk.volume.as_ref());
        volume.is_some_and(|volume| volume.mode == pb::volume::Mode::RO)
    };
    if let Some(volume) = volumes.iter().find(read_only) {
        return Err(OperationFault::ReadOnly { resource: volume.to_string() }.into());
    }
    validate::unique_persistence_ids(&create.volumes)?;
    Ok(Operation::Create { volumes })
}

fn destroy(destroy: &pb::offer::operation::Destroy) -> Result<Operation, ResourceError> {
    let volumes = extended(&destroy.volumes)?;
    single_provider(&volumes, "destroy.volumes")?;
    persistent(&volumes, "destroy.volumes")?;
    Ok(Operation::Destroy { volumes })
}

fn grow(grow: &pb::offer::operation::GrowVolume) -> Result<Operation, ResourceError> {
    let volume = resizable(&grow.volume, "grow_volume.volume")?;
    let addition = Resource::from_proto(&grow.addition)?;
    if addition.amount().is_none_or(Scalar::is_zero) {
        return Err(OperationFault::NotPositive("grow_volume.addition").into());
    }
    let bare = volume.clone().without_volume();
    if !bare.is_same_kind(&addition) || bare.is_indivisible() {
        let (volume, addition) = (volume.to_string(), addition.to_string());
        return Err(OperationFault::CannotGrow { volume, addition }.into());
    }
    Ok(Operation::GrowVolume { volume, addition })
}

fn shrink(shrink: &pb::offer::operation::ShrinkVolume) -> Result<Operation, ResourceError> {
    const SUBTRACT: &str = "shrink_volume.subtract";
    let volume = resizable(&shrink.volume, "shrink_volume.volume")?;
    let subtract = Scalar::from_f64(shrink.subtract.value)
        .map_err(|error| OperationFault::Scalar { field: SUBTRACT, error })?;
    if subtract.is_zero() {
        return Err(OperationFault::NotPositive(SUBTRACT).into());
    }
    if subtract >= size(&volume) {
        return Err(OperationFault::ShrinksToNothing { volume: volume.to_string() }.into());
    }
    if volume.clone().without_volume().is_indivisible() {
        return Err(OperationFault::Indivisible { volume: volume.to_string() }.into());
    }
    Ok(Operation::ShrinkVolume { volume, subtract })
}

/// A persistent volume of the agent's own that only one task may use at a time.
fn resizable(volume: &pb::Resource, field: &'static str) -> Result<Resource, ResourceError> {
    let volume = Resource::from_proto(volume)?;
    let fault = match &volume {
        volume if volume.provider().is_some() => OperationFault::FromProvider { volume: volume.to_string() },
        volume if !volume.is_persistent_volume() => {
            OperationFault::NotPersistent { resource: volume.to_string() }
        }
        volume if volume.is_shared() => OperationFault::Shared { volume: volume.to_string() },
        volume if volume.is_empty() => OperationFault::NotPositive(field),
        _ => return Ok(volume),
    };
    Err(fault.into())
}

fn extended(resources: &[pb::Resource]) -> Result<Vec<Resource>, ResourceError> {
    validate::extended(resources)?;
    resources.iter().map(Resource::from_proto).collect()
}

/// All from one provider, or all the agent's own; there must be some.
fn single_provider<'a>(
    resources: impl IntoIterator<Item = &'a Resource>,
    field: &'static str,
) -> Result<(), ResourceError> {
    let mut resources = resources.into_iter();
    let Some(first) = resources.next() else { return Err(OperationFault::Empty(field).into()) };
    match resources.any(|resource| resource.provider() != first.provider()) {
        true => Err(OperationFault::SeveralProviders(field).into()),
        false => Ok(()),
    }
}

/// Rejects empty volumes: every pool contains an empty resource, so an empty volume would match any pool.
fn persistent(volumes: &[Resource], field: &'static str) -> Result<(), ResourceError> {
    if let Some(volume) = volumes.iter().find(|volume| !volume.is_persistent_volume()) {
        return Err(OperationFault::NotPersistent { resource: volume.to_string() }.into());
    }
    match volumes.iter().any(Resource::is_empty) {
        true => Err(OperationFault::NotPositive(field).into()),
        false => Ok(()),
    }
}

fn same_reservations(resources: &[Resource], field: &'static str) -> Result<(), ResourceError> {
    match resources.windows(2).any(|pair| pair[0].reservations() != pair[1].reservations()) {
        true => Err(OperationFault::ReservationsDiffer(field).into()),
        false => Ok(()),
    }
}

fn missing(field: &'static str) -> ResourceError {
    OperationFault::Missing(field).into()
}

fn collect(resources: &[Resource]) -> Resources {
    resources.iter().cloned().collect()
}

fn each(resources: &[Resource], step: impl Fn(Resource) -> (Resource, Resource)) -> Vec<Conversion> {
    let steps = resources.iter().cloned().map(step);
    steps.map(|(from, to)| Conversion { consumed: from.into(), converted: to.into() }).collect()
}

fn size(resource: &Resource) -> Scalar {
    resource.amount().unwrap_or_default()
}

fn resized(volume: &Resource, amount: Scalar) -> Resource {
    volume.clone().with_value(Value::Scalar(amount))
}

#[cfg(test)]
mod tests;
