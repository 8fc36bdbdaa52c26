//! Who may do what: rules as v1 writes them, evaluated purely.
//!
//! A rule names principals and objects; of the rules for an action the first whose principals and objects both match
//! decides, and if none does, `permissive` does. Fed by the programs with what an operator wrote; asked by the machines
//! and by whoever renders documents.
//!
//! Never here: who somebody is (that was settled before), JSON, protobuf.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acls;
mod action;

pub use acls::{Acls, AclsError, Authorizer, Entity, Rule, Subject};
pub use action::{Action, Objects};
