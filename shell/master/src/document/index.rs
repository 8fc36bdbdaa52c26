//! What the snapshot does not hold because it can be derived: sums and lists per agent and per framework.

use std::collections::HashMap;

use tepui_core_master::{Executor, Offer, State};
use tepui_resources::Resources;
use tepui_types::{AgentId, FrameworkId, TaskStateExt};

/// Derived in one pass over a snapshot.
#[derive(Default)]
pub(crate) struct Index<'a> {
    agents: HashMap<&'a AgentId, Sums>,
    frameworks: HashMap<&'a FrameworkId, Sums>,
    offers: HashMap<&'a FrameworkId, Vec<&'a Offer>>,
    executors: HashMap<&'a FrameworkId, Vec<&'a Executor>>,
    none: Sums,
}

/// Who has how much.
#[derive(Default)]
pub(crate) struct Sums {
    /// By tasks that are not over, and by executors.
    pub used: Resources,
    pub offered: Resources,
}

impl<'a> Index<'a> {
    pub fn new(state: &'a State) -> Self {
        let mut index = Self::default();
        for framework in state.frameworks.values() {
            let mut used = Resources::new();
            for task in framework.tasks.values().filter(|task| !task.task.state.is_terminal()) {
                index.agents.entry(&task.agent_id).or_default().used += &task.resources;
                used += &task.resources;
            }
            index.frameworks.entry(&framework.id).or_default().used = used;
        }
        for agent in state.agents.values() {
            for executor in agent.executors.values() {
                index.agents.entry(&agent.id).or_default().used += &executor.resources;
                index.frameworks.entry(&executor.framework_id).or_default().used += &executor.resources;
                index.executors.entry(&executor.framework_id).or_default().push(executor);
            }
        }
        state.offers.values().for_each(|offer| index.offer(offer));
        index
    }

    pub fn agent(&self, id: &AgentId) -> &Sums {
        self.agents.get(id).unwrap_or(&self.none)
    }

    pub fn framework(&self, id: &FrameworkId) -> &Sums {
        self.frameworks.get(id).unwrap_or(&self.none)
    }

    pub fn offers(&self, id: &FrameworkId) -> &[&'a Offer] {
        self.offers.get(id).map_or(&[], Vec::as_slice)
    }

    pub fn executors(&self, id: &FrameworkId) -> &[&'a Executor] {
        self.executors.get(id).map_or(&[], Vec::as_slice)
    }

    fn offer(&mut self, offer: &'a Offer) {
        self.agents.entry(&offer.agent_id).or_default().offered += &offer.resources;
        self.frameworks.entry(&offer.framework_id).or_default().offered += &offer.resources;
        self.offers.entry(&offer.framework_id).or_default().push(offer);
    }
}
