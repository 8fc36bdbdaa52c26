//! GET_TASKS: live, unreachable and remembered tasks of every framework, ended frameworks included.

use std::sync::Arc;

use tepui_core_master::{Framework, State, Task};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::master::response::GetTasks;

pub(super) fn json(w: &mut JsonWriter, state: &State) {
    w.array_field("tasks", |w| live(state).for_each(|task| w.value(&task.message())));
    w.array_field("unreachable_tasks", |w| unreachable(state).for_each(|task| w.value(&task.message())));
    w.array_field("completed_tasks", |w| completed(state).for_each(|task| w.value(&task.message())));
}

pub(super) fn message(state: &State) -> GetTasks {
    let clone = |task: &Arc<Task>| task.message();
    GetTasks {
        tasks: live(state).map(clone).collect(),
        unreachable_tasks: unreachable(state).map(clone).collect(),
        completed_tasks: completed(state).map(clone).collect(),
        ..Default::default()
    }
}

fn live(state: &State) -> impl Iterator<Item = &Arc<Task>> {
    state.frameworks.values().flat_map(|framework| framework.tasks.values())
}

fn unreachable(state: &State) -> impl Iterator<Item = &Arc<Task>> {
    frameworks(state).flat_map(|framework| framework.unreachable_tasks.iter())
}

fn completed(state: &State) -> impl Iterator<Item = &Arc<Task>> {
    frameworks(state).flat_map(|framework| framework.completed_tasks.iter())
}

fn frameworks(state: &State) -> impl Iterator<Item = &Arc<Framework>> {
    state.frameworks.values().chain(state.completed_frameworks.iter())
}
