//! Everything that can be wrong with resources that somebody sends, and the words for it.
//!
//! Each text names the field and what would be right. Where v1 has a well-known text, ours begins like it.

use alloc::string::String;
use core::fmt;

use tepui_types::IdError;

use crate::role::RoleError;
use crate::scalar::ScalarError;

#[derive(Clone, Debug, PartialEq)]
pub enum ResourceError {
    /// One resource breaks a rule.
    Invalid { resource: String, fault: Fault },
    /// Resources that are each valid do not go together.
    Together(TogetherFault),
}

/// What is wrong with one resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    EmptyName,
    UnsupportedType,
    /// Not exactly the value field that the type asks for; the field.
    ValueField(&'static str),
    Scalar(ScalarError),
    RoundsToZero,
    RangeReversed {
        begin: u64,
        end: u64,
    },
    RangesOverlap {
        value: u64,
    },
    SetDuplicate(String),
    DiskOnOther,
    DiskSourceUnknown,
    /// A source of this type must not have this field.
    DiskSourceField {
        source: &'static str,
        field: &'static str,
    },
    Role {
        role: String,
        error: RoleError,
    },
    /// A field inside the old `reservation` that belongs in `reservations` only.
    OldReservationField(&'static str),
    StarReserved,
    ReservationWithout {
        index: usize,
        field: &'static str,
    },
    RefinedStatic {
        index: usize,
    },
    NotRefined {
        role: String,
        parent: String,
    },
    /// The old fields and `reservations` do not say the same; the old field.
    FormatsDisagree(&'static str),
    /// The old fields cannot say what `reservations` says; the old field.
    FormatsMixed(&'static str),
    SharedNotPersistent,
    VolumeRevocable,
    VolumeUnreserved,
    VolumeMissing,
    VolumeHostPath,
    PersistenceId(IdError),
    VolumeNotPersistent,
    DiskEmpty,
    DynamicRevocable,
}

/// What is wrong with several resources together.
#[derive(Clone, Debug, PartialEq)]
pub enum TogetherFault {
    FractionalGpus,
    DuplicatePersistence { id: String, role: String },
    RevocableMix { name: String },
    NotAllocated { resource: String },
    SeveralAllocations { roles: [String; 2] },
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceError::Invalid { resource, fault } => {
                write!(f, "Resource '{resource}' is invalid: {fault}")
            }
            ResourceError::Together(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for ResourceError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::EmptyName => f.write_str("Empty resource name: 'name' must be set"),
            Fault::UnsupportedType => {
                f.write_str("Unsupported resource type: 'type' must be SCALAR, RANGES or SET")
            }
            Fault::ValueField(field) => {
                write!(f, "Invalid {field} resource: '{field}' and no other value must be set")
            }
            Fault::Scalar(error) => write!(f, "Invalid scalar resource: 'scalar.value' {error}"),
            Fault::RoundsToZero => {
                f.write_str("Invalid scalar resource: 'scalar.value' must be 0 or at least 0.001")
            }
            Fault::RangeReversed { begin, end } => {
                write!(f, "Invalid ranges resource: begin > end in 'ranges' ({begin}-{end})")
            }
            Fault::RangesOverlap { value } => {
                write!(f, "Invalid ranges resource: overlapping ranges, {value} is in 'ranges' twice")
            }
            Fault::SetDuplicate(item) => {
                write!(f, "Invalid set resource: duplicated elements, '{item}' is in 'set' twice")
            }
            Fault::DiskOnOther => {
                f.write_str("DiskInfo should not be set: 'disk' is for the resource 'disk' only")
            }
            Fault::DiskSourceUnknown => {
                f.write_str("Unsupported 'disk.source.type': it must be PATH, MOUNT, BLOCK or RAW")
            }
            Fault::DiskSourceField { source, field } => {
                write!(f, "'disk.source.{field}' should not be set for {source} disk source")
            }
            Fault::SharedNotPersistent => f.write_str("Only persistent volumes can have 'shared' set"),
            Fault::VolumeRevocable => {
                f.write_str("Persistent volumes cannot be created from revocable resources")
            }
            Fault::VolumeUnreserved => f.write_str(
                "Persistent volumes cannot be created from unreserved resources: reserve the disk first",
            ),
            Fault::VolumeMissing => f.write_str("Expecting 'disk.volume' to be set for persistent volume"),
            Fault::VolumeHostPath => {
                f.write_str("Expecting 'disk.volume.host_path' to be unset for persistent volume")
            }
            Fault::PersistenceId(error) => {
                write!(f, "Persistence ID for persistent volume is invalid: 'disk.persistence.id': {error}")
            }
            Fault::VolumeNotPersistent => {
                f.write_str("Non-persistent volume not supported: 'disk.volume' needs 'disk.persistence'")
            }
            Fault::DiskEmpty => {
                f.write_str("DiskInfo is set but empty: 'disk' needs 'persistence' or 'source'")
            }
            Fault::DynamicRevocable => f.write_str("Dynamically reserved resources cannot be revocable"),
            Fault::Role { .. }
            | Fault::OldReservationField(_)
            | Fault::StarReserved
            | Fault::ReservationWithout { .. }
            | Fault::RefinedStatic { .. }
            | Fault::NotRefined { .. }
            | Fault::FormatsDisagree(_)
            | Fault::FormatsMixed(_) => self.fmt_reservation(f),
        }
    }
}

impl Fault {
    fn fmt_reservation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invalid reservation: ")?;
        match self {
            Fault::Role { role, error } => write!(f, "role '{role}': {error}"),
            Fault::OldReservationField(field) => {
                write!(
                    f,
                    "'Resource.ReservationInfo.{field}' must not be set for the 'Resource.reservation' field"
                )
            }
            Fault::StarReserved => f.write_str("role '*' cannot be reserved"),
            Fault::ReservationWithout { index, field } => {
                write!(f, "'reservations[{index}].{field}' must be set")
            }
            Fault::RefinedStatic { index } => {
                write!(
                    f,
                    "a refined reservation cannot be STATIC: 'reservations[{index}].type' must be DYNAMIC"
                )
            }
            Fault::NotRefined { role, parent } => {
                write!(f, "role '{role}' is not a refinement of '{parent}': it must be below '{parent}/'")
            }
            Fault::FormatsDisagree(field) => {
                write!(f, "'{field}' must agree with 'reservations' or not be set")
            }
            Fault::FormatsMixed(field) => {
                write!(f, "'{field}' must not be set together with these 'reservations'")
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl fmt::Display for TogetherFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TogetherFault::FractionalGpus => f.write_str("The 'gpus' resource must be an unsigned integer"),
            TogetherFault::DuplicatePersistence { id, role } => {
                write!(
                    f,
                    "Persistence ID '{id}' is not unique: 'disk.persistence.id' is there twice in role '{role}'"
                )
            }
            TogetherFault::RevocableMix { name } => {
                write!(f, "Cannot use both revocable and non-revocable '{name}' at the same time")
            }
            TogetherFault::NotAllocated { resource } => {
                write!(
                    f,
                    "The resource '{resource}' is not allocated to a role: 'allocation_info.role' must be set"
                )
            }
            TogetherFault::SeveralAllocations { roles: [one, other] } => {
                write!(
                    f,
                    "The resources are allocated to multiple roles, '{one}' and '{other}': there must be one"
                )
            }
        }
    }
}
