//! Decline filters: resources of an agent that a framework in a role declined for a while.
//!
//! An offer is filtered if one filter's declined resources contain all of it. A filter outlives at least one batch
//! run after its creation, so that other clients get their turn. Filters of an agent for equal resources are stored
//! together: whether they cover an offer is evaluated once for all of them.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use tepui_fsm::Mono;
use tepui_resources::Resources;

use crate::bits::Bits;
use crate::filter_counts::FilterCounts;
use crate::slab::{AgentSlot, ClientSlot, Slot};

/// So many ends of filters that are gone may be kept beside as many that are not.
const STALE_ENDS_MAX: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct Filters {
    /// By agent. May be shorter than the list of agents.
    on_agent: Vec<Vec<Group>>,
    /// By client: the agents that it has filters on.
    of_client: Vec<Bits<AgentSlot>>,
    /// The earliest first; the first one is of a filter that is there.
    ends: BinaryHeap<Reverse<End>>,
    count: usize,
    next_id: u64,
    pub(crate) counts: FilterCounts,
}

/// Filters of an agent for equal resources.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Not allocated.
    pub(crate) refused: Resources,
    pub(crate) clients: Bits<ClientSlot>,
    /// By client.
    filters: Vec<Filter>,
}

#[derive(Clone, Debug)]
struct Filter {
    client: ClientSlot,
    id: u64,
    until: Mono,
    /// The number of batch runs at its making.
    batch: u64,
}

/// When a filter ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct End {
    until: Mono,
    id: u64,
    agent: AgentSlot,
    client: ClientSlot,
}

impl Filters {
    /// Refusing the same again makes the filter last as long as the longer of both.
    pub(crate) fn add(
        &mut self,
        client: ClientSlot,
        agent: AgentSlot,
        refused: Resources,
        until: Mono,
        batch: u64,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        let groups = grown(&mut self.on_agent, agent.index());
        let group = match groups.iter().rposition(|group| group.refused == refused) {
            Some(at) => &mut groups[at],
            None => {
                groups.push(Group { refused, clients: Bits::new(), filters: Vec::new() });
                groups.last_mut().expect("it was just put there")
            }
        };
        let mut filter = Filter { client, id, until, batch };
        match group.position(client) {
            Ok(at) => {
                filter.until = until.max(group.filters[at].until);
                group.filters[at] = filter.clone();
            }
            Err(at) => {
                group.filters.insert(at, filter.clone());
                group.clients.insert(client);
                self.count += 1;
                self.counts.more(client);
            }
        }
        grown(&mut self.of_client, client.index()).insert(agent);
        self.ends.push(Reverse(End { until: filter.until, id, agent, client }));
        self.drop_stale_ends();
    }

