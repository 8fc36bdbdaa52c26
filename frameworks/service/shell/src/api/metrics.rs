//! `/v1/metrics`: counters with the names of the SDK, as JSON and as the text that Prometheus reads.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tepui_service::scheduler::View;

/// Name and value. Types of operations and states of tasks are part of the name, as in the SDK.
fn counters(view: &View) -> Vec<(String, u64)> {
    let own = &view.counters;
    let plain = [
        ("offers.received", own.offers_received),
        ("offers.processed", own.offers_processed),
        ("accepts", own.accepts),
        ("declines.short", own.declines_short),
        ("declines.long", own.declines_long),
        ("revives", own.revives),
        ("revives.throttles", own.revives_throttled),
        ("suppresses", own.suppresses),
    ];
    let operations =
        own.operations.iter().map(|(kind, count)| (format!("operation.{kind}").to_lowercase(), *count));
    let states = own
        .task_statuses
        .iter()
        .map(|(state, count)| (format!("task_status.{state}").to_lowercase(), *count));
    plain.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(operations).chain(states).collect()
}

pub(super) fn document(view: &View) -> Value {
    let counter = |(name, value): (String, u64)| (name, json!({"count": value}));
    let counters: Map<String, Value> = counters(view).into_iter().map(counter).collect();
    json!({"counters": counters, "gauges": {"is_suppressed": {"value": view.suppressed}}})
}

pub(super) fn prometheus(view: &View) -> String {
    let mut text = String::new();
    let mut sample = |name: &str, kind: &str, value: u64| {
        let name = name.replace('.', "_");
        let _ = writeln!(text, "# TYPE {name} {kind}\n{name} {value}");
    };
    for (name, value) in counters(view) {
        sample(&name, "counter", value);
    }
    sample("is_suppressed", "gauge", u64::from(view.suppressed));
    text
}
