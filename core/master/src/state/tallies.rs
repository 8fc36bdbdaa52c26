//! Tallies: the number of tasks of each agent and each framework per state, and the resources they hold.
//!
//! Maintained as tasks and executors change, so that a reader of numbers need not iterate over all tasks. Changed by
//! `task_moved`, `executor_added` and `executor_removed` only. Invariant: equal to [`Tallies::of`], the result of a
//! full iteration. Tasks of completed frameworks are not counted.

use alloc::sync::Arc;
use alloc::vec::Vec;

use tepui_proto::mesos::v1::TaskState;
use tepui_resources::Resources;
use tepui_types::{AgentId, FrameworkId, TaskStateExt};

use super::{Executor, Map, State, Task};

/// The states of a task, from the first number to the last.
const STATES: usize = TaskState::TASK_UNKNOWN as usize + 1;

/// Without tasks and executors.
static NO_AGENT: AgentTally =
    AgentTally { used: Resources::new(), tasks: TaskCounts::NONE, frameworks: Vec::new() };
static NO_FRAMEWORK: FrameworkTally =
    FrameworkTally { used: Resources::new(), live: TaskCounts::NONE, remembered: TaskCounts::NONE };

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tallies {
    /// Also of agents that are not registered, while tasks that were on them are remembered.
    agents: Map<AgentId, Arc<AgentTally>>,
    frameworks: Map<FrameworkId, Arc<FrameworkTally>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentTally {
    /// Held by executors, and by live tasks that are not terminal.
    pub used: Resources,
    /// Live, unreachable and completed tasks.
    pub tasks: TaskCounts,
    /// Ordered by id, each with the number of its tasks and executors there.
    frameworks: Vec<(FrameworkId, u32)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameworkTally {
    /// Held by executors, and by live tasks that are not terminal.
    pub used: Resources,
    pub live: TaskCounts,
    /// Unreachable and completed tasks.
    pub remembered: TaskCounts,
}

/// How many tasks are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts([u32; STATES]);

/// Where a task is in the books, and its state there: all that its place in the tallies depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Nowhere,
    Live(TaskState),
    /// Unreachable or completed: it holds nothing.
    Remembered(TaskState),
}

impl TaskCounts {
    const NONE: Self = Self([0; STATES]);

    pub fn get(&self, state: TaskState) -> u64 {
        u64::from(self.0[state as usize])
    }

    fn add(&mut self, state: TaskState) {
        self.0[state as usize] += 1;
    }

    fn subtract(&mut self, state: TaskState) {
        self.0[state as usize] = self.0[state as usize].saturating_sub(1);
    }
}

impl Presence {
    fn holds_resources(self) -> bool {
        match self {
            Presence::Live(state) => !state.is_terminal(),
            Presence::Nowhere | Presence::Remembered(_) => false,
        }
    }

    fn is_somewhere(self) -> bool {
        self != Presence::Nowhere
    }
}

impl Tallies {
    pub fn agent(&self, id: &AgentId) -> &AgentTally {
        self.agents.get(id).map_or(&NO_AGENT, |tally| tally)
    }

    /// Agents that have tasks or executors, or had tasks that are remembered; in the order of their ids.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentId, &AgentTally)> + '_ {
        self.agents.iter().map(|(id, tally)| (id, &**tally))
    }

    pub fn framework(&self, id: &FrameworkId) -> &FrameworkTally {
        self.frameworks.get(id).map_or(&NO_FRAMEWORK, |tally| tally)
    }

    /// The same by a walk over everything: for a state that was put together from parts, and to check what is kept.
    pub fn of(state: &State) -> Self {
        let mut tallies = Self::default();
        for framework in state.frameworks.values() {
            for task in framework.tasks.values() {
                tallies.task_moved(task, Presence::Nowhere, Presence::Live(task.task.state));
            }
            for task in framework.unreachable_tasks.iter().chain(framework.completed_tasks.iter()) {
                tallies.task_moved(task, Presence::Nowhere, Presence::Remembered(task.task.state));
            }
        }
        for executor in state.agents.values().flat_map(|agent| agent.executors.values()) {
            tallies.executor_added(executor);
        }
        tallies
    }

    /// The only way in which the presence of a task changes the tallies.
    pub(crate) fn task_moved(&mut self, task: &Task, from: Presence, to: Presence) {
        if from == to {
            return;
        }
        self.change(&task.agent_id, &task.framework_id, |agent, framework| {
            match from {
                Presence::Nowhere => (),
                Presence::Live(state) => {
                    agent.tasks.subtract(state);
                    framework.live.subtract(state);
                }
                Presence::Remembered(state) => {
                    agent.tasks.subtract(state);
                    framework.remembered.subtract(state);
                }
            }
            match to {
                Presence::Nowhere => (),
                Presence::Live(state) => {
                    agent.tasks.add(state);
                    framework.live.add(state);
                }
                Presence::Remembered(state) => {
                    agent.tasks.add(state);
                    framework.remembered.add(state);
                }
            }
            match (from.is_somewhere(), to.is_somewhere()) {
                (false, true) => agent.enter(&task.framework_id),
                (true, false) => agent.leave(&task.framework_id),
                (true, true) | (false, false) => (),
            }
            match (from.holds_resources(), to.holds_resources()) {
                (false, true) => hold(agent, framework, &task.resources),
                (true, false) => release(agent, framework, &task.resources),
                (true, true) | (false, false) => (),
            }
        });
    }

    pub(crate) fn executor_added(&mut self, executor: &Executor) {
        self.change(&executor.agent_id, &executor.framework_id, |agent, framework| {
            agent.enter(&executor.framework_id);
            hold(agent, framework, &executor.resources);
        });
    }

    pub(crate) fn executor_removed(&mut self, executor: &Executor) {
        self.change(&executor.agent_id, &executor.framework_id, |agent, framework| {
            agent.leave(&executor.framework_id);
            release(agent, framework, &executor.resources);
        });
    }

    /// Changes both tallies; one that is empty then is dropped.
    fn change(
        &mut self,
        agent_id: &AgentId,
        framework_id: &FrameworkId,
        change: impl FnOnce(&mut AgentTally, &mut FrameworkTally),
    ) {
        if !self.agents.contains_key(agent_id) {
            self.agents.insert_mut(agent_id.clone(), Arc::default());
        }
        if !self.frameworks.contains_key(framework_id) {
            self.frameworks.insert_mut(framework_id.clone(), Arc::default());
        }
        let agent = self.agents.get_mut(agent_id).map(Arc::make_mut);
        let framework = self.frameworks.get_mut(framework_id).map(Arc::make_mut);
        let (Some(agent), Some(framework)) = (agent, framework) else { return };
        change(agent, framework);
        let (no_agent, no_framework) = (*agent == NO_AGENT, *framework == NO_FRAMEWORK);
        if no_agent {
            self.agents.remove_mut(agent_id);
        }
        if no_framework {
            self.frameworks.remove_mut(framework_id);
        }
    }
}

