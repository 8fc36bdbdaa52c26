//! Requests and limits as the engine takes them: when a container is made, and when it runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tepui_proto::mesos::v1 as pb;
use tepui_types::{COMMAND_EXECUTOR_CPUS, COMMAND_EXECUTOR_MEM_MB, LaunchSpec};

use crate::cgroups::{Demand, Limit, Policy, cpu_quota_us, cpu_shares, oom};
use crate::launcher::linux::memory_bytes;

/// The engine cannot remove a memory limit; this one is never reached.
const ENDLESS_BYTES: i64 = 1 << 62;

/// Requests and limits of a container. `of_task`: the executor's own share is not for the engine's container, but for
/// the process next to it.
pub(super) fn demand(resources: &[pb::Resource], limits: &BTreeMap<String, f64>, of_task: bool) -> Demand {
    if !of_task {
        return Demand::new(resources, limits);
    }
    let own = [("cpus", COMMAND_EXECUTOR_CPUS), ("mem", COMMAND_EXECUTOR_MEM_MB)];
    let less = own.map(|(name, value)| pb::Resource {
        name: name.to_owned(),
        scalar: pb::value::Scalar { value: -value, ..Default::default() }.into(),
        ..Default::default()
    });
    let resources: Vec<pb::Resource> = resources.iter().cloned().chain(less).collect();
    let without = |(name, limit): (&String, &f64)| {
        let own = own.iter().find(|(own, _)| own == name).map_or(0.0, |(_, value)| *value);
        (name.clone(), thousandths(limit - own))
    };
    let demand = Demand::new(&resources, &limits.iter().map(without).collect());
    Demand { cpus: thousandths(demand.cpus), ..demand }
}

/// Resources are exact to this; sums of binary fractions are not.
fn thousandths(amount: f64) -> f64 {
    (amount * 1000.0).round() / 1000.0
}

/// For `HostConfig` of a new container. `of_task`: it is killed first on a machine out of memory if it may exceed its
/// request.
pub(super) fn fresh(demand: &Demand, policy: &Policy, of_task: bool) -> Value {
    let mut config = json!({"CpuShares": cpu_shares(demand, policy), "MemoryReservation": demand.mem_bytes});
    if let Some(Limit::Finite(quota)) = cpu_quota_us(demand, policy) {
        config["CpuQuota"] = quota.into();
    }
    if let Limit::Finite(bytes) = demand.mem_bound() {
        config["Memory"] = bytes.into();
        if policy.limit_swap {
            config["MemorySwap"] = bytes.into();
        }
    }
    if of_task && demand.bursts() {
        config["OomScoreAdj"] = score(demand).into();
    }
    config
}

/// How readily the processes of a running container go if memory runs out; `now` is its `HostConfig`. `None`: a
/// framework chose a score of its own.
pub(super) fn changed_score(demand: &Demand, now: &Value) -> Option<i32> {
    let is_chosen = now["OomScoreAdj"].as_i64().is_some_and(|chosen| chosen != 0);
    (!is_chosen).then(|| if demand.bursts() { score(demand) } else { 0 })
}

fn score(demand: &Demand) -> i32 {
    oom::score_adj(demand.mem_bytes, memory_bytes())
}

/// The OOM score with which a container is made and that is to follow its use of memory; `None` if it cannot use more than
/// it requests, or the framework chose a score.
pub(crate) fn followed_score(spec: &LaunchSpec) -> Option<i32> {
    let parameters = spec.container.iter().flat_map(|info| &info.docker.parameters);
    let is_chosen = parameters.into_iter().any(|parameter| parameter.key == "oom-score-adj");
    let demand = demand(&spec.resources, &spec.limits, spec.of_task);
    (spec.of_task && !is_chosen && demand.bursts()).then(|| score(&demand))
}

/// For a running container; `now` is its `HostConfig`. A limit of memory is only raised, see [`lower`].
pub(super) fn change(demand: &Demand, policy: &Policy, now: &Value) -> Value {
    let quota = match cpu_quota_us(demand, policy) {
        Some(Limit::Finite(quota)) => i64::try_from(quota).unwrap_or(i64::MAX),
        Some(Limit::Infinite) | None => -1,
    };
    let mut change = json!({"CpuShares": cpu_shares(demand, policy), "CpuQuota": quota});
    let (present, wanted) = (memory_of(now), wanted(demand));
    if wanted > present {
        add_memory(&mut change, wanted, policy);
    }
    let reservation = i64::try_from(demand.mem_bytes).unwrap_or(ENDLESS_BYTES);
    change["MemoryReservation"] = reservation.min(wanted.max(present)).into();
    change
}

/// The same for a limit of memory that goes down; `None` if it does not. It may be more than can be had without a kill, and
/// then the engine refuses it, so it comes by itself and last.
pub(super) fn lower(demand: &Demand, policy: &Policy, now: &Value) -> Option<Value> {
    let wanted = wanted(demand);
    (wanted < memory_of(now)).then(|| {
        let mut change = json!({});
        add_memory(&mut change, wanted, policy);
        change
    })
}

