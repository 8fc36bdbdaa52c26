//! How much more than it requested an executor's container may use.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use core::borrow::Borrow;

use tepui_proto::mesos::v1 as pb;
use tepui_resources::Name;
use tepui_types::group_limits;

use crate::Config;
use crate::state::{Executor, Task};

/// What may be limited, under both its names.
pub(crate) const LIMITED: [(&str, Name); 2] = [("cpus", Name::Cpus), ("mem", Name::Mem)];

/// Per resource: none if no task has a limit; else the sum of the limits, of the requests of tasks without one, and
/// of the executor's own share. Without a request a task is best effort. A limit of the whole group overrides all of
/// that.
pub(crate) fn limits(executor: &Executor, config: &Config) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    // The master has refused what cannot be understood.
    let group = match config.task_group_limits {
        true => group_limits(&executor.info.labels).unwrap_or_default(),
        false => BTreeMap::new(),
    };
    for (name, key) in LIMITED {
        if let Some(limit) = group.get(name) {
            // A granted request is never reduced.
            all.insert(name.to_string(), limit.max(executor.resources().amount(&key).to_f64()));
            continue;
        }
        let of = |task: &Task| {
            let limit = task.info.limits.get(name).map(|limit| limit.value);
            limit.or_else(|| is_best_effort(config, task, &key).then_some(f64::INFINITY))
        };
        if !executor.live_tasks().any(|task| of(task).is_some()) {
            continue;
        }
        let tasks = executor.live_tasks().map(|task| {
            let request = || task.resources.amount(&key).to_f64();
            of(task).unwrap_or_else(request)
        });
        all.insert(name.to_string(), executor.own.amount(&key).to_f64() + tasks.sum::<f64>());
    }
    all
}

/// Whether a task has no request for a resource and is thereby best effort. In a group that shares the executor's
/// cgroups, and with Docker, it has no cgroup of its own for that.
pub(crate) fn is_best_effort(config: &Config, task: &Task, name: &Name) -> bool {
    let (_, is_group) = task.delivery;
    let shares = is_group && !task.has_own_cgroups();
    let container = task.info.container.as_option();
    let in_docker = container.is_some_and(|info| info.r#type == pb::container_info::Type::DOCKER);
    config.best_effort_tasks && !shares && !in_docker && task.resources.amount(name).is_zero()
}

/// A limit that cannot be enforced.
pub(crate) fn missing_isolator<K: Borrow<str> + Ord, V>(
    isolation: &[String],
    limits: &BTreeMap<K, V>,
) -> Option<String> {
    for (name, isolator) in [("cpus", "cgroups/cpu"), ("mem", "cgroups/mem")] {
        let enforced = isolation.iter().any(|given| given.contains(isolator) || given == "cgroups/all");
        if limits.contains_key(name) && !enforced {
            return Some(format!(
                "A limit on '{name}' needs the isolator '{isolator}', which this agent lacks"
            ));
        }
    }
    None
}
