//! GET_EXECUTORS: the executors that frameworks brought.

use tepui_core_master::{Executor, State};
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::master::response::{GetExecutors, get_executors};

pub(super) fn json(w: &mut JsonWriter, state: &State) {
    w.array_field("executors", |w| all(state).for_each(|executor| w.value(&entry(executor))));
}

pub(super) fn message(state: &State) -> GetExecutors {
    GetExecutors { executors: all(state).map(entry).collect(), ..Default::default() }
}

fn all(state: &State) -> impl Iterator<Item = &Executor> {
    state.agents.values().flat_map(|agent| agent.executors.values()).map(|executor| &**executor)
}

fn entry(executor: &Executor) -> get_executors::Executor {
    get_executors::Executor {
        executor_info: executor.info.clone().into(),
        agent_id: executor.agent_id.to_proto().into(),
        ..Default::default()
    }
}
