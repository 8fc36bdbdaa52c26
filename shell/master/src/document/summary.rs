//! `/state-summary`: agents and frameworks with the numbers of their tasks, and not the tasks.

use std::collections::{BTreeSet, HashMap};

use tepui_core_master::{State, Task};
use tepui_proto::Enumeration;
use tepui_proto::json::JsonWriter;
use tepui_proto::mesos::v1::TaskState;
use tepui_types::{AgentId, FrameworkId};

use super::{About, Index, agent, framework};

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

pub(super) fn members(w: &mut JsonWriter, state: &State, index: &Index, about: &About) {
    let numbers = Numbers::new(state);
    w.field("hostname", state.master_info.hostname.as_deref().unwrap_or_default());
    w.optional_field("cluster", about.cluster.as_ref());
    w.array_field("slaves", |w| {
        for one in state.agents.values() {
            w.object(|w| {
                agent::members(w, one, state, index);
                let tally = numbers.agents.get(&one.id);
                counts(w, tally.map(|tally| &tally.counts));
                ids(
                    w,
                    "framework_ids",
                    tally.into_iter().flat_map(|tally| &tally.with).map(|id| id.as_str()),
                );
            });
        }
    });
    w.array_field("frameworks", |w| {
        for one in state.frameworks.values() {
            w.object(|w| {
                framework::summary_members(w, one, index);
                let tally = numbers.frameworks.get(&one.id);
                counts(w, tally.map(|tally| &tally.counts));
                ids(w, "slave_ids", tally.into_iter().flat_map(|tally| &tally.with).map(|id| id.as_str()));
            });
        }
    });
}

type Counts = [u64; COUNTED.len()];

/// Numbers of tasks, and of whom or on which.
struct Tally<'a, T> {
    counts: Counts,
    with: BTreeSet<&'a T>,
}

struct Numbers<'a> {
    agents: HashMap<&'a AgentId, Tally<'a, FrameworkId>>,
    frameworks: HashMap<&'a FrameworkId, Tally<'a, AgentId>>,
}

impl<T> Default for Tally<'_, T> {
    fn default() -> Self {
        Self { counts: Counts::default(), with: BTreeSet::new() }
    }
}

impl<'a> Numbers<'a> {
    /// Of live, unreachable and remembered tasks of registered frameworks.
    fn new(state: &'a State) -> Self {
        let mut numbers = Self { agents: HashMap::new(), frameworks: HashMap::new() };
        for framework in state.frameworks.values() {
            let over = framework.unreachable_tasks.iter().chain(framework.completed_tasks.iter());
            framework.tasks.values().chain(over).for_each(|task| numbers.count(&framework.id, task));
        }
        for agent in state.agents.values() {
            for executor in agent.executors.values() {
                numbers.relate(&executor.framework_id, &agent.id);
            }
        }
        numbers
    }

    fn count(&mut self, framework_id: &'a FrameworkId, task: &'a Task) {
        self.relate(framework_id, &task.agent_id);
        let Some(at) = COUNTED.iter().position(|state| *state == task.task.state) else { return };
        self.agents.entry(&task.agent_id).or_default().counts[at] += 1;
        self.frameworks.entry(framework_id).or_default().counts[at] += 1;
    }

    fn relate(&mut self, framework_id: &'a FrameworkId, agent_id: &'a AgentId) {
        self.agents.entry(agent_id).or_default().with.insert(framework_id);
        self.frameworks.entry(framework_id).or_default().with.insert(agent_id);
    }
}

fn counts(w: &mut JsonWriter, counts: Option<&Counts>) {
    for (at, state) in COUNTED.into_iter().enumerate() {
        w.field(state.proto_name(), &counts.map_or(0, |counts| counts[at]));
    }
}

fn ids<'a>(w: &mut JsonWriter, name: &str, ids: impl Iterator<Item = &'a str>) {
    w.array_field(name, |w| ids.for_each(|id| w.string(id)));
}
