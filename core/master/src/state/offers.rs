//! Outstanding offers by framework and by agent.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use tepui_types::{AgentId, FrameworkId, OfferId};

/// Index of outstanding offers.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    of_framework: BTreeMap<FrameworkId, BTreeSet<OfferId>>,
    on_agent: BTreeMap<AgentId, BTreeSet<OfferId>>,
}

impl Offers {
    pub(crate) fn insert(&mut self, id: &OfferId, framework_id: &FrameworkId, agent_id: &AgentId) {
        self.of_framework.entry(framework_id.clone()).or_default().insert(id.clone());
        self.on_agent.entry(agent_id.clone()).or_default().insert(id.clone());
    }

    pub(crate) fn remove(&mut self, id: &OfferId, framework_id: &FrameworkId, agent_id: &AgentId) {
        remove_from(&mut self.of_framework, framework_id, id);
        remove_from(&mut self.on_agent, agent_id, id);
    }

    pub(crate) fn of(&self, framework_id: &FrameworkId) -> Vec<OfferId> {
        self.of_framework.get(framework_id).into_iter().flatten().cloned().collect()
    }

    pub(crate) fn on(&self, agent_id: &AgentId) -> Vec<OfferId> {
        self.on_agent.get(agent_id).into_iter().flatten().cloned().collect()
    }
}

fn remove_from<K: Ord + Clone>(index: &mut BTreeMap<K, BTreeSet<OfferId>>, key: &K, id: &OfferId) {
    if let Entry::Occupied(mut ids) = index.entry(key.clone()) {
        ids.get_mut().remove(id);
        if ids.get().is_empty() {
            ids.remove();
        }
    }
}