/// The limit of memory that a container has.
fn memory_of(now: &Value) -> i64 {
    now["Memory"].as_i64().filter(|bytes| *bytes > 0).unwrap_or(ENDLESS_BYTES)
}

fn wanted(demand: &Demand) -> i64 {
    match demand.mem_bound() {
        Limit::Finite(bytes) => i64::try_from(bytes).unwrap_or(ENDLESS_BYTES),
        Limit::Infinite => ENDLESS_BYTES,
    }
}

fn add_memory(change: &mut Value, bytes: i64, policy: &Policy) {
    // The engine's own choice for swap is as much again.
    let swap = match (bytes, policy.limit_swap) {
        (ENDLESS_BYTES, _) => ENDLESS_BYTES, // For -1 it would leave swap as it is.
        (bytes, true) => bytes,
        (bytes, false) => bytes.saturating_mul(2),
    };
    change["Memory"] = bytes.into();
    change["MemorySwap"] = swap.into();
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    const POLICY: Policy = Policy { enable_cfs: false, limit_swap: false, revocable_cpu_low_priority: true };

    fn given(cpus: f64, mem: f64) -> Vec<pb::Resource> {
        [("cpus", cpus), ("mem", mem)]
            .map(|(name, value)| pb::Resource {
                name: name.to_owned(),
                scalar: pb::value::Scalar { value, ..Default::default() }.into(),
                ..Default::default()
            })
            .to_vec()
    }

    fn limits(cpus: Option<f64>, mem: Option<f64>) -> BTreeMap<String, f64> {
        let all = [("cpus", cpus), ("mem", mem)];
        all.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?))).collect()
    }

    #[test]
    fn docker_limits_exclude_executor_resources() {
        let shown = |cpus: f64, mem: f64, limit: (Option<f64>, Option<f64>), policy: Policy| {
            let own = |limit: Option<f64>, own: f64| limit.map(|limit| limit + own);
            let limits = limits(own(limit.0, 0.1), own(limit.1, 32.0));
            let demand = demand(&given(cpus + 0.1, mem + 32.0), &limits, true);
            let mut fresh = fresh(&demand, &policy, true);
            if let Some(score) = fresh.get_mut("OomScoreAdj") {
                assert!((3..=999).contains(&score.as_i64().expect("a number")));
                *score = "some".into();
            }
            format!("{fresh}\n")
        };
        let infinity = Some(f64::INFINITY);
        let text = [
            shown(0.2, 64.0, (None, None), POLICY),
            shown(0.2, 64.0, (None, None), Policy { enable_cfs: true, limit_swap: true, ..POLICY }),
            shown(0.3, 64.0, (Some(0.5), Some(128.0)), POLICY),
            shown(0.7, 64.0, (infinity, infinity), POLICY),
            shown(0.001, 1.0, (None, Some(2.0)), POLICY),
        ];
        expect![[r#"
            {"CpuShares":204,"Memory":67108864,"MemoryReservation":67108864}
            {"CpuQuota":20000,"CpuShares":204,"Memory":67108864,"MemoryReservation":67108864,"MemorySwap":67108864}
            {"CpuQuota":50000,"CpuShares":307,"Memory":134217728,"MemoryReservation":67108864,"OomScoreAdj":"some"}
            {"CpuShares":716,"MemoryReservation":67108864,"OomScoreAdj":"some"}
            {"CpuShares":2,"Memory":33554432,"MemoryReservation":33554432}
        "#]]
        .assert_eq(&text.concat());
    }

    #[test]
    fn memory_limit_is_lowered_in_a_separate_update() {
        let shown = |mem: f64, limit: Option<f64>, now: u64| {
            let demand = demand(&given(1.0, mem), &limits(None, limit), false);
            let now = json!({"Memory": now << 20});
            let lowered =
                lower(&demand, &POLICY, &now).map_or_else(String::new, |lowered| format!(" {lowered}"));
            format!("{}{lowered}\n", change(&demand, &POLICY, &now))
        };
        let text = [
            shown(64.0, Some(128.0), 64),
            shown(64.0, None, 128),
            shown(64.0, Some(f64::INFINITY), 64),
            shown(64.0, Some(128.0), 0),
            shown(64.0, Some(f64::INFINITY), 0),
        ];
        expect![[r#"
            {"CpuQuota":-1,"CpuShares":1024,"Memory":134217728,"MemoryReservation":67108864,"MemorySwap":268435456}
            {"CpuQuota":-1,"CpuShares":1024,"MemoryReservation":67108864} {"Memory":67108864,"MemorySwap":134217728}
            {"CpuQuota":-1,"CpuShares":1024,"Memory":4611686018427387904,"MemoryReservation":67108864,"MemorySwap":4611686018427387904}
            {"CpuQuota":-1,"CpuShares":1024,"MemoryReservation":67108864} {"Memory":134217728,"MemorySwap":268435456}
            {"CpuQuota":-1,"CpuShares":1024,"MemoryReservation":67108864}
        "#]]
        .assert_eq(&text.concat());
    }
}
