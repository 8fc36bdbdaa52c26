//! How much more than it requested an executor's container may use.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use tepui_resources::{Name, Resources};

use crate::state::Executor;

/// Per resource: nothing if no task has a limit; else the sum of the limits, of the requests of tasks without one, and
/// of the executor's own share. A task without cpu limit that is not throttled by its request may use any cpu, so then
/// there is no cpu limit at all.
pub(super) fn limits(executor: &Executor, cfs: bool) -> BTreeMap<String, f64> {
    let own = Resources::from_proto(&executor.info.resources).unwrap_or_default();
    let mut all = BTreeMap::new();
    for (name, key) in [("cpus", Name::Cpus), ("mem", Name::Mem)] {
        let limited = executor.live_tasks().any(|task| task.info.limits.contains_key(name));
        let unlimited_cpu = name == "cpus"
            && !cfs
            && executor.live_tasks().any(|task| {
                !task.info.limits.contains_key(name) && task.resources.amount(&key) > Default::default()
            });
        if !limited || unlimited_cpu {
            continue;
        }
        let tasks = executor.live_tasks().map(|task| {
            let limit = task.info.limits.get(name).map(|limit| limit.value);
            limit.unwrap_or_else(|| task.resources.amount(&key).to_f64())
        });
        all.insert(name.to_string(), own.amount(&key).to_f64() + tasks.sum::<f64>());
    }
    all
}
