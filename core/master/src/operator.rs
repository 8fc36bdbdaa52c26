//! Calls of operators that change something, and their event stream. Reads are answered from snapshots, elsewhere.

mod mark_agent_gone;
mod subscribe;
mod teardown;
mod update_weights;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::master::{Call, Response};
use tepui_types::{Answer, ConnId, Refusal, Status};

use crate::master::{Master, NOT_IMPLEMENTED, Out};
use crate::timers::Timer;

/// What becomes of a call: whatever changed is recorded and told when it is made.
type Done = Result<Answer<Response>, Refusal>;

fn ok((): ()) -> Answer<Response> {
    Answer::Ok
}

pub(crate) fn take(master: &mut Master, now: Now, conn: ConnId, call: Call, out: &mut Out) {
    let done: Done = match call.r#type.unwrap_or(Type::UNKNOWN) {
        Type::SUBSCRIBE => return subscribe::subscribe(master, now, conn, out),
        Type::TEARDOWN => teardown::teardown(master, now, &call.teardown, out).map(ok),
        Type::MARK_AGENT_GONE => {
            mark_agent_gone::mark_agent_gone(master, now, &call.mark_agent_gone, out).map(ok)
        }
        Type::UPDATE_WEIGHTS => update_weights::update_weights(master, &call.update_weights, out),
        Type::UNKNOWN => Err(Refusal::new(Status::NotImplemented, NOT_IMPLEMENTED)),
        r#type => {
            Err(Refusal::new(Status::NotImplemented, alloc::format!("{:?} is not implemented yet", r#type)))
        }
    };
    match done {
        Ok(answer) => Master::answer(conn, answer, out),
        Err(refusal) => Master::refuse(conn, refusal, out),
    }
}

/// An operator's stream ended.
pub(crate) fn closed(master: &mut Master, conn: ConnId) {
    master.operators.retain(|other| *other != conn);
    if master.operators.is_empty() {
        master.timers.clear(&Timer::OperatorHeartbeat);
    }
}
