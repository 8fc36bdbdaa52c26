//! The errors of resources sent by a peer, and their messages.
//!
//! Each message names the field and the valid values. Where v1 has a well-known message, ours starts with it.

use alloc::string::String;
use core::fmt;

use tepui_types::IdError;

use crate::role::RoleError;
use crate::scalar::ScalarError;

#[derive(Clone, Debug, PartialEq)]
pub enum ResourceError {
    /// One resource breaks a rule.
    Invalid { resource: String, fault: Fault },
    /// Resources that are valid on their own but not together.
    Together(TogetherFault),
    /// An operation makes no sense, or not on these resources.
    Operation(OperationFault),
    /// An item of `--resources` or `--attributes` cannot be read.
    Parse { item: String, fault: ParseFault },
}

/// What is wrong with one resource.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    EmptyName,
    UnsupportedType,
    /// The value fields do not match the type; the field.
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
    Reservation(ReservationFault),
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

/// What is wrong with the reservations of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ReservationFault {
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
    /// The old fields and `reservations` differ; the old field.
    FormatsDisagree(&'static str),
    /// The old fields cannot express `reservations`; the old field.
    FormatsMixed(&'static str),
}

/// What is wrong with several resources together.
#[derive(Clone, Debug, PartialEq)]
pub enum TogetherFault {
    FractionalGpus,
    DuplicatePersistence { id: String, role: String },
    RevocableMix { name: String },
    Overlap { name: String },
    NotAllocated { resource: String },
    SeveralAllocations { roles: [String; 2] },
}

/// What is wrong with an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationFault {
    /// The field that belongs to the operation's type.
    Missing(&'static str),
    Empty(&'static str),
    SeveralProviders(&'static str),
    ReservationsDiffer(&'static str),
    SourceDiffers,
    NotReserved {
        resource: String,
    },
    VolumeReserved {
        resource: String,
    },
    NotPersistent {
        resource: String,
    },
    ReadOnly {
        resource: String,
    },
    FromProvider {
        volume: String,
    },
    Shared {
        volume: String,
    },
    NotPositive(&'static str),
    Scalar {
        field: &'static str,
        error: ScalarError,
    },
    CannotGrow {
        volume: String,
        addition: String,
    },
    ShrinksToNothing {
        volume: String,
    },
    Indivisible {
        volume: String,
    },
    NotContained {
        pool: String,
        wanted: String,
    },
    StillShared {
        volume: String,
    },
}

/// What is wrong with an item that an operator wrote.
#[derive(Clone, Debug, PartialEq)]
pub enum ParseFault {
    Colon,
    Parentheses,
    Brackets,
    EmptyName,
    EmptyValue,
    Text,
    Set,
    Range(String),
    Scalar(ScalarError),
    RoundsToZero,
    Role(RoleError),
    SeveralTypes,
    Json(String),
    /// A part that exists only at run time.
    AtRunTime(&'static str),
}

impl fmt::Display for ResourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceError::Invalid { resource, fault } => {
                write!(f, "Resource '{resource}' is invalid: {fault}")
            }
            ResourceError::Together(fault) => fault.fmt(f),
            ResourceError::Operation(fault) => fault.fmt(f),
            ResourceError::Parse { item, fault } => write!(f, "Bad value '{item}': {fault}"),
        }
    }
}

impl From<ReservationFault> for Fault {
    fn from(fault: ReservationFault) -> Self {
        Fault::Reservation(fault)
    }
}

impl From<OperationFault> for ResourceError {
    fn from(fault: OperationFault) -> Self {
        ResourceError::Operation(fault)
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
            Fault::VolumeUnreserved => {
                f.write_str("Persistent volumes cannot be created from unreserved resources")
            }
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
            Fault::Reservation(fault) => write!(f, "Invalid reservation: {fault}"),
        }
    }
}

impl fmt::Display for ReservationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReservationFault::Role { role, error } => write!(f, "role '{role}': {error}"),
            ReservationFault::OldReservationField(field) => {
                write!(
                    f,
                    "'Resource.ReservationInfo.{field}' must not be set for the 'Resource.reservation' field"
                )
            }
            ReservationFault::StarReserved => f.write_str("role '*' cannot be reserved"),
            ReservationFault::ReservationWithout { index, field } => {
                write!(f, "'reservations[{index}].{field}' must be set")
            }
            ReservationFault::RefinedStatic { index } => {
                write!(
                    f,
                    "a refined reservation cannot be STATIC: 'reservations[{index}].type' must be DYNAMIC"
                )
            }
            ReservationFault::NotRefined { role, parent } => {
                write!(f, "role '{role}' is not a refinement of '{parent}': it must be below '{parent}/'")
            }
            ReservationFault::FormatsDisagree(field) => {
                write!(f, "'{field}' must agree with 'reservations' or not be set")
            }
            ReservationFault::FormatsMixed(field) => {
                write!(f, "'{field}' must not be set together with these 'reservations'")
            }
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
            TogetherFault::Overlap { name } => {
                write!(f, "The same elements of '{name}' are used twice, by a task and by its executor")
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

impl fmt::Display for OperationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationFault::Missing(field) => write!(f, "Expecting '{field}' to be present"),
            OperationFault::Empty(field) => write!(f, "'{field}' must not be empty"),
            OperationFault::SeveralProviders(field) => {
                write!(
                    f,
                    "The resources have multiple resource providers: '{field}' must have one 'provider_id'"
                )
            }
            OperationFault::ReservationsDiffer(field) => {
                write!(f, "All resources in '{field}' must have the same 'reservations'")
            }
            OperationFault::SourceDiffers => {
                f.write_str("'reserve.source' and 'reserve.resources' must have the same quantities")
            }
            OperationFault::NotReserved { resource } => {
                write!(f, "Resource {resource} is not dynamically reserved")
            }
            OperationFault::VolumeReserved { resource } => write!(
                f,
                "A dynamically reserved persistent volume {resource} cannot be unreserved directly: destroy it first"
            ),
            OperationFault::NotPersistent { resource } => {
                write!(f, "Resource {resource} is not a persistent volume: 'disk.persistence' must be set")
            }
            OperationFault::ReadOnly { resource } => {
                write!(f, "Resource {resource} cannot be created read-only: 'disk.volume.mode' must be RW")
            }
            OperationFault::FromProvider { volume } => {
                write!(
                    f,
                    "Volume {volume} of a resource provider cannot be resized: 'provider_id' must not be set"
                )
            }
            OperationFault::Shared { volume } => {
                write!(f, "Volume {volume} cannot be resized while it is shared: 'shared' must not be set")
            }
            OperationFault::NotPositive(field) => {
                write!(f, "The size of '{field}' must be greater than zero")
            }
            OperationFault::Scalar { field, error } => write!(f, "'{field}.value' {error}"),
            OperationFault::CannotGrow { volume, addition } => write!(
                f,
                "Volume {volume} cannot grow by {addition}: 'grow_volume.addition' must be divisible disk of the same \
                 source, reservations and allocation"
            ),
            OperationFault::ShrinksToNothing { volume } => {
                write!(f, "Volume {volume} must be larger than 'shrink_volume.subtract'")
            }
            OperationFault::Indivisible { volume } => {
                write!(f, "Volume {volume} cannot be divided: its disk is used as a whole or not at all")
            }
            OperationFault::NotContained { pool, wanted } => write!(f, "{pool} does not contain {wanted}"),
            OperationFault::StillShared { volume } => {
                write!(f, "Persistent volume '{volume}' cannot be removed due to additional shared copies")
            }
        }
    }
}

