//! Frameworks in the classic documents, with their tasks, executors and offers.

use tepui_core_master::{Executor, Framework, FrameworkLink, Offer};
use tepui_program::classic;
use tepui_proto::Enumeration;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::framework_info::capability::Type;

use super::{Index, time};

pub(crate) fn is_connected(framework: &Framework) -> bool {
    matches!(framework.link, FrameworkLink::Connected { .. })
}

pub(super) fn object(w: &mut JsonWriter, framework: &Framework, index: &Index) {
    w.object(|w| {
        summary_members(w, framework, index);
        info_members(w, framework, index);
        w.array_field("tasks", |w| {
            framework.tasks.values().for_each(|task| classic::task(w, &task.task, &task.resources));
        });
        w.array_field("unreachable_tasks", |w| {
            framework.unreachable_tasks.iter().for_each(|task| classic::task(w, &task.task, &task.resources));
        });
        w.array_field("completed_tasks", |w| {
            framework.completed_tasks.iter().for_each(|task| classic::task(w, &task.task, &task.resources));
        });
        w.array_field("offers", |w| index.offers(&framework.id).iter().for_each(|one| offer(w, one)));
        w.array_field("executors", |w| {
            index.executors(&framework.id).iter().for_each(|one| executor(w, one));
        });
        classic::labels(w, framework.info.labels.as_option());
        match &framework.offer_constraints {
            Some(constraints) => w.field("offer_constraints", &**constraints),
            None => w.object_field("offer_constraints", |_| ()),
        }
    });
}

pub(super) fn summary_members(w: &mut JsonWriter, framework: &Framework, index: &Index) {
    let (info, sums) = (&framework.info, index.framework(&framework.id));
    w.field("id", framework.id.as_str());
    w.field("name", &info.name);
    classic::resources(w, "used_resources", sums.used);
    classic::resources(w, "offered_resources", sums.offered);
    let capabilities = info.capabilities.iter().filter_map(|capability| capability.r#type);
    classic::names(w, "capabilities", capabilities);
    w.field("hostname", info.hostname.as_deref().unwrap_or_default());
    w.field("webui_url", info.webui_url.as_deref().unwrap_or_default());
    w.field("active", &is_connected(framework));
    w.field("connected", &is_connected(framework));
    w.field("recovered", &(framework.link == FrameworkLink::Recovered));
}

fn info_members(w: &mut JsonWriter, framework: &Framework, index: &Index) {
    let (info, sums) = (&framework.info, index.framework(&framework.id));
    w.field("user", &info.user);
    w.field("failover_timeout", &info.failover_timeout.unwrap_or(0.0));
    w.field("checkpoint", &info.checkpoint.unwrap_or(false));
    time(w, "registered_time", framework.registered_at);
    time(w, "unregistered_time", framework.unregistered_at.unwrap_or_default());
    w.optional_field("principal", info.principal.as_ref());
    classic::resources(w, "resources", &(sums.used + sums.offered));
    if let Some(at) = framework.reregistered_at.filter(|at| *at != framework.registered_at) {
        time(w, "reregistered_time", at);
    }
    match info.capabilities.iter().any(|capability| capability.r#type == Some(Type::MULTI_ROLE)) {
        true => w.field("roles", &info.roles),
        false => w.field("role", info.role.as_deref().unwrap_or("*")),
    }
}

fn offer(w: &mut JsonWriter, offer: &Offer) {
    w.object(|w| {
        w.field("id", offer.id.as_str());
        w.field("framework_id", offer.framework_id.as_str());
        w.object_field("allocation_info", |w| w.field("role", &offer.role));
        w.field("slave_id", offer.agent_id.as_str());
        classic::resources(w, "resources", &offer.resources);
    });
}

fn executor(w: &mut JsonWriter, executor: &Executor) {
    let info = &executor.info;
    w.object(|w| {
        w.field("executor_id", &info.executor_id.value);
        w.field("name", info.name.as_deref().unwrap_or_default());
        w.field("framework_id", executor.framework_id.as_str());
        classic::command(w, &info.command);
        classic::resources(w, "resources", &executor.resources);
        w.optional_field("role", classic::role_of(&executor.resources));
        classic::labels(w, info.labels.as_option());
        w.optional_field("type", info.r#type.map(|kind| kind.proto_name()));
        w.field("slave_id", executor.agent_id.as_str());
    });
}
