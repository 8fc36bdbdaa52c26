//! Calls of schedulers: one file per call, and the checks every call passes first.
//!
//! A call is answered at once: rejected, or 202 with everything else as events.

mod accept;
mod accept_inverse_offers;
mod acknowledge;
mod acknowledge_operation_status;
mod decline;
mod decline_inverse_offers;
mod kill;
mod message;
mod reconcile;
mod reconcile_operations;
mod request;
mod revive;
mod shape;
mod shutdown;
mod subscribe;
mod suppress;
mod teardown;
mod update_framework;

use alloc::format;
use alloc::string::String;

use tepui_fsm::Now;
use tepui_proto::mesos::v1::scheduler::Call;
use tepui_proto::mesos::v1::scheduler::call::Type;
use tepui_types::{Answer, ConnId, FrameworkId, Rejection, Status};

use crate::master::{Master, NOT_IMPLEMENTED, Out};
use crate::state::FrameworkLink;

pub(crate) use reconcile::reconcile_task;

/// The caller, as far as the transport has it.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) conn: ConnId,
    pub(crate) stream_id: Option<String>,
    pub(crate) principal: Option<String>,
}

/// Checks a call and hands it to its handler.
pub(crate) fn take(master: &mut Master, now: Now, caller: Caller, call: Call, out: &mut Out) {
    let r#type = match shape::check(&call, caller.principal.as_deref(), &master.config.limits) {
        Ok(r#type) => r#type,
        Err(why) => {
            let message = format!("Failed to validate scheduler::Call: {why}");
            return Master::reject(caller.conn, Rejection::bad_request(message), out);
        }
    };
    if r#type == Type::SUBSCRIBE {
        return subscribe::subscribe(
            master,
            now,
            caller,
            call.subscribe.into_option().unwrap_or_default(),
            out,
        );
    }
    match admit(master, &caller, &call) {
        Ok(from) => dispatch(master, now, caller.conn, from, r#type, call, out),
        Err(refusal) => Master::reject(caller.conn, refusal, out),
    }
}

/// Only the connected framework itself may speak, and only on its newest stream.
fn admit(master: &Master, caller: &Caller, call: &Call) -> Result<FrameworkId, Rejection> {
    let id = FrameworkId::from(&*call.framework_id);
    let Some(framework) = master.framework(&id) else {
        return Err(Rejection::bad_request("Framework cannot be found"));
    };
    if let Some(principal) = &caller.principal
        && framework.info.principal.as_ref() != Some(principal)
    {
        let message = format!("Principal '{principal}' is not the principal of framework '{id}'");
        return Err(Rejection::bad_request(message));
    }
    let FrameworkLink::Connected { stream_id, .. } = &framework.link else {
        return Err(Rejection::new(Status::Forbidden, "Framework is not subscribed"));
    };
    match &caller.stream_id {
        None => {
            Err(Rejection::bad_request("All non-subscribe calls should include the 'Mesos-Stream-Id' header"))
        }
        Some(given) if **given != **stream_id => Err(Rejection::bad_request(format!(
            "The stream ID '{given}' is not that of the current subscription of framework '{id}'"
        ))),
        Some(_) => Ok(id),
    }
}

fn dispatch(
    master: &mut Master,
    now: Now,
    conn: ConnId,
    from: FrameworkId,
    r#type: Type,
    call: Call,
    out: &mut Out,
) {
    match r#type {
        Type::SUBSCRIBE | Type::UNKNOWN => {
            return Master::reject(conn, Rejection::new(Status::NotImplemented, NOT_IMPLEMENTED), out);
        }
        Type::UPDATE_FRAMEWORK => {
            let call = call.update_framework.into_option().unwrap_or_default();
            return update_framework::update_framework(master, conn, &from, call, out);
        }
        Type::TEARDOWN
        | Type::ACCEPT
        | Type::DECLINE
        | Type::ACCEPT_INVERSE_OFFERS
        | Type::DECLINE_INVERSE_OFFERS
        | Type::REVIVE
        | Type::KILL
        | Type::SHUTDOWN
        | Type::ACKNOWLEDGE
        | Type::ACKNOWLEDGE_OPERATION_STATUS
        | Type::RECONCILE
        | Type::RECONCILE_OPERATIONS
        | Type::MESSAGE
        | Type::REQUEST
        | Type::SUPPRESS => Master::answer(conn, Answer::Accepted, out),
    }
    carry_out(master, now, &from, r#type, call, out);
}

/// The calls that are accepted whatever comes of them. `shape::check` saw to it that their message is there.
fn carry_out(master: &mut Master, now: Now, from: &FrameworkId, r#type: Type, call: Call, out: &mut Out) {
    match r#type {
        Type::TEARDOWN => teardown::teardown(master, now, from, out),
        Type::ACCEPT => accept::accept(master, now, from, call.accept.into_option().unwrap_or_default(), out),
        Type::DECLINE => decline::decline(master, now, from, &call.decline),
        Type::ACCEPT_INVERSE_OFFERS => {
            accept_inverse_offers::accept_inverse_offers(master, now, from, &call.accept_inverse_offers);
        }
        Type::DECLINE_INVERSE_OFFERS => {
            decline_inverse_offers::decline_inverse_offers(master, now, from, &call.decline_inverse_offers);
        }
        Type::REVIVE => revive::revive(master, from, &call.revive),
        Type::SUPPRESS => suppress::suppress(master, from, &call.suppress),
        Type::KILL => kill::kill(master, now, from, &call.kill, out),
        Type::SHUTDOWN => shutdown::shutdown(master, from, &call.shutdown, out),
        Type::ACKNOWLEDGE => {
            acknowledge::acknowledge(master, from, call.acknowledge.into_option().unwrap_or_default(), out);
        }
        Type::ACKNOWLEDGE_OPERATION_STATUS => {
            let call = call.acknowledge_operation_status.into_option().unwrap_or_default();
            acknowledge_operation_status::acknowledge_operation_status(master, from, call, out);
        }
        Type::RECONCILE => reconcile::reconcile(master, now, from, &call.reconcile, out),
        Type::RECONCILE_OPERATIONS => {
            reconcile_operations::reconcile_operations(master, from, &call.reconcile_operations, out);
        }
        Type::MESSAGE => message::message(master, from, call.message.into_option().unwrap_or_default(), out),
        Type::REQUEST => request::request(),
        Type::SUBSCRIBE | Type::UNKNOWN | Type::UPDATE_FRAMEWORK => (),
    }
}
