//! A part of the state, for requests about one agent, one framework or a few tasks: rendering and authorization visit
//! that part only.

use alloc::sync::Arc;

use tepui_types::{AgentId, FrameworkId, TaskId};

use super::{Agent, Framework, Map, Recent, State};

impl State {
    /// One agent with the tasks and offers that are on it.
    pub fn part_of_agent(&self, id: &AgentId) -> State {
        let agent = self.agents.get(id);
        State {
            agents: only(&self.agents, id),
            recovered_agents: only(&self.recovered_agents, id),
            frameworks: agent.map(|agent| self.frameworks_on(agent)).unwrap_or_default(),
            completed_frameworks: Recent::new(),
            offers: select(&self.offers, |offer| offer.agent_id == *id),
            ..self.clone()
        }
    }

    /// One framework, running or over, with the agents that have executors of it, and its offers.
    pub fn part_of_framework(&self, id: &FrameworkId) -> State {
        State {
            agents: select(&self.agents, |agent| agent.executors_of(id).next().is_some()),
            frameworks: only(&self.frameworks, id),
            completed_frameworks: self.completed_frameworks.only(id),
            offers: select(&self.offers, |offer| offer.framework_id == *id),
            ..self.clone()
        }
    }

    /// Tasks alone: of one framework or all, of one id or all.
    pub fn part_of_tasks(&self, framework_id: Option<&FrameworkId>, task_id: Option<&TaskId>) -> State {
        let (mut frameworks, mut completed) = match framework_id {
            Some(id) => (only(&self.frameworks, id), self.completed_frameworks.only(id)),
            None => (self.frameworks.clone(), self.completed_frameworks.clone()),
        };
        if let Some(id) = task_id {
            let of_task = |framework: &Arc<Framework>| framework.part_of_task(id).map(Arc::new);
            let part =
                frameworks.iter().filter_map(|(id, framework)| Some((id.clone(), of_task(framework)?)));
            frameworks = part.collect();
            completed = completed.filter_map(of_task);
        }
        State {
            agents: Map::new_sync(),
            frameworks,
            completed_frameworks: completed,
            offers: Map::new_sync(),
            ..self.clone()
        }
    }

    /// The frameworks that have tasks on this agent, with these tasks alone.
    fn frameworks_on(&self, agent: &Agent) -> Map<FrameworkId, Arc<Framework>> {
        let mut parts = Map::new_sync();
        for (id, framework) in self.frameworks.iter() {
            let here = agent
                .framework_tasks(id)
                .filter_map(|task_id| Some((task_id.clone(), framework.tasks.get(task_id)?.clone())));
            let tasks: Map<_, _> = here.collect();
            if !tasks.is_empty() {
                parts.insert_mut(
                    id.clone(),
                    Arc::new(framework.with_tasks(tasks, Recent::new(), Recent::new())),
                );
            }
        }
        parts
    }
}

impl Framework {
    fn part_of_task(&self, id: &TaskId) -> Option<Framework> {
        let (tasks, unreachable, completed) =
            (only(&self.tasks, id), self.unreachable_tasks.only(id), self.completed_tasks.only(id));
        let is_known = !(tasks.is_empty() && unreachable.is_empty() && completed.is_empty());
        is_known.then(|| self.with_tasks(tasks, unreachable, completed))
    }

    fn with_tasks(
        &self,
        tasks: Map<TaskId, Arc<super::Task>>,
        unreachable_tasks: Recent<TaskId, Arc<super::Task>>,
        completed_tasks: Recent<TaskId, Arc<super::Task>>,
    ) -> Framework {
        Framework { tasks, unreachable_tasks, completed_tasks, ..self.clone() }
    }
}

fn only<K: Ord + Clone, V: Clone>(map: &Map<K, V>, key: &K) -> Map<K, V> {
    map.get(key).into_iter().map(|value| (key.clone(), value.clone())).collect()
}

fn select<K: Ord + Clone, V>(map: &Map<K, Arc<V>>, is_wanted: impl Fn(&V) -> bool) -> Map<K, Arc<V>> {
    let wanted = map.iter().filter(|(_, value)| is_wanted(value));
    wanted.map(|(key, value)| (key.clone(), value.clone())).collect()
}
