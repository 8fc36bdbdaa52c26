//! `/state-summary`: agents and frameworks with the numbers of their tasks, and not the tasks.

use std::collections::{BTreeSet, HashMap};

use tepui_core_master::State;
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

/// Numbers of tasks, and on which agents or of which frameworks they are.
#[derive(Default)]
struct Tally<C> {
    counts: Counts,
    with: C,
}

struct Numbers<'a> {
    agents: HashMap<&'a AgentId, Tally<BTreeSet<&'a FrameworkId>>>,
    frameworks: HashMap<&'a FrameworkId, Tally<Vec<&'a AgentId>>>,
}

impl<'a> Numbers<'a> {
    /// Of live, unreachable and remembered tasks of registered frameworks.
    fn new(state: &'a State) -> Self {
        let (mut agents, mut frameworks) = (HashMap::<_, Tally<BTreeSet<_>>>::new(), HashMap::new());
        for framework in state.frameworks.values() {
            let mut tally = Tally::<Vec<_>>::default();
            let over = framework.unreachable_tasks.iter().chain(framework.completed_tasks.iter());
            for task in framework.tasks.values().chain(over) {
                let agent = agents.entry(&task.agent_id).or_default();
                agent.with.insert(&framework.id);
                if let Some(at) = COUNTED.iter().position(|state| *state == task.task.state) {
                    agent.counts[at] += 1;
                    tally.counts[at] += 1;
                }
            }
            frameworks.insert(&framework.id, tally);
        }
        for agent in state.agents.values() {
            let with = agent.executors.values().map(|executor| &executor.framework_id);
            agents.entry(&agent.id).or_default().with.extend(with);
        }
        // Each agent once instead of each task: a framework may have tens of thousands of both.
        let mut ordered: Vec<_> = agents.iter().collect();
        ordered.sort_unstable_by_key(|(id, _)| **id);
        for (id, tally) in ordered {
            tally.with.iter().for_each(|framework| frameworks.entry(framework).or_default().with.push(*id));
        }
        Self { agents, frameworks }
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
