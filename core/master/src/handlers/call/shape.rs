//! Well-formedness of a call, checked before its content.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1::FrameworkInfo;
use tepui_proto::mesos::v1::scheduler::call::{Subscribe, Type};
use tepui_proto::mesos::v1::scheduler::{Call, OfferConstraints};
use tepui_proto::wire;

use crate::values::limits::Limits;

/// The bytes of a uuid.
const UUID_BYTES: usize = 16;

/// The type of a well-formed call, or what is missing.
pub(super) fn check(call: &Call, principal: Option<&str>, limits: &Limits) -> Result<Type, String> {
    let r#type = call.r#type.ok_or("Expecting 'type' to be present")?;
    if r#type == Type::SUBSCRIBE {
        let subscribe = call.subscribe.as_option().ok_or("Expecting 'subscribe' to be present")?;
        check_subscribe(call, subscribe, principal)?;
        check_sizes(&subscribe.framework_info, &subscribe.offer_constraints, limits)?;
        return Ok(r#type);
    }
    if !call.framework_id.is_set() {
        return Err("Expecting 'framework_id' to be present".into());
    }
    if let Some((field, false)) = body(call, r#type) {
        return Err(format!("Expecting '{field}' to be present"));
    }
    if r#type == Type::UPDATE_FRAMEWORK {
        let update = &call.update_framework;
        check_sizes(&update.framework_info, &update.offer_constraints, limits)?;
    }
    check_fields(call, r#type).map(|()| r#type)
}

fn check_subscribe(call: &Call, subscribe: &Subscribe, principal: Option<&str>) -> Result<(), String> {
    let info = &*subscribe.framework_info;
    if call.framework_id.as_option() != info.id.as_option() {
        return Err("'framework_id' differs from 'subscribe.framework_info.id'".into());
    }
    match (principal, &info.principal) {
        (Some(caller), Some(own)) if caller != own => {
            Err(format!("Principal '{caller}' does not match principal '{own}' set in 'FrameworkInfo'"))
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// A framework's description is stored as long as the framework is known.
fn check_sizes(info: &FrameworkInfo, constraints: &OfferConstraints, limits: &Limits) -> Result<(), String> {
    let flag = "(--max_framework_info_size)";
    wire::check_size(info, limits.framework_info).map_err(|why| format!("'framework_info' {why} {flag}"))?;
    wire::check_size(constraints, limits.framework_info)
        .map_err(|why| format!("'offer_constraints' {why} {flag}"))
}

/// The message a call cannot do without, and whether it is there.
fn body(call: &Call, r#type: Type) -> Option<(&'static str, bool)> {
    match r#type {
        Type::ACCEPT => Some(("accept", call.accept.is_set())),
        Type::DECLINE => Some(("decline", call.decline.is_set())),
        Type::ACCEPT_INVERSE_OFFERS => Some(("accept_inverse_offers", call.accept_inverse_offers.is_set())),
        Type::DECLINE_INVERSE_OFFERS => {
            Some(("decline_inverse_offers", call.decline_inverse_offers.is_set()))
        }
        Type::KILL => Some(("kill", call.kill.is_set())),
        Type::SHUTDOWN => Some(("shutdown", call.shutdown.is_set())),
        Type::ACKNOWLEDGE => Some(("acknowledge", call.acknowledge.is_set())),
        Type::ACKNOWLEDGE_OPERATION_STATUS => {
            Some(("acknowledge_operation_status", call.acknowledge_operation_status.is_set()))
        }
        Type::RECONCILE => Some(("reconcile", call.reconcile.is_set())),
        Type::RECONCILE_OPERATIONS => Some(("reconcile_operations", call.reconcile_operations.is_set())),
        Type::MESSAGE => Some(("message", call.message.is_set())),
        Type::REQUEST => Some(("request", call.request.is_set())),
        Type::UPDATE_FRAMEWORK => Some(("update_framework", call.update_framework.is_set())),
        Type::SUBSCRIBE | Type::TEARDOWN | Type::REVIVE | Type::SUPPRESS | Type::UNKNOWN => None,
    }
}

fn check_fields(call: &Call, r#type: Type) -> Result<(), String> {
    match r#type {
        Type::ACKNOWLEDGE => check_uuid(&call.acknowledge.uuid),
        Type::ACKNOWLEDGE_OPERATION_STATUS => {
            check_uuid(&call.acknowledge_operation_status.uuid)?;
            match call.acknowledge_operation_status.agent_id.is_set() {
                true => Ok(()),
                false => Err("Expecting 'agent_id' to be present".into()),
            }
        }
        Type::UPDATE_FRAMEWORK
            if call.framework_id.as_option() != call.update_framework.framework_info.id.as_option() =>
        {
            Err("'framework_id' differs from 'update_framework.framework_info.id'".into())
        }
        Type::UPDATE_FRAMEWORK
        | Type::ACCEPT
        | Type::DECLINE
        | Type::ACCEPT_INVERSE_OFFERS
        | Type::DECLINE_INVERSE_OFFERS
        | Type::KILL
        | Type::SHUTDOWN
        | Type::RECONCILE
        | Type::RECONCILE_OPERATIONS
        | Type::MESSAGE
        | Type::REQUEST
        | Type::SUBSCRIBE
        | Type::TEARDOWN
        | Type::REVIVE
        | Type::SUPPRESS
        | Type::UNKNOWN => Ok(()),
    }
}

fn check_uuid(uuid: &[u8]) -> Result<(), String> {
    match uuid.len() {
        UUID_BYTES => Ok(()),
        len => Err(format!("Expecting 'uuid' to have {UUID_BYTES} bytes, not {len}")),
    }
}
