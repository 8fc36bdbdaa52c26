//! Calls of operators that change something, and their event stream. Reads are answered from snapshots, elsewhere.

mod convert;
mod deactivate_agent;
mod drain_agent;
mod mark_agent_gone;
mod reactivate_agent;
mod remove_quota;
mod set_quota;
mod start_maintenance;
mod stop_maintenance;
mod subscribe;
mod teardown;
mod update_maintenance_schedule;
mod update_quota;
mod update_weights;

use alloc::boxed::Box;
use alloc::string::String;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::master::call::Type;
use tepui_proto::mesos::v1::master::{Call, Response};
use tepui_types::{Answer, ConnId, Rejection, Status};

use crate::entities::disk_pressure;
use crate::master::{Master, NOT_IMPLEMENTED, Out};
use crate::rules::authorization;
use crate::state::transition::Transition;
use crate::values::timers::Timer;

/// The result of a call: changes are recorded and sent while it is handled.
type Done = Result<Answer<Response>, Rejection>;

fn ok((): ()) -> Answer<Response> {
    Answer::Ok
}

pub(crate) fn take(
    master: &mut Master,
    now: Now,
    conn: ConnId,
    principal: Option<&str>,
    call: Call,
    out: &mut Out,
) {
    let r#type = call.r#type.unwrap_or(Type::UNKNOWN);
    if r#type == Type::SUBSCRIBE {
        return subscribe::subscribe(master, now, conn, out);
    }
    let done = authorization::operator(master, principal, &call)
        .and_then(|()| disk_pressure::check_call(master, r#type))
        .and_then(|()| carry_out(master, now, principal, r#type, &call, out));
    let rejection = done.as_ref().err().map(|refusal| refusal.message.clone());
    let principal = principal.map(String::from);
    Master::log(Transition::OperatorCall { principal, call: Box::new(call), rejection }, out);
    match done {
        Ok(answer) => Master::answer(conn, answer, out),
        Err(refusal) => Master::reject(conn, refusal, out),
    }
}

fn carry_out(
    master: &mut Master,
    now: Now,
    principal: Option<&str>,
    r#type: Type,
    call: &Call,
    out: &mut Out,
) -> Done {
    match r#type {
        Type::TEARDOWN => teardown::teardown(master, now, &call.teardown, out).map(ok),
        Type::MARK_AGENT_GONE => {
            mark_agent_gone::mark_agent_gone(master, now, &call.mark_agent_gone, out).map(ok)
        }
        Type::DRAIN_AGENT => drain_agent::drain_agent(master, now, &call.drain_agent, out).map(ok),
        Type::DEACTIVATE_AGENT => {
            deactivate_agent::deactivate_agent(master, &call.deactivate_agent, out).map(ok)
        }
        Type::REACTIVATE_AGENT => {
            reactivate_agent::reactivate_agent(master, &call.reactivate_agent, out).map(ok)
        }
        Type::UPDATE_WEIGHTS => update_weights::update_weights(master, &call.update_weights, out),
        Type::UPDATE_QUOTA => update_quota::update_quota(master, &call.update_quota, out).map(ok),
        Type::SET_QUOTA => set_quota::set_quota(master, &call.set_quota, out).map(ok),
        Type::REMOVE_QUOTA => remove_quota::remove_quota(master, &call.remove_quota, out).map(ok),
        Type::UPDATE_MAINTENANCE_SCHEDULE => {
            let call = &call.update_maintenance_schedule;
            update_maintenance_schedule::update_maintenance_schedule(master, call, out).map(ok)
        }
        Type::START_MAINTENANCE => {
            start_maintenance::start_maintenance(master, now, &call.start_maintenance, out).map(ok)
        }
        Type::STOP_MAINTENANCE => {
            stop_maintenance::stop_maintenance(master, &call.stop_maintenance, out).map(ok)
        }
        Type::RESERVE_RESOURCES
        | Type::UNRESERVE_RESOURCES
        | Type::CREATE_VOLUMES
        | Type::DESTROY_VOLUMES
        | Type::GROW_VOLUME
        | Type::SHRINK_VOLUME => convert::convert(master, now, principal, call, out),
        // The rest are reads, which are answered from snapshots.
        _ => Err(Rejection::new(Status::NotImplemented, NOT_IMPLEMENTED)),
    }
}

/// An operator's stream ended.
pub(crate) fn closed(master: &mut Master, conn: ConnId) {
    master.operators.retain(|other| *other != conn);
    if master.operators.is_empty() {
        master.timers.clear(&Timer::OperatorHeartbeat);
    }
}
