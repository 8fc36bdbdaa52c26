//! Allocation: the order in which agents are offered to clients.
//!
//! A *run* is a shuffled queue of agents. An agent that changed is shown to all clients in the order of shares; after
//! a framework changed, agents that did not change are shown to it alone. Offers that come back wait for the next
//! batch run, at most one per interval, so that they do not spin; resources of terminated tasks wait a moment, so
//! that several of an agent make one offer; new agents and frameworks are served in the same turn. While a guarantee
//! is not met, a run has two stages: first the agents are shown to clients with unmet guarantees, then, shuffled
//! again, to all. Agents withheld by quota only are shown again when more is available for it. A call works as long
//! as its budget lasts; the run continues with the next call.
//!
//! Absent: the content of offers (`offer`), accounting (`ledger`), the order of clients (`ranking`), a clock.

use alloc::vec::Vec;
use core::time::Duration;

use tepui_fsm::{Budget, Mono};

use crate::Allocator;
use crate::agent::Urgency;
use crate::cycle::Cycle;
use crate::filters::End;
use crate::grant::{Allocation, Scope, Stage};
use crate::slab::AgentSlot;

/// How long released resources wait for more of them, unless the interval between batches is shorter.
const RELEASE_DELAY: Duration = Duration::from_millis(10);

impl Allocator {
    /// Free -> offered, for everything that changed since. Costs next to nothing without changes. The budget is
    /// checked after each piece of work, so that every call makes progress; if it ends, `deadline` is in the past.
    pub fn allocate(&mut self, now: Mono, budget: &mut Budget<'_>) -> Allocation {
        let mut decided = Allocation::default();
        if self.waits_for_agents(now) {
            return decided;
        }
        self.cycle.now = now;
        self.cycle.out_of_time = false;
        self.end_filters(now, budget);
        self.take_released(now);
        while !self.cycle.out_of_time && (self.cycle.is_running() || self.begin_run(now)) {
            if let Some((agent, scope)) = self.cycle.next() {
                self.allocate_agent(agent, scope, &mut decided);
                self.cycle.out_of_time = !budget();
            }
        }
        if !self.cycle.is_running() && !self.batch_due(now) {
            self.end_lingering_filters(budget);
        }
        self.cycle.guaranteed.clear();
        self.tree.in_run = self.cycle.is_running();
        self.note_shortage();
        decided
    }

    /// How many runs there were.
    pub fn runs(&self) -> u64 {
        self.cycle.runs
    }

    /// When `allocate` has something to do; in the past if it has it now.
    pub fn deadline(&self) -> Option<Mono> {
        if let Some(until) = self.recovering_until() {
            return Some(until);
        }
        let cycle = &self.cycle;
        let more = [
            cycle.out_of_time,
            cycle.is_running(),
            !cycle.turn.is_empty(),
            !cycle.fresh.is_empty(),
            !cycle.lingering.is_empty(),
        ];
        if more.contains(&true) {
            return Some(Mono(0));
        }
        let tick = cycle.last_batch.map_or(Mono(0), |last| last + self.options.allocation_interval);
        let batch = self.needs_batch().then_some(tick);
        let released = (!cycle.released.is_empty()).then(|| self.release_due());
        let ends = [self.filters.next_end(), self.inverse.next_end()];
        ends.into_iter().flatten().map(|end| end.max(tick)).chain(batch).chain(released).min()
    }

    /// Marks an agent for the next run.
    pub(crate) fn want(&mut self, slot: AgentSlot, urgency: Urgency) {
        let agent = &mut self.agents[slot];
        if urgency <= agent.urgency {
            return;
        }
        agent.urgency = urgency;
        match urgency {
            Urgency::Turn => self.cycle.turn.push(slot),
            Urgency::Release => self.cycle.released.push(slot),
            Urgency::Batch => self.cycle.batch.push(slot),
            Urgency::Nothing => (),
        }
    }

    /// In the past if no call has seen yet that something was released.
    fn release_due(&self) -> Mono {
        let delay = RELEASE_DELAY.min(self.options.allocation_interval);
        self.cycle.released_at.map_or(Mono(0), |at| at + delay)
    }

    /// Agents whose released resources have waited long enough take part in the next run.
    fn take_released(&mut self, now: Mono) {
        if self.cycle.released.is_empty() {
            return;
        }
        self.cycle.released_at.get_or_insert(now);
        if now >= self.release_due() {
            self.cycle.released_at = None;
            let Cycle { turn, released, .. } = &mut self.cycle;
            turn.append(released);
        }
    }

