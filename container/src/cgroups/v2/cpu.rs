//! cpu: a part of the processors by weight, and an upper bound.

use std::path::Path;

use crate::cgroups::plan::Step;
use crate::cgroups::{Demand, Limit, Policy};

const WEIGHT_PER_CPU: f64 = 100.0;
const WEIGHT_PER_REVOCABLE_CPU: f64 = 1.0;
const WEIGHT_MIN: u64 = 1;
/// The kernel's: beyond a hundred cpus all containers weigh the same.
const WEIGHT_MAX: u64 = 10_000;
const PERIOD_US: u64 = 100_000;
const QUOTA_US_MIN: u64 = 1000;

pub(crate) fn settle(cgroup: &Path, demand: &Demand, policy: &Policy) -> Vec<Step> {
    let low = demand.revocable_cpus && policy.revocable_cpu_low_priority;
    let per_cpu = if low { WEIGHT_PER_REVOCABLE_CPU } else { WEIGHT_PER_CPU };
    let weight = ((per_cpu * demand.cpus) as u64).clamp(WEIGHT_MIN, WEIGHT_MAX);
    let bound = demand.cpu_limit.or(policy.enable_cfs.then_some(Limit::Finite(demand.cpus)));
    let max = match bound {
        Some(Limit::Finite(cpus)) => {
            let quota = ((PERIOD_US as f64 * cpus).round() as u64).max(QUOTA_US_MIN);
            Step::write(cgroup, "cpu.max", format!("{quota} {PERIOD_US}"))
        }
        Some(Limit::Infinite) | None => Step::change(cgroup, "cpu.max", format!("max {PERIOD_US}")),
    };
    vec![Step::write(cgroup, "cpu.weight", weight), max]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cgroups::demand::tests::{POLICY, demand};
    use crate::cgroups::plan::show;

    #[test]
    fn cpu_request_sets_weight_and_limit_sets_max() {
        let shown = |cpus, limit, enable_cfs| {
            let policy = Policy { enable_cfs, ..POLICY };
            show(&settle(Path::new("/c"), &demand(cpus, limit, 32.0, None), &policy))
        };
        expect![[r#"
            write /c/cpu.weight 30
            write /c/cpu.max 60000 100000
        "#]]
        .assert_eq(&shown(0.3, Some(0.6), false));
        expect![[r#"
            write /c/cpu.weight 10000
            change /c/cpu.max max 100000
        "#]]
        .assert_eq(&shown(200.0, Some(f64::INFINITY), true));
        expect![[r#"
            write /c/cpu.weight 1
            write /c/cpu.max 1000 100000
        "#]]
        .assert_eq(&shown(0.001, None, true));
        expect![[r#"
            write /c/cpu.weight 100
            change /c/cpu.max max 100000
        "#]]
        .assert_eq(&shown(1.0, None, false));
    }
}
