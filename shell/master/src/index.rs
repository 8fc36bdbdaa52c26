//! Sums of used and offered resources, and lists per framework, derived from a snapshot for readers.

use std::cell::OnceCell;
use std::collections::HashMap;

use tepui_core_master::{Executor, Offer, State};
use tepui_resources::Resources;
use tepui_types::{AgentId, FrameworkId};

/// Derived from a snapshot by a walk over its offers; tasks are not looked at.
pub(crate) struct Index<'a> {
    state: &'a State,
    offered_by_agent: HashMap<&'a AgentId, Resources>,
    offered_by_framework: HashMap<&'a FrameworkId, Resources>,
    offers: HashMap<&'a FrameworkId, Vec<&'a Offer>>,
    /// Derived when they are first wanted: most documents have no executors in them.
    executors: OnceCell<HashMap<&'a FrameworkId, Vec<&'a Executor>>>,
}

/// Holders and their amounts.
pub(crate) struct Sums<'a> {
    /// By tasks that are not over, and by executors.
    pub used: &'a Resources,
    pub offered: &'a Resources,
}

static NOTHING: Resources = Resources::new();

impl<'a> Index<'a> {
    pub fn new(state: &'a State) -> Self {
        let (offered_by_agent, offered_by_framework) = (HashMap::new(), HashMap::new());
        let (offers, executors) = (HashMap::new(), OnceCell::new());
        let mut index = Self { state, offered_by_agent, offered_by_framework, offers, executors };
        state.offers.values().for_each(|offer| index.offer(offer));
        index
    }

    pub fn agent(&self, id: &AgentId) -> Sums<'_> {
        Sums {
            used: &self.state.tallies.agent(id).used,
            offered: self.offered_by_agent.get(id).unwrap_or(&NOTHING),
        }
    }

    pub fn framework(&self, id: &FrameworkId) -> Sums<'_> {
        Sums {
            used: &self.state.tallies.framework(id).used,
            offered: self.offered_by_framework.get(id).unwrap_or(&NOTHING),
        }
    }

    pub fn offers(&self, id: &FrameworkId) -> &[&'a Offer] {
        self.offers.get(id).map_or(&[], Vec::as_slice)
    }

    pub fn executors(&self, id: &FrameworkId) -> &[&'a Executor] {
        let by_framework = self.executors.get_or_init(|| executors(self.state));
        by_framework.get(id).map_or(&[], Vec::as_slice)
    }

    fn offer(&mut self, offer: &'a Offer) {
        *self.offered_by_agent.entry(&offer.agent_id).or_default() += &offer.resources;
        *self.offered_by_framework.entry(&offer.framework_id).or_default() += &offer.resources;
        self.offers.entry(&offer.framework_id).or_default().push(offer);
    }
}

fn executors(state: &State) -> HashMap<&FrameworkId, Vec<&Executor>> {
    let mut by_framework: HashMap<_, Vec<_>> = HashMap::new();
    for executor in state.agents.values().flat_map(|agent| agent.executors.values()) {
        by_framework.entry(&executor.framework_id).or_default().push(&**executor);
    }
    by_framework
}
