//! Why somebody is offered what it is: the allocator finds out, when asked and only then.
//!
//! It is asked at the end of turns, not from a snapshot, since the allocator's books are not in snapshots: as long as a turn
//! has time, one agent after the other. Nobody else waits for an answer, and nothing is done while nobody asks.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use tepui_allocator::Inquiry;
use tepui_fsm::{Budget, Now};
use tepui_resources::Role;
use tepui_types::{ConnId, FrameworkId, Refusal, Status};

pub use tepui_allocator::{
    Borrowing, Capability, Finding, FrameworkReport, Place, Reason, RoleReport, Standing,
};

use crate::Effect;
use crate::master::{Master, Out};

/// So many may wait for an answer; more are refused.
const INQUIRIES_MAX: usize = 64;

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

/// Who waits for an answer, the first first.
pub(crate) type Inquiries = VecDeque<(ConnId, Inquiry)>;

pub(crate) fn explain(master: &mut Master, now: Now, conn: ConnId, subject: &Subject, out: &mut Out) {
    match subject {
        Subject::Role(role) => {
            let report = master.allocator.explain_role(role).map(Report::Role);
            tell(conn, now, report, "No such role", out);
        }
        Subject::Framework(_) if master.inquiries.len() >= INQUIRIES_MAX => {
            let why = "Too many explanations are under way; ask again later";
            Master::refuse(conn, Refusal::new(Status::Unavailable, why), out);
        }
        Subject::Framework(id) => match master.allocator.inquire(id) {
            Some(inquiry) => master.inquiries.push_back((conn, inquiry)),
            None => tell(conn, now, None, UNKNOWN_FRAMEWORK, out),
        },
    }
}

const UNKNOWN_FRAMEWORK: &str = "No such framework";

/// Goes on with those who wait, for as long as the budget lasts.
pub(crate) fn go_on(master: &mut Master, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
    while let Some((conn, mut inquiry)) = master.inquiries.pop_front() {
        if !master.allocator.look_into(&mut inquiry, budget) {
            master.inquiries.push_front((conn, inquiry));
            return;
        }
        let report = master.allocator.answer(inquiry).map(Report::Framework);
        tell(conn, now, report, UNKNOWN_FRAMEWORK, out);
    }
}

fn tell(conn: ConnId, now: Now, report: Option<Report>, unknown: &str, out: &mut Out) {
    match report {
        Some(report) => out.effect(Effect::Explained { conn, now: now.mono, report: Box::new(report) }),
        None => Master::refuse(conn, Refusal::new(Status::NotFound, unknown), out),
    }
}
