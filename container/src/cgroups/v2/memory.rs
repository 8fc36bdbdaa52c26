//! memory: what a container keeps under pressure (low) and what it may not exceed (max).
//!
//! Why `memory.low` and not `memory.high`: docs/adr/0004.

use std::path::Path;

use crate::cgroups::plan::Step;
use crate::cgroups::{Demand, Limit};

/// `memory.max` of a running container is never set below what is in use: the kernel would kill for it.
pub(crate) fn settle(cgroup: &Path, demand: &Demand, fresh: bool) -> Vec<Step> {
    let bound = match demand.mem_bound() {
        Limit::Finite(bytes) => bytes.to_string(),
        Limit::Infinite => String::from("max"),
    };
    let mut steps = vec![Step::write(cgroup, "memory.low", demand.mem_bytes)];
    match fresh {
        true => steps.push(Step::write(cgroup, "memory.max", bound)),
        false => {
            steps.push(Step::raise(cgroup, "memory.max", &bound));
            steps.push(Step::lower(cgroup, "memory.max", bound, "memory.current"));
        }
    }
    steps
}

/// An OOM kill in the cgroup of a container's own processes kills all of these and no others: set on the cgroup
/// around, a machine without memory would kill an executor for one of its tasks.
pub(crate) fn kill_together(processes: &Path) -> Step {
    Step::offer(processes, "memory.oom.group", 1)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::cgroups::demand::tests::demand;
    use crate::cgroups::plan::show;

    #[test]
    fn memory_request_sets_low_and_limit_sets_max() {
        let shown =
            |request, limit, fresh| show(&settle(Path::new("/c"), &demand(1.0, None, request, limit), fresh));
        expect![[r#"
            write /c/memory.low 67108864
            write /c/memory.max 67108864
        "#]]
        .assert_eq(&shown(64.0, None, true));
        expect![[r#"
            write /c/memory.low 67108864
            raise /c/memory.max 134217728
            lower /c/memory.max 134217728
        "#]]
        .assert_eq(&shown(64.0, Some(128.0), false));
        expect![[r#"
            write /c/memory.low 67108864
            write /c/memory.max max
        "#]]
        .assert_eq(&shown(64.0, Some(f64::INFINITY), true));
    }
}
