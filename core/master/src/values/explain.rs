//! Explanations of offers: their subjects and reports. `entities::explanations` evaluates them.

use alloc::collections::VecDeque;

use tepui_allocator::Inquiry;
use tepui_resources::Role;
use tepui_types::{ConnId, FrameworkId};

pub use tepui_allocator::{
    Borrowing, Capability, ClientReport, Finding, FrameworkReport, Place, Reason, RoleReport,
};

/// The subject of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Framework(FrameworkId),
    Role(Role),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    Framework(FrameworkReport),
    Role(RoleReport),
}

/// Pending explanations, oldest first.
pub(crate) type Inquiries = VecDeque<(ConnId, Inquiry)>;
