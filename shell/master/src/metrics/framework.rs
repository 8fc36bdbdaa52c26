//! `master/frameworks/<name>/<id>/…`: calls, events, offers and tasks of each framework.

use tepui_core_master::{Framework, FrameworkCounters, FrameworkLink, FrameworkTally, OfferFate, State};
use tepui_http::{Group, Metrics, path_part};
use tepui_proto::mesos::v1::TaskState;

use super::names::{ACTIVE_TASKS, CALLS, EVENTS, OPERATIONS, TERMINAL_TASKS};

const FATES: [(OfferFate, &str); 4] = [
    (OfferFate::Sent, "sent"),
    (OfferFate::Accepted, "accepted"),
    (OfferFate::Declined, "declined"),
    (OfferFate::Rescinded, "rescinded"),
];

/// Samples of a framework that no table counts: its sums, its offers, and a role.
const OTHERS: usize = 9;

/// Frameworks, and those that ended for as long as they are remembered.
pub(super) fn add(metrics: &mut Metrics, state: &State) {
    let none = FrameworkCounters::default();
    let known = CALLS.len() + EVENTS.len() + OPERATIONS.len() + ACTIVE_TASKS.len() + TERMINAL_TASKS.len();
    let frameworks = state.frameworks.size() + state.completed_frameworks.len();
    metrics.reserve(frameworks * (known + OTHERS));
    for framework in state.frameworks.values().chain(state.completed_frameworks.iter()) {
        let counters = state.framework_counters.get(&framework.id).map_or(&none, |counters| &**counters);
        let tally = state.tallies.framework(&framework.id);
        metrics.within(group(framework), |metrics| one(metrics, framework, tally, counters));
    }
}

fn group(framework: &Framework) -> Group {
    let (name, id) = (&framework.info.name, framework.id.as_str());
    Group {
        path: format!("master/frameworks/{}/{}/", path_part(name), path_part(id)),
        name: "master/framework",
        labels: vec![("framework", name.clone()), ("framework_id", id.to_owned())],
    }
}

fn one(metrics: &mut Metrics, framework: &Framework, tally: &FrameworkTally, counters: &FrameworkCounters) {
    let subscribed = matches!(framework.link, FrameworkLink::Connected { .. });
    metrics.gauge("subscribed", f64::from(u8::from(subscribed)));
    metrics.sum("calls", counters.calls.total());
    for (kind, name) in CALLS.iter() {
        metrics.counter_by("calls", "call", name.as_str(), counters.calls.get(*kind));
    }
    metrics.sum("events", counters.events.total());
    for (kind, name) in EVENTS.iter() {
        metrics.counter_by("events", "event", name.as_str(), counters.events.get(*kind));
    }
    for (fate, name) in FATES {
        metrics.counter_by("offers", "fate", name, counters.offers.get(fate));
    }
    metrics.sum("operations", counters.operations.total());
    for (kind, name) in OPERATIONS.iter() {
        metrics.counter_by("operations", "operation", name.as_str(), counters.operations.get(*kind));
    }
    tasks(metrics, framework, tally, counters);
    for role in framework.roles() {
        let suppressed = framework.suppressed_roles.contains(&role);
        metrics.gauge_of("roles", ("role", role.to_string()), "suppressed", f64::from(u8::from(suppressed)));
    }
}

fn tasks(metrics: &mut Metrics, framework: &Framework, tally: &FrameworkTally, counters: &FrameworkCounters) {
    for (state, name) in ACTIVE_TASKS.iter() {
        let count = match state {
            TaskState::TASK_UNREACHABLE => framework.unreachable_tasks.len() as u64,
            _ => tally.live.get(*state),
        };
        metrics.gauge_by("tasks/active", "state", name.as_str(), count as f64);
    }
    for (state, name) in TERMINAL_TASKS.iter() {
        metrics.counter_by("tasks/terminal", "state", name.as_str(), counters.tasks.get(*state));
    }
}
