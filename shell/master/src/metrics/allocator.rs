//! `allocator/…`: number and duration of its runs, and shares.

use std::collections::BTreeSet;
use std::time::Instant;

use tepui_core_master::State;
use tepui_http::{Group, Metrics};
use tepui_program::metrics::timer;
use tepui_proto::mesos::v1::quota::QuotaConfig;
use tepui_resources::{Name, Quantities, Resources};

use crate::metered::AllocationTimes;
use crate::roles::{Amounts, Roles};

pub(super) fn add(
    metrics: &mut Metrics,
    state: &State,
    roles: &Roles,
    total: &Resources,
    times: &AllocationTimes,
) {
    let now = Instant::now();
    metrics.counter("allocator/mesos/allocation_runs", state.counters.allocation_runs);
    timer(metrics, "allocator/mesos/allocation_run_ms", times.run.statistics(now));
    timer(metrics, "allocator/mesos/allocation_run_latency_ms", times.latency.statistics(now));
    // It is a part of the master: nothing waits for it that does not wait for the master.
    metrics.gauge("allocator/event_queue_dispatches", 0.0);
    metrics.gauge("allocator/mesos/event_queue_dispatches", 0.0);
    let total = total.scalar_quantities();
    let held = roles.all.allocated_and_offered();
    for name in [Name::Cpus, Name::Mem, Name::Disk] {
        metrics.gauge(format!("allocator/mesos/resources/{name}/total"), total.get(&name).to_f64());
        metrics.gauge(
            format!("allocator/mesos/resources/{name}/offered_or_allocated"),
            held.get(&name).to_f64(),
        );
    }
    quota(metrics, "", &roles.all, None);
    for (role, entry) in &roles.by_name {
        if !entry.frameworks.is_empty() {
            let share = dominant_share(&entry.amounts.allocated_and_offered(), &total) / entry.weight;
            let path = format!("allocator/mesos/roles/{role}/");
            metrics.within(group(path, "allocator/mesos/role", role), |metrics| {
                metrics.gauge("shares/dominant", share);
            });
            let path = format!("allocator/mesos/offer_filters/roles/{role}/");
            metrics.within(group(path, "allocator/mesos/offer_filters", role), |metrics| {
                metrics.gauge("active", state.offer_filters.get(role).copied().unwrap_or(0) as f64);
            });
        }
        quota(metrics, role, &entry.amounts, state.quotas.get(role).map(|config| &**config));
    }
}

/// What counts for the quota of a role, and the quota if it has one.
fn quota(metrics: &mut Metrics, role: &str, amounts: &Amounts, config: Option<&QuotaConfig>) {
    let (consumed, held) = (amounts.consumed(), amounts.allocated_and_offered());
    let limited = config.into_iter().flat_map(|config| config.guarantees.keys().chain(config.limits.keys()));
    let names: BTreeSet<Name> =
        consumed.iter().map(|(name, _)| name.clone()).chain(limited.map(|name| Name::new(name))).collect();
    for name in names.iter().filter(|name| **name != Name::Ports) {
        let path = format!("allocator/mesos/quota/roles/{role}/resources/{name}/");
        let mut group = group(path, "allocator/mesos/quota", role);
        group.labels.push(("resource", name.as_str().to_owned()));
        metrics.within(group, |metrics| {
            metrics.gauge("consumed", consumed.get(name).to_f64());
            let Some(config) = config else { return };
            let parts = [
                ("guarantee", config.guarantees.get(name.as_str())),
                ("limit", config.limits.get(name.as_str())),
            ];
            for (part, amount) in parts {
                amount.into_iter().for_each(|amount| metrics.gauge(part, amount.value));
            }
            metrics.gauge("offered_or_allocated", held.get(name).to_f64());
        });
    }
}

fn group(path: String, name: &'static str, role: &str) -> Group {
    Group { path, name, labels: vec![("role", role.to_owned())] }
}

/// The dominant share of a client.
fn dominant_share(held: &Quantities, total: &Quantities) -> f64 {
    let shares = total.iter().map(|(name, total)| held.get(name).to_f64() / total.to_f64());
    shares.fold(0.0, f64::max)
}
