//! Decline filters: what a framework in a role does not want to be offered of an agent for a while.
//!
//! An offer is filtered if one filter's refused resources contain all of it. A filter outlives at least one batch run
//! after its making, so that others get their turn.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::{Deadlines, Mono};
use tepui_resources::Resources;

use crate::slab::{AgentSlot, ClientSlot, Slot};

#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    by_pair: BTreeMap<(ClientSlot, AgentSlot), Vec<Filter>>,
    pairs: BTreeMap<FilterId, (ClientSlot, AgentSlot)>,
    ends: Deadlines<FilterId>,
    next_id: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilterId(u64);

#[derive(Clone, Debug)]
struct Filter {
    id: FilterId,
    /// Not allocated.
    refused: Resources,
    /// The number of batch runs at its making.
    batch: u64,
}

impl Filters {
    pub(crate) fn add(
        &mut self,
        client: ClientSlot,
        agent: AgentSlot,
        refused: Resources,
        until: Mono,
        batch: u64,
    ) {
        let id = FilterId(self.next_id);
        self.next_id += 1;
        self.by_pair.entry((client, agent)).or_default().push(Filter { id, refused, batch });
        self.pairs.insert(id, (client, agent));
        self.ends.set(id, until);
    }

    pub(crate) fn covers(&self, client: ClientSlot, agent: AgentSlot, offer: &Resources) -> bool {
        let filters = self.by_pair.get(&(client, agent));
        filters.is_some_and(|filters| filters.iter().any(|filter| filter.refused.contains(offer)))
    }

    pub(crate) fn next_end(&self) -> Option<Mono> {
        self.ends.next()
    }

    /// Takes one filter whose time has come, and whether a batch has run since its making. It still filters.
    pub(crate) fn pop_due(&mut self, now: Mono, batches: u64) -> Option<(FilterId, bool)> {
        let id = self.ends.pop_due(now)?;
        let filters = &self.by_pair[&self.pairs[&id]];
        let served = filters.iter().any(|filter| filter.id == id && filter.batch < batches);
        Some((id, served))
    }

    /// Drops one filter; the agent it was about.
    pub(crate) fn remove(&mut self, id: FilterId) -> Option<AgentSlot> {
        let pair = self.pairs.remove(&id)?;
        self.ends.clear(&id);
        if let Some(filters) = self.by_pair.get_mut(&pair) {
            filters.retain(|filter| filter.id != id);
            if filters.is_empty() {
                self.by_pair.remove(&pair);
            }
        }
        Some(pair.1)
    }

    pub(crate) fn remove_client(&mut self, client: ClientSlot) {
        let all = (client, AgentSlot::new(0))..=(client, AgentSlot::new(u32::MAX));
        let pairs: Vec<_> = self.by_pair.range(all).map(|(pair, _)| *pair).collect();
        pairs.into_iter().for_each(|pair| self.remove_pair(pair));
    }

    pub(crate) fn remove_agent(&mut self, agent: AgentSlot) {
        let pairs: Vec<_> = self.by_pair.keys().copied().filter(|(_, own)| *own == agent).collect();
        pairs.into_iter().for_each(|pair| self.remove_pair(pair));
    }

    fn remove_pair(&mut self, pair: (ClientSlot, AgentSlot)) {
        for filter in self.by_pair.remove(&pair).unwrap_or_default() {
            self.pairs.remove(&filter.id);
            self.ends.clear(&filter.id);
        }
    }

    /// Whether every index knows every filter.
    pub(crate) fn is_consistent(&self) -> bool {
        let listed = self
            .by_pair
            .iter()
            .flat_map(|(pair, filters)| filters.iter().map(move |filter| (filter.id, *pair)));
        let listed: BTreeMap<_, _> = listed.collect();
        listed == self.pairs
            && self.by_pair.values().all(|filters| !filters.is_empty())
            && self.ends.len() <= listed.len()
    }
}
