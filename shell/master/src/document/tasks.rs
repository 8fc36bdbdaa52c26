//! `/tasks`: every task the master remembers, newest first unless asked otherwise.

use std::sync::Arc;

use tepui_core_master::{Framework, State, Task};
use tepui_http::classic;
use tepui_proto::json::JsonWriter;
use tepui_types::{FrameworkId, TaskId};

use super::Selection;

pub(super) fn member(w: &mut JsonWriter, state: &State, selection: &Selection) {
    let mut tasks = selected(state, selection);
    let page = selection.page.unwrap_or(super::Page { limit: usize::MAX, offset: 0, ascending: false });
    let order = |a: &&Task, b: &&Task| match page.ascending {
        true => first_seen(a).total_cmp(&first_seen(b)),
        false => first_seen(b).total_cmp(&first_seen(a)),
    };
    let end = page.offset.saturating_add(page.limit);
    if end < tasks.len() {
        // Only what is shown, and what comes before it, is worth sorting.
        tasks.select_nth_unstable_by(end, order);
        tasks.truncate(end);
    }
    tasks.sort_by(order);
    w.array_field("tasks", |w| {
        tasks.iter().skip(page.offset).for_each(|task| classic::task(w, &task.task, &task.resources));
    });
}

fn selected<'a>(state: &'a State, selection: &Selection) -> Vec<&'a Task> {
    let frameworks: Vec<&Arc<Framework>> = match selection.framework_id.as_deref().map(FrameworkId::new) {
        Some(id) => {
            state.frameworks.get(&id).into_iter().chain(state.completed_frameworks.get(&id)).collect()
        }
        None => state.frameworks.values().chain(state.completed_frameworks.iter()).collect(),
    };
    let wanted = selection.task_id.as_deref().map(TaskId::new);
    let tasks = frameworks.into_iter().flat_map(|framework| tasks_of(framework, wanted.as_ref()));
    tasks.map(|task| &**task).collect()
}

fn tasks_of<'a>(framework: &'a Framework, wanted: Option<&TaskId>) -> Vec<&'a Arc<Task>> {
    let Framework { tasks, unreachable_tasks, completed_tasks, .. } = framework;
    match wanted {
        None => tasks.values().chain(unreachable_tasks.iter()).chain(completed_tasks.iter()).collect(),
        Some(id) => {
            let over = [unreachable_tasks, completed_tasks].into_iter().filter(|recent| recent.contains(id));
            let over = over.flat_map(|recent| recent.iter()).filter(|task| task.id == *id);
            tasks.get(id).into_iter().chain(over).collect()
        }
    }
}

/// When its first status was made; tasks without one are the oldest.
fn first_seen(task: &Task) -> f64 {
    task.task.statuses.first().and_then(|status| status.timestamp).unwrap_or(f64::NEG_INFINITY)
}
