//! UPDATE_FRAMEWORK: the framework changes its description without subscribing anew. Answered when it is done.

use alloc::format;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call::UpdateFramework;
use tepui_types::{Answer, ConnId, FrameworkId, Rejection, Status};

use crate::entities::framework::{self, Subscription};
use crate::master::{Master, Out};
use crate::rules::authorization;
use crate::state::transition::Transition;

pub(super) fn update_framework(
    master: &mut Master,
    conn: ConnId,
    from: &FrameworkId,
    call: UpdateFramework,
    out: &mut Out,
) {
    match update(master, from, call, out) {
        Ok(()) => Master::answer(conn, Answer::Ok, out),
        Err(refusal) => Master::reject(conn, refusal, out),
    }
}

fn update(
    master: &mut Master,
    from: &FrameworkId,
    call: UpdateFramework,
    out: &mut Out,
) -> Result<(), Rejection> {
    let subscription = Subscription {
        info: call.framework_info.into_option().unwrap_or_default(),
        suppressed: call.suppressed_roles,
        constraints: call.offer_constraints.into_option(),
    };
    let invalid = |why: &str| Rejection::bad_request(format!("FrameworkInfo update is not valid: {why}"));
    let terms = framework::check(master, &subscription)
        .map_err(|why| Rejection::bad_request(format!("Supplied FrameworkInfo is not valid: {why}")))?;
    authorization::register_framework(master, &subscription.info)
        .map_err(|why| Rejection::new(Status::Forbidden, why))?;
    let unknown = || Rejection::bad_request("Framework cannot be found");
    let old = master.framework(from).ok_or_else(unknown)?.info.clone();
    let new = subscription.info;
    if new.principal != old.principal {
        return Err(invalid("Changing framework's principal is not allowed."));
    }
    if new.user != old.user {
        return Err(invalid("Changing framework's user is not allowed."));
    }
    if new.checkpoint.unwrap_or(false) != old.checkpoint.unwrap_or(false) {
        return Err(invalid("Changing framework's checkpoint flag is not allowed."));
    }
    let changed = sorted(&new) != sorted(&old);
    framework::replace(master, from, new, terms, out);
    if changed {
        framework::announce(master, from, out);
        if let Some(framework) = master.framework(from).cloned() {
            Master::log(Transition::FrameworkUpdated { framework }, out);
        }
    }
    Ok(())
}

/// The order of roles, capabilities and labels has no meaning.
fn sorted(info: &pb::FrameworkInfo) -> pb::FrameworkInfo {
    let mut info = info.clone();
    info.roles.sort();
    info.capabilities.sort_by_key(|capability| capability.r#type.map(|r#type| r#type as i32));
    if let Some(labels) = info.labels.as_option_mut() {
        labels.labels.sort_by(|a, b| (&a.key, &a.value).cmp(&(&b.key, &b.value)));
    }
    info
}
