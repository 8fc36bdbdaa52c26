//! `/tasks`: every task the master remembers, newest first unless asked otherwise.

use std::sync::Arc;

use tepui_core_master::{Framework, State, Task};
use tepui_http::classic;
use tepui_proto::json::JsonWriter;

use super::Selection;

pub(super) fn member(w: &mut JsonWriter, state: &State, selection: &Selection) {
    let mut tasks: Vec<&Task> = state
        .frameworks
        .values()
        .chain(state.completed_frameworks.iter())
        .filter(|one| selection.framework_id.as_deref().is_none_or(|id| one.id.as_str() == id))
        .flat_map(|one| all_of(one))
        .map(|task| &**task)
        .filter(|task| selection.task_id.as_deref().is_none_or(|id| task.id.as_str() == id))
        .collect();
    tasks.sort_by(|a, b| first_seen(a).total_cmp(&first_seen(b)));
    let page = selection.page.unwrap_or(super::Page { limit: usize::MAX, offset: 0, ascending: false });
    if !page.ascending {
        tasks.reverse();
    }
    w.array_field("tasks", |w| {
        let shown = tasks.into_iter().skip(page.offset).take(page.limit);
        shown.for_each(|task| classic::task(w, &task.task, &task.resources));
    });
}

fn all_of(framework: &Framework) -> impl Iterator<Item = &Arc<Task>> {
    framework.tasks.values().chain(framework.unreachable_tasks.iter()).chain(framework.completed_tasks.iter())
}

/// When its first status was made; tasks without one are the oldest.
fn first_seen(task: &Task) -> f64 {
    task.task.statuses.first().and_then(|status| status.timestamp).unwrap_or(f64::NEG_INFINITY)
}
