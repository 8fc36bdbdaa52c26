//! `/state-summary`: agents and frameworks with the numbers of their tasks, and not the tasks.

use std::collections::HashMap;

use tepui_core_master::State;
use tepui_proto::Enumeration;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::TaskState;
use tepui_types::{AgentId, FrameworkId};

use super::{DocumentInfo, Index, agent, framework};

/// The states that are counted, in their order.
const COUNTED: [TaskState; 10] = [
    TaskState::TASK_STAGING,
    TaskState::TASK_STARTING,
    TaskState::TASK_RUNNING,
    TaskState::TASK_KILLING,
    TaskState::TASK_FINISHED,
    TaskState::TASK_KILLED,
    TaskState::TASK_FAILED,
    TaskState::TASK_LOST,
    TaskState::TASK_ERROR,
    TaskState::TASK_UNREACHABLE,
];

pub(super) fn members(w: &mut JsonWriter, state: &State, index: &Index, info: &DocumentInfo) {
    w.field("hostname", state.master_info.hostname.as_deref().unwrap_or_default());
    w.optional_field("cluster", info.cluster.as_ref());
    w.array_field("slaves", |w| {
        for one in state.agents.values() {
            let tally = state.tallies.agent(&one.id);
            w.object(|w| {
                agent::members(w, one, state, index);
                counts(w, |of| tally.tasks.get(of));
                ids(w, "framework_ids", tally.frameworks().map(|id| id.as_str()));
            });
        }
    });
    let agents = agents_of_frameworks(state);
    w.array_field("frameworks", |w| {
        for one in state.frameworks.values() {
            let tally = state.tallies.framework(&one.id);
            let agents = agents.get(&one.id).map_or(&[][..], Vec::as_slice);
            w.object(|w| {
                framework::summary_members(w, one, index);
                counts(w, |of| tally.live.get(of) + tally.remembered.get(of));
                ids(w, "slave_ids", agents.iter().map(|id| id.as_str()));
            });
        }
    });
}

/// The agents on which a framework has tasks or executors, or had tasks that are remembered.
fn agents_of_frameworks(state: &State) -> HashMap<&FrameworkId, Vec<&AgentId>> {
    let mut agents: HashMap<_, Vec<_>> = HashMap::new();
    for (id, tally) in state.tallies.agents() {
        tally.frameworks().for_each(|framework| agents.entry(framework).or_default().push(id));
    }
    agents
}

fn counts(w: &mut JsonWriter, count: impl Fn(TaskState) -> u64) {
    COUNTED.into_iter().for_each(|state| w.field(state.proto_name(), &count(state)));
}

fn ids<'a>(w: &mut JsonWriter, name: &str, ids: impl Iterator<Item = &'a str>) {
    w.array_field(name, |w| ids.for_each(|id| w.string(id)));
}
