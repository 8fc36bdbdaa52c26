//! cpu: a part of the processors by weight, and an upper bound by quota.

use std::path::Path;

use crate::cgroups::plan::Step;
use crate::cgroups::{Demand, Limit, Policy};

const SHARES_PER_CPU: f64 = 1024.0;
const SHARES_PER_REVOCABLE_CPU: f64 = 10.0;
const SHARES_MIN: u64 = 2;
const PERIOD_US: u64 = 100_000;
const QUOTA_US_MIN: u64 = 1000;

pub(crate) fn settle(cgroup: &Path, demand: &Demand, policy: &Policy, fresh: bool) -> Vec<Step> {
    let mut steps = vec![Step::write(cgroup, "cpu.shares", cpu_shares(demand, policy))];
    match cpu_quota_us(demand, policy) {
        Some(Limit::Finite(quota)) => {
            let set = if fresh { Step::write } else { Step::yielding };
            steps.push(Step::change(cgroup, "cpu.cfs_period_us", PERIOD_US));
            steps.push(set(cgroup, "cpu.cfs_quota_us", quota));
        }
        Some(Limit::Infinite) => {
            steps.push(Step::change(cgroup, "cpu.cfs_period_us", PERIOD_US));
            steps.push(Step::change(cgroup, "cpu.cfs_quota_us", -1));
        }
        // A limit that was there before must not stay; kernels without quotas have none.
        None => steps.push(Step::change(cgroup, "cpu.cfs_quota_us", -1)),
    }
    steps
}

/// The weight of a request.
pub(crate) fn cpu_shares(demand: &Demand, policy: &Policy) -> u64 {
    let low = demand.revocable_cpus && policy.revocable_cpu_low_priority;
    let per_cpu = if low { SHARES_PER_REVOCABLE_CPU } else { SHARES_PER_CPU };
    ((per_cpu * demand.cpus) as u64).max(SHARES_MIN)
}

/// CPU time in each tenth of a second; `None` for no limit.
pub(crate) fn cpu_quota_us(demand: &Demand, policy: &Policy) -> Option<Limit<u64>> {
    match demand.cpu_limit.or(policy.enable_cfs.then_some(Limit::Finite(demand.cpus)))? {
        Limit::Finite(cpus) => {
            Some(Limit::Finite(((PERIOD_US as f64 * cpus).round() as u64).max(QUOTA_US_MIN)))
        }
        Limit::Infinite => Some(Limit::Infinite),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cgroups::demand::tests::{POLICY, demand};
    use crate::cgroups::plan::show;

    fn shown(cpus: f64, limit: Option<f64>, enable_cfs: bool) -> String {
        let policy = Policy { enable_cfs, ..POLICY };
        show(&settle(Path::new("/c"), &demand(cpus, limit, 32.0, None), &policy, true))
    }

    #[test]
    fn lowered_quota_of_a_running_container_yields_to_nested_ones() {
        expect![[r#"
            write /c/cpu.shares 204
            change /c/cpu.cfs_period_us 100000
            yield /c/cpu.cfs_quota_us 20000
        "#]]
        .assert_eq(&show(&settle(Path::new("/c"), &demand(0.2, Some(0.2), 32.0, None), &POLICY, false)));
    }

    #[test]
    fn cpu_request_sets_shares_and_limit_sets_quota() {
        expect![[r#"
            write /c/cpu.shares 307
            change /c/cpu.cfs_period_us 100000
            write /c/cpu.cfs_quota_us 60000
        "#]]
        .assert_eq(&shown(0.3, Some(0.6), false));
        expect![[r#"
            write /c/cpu.shares 204
            change /c/cpu.cfs_period_us 100000
            change /c/cpu.cfs_quota_us -1
        "#]]
        .assert_eq(&shown(0.2, Some(f64::INFINITY), true));
        expect![[r#"
            write /c/cpu.shares 2
            change /c/cpu.cfs_quota_us -1
        "#]]
        .assert_eq(&shown(0.001, None, false));
        expect![[r#"
            write /c/cpu.shares 2
            change /c/cpu.cfs_period_us 100000
            write /c/cpu.cfs_quota_us 1000
        "#]]
        .assert_eq(&shown(0.001, None, true));
    }

    #[test]
    fn revocable_cpus_have_low_shares() {
        let revocable = Demand { revocable_cpus: true, ..demand(1.1, None, 32.0, None) };
        let shares = |low| {
            let policy = Policy { revocable_cpu_low_priority: low, ..POLICY };
            settle(Path::new("/c"), &revocable, &policy, true)[0].to_string()
        };
        assert_eq!([shares(true), shares(false)], ["write /c/cpu.shares 11", "write /c/cpu.shares 1126"]);
    }
}