    /// By what they refuse.
    pub(crate) fn on(&self, agent: AgentSlot) -> &[Group] {
        self.on_agent.get(agent.index()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn covers(&self, client: ClientSlot, agent: AgentSlot, offer: &Resources) -> bool {
        self.on(agent).iter().any(|group| group.clients.contains(client) && group.refused.contains(offer))
    }

    /// Until when the client refuses all of this offer.
    pub(crate) fn refused_until(
        &self,
        client: ClientSlot,
        agent: AgentSlot,
        offer: &Resources,
    ) -> Option<Mono> {
        let refusing = self.on(agent).iter().filter(|group| group.refused.contains(offer));
        let filters = refusing.filter_map(|group| Some(&group.filters[group.position(client).ok()?]));
        filters.map(|filter| filter.until).max()
    }

    pub(crate) fn next_end(&self) -> Option<Mono> {
        self.ends.peek().map(|Reverse(end)| end.until)
    }

    /// Takes one filter that is due, and whether a batch has run since its creation. It still filters.
    pub(crate) fn pop_due(&mut self, now: Mono, batches: u64) -> Option<(End, bool)> {
        let Reverse(end) = *self.ends.peek().filter(|Reverse(end)| end.until <= now)?;
        self.ends.pop();
        let served = self.find(end).is_some_and(|filter| filter.batch < batches);
        self.drop_stale_ends();
        Some((end, served))
    }

    /// Drops one filter; the agent it was about.
    pub(crate) fn remove(&mut self, end: End) -> Option<AgentSlot> {
        self.find(end)?;
        self.remove_where(end.agent, end.client, |filter| filter.id == end.id);
        self.drop_stale_ends();
        Some(end.agent)
    }

    pub(crate) fn remove_client(&mut self, client: ClientSlot) {
        let Some(agents) = self.of_client.get_mut(client.index()).map(core::mem::take) else { return };
        agents.iter().for_each(|agent| self.remove_where(agent, client, |_| true));
        self.drop_stale_ends();
    }

    pub(crate) fn remove_agent(&mut self, agent: AgentSlot) {
        let Some(groups) = self.on_agent.get_mut(agent.index()).map(core::mem::take) else { return };
        for filter in groups.iter().flat_map(|group| &group.filters) {
            self.of_client[filter.client.index()].remove(agent);
            self.count -= 1;
            self.counts.less(filter.client);
        }
        self.drop_stale_ends();
    }

    fn remove_where(&mut self, agent: AgentSlot, client: ClientSlot, wanted: impl Fn(&Filter) -> bool) {
        let Some(groups) = self.on_agent.get_mut(agent.index()) else { return };
        let before = self.count;
        for group in groups.iter_mut() {
            if let Ok(at) = group.position(client)
                && wanted(&group.filters[at])
            {
                group.filters.remove(at);
                group.clients.remove(client);
                self.count -= 1;
                self.counts.less(client);
            }
        }
        if self.count < before {
            groups.retain(|group| !group.filters.is_empty());
            let others = groups.iter().any(|group| group.clients.contains(client));
            self.of_client[client.index()].set(agent, others);
        }
    }

    fn find(&self, end: End) -> Option<&Filter> {
        let of_client = |group: &'_ Group| group.position(end.client).ok();
        let filters = self.on(end.agent).iter().filter_map(|group| Some(&group.filters[of_client(group)?]));
        filters.into_iter().find(|filter| filter.id == end.id)
    }

    fn drop_stale_ends(&mut self) {
        while self.ends.peek().is_some_and(|Reverse(end)| self.find(*end).is_none()) {
            self.ends.pop();
        }
        if self.ends.len() > 2 * self.count + STALE_ENDS_MAX {
            let mut ends = core::mem::take(&mut self.ends);
            ends.retain(|Reverse(end)| self.find(*end).is_some());
            self.ends = ends;
        }
    }

    /// Whether every index contains every filter.
    pub(crate) fn is_consistent(&self) -> bool {
        let mut count = 0;
        for (at, groups) in self.on_agent.iter().enumerate() {
            let agent = AgentSlot::new(at as u32);
            for group in groups {
                count += group.filters.len();
                let listed = group.filters.iter().map(|filter| filter.client);
                let sound = !group.filters.is_empty()
                    && listed.clone().is_sorted()
                    && group.clients.iter().eq(listed.clone())
                    && listed.into_iter().all(|client| self.of_client[client.index()].contains(agent));
                if !sound {
                    return false;
                }
            }
        }
        let known = |(at, agents): (usize, &Bits<AgentSlot>)| {
            let client = ClientSlot::new(at as u32);
            agents.iter().all(|agent| self.on(agent).iter().any(|group| group.clients.contains(client)))
        };
        let told = self.counts.total() == self.count as u64;
        told && count == self.count && self.of_client.iter().enumerate().all(known)
    }
}

impl Group {
    fn position(&self, client: ClientSlot) -> Result<usize, usize> {
        self.filters.binary_search_by_key(&client, |filter| filter.client)
    }
}

/// The entry at `index`, made if need be.
fn grown<T: Default>(entries: &mut Vec<T>, index: usize) -> &mut T {
    if index >= entries.len() {
        entries.resize_with(index + 1, T::default);
    }
    &mut entries[index]
}
