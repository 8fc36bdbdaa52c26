//! `/tasks`: every task the master remembers, newest first unless asked otherwise.

use std::sync::Arc;

use tepui_core_master::{Framework, State, Task};
use tepui_program::classic;
use tepui_proto::json::JsonWriter;

use super::Page;

pub(super) fn member(w: &mut JsonWriter, state: &State, page: Page) {
    let mut tasks = all(state);
    let order = |(a, _): &(f64, &Task), (b, _): &(f64, &Task)| match page.ascending {
        true => a.total_cmp(b),
        false => b.total_cmp(a),
    };
    let end = page.offset.saturating_add(page.limit);
    if end < tasks.len() {
        // Only what is shown, and what comes before it, is worth sorting.
        tasks.select_nth_unstable_by(end, order);
        tasks.truncate(end);
    }
    tasks.sort_by(order);
    w.array_field("tasks", |w| {
        for (_, task) in tasks.iter().skip(page.offset) {
            classic::task_with(w, &task.task, &task.resources, page.statuses);
        }
    });
}

/// Each with the time it is sorted by.
fn all(state: &State) -> Vec<(f64, &Task)> {
    let frameworks = state.frameworks.values().chain(state.completed_frameworks.iter());
    frameworks
        .flat_map(|framework| framework_tasks(framework))
        .map(|task| (first_seen(task), &**task))
        .collect()
}

fn framework_tasks(framework: &Framework) -> impl Iterator<Item = &Arc<Task>> {
    let Framework { tasks, unreachable_tasks, completed_tasks, .. } = framework;
    tasks.values().chain(unreachable_tasks.iter()).chain(completed_tasks.iter())
}

/// When its first status was made; tasks without one are the oldest.
fn first_seen(task: &Task) -> f64 {
    task.task.statuses.first().and_then(|status| status.timestamp).unwrap_or(f64::NEG_INFINITY)
}
