//! One level of a reservation stack.

use alloc::sync::Arc;

use crate::labels::Labels;
use crate::role::Role;

/// The role that may use a resource, and the principal that reserved it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reservation {
    pub kind: ReservationKind,
    pub role: Role,
    pub principal: Option<Arc<str>>,
    pub labels: Option<Labels>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReservationKind {
    /// Made by the agent's operator on its command line; cannot be undone at run time.
    Static,
    /// Made by a RESERVE operation.
    Dynamic,
}

impl Reservation {
    pub fn fixed(role: impl Into<Role>) -> Self {
        Self { kind: ReservationKind::Static, role: role.into(), principal: None, labels: None }
    }

    pub fn dynamic(role: impl Into<Role>) -> Self {
        Self { kind: ReservationKind::Dynamic, role: role.into(), principal: None, labels: None }
    }

    pub fn by(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    pub fn is_dynamic(&self) -> bool {
        self.kind == ReservationKind::Dynamic
    }
}