fn hold(agent: &mut AgentTally, framework: &mut FrameworkTally, resources: &Resources) {
    agent.used += resources;
    framework.used += resources;
}

fn release(agent: &mut AgentTally, framework: &mut FrameworkTally, resources: &Resources) {
    agent.used -= resources;
    framework.used -= resources;
}

impl AgentTally {
    /// Frameworks with tasks or executors on it, in the order of their ids.
    pub fn frameworks(&self) -> impl Iterator<Item = &FrameworkId> + '_ {
        self.frameworks.iter().map(|(id, _)| id)
    }

    fn enter(&mut self, framework_id: &FrameworkId) {
        match self.find(framework_id) {
            Ok(at) => self.frameworks[at].1 += 1,
            Err(at) => self.frameworks.insert(at, (framework_id.clone(), 1)),
        }
    }

    fn leave(&mut self, framework_id: &FrameworkId) {
        let Ok(at) = self.find(framework_id) else { return };
        match self.frameworks[at].1 {
            0 | 1 => drop(self.frameworks.remove(at)),
            count => self.frameworks[at].1 = count - 1,
        }
    }

    fn find(&self, framework_id: &FrameworkId) -> Result<usize, usize> {
        self.frameworks.binary_search_by(|(id, _)| id.cmp(framework_id))
    }
}

#[cfg(test)]
mod tests {
    use tepui_proto::Enumeration;

    use super::*;

    #[test]
    fn every_state_of_a_task_is_counted() {
        for state in TaskState::values() {
            let mut counts = TaskCounts::default();
            counts.add(*state);
            counts.add(*state);
            counts.subtract(*state);
            assert_eq!(counts.get(*state), 1, "{state:?}");
            counts.subtract(*state);
            assert_eq!(counts, TaskCounts::default());
        }
    }
}
