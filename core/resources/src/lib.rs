//! Resource algebra: the resources of a cluster and the arithmetic of their allocation.
//!
//! A [`Resource`] is an amount ([`Scalar`], [`Ranges`] or a [`Set`]) with an identity: name, reservations, allocation,
//! disk, revocability. [`Resources`] sum amounts of the same identity; [`Quantities`] sum amounts of the same name.
//! Protobuf appears at the boundary only
//! ([`Resources::from_proto`], [`Resources::to_proto`], [`validate`], [`Operation::from_proto`]).
//!
//! Values without shared state, made from calls (protobuf), flags ([`parse`]) and by the allocator. Absent: a clock, a
//! panic on a peer's input, an amount below zero, a random order.
//!
//! ```
//! use tepui_resources::{Operation, Reservation, Resources, Revocable, Role, parse};
//!
//! let agent: Resources = parse::resources("cpus:4;mem:1024;cpus(web):2;ports:[31000-32000]", "*")?.into_iter().collect();
//! let web = Role::from("web");
//! assert_eq!(agent.cpus().to_string(), "6");
//! assert_eq!(agent.reserved_to(&web).to_string(), "cpus(reservations: [(STATIC,web)]):2");
//!
//! // An offer plus the rest is the whole agent.
//! let offer = agent.allocatable_to(&Role::from("db")).allocate(&Role::from("db"));
//! let left = agent.checked_sub(&offer.clone().unallocate()).expect("the offer is part of the agent");
//! assert_eq!(left, agent.reserved());
//!
//! // A reservation changes the identity of resources, not their quantity.
//! let cpus = agent.unreserved().filter(|resource| resource.name().as_str() == "cpus");
//! let reserved = cpus.push_reservation(&Reservation::dynamic("db").by("ops"));
//! let reserve = Operation::Reserve { source: vec![], resources: reserved.iter().cloned().collect() };
//! let agent = agent.apply(&reserve)?;
//! assert_eq!(agent.reserved_to(&Role::from("db")), reserved);
//!
//! // Reserved but idle resources are lent to others as revocable.
//! let slack = agent.reserved().flatten(Revocable::AllocationSlack).allocation_slack(Some(&web));
//! assert_eq!(slack.to_string(), "cpus{REV: ALLOCATION_SLACK}:4");
//! # Ok::<(), tepui_resources::ResourceError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod disk;
mod entry;
mod error;
mod labels;
mod legacy;
mod name;
mod operation;
pub mod parse;
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
pub use entry::Iter;
pub use error::{Fault, OperationFault, ParseFault, ReservationFault, ResourceError, TogetherFault};
pub use labels::{Label, Labels};
pub use legacy::{LegacyValue, legacy_attributes};
pub use name::{Name, OtherName};
pub use operation::{Conversion, Operation};
pub use proto::Format;
pub use quantities::{Limits, Quantities};
pub use ranges::{Range, Ranges};
pub use reservation::{Reservation, ReservationKind};
pub use resource::{Resource, Revocable, Value};
pub use resources::Resources;
pub use role::{Role, RoleError, check_role};
pub use scalar::{SCALAR_THOUSANDTHS_MAX, Scalar, ScalarError};
pub use set::Set;
