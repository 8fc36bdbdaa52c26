//! Authorization: rules in the format of v1 and their evaluation.
//!
//! A rule names principals and objects; of the rules for an action the first whose principals and objects both match
//! decides, and if none does, `permissive` does. The rules come from a flag; the cores and the renderers of documents
//! evaluate them.
//!
//! Absent: authentication, JSON, protobuf.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acls;
mod action;

pub use acls::{Acls, AclsError, Authorizer, Entity, Rule, Subject};
pub use action::{Action, Objects};
