//! UPDATE_FRAMEWORK: the framework changes its description without subscribing anew. Answered when it is done.

use alloc::format;
use alloc::string::String;

use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::scheduler::call::UpdateFramework;
use tepui_types::{Answer, ConnId, FrameworkId, Refusal};

use crate::framework::{self, Subscription};
use crate::master::{Master, Out};

pub(super) fn update_framework(
    master: &mut Master,
    conn: ConnId,
    from: &FrameworkId,
    call: UpdateFramework,
    out: &mut Out,
) {
    match update(master, from, call, out) {
        Ok(()) => Master::answer(conn, Answer::Ok, out),
        Err(why) => Master::refuse(conn, Refusal::bad_request(why), out),
    }
}

fn update(
    master: &mut Master,
    from: &FrameworkId,
    call: UpdateFramework,
    out: &mut Out,
) -> Result<(), String> {
    let subscription = Subscription {
        info: call.framework_info.into_option().unwrap_or_default(),
        suppressed: call.suppressed_roles,
        constraints: call.offer_constraints.into_option(),
    };
    let invalid = |why: &str| format!("FrameworkInfo update is not valid: {why}");
    let terms = framework::check(master, &subscription)
        .map_err(|why| format!("Supplied FrameworkInfo is not valid: {why}"))?;
    let old = master.framework(from).ok_or("Framework cannot be found")?.info.clone();
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
    }
    Ok(())
}

/// The order of roles, capabilities and labels says nothing.
fn sorted(info: &pb::FrameworkInfo) -> pb::FrameworkInfo {
    let mut info = info.clone();
    info.roles.sort();
    info.capabilities.sort_by_key(|capability| capability.r#type.map(|r#type| r#type as i32));
    if let Some(labels) = info.labels.as_option_mut() {
        labels.labels.sort_by(|a, b| (&a.key, &a.value).cmp(&(&b.key, &b.value)));
    }
    info
}