impl fmt::Display for ParseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseFault::Colon => f.write_str("missing or extra ':', expected 'name:value'"),
            ParseFault::Parentheses => f.write_str("mismatched parentheses, expected 'name(role):value'"),
            ParseFault::Brackets => {
                f.write_str("mismatched brackets, expected '[begin-end,…]' or '{item,…}'")
            }
            ParseFault::EmptyName => f.write_str("the name before ':' is empty"),
            ParseFault::EmptyValue => f.write_str("the value after ':' is empty"),
            ParseFault::Text => {
                f.write_str("text is not a resource value; expected a number, [ranges] or {a set}")
            }
            ParseFault::Set => {
                f.write_str("a set is not an attribute value; expected a number, [ranges] or text")
            }
            ParseFault::Range(word) => {
                write!(f, "'{word}' is not a range 'begin-end' with begin <= end")
            }
            ParseFault::Scalar(error) => write!(f, "the value {error}"),
            ParseFault::RoundsToZero => f.write_str("the value must be 0 or at least 0.001"),
            ParseFault::Role(error) => write!(f, "the role is invalid: {error}"),
            ParseFault::SeveralTypes => f.write_str("this name has values of different types"),
            ParseFault::Json(error) => write!(f, "not a JSON array of resources: {error}"),
            ParseFault::AtRunTime(what) => write!(f, "{what} cannot be given on the command line"),
        }
    }
}
