//! Resource algebra.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod disk;
mod error;
mod labels;
mod name;
mod proto;
mod quantities;
mod ranges;
mod reservation;
mod resource;
mod resources;
mod role;
mod scalar;
mod set;
mod show;
pub mod validate;
mod view;

pub use disk::{Disk, DiskKind, DiskSource, Persistence};
pub use error::ResourceError;
pub use labels::{Label, Labels};
pub use name::{Name, OtherName};
pub use proto::Format;
pub use quantities::{Limits, Quantities};
pub use ranges::{Range, Ranges};
pub use reservation::{Reservation, ReservationKind};
pub use resource::{Resource, Revocable, Value};
pub use resources::Resources;
pub use role::{Role, RoleError, check_role};
pub use scalar::{SCALAR_THOUSANDTHS_MAX, Scalar, ScalarError};
pub use set::Set;