    fn needs_batch(&self) -> bool {
        let Cycle { batch, released, .. } = &self.cycle;
        !batch.is_empty() || !released.is_empty() || !self.tree.eased.is_empty() || self.surplus_grew()
    }

    fn batch_due(&self, now: Mono) -> bool {
        let interval = self.options.allocation_interval;
        self.cycle.last_batch.is_none_or(|last| now >= last + interval) && self.needs_batch()
    }

    /// Whether more is available for clients that were limited by headroom.
    fn surplus_grew(&self) -> bool {
        self.cycle.short_at.as_ref().is_some_and(|before| !before.contains(&self.tree.surplus()))
    }

    fn note_shortage(&mut self) {
        if core::mem::take(&mut self.cycle.short) {
            let surplus = self.tree.surplus();
            let least = match &self.cycle.short_at {
                Some(before) => surplus.clone() - &(surplus - before),
                None => surplus,
            };
            self.cycle.short_at = Some(least);
        }
    }

    fn end_filters(&mut self, now: Mono, budget: &mut Budget<'_>) {
        while !self.cycle.out_of_time
            && let Some((filter, served)) = self.filters.pop_due(now, self.cycle.batches)
        {
            match served {
                true => self.end_filter(filter),
                false => self.cycle.lingering.push(filter),
            }
            self.cycle.out_of_time = !budget();
        }
        while let Some(agent) = self.inverse.pop_due(now) {
            self.want(agent, Urgency::Batch);
        }
    }

    fn end_lingering_filters(&mut self, budget: &mut Budget<'_>) {
        while !self.cycle.out_of_time
            && let Some(filter) = self.cycle.lingering.pop()
        {
            self.end_filter(filter);
            self.cycle.out_of_time = !budget();
        }
    }

    fn end_filter(&mut self, filter: End) {
        if let Some(agent) = self.filters.remove(filter) {
            self.want(agent, Urgency::Batch);
        }
    }

    /// Queues the marked agents; false if there are none.
    fn begin_run(&mut self, now: Mono) -> bool {
        if self.batch_due(now) {
            self.begin_batch(now);
        }
        let mut changed = core::mem::take(&mut self.cycle.turn);
        self.cycle.shared.clear();
        self.cycle.lent.clear();
        changed.sort_unstable();
        for slot in changed.drain(..) {
            // Duplicates are queued once, removed agents never.
            if self.agents.get(slot).is_some_and(|agent| agent.urgency != Urgency::Nothing) {
                self.agents[slot].urgency = Urgency::Nothing;
                self.cycle.queue.push((slot, Scope::All));
            }
        }
        self.cycle.turn = changed;
        self.queue_for_fresh();
        let Cycle { stage, queue, second, rng, runs, .. } = &mut self.cycle;
        *runs += u64::from(!queue.is_empty());
        rng.shuffle(queue);
        *stage = Stage::Everyone;
        if !self.tree.required().is_empty() {
            *stage = Stage::Guarantees;
            second.clone_from(queue);
        }
        !queue.is_empty()
    }

    /// What waited for a batch takes part in the run that begins.
    fn begin_batch(&mut self, now: Mono) {
        self.cycle.last_batch = Some(now);
        self.cycle.batches += 1;
        if self.surplus_grew() {
            self.cycle.short_at = None;
            let slots: Vec<AgentSlot> = self.spacious.iter().collect();
            slots.into_iter().for_each(|slot| self.want(slot, Urgency::Batch));
        }
        self.cycle.released_at = None;
        let Cycle { turn, released, batch, .. } = &mut self.cycle;
        turn.append(released);
        turn.append(batch);
        for node in core::mem::take(&mut self.tree.eased) {
            let mut clients = Vec::new();
            self.tree.active_clients_below(node, &mut clients);
            clients.into_iter().for_each(|client| self.cycle.fresh.insert(client));
        }
    }

    fn queue_for_fresh(&mut self) {
        let fresh = core::mem::take(&mut self.cycle.fresh);
        if fresh.is_empty() {
            return;
        }
        self.borrowers.set_fresh(&fresh);
        self.tree.set_fresh(fresh);
        let Cycle { queue, .. } = &mut self.cycle;
        let queued = queue.len();
        let mut at = 0;
        for slot in self.spacious.iter() {
            // Both are sorted.
            while at < queued && queue[at].0 < slot {
                at += 1;
            }
            if at == queued || queue[at].0 != slot {
                queue.push((slot, Scope::Fresh));
            }
        }
    }
}
