//! Why somebody is offered what it is: the allocator finds out, when asked and only then.
//!
//! It is asked between two steps, not from a snapshot, since the allocator's books are not in snapshots. The answer takes
//! about as long as one cycle over all agents.

use alloc::boxed::Box;

use tepui_fsm::Now;
use tepui_resources::Role;
use tepui_types::{ConnId, FrameworkId, Refusal, Status};

pub use tepui_allocator::{Capability, Finding, FrameworkReport, Place, Reason, RoleReport, Standing};

use crate::Effect;
use crate::master::{Master, Out};

/// Who is asked about.
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

pub(crate) fn explain(master: &mut Master, now: Now, conn: ConnId, subject: &Subject, out: &mut Out) {
    let (report, unknown) = match subject {
        Subject::Framework(id) => {
            (master.allocator.explain_framework(id).map(Report::Framework), "No such framework")
        }
        Subject::Role(role) => (master.allocator.explain_role(role).map(Report::Role), "No such role"),
    };
    match report {
        Some(report) => out.effect(Effect::Explained { conn, now: now.mono, report: Box::new(report) }),
        None => Master::refuse(conn, Refusal::new(Status::NotFound, unknown), out),
    }
}
