//! Evaluation of explanations by the allocator, at the end of turns and within their time budget.
//!
//! Not from a snapshot: the books of the allocator are not part of snapshots.

use alloc::boxed::Box;

use tepui_fsm::{Budget, Now};
use tepui_types::{ConnId, Rejection, Status};

use crate::Effect;
use crate::master::{Master, Out};
use crate::values::explain::{Report, Subject};

/// Pending explanations; more are rejected.
const INQUIRIES_MAX: usize = 64;

pub(crate) fn explain(master: &mut Master, now: Now, conn: ConnId, subject: &Subject, out: &mut Out) {
    match subject {
        Subject::Role(role) => {
            let report = master.allocator.explain_role(role).map(Report::Role);
            reply(conn, now, report, "No such role", out);
        }
        Subject::Framework(_) if master.inquiries.len() >= INQUIRIES_MAX => {
            let why = "Too many explanations in progress; retry later";
            Master::reject(conn, Rejection::new(Status::Unavailable, why), out);
        }
        Subject::Framework(id) => match master.allocator.inquire(id) {
            Some(inquiry) => master.inquiries.push_back((conn, inquiry)),
            None => reply(conn, now, None, UNKNOWN_FRAMEWORK, out),
        },
    }
}

const UNKNOWN_FRAMEWORK: &str = "No such framework";

/// Continues pending explanations within the budget.
pub(crate) fn resume(master: &mut Master, now: Now, budget: &mut Budget<'_>, out: &mut Out) {
    while let Some((conn, mut inquiry)) = master.inquiries.pop_front() {
        if !master.allocator.advance(&mut inquiry, budget) {
            master.inquiries.push_front((conn, inquiry));
            return;
        }
        let report = master.allocator.answer(inquiry).map(Report::Framework);
        reply(conn, now, report, UNKNOWN_FRAMEWORK, out);
    }
}

fn reply(conn: ConnId, now: Now, report: Option<Report>, unknown: &str, out: &mut Out) {
    match report {
        Some(report) => out.effect(Effect::Explained { conn, now: now.mono, report: Box::new(report) }),
        None => Master::reject(conn, Rejection::new(Status::NotFound, unknown), out),
    }
}
