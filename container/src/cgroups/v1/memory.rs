//! memory: what a container is promised (soft limit) and what it may not exceed (limit).

use std::path::Path;

use crate::cgroups::plan::Step;
use crate::cgroups::{Demand, Limit, Policy};

const LIMIT: &str = "memory.limit_in_bytes";
const LIMIT_WITH_SWAP: &str = "memory.memsw.limit_in_bytes";
const SOFT_LIMIT: &str = "memory.soft_limit_in_bytes";

/// The kernel requires memory <= memory with swap at every moment, so the order depends on the direction: up, swap
/// first; down, memory first. A lower limit may be rejected: with more in use than can be reclaimed the former limit
/// stays.
pub(crate) fn settle(cgroup: &Path, demand: &Demand, policy: &Policy, fresh: bool) -> Vec<Step> {
    let bound = match demand.mem_bound() {
        Limit::Finite(bytes) => bytes.to_string(),
        Limit::Infinite => String::from("-1"),
    };
    let mut steps = vec![Step::write(cgroup, SOFT_LIMIT, demand.mem_bytes)];
    match (fresh, policy.limit_swap) {
        (true, false) => steps.push(Step::write(cgroup, LIMIT, &bound)),
        (true, true) => {
            steps.push(Step::write(cgroup, LIMIT, &bound));
            steps.push(Step::write(cgroup, LIMIT_WITH_SWAP, &bound));
        }
        (false, false) => {
            steps.push(Step::raise(cgroup, LIMIT, &bound));
            steps.push(Step::offer(cgroup, LIMIT, &bound));
        }
        (false, true) => {
            steps.push(Step::raise(cgroup, LIMIT_WITH_SWAP, &bound));
            steps.push(Step::raise(cgroup, LIMIT, &bound));
            steps.push(Step::offer(cgroup, LIMIT, &bound));
            steps.push(Step::offer(cgroup, LIMIT_WITH_SWAP, &bound));
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cgroups::demand::tests::{POLICY, demand};
    use crate::cgroups::plan::show;

    #[test]
    fn memory_request_sets_soft_limit_and_limit_sets_hard_limit() {
        let shown = |request, limit, limit_swap, fresh| {
            let policy = Policy { limit_swap, ..POLICY };
            show(&settle(Path::new("/c"), &demand(1.0, None, request, limit), &policy, fresh))
        };
        expect![[r#"
            write /c/memory.soft_limit_in_bytes 67108864
            write /c/memory.limit_in_bytes 67108864
        "#]]
        .assert_eq(&shown(64.0, None, false, true));
        expect![[r#"
            write /c/memory.soft_limit_in_bytes 67108864
            write /c/memory.limit_in_bytes 134217728
        "#]]
        .assert_eq(&shown(64.0, Some(128.0), false, true));
        expect![[r#"
            write /c/memory.soft_limit_in_bytes 33554432
            write /c/memory.limit_in_bytes -1
            write /c/memory.memsw.limit_in_bytes -1
        "#]]
        .assert_eq(&shown(1.0, Some(f64::INFINITY), true, true));
        expect![[r#"
            write /c/memory.soft_limit_in_bytes 67108864
            raise /c/memory.memsw.limit_in_bytes 134217728
            raise /c/memory.limit_in_bytes 134217728
            offer /c/memory.limit_in_bytes 134217728
            offer /c/memory.memsw.limit_in_bytes 134217728
        "#]]
        .assert_eq(&shown(64.0, Some(128.0), true, false));
    }
}
