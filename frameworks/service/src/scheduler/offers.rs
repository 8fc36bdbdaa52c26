//! Offers: held while there is work that they may be for, declined otherwise; suppress and revive.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tepui_fsm::Now;
use tepui_proto::mesos::v1 as pb;
use tepui_resources::Resources;
use tepui_types::{AgentId, OfferId};

use super::evaluate::{Held, hold};
use super::record::Pod;
use super::{Accept, AgentFacts, Effect, Out, Scheduler, Timer, WaitKey, millis};
use crate::plan::{self, Candidate, PodInstance, Status, Work};

/// Offers that are held at a time; further ones are declined.
const OFFERS_HELD_MAX: usize = 10_000;

/// Operations of one ACCEPT after which its offers are not used further.
const ACCEPT_OPERATIONS_MAX: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Offers {
    held: BTreeMap<OfferId, Held>,
    by_agent: BTreeMap<AgentId, BTreeSet<OfferId>>,
    by_number: BTreeMap<u64, OfferId>,
    next: u64,
}

impl Offers {
    fn insert(&mut self, offer: &pb::Offer) -> OfferId {
        self.next += 1;
        let held = hold(offer, self.next);
        let id = held.id.clone();
        self.by_number.insert(held.number, id.clone());
        self.by_agent.entry(held.site.agent.clone()).or_default().insert(id.clone());
        self.held.insert(id.clone(), held);
        id
    }

    fn remove(&mut self, id: &OfferId) -> Option<Held> {
        let held = self.held.remove(id)?;
        self.by_number.remove(&held.number);
        if let Some(others) = self.by_agent.get_mut(&held.site.agent) {
            others.remove(id);
            if others.is_empty() {
                self.by_agent.remove(&held.site.agent);
            }
        }
        Some(held)
    }

    pub fn of_agent(&self, agent: &AgentId) -> Vec<&Held> {
        let ids = self.by_agent.get(agent).into_iter().flatten();
        ids.filter_map(|id| self.held.get(id)).collect()
    }

    /// The first offer after a number.
    pub fn next_after(&self, number: u64) -> Option<&Held> {
        let (_, id) = self.by_number.range(number + 1..).next()?;
        self.held.get(id)
    }

    /// What is left of used offers stays with the first of them until they are accepted; the others are gone.
    fn reduce(&mut self, ids: &BTreeSet<OfferId>, consumed: &Resources) {
        let all: Resources =
            ids.iter().filter_map(|id| self.held.get(id)).map(|held| held.resources.clone()).sum();
        let left = all.checked_sub(consumed).unwrap_or_default();
        let mut ids = ids.iter();
        if let Some(first) = ids.next().and_then(|id| self.held.get_mut(id)) {
            first.resources = left;
        }
        ids.for_each(|id| drop(self.remove(id)));
    }

    pub fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    fn ids(&self) -> Vec<OfferId> {
        self.held.keys().cloned().collect()
    }
}

impl Scheduler {
    pub(super) fn on_offers(&mut self, now: Now, offers: &[pb::Offer], out: &mut Out) {
        self.state.counters.offers_received += offers.len() as u64;
        let mut declined = Vec::new();
        for offer in offers {
            if self.offers.held.len() >= OFFERS_HELD_MAX {
                declined.push(OfferId::new(offer.id.value.as_str()));
                continue;
            }
            self.state.absences.remove_mut(&offer.agent_id.value);
            let id = self.offers.insert(offer);
            self.timers.set(Timer::Offer(id), now.mono + self.config.timing.hold_offers);
        }
        self.rescan_offers = true;
        self.decline(declined, self.config.timing.refuse_unfit, out);
    }

    pub(super) fn take_offer(&mut self, id: &OfferId) -> Option<Held> {
        self.timers.clear(&Timer::Offer(id.clone()));
        self.offers.remove(id)
    }

    /// Uses offers of one agent. They are accepted at the end of the turn, so that several pods can use one offer.
    pub(super) fn use_offers(
        &mut self,
        agent: AgentId,
        offers: &BTreeSet<OfferId>,
        consumed: &Resources,
        operations: Vec<pb::offer::Operation>,
    ) {
        let held = offers.first().and_then(|id| self.offers.held.get(id));
        let role = held.map(|held| held.role.clone()).unwrap_or_default();
        self.offers.reduce(offers, consumed);
        let accept = self.accepts.entry((agent.clone(), role)).or_insert_with(|| Accept {
            agent,
            offers: Vec::new(),
            operations: Vec::new(),
            refuse: self.config.timing.refuse_rest,
        });
        let new: Vec<OfferId> = offers.iter().filter(|id| !accept.offers.contains(id)).cloned().collect();
        accept.offers.extend(new);
        for operation in &operations {
            let name = operation.r#type.map(|own| format!("{own:?}")).unwrap_or_default();
            *self.state.counters.operations.entry(name).or_default() += 1;
        }
        accept.operations.extend(operations);
        if accept.operations.len() >= ACCEPT_OPERATIONS_MAX {
            for offer in accept.offers.clone() {
                self.offers.remove(&offer);
            }
        }
    }

    pub(super) fn send_accepts(&mut self, out: &mut Out) {
        for (_, accept) in core::mem::take(&mut self.accepts) {
            for offer in &accept.offers {
                self.take_offer(offer);
            }
            self.state.counters.accepts += 1;
            out.effect(Effect::Accept(Box::new(accept)));
        }
    }

    pub(super) fn void_offers(&mut self) {
        for id in self.offers.ids() {
            self.take_offer(&id);
        }
        self.evaluated.clear();
        self.evaluated_new.clear();
        self.is_filtered = false;
    }

    pub(super) fn decline(&mut self, offers: Vec<OfferId>, refuse: Duration, out: &mut Out) {
        if offers.is_empty() {
            return;
        }
        self.is_filtered = true;
        let counters = &mut self.state.counters;
        let is_long = refuse >= self.config.timing.refuse_idle;
        let declines = if is_long { &mut counters.declines_long } else { &mut counters.declines_short };
        *declines += offers.len() as u64;
        for offer in &offers {
            self.take_offer(offer);
        }
        out.effect(Effect::Decline { offers, refuse });
    }

    pub(super) fn on_offer_timeout(&mut self, offer: &OfferId, out: &mut Out) {
        if self.offers.held.contains_key(offer) {
            self.decline(vec![offer.clone()], self.config.timing.refuse_unfit, out);
        }
    }

    pub(super) fn on_agent_failed(&mut self, agent: &AgentId, out: &mut Out) {
        let ids: Vec<OfferId> = self.offers.of_agent(agent).iter().map(|held| held.id.clone()).collect();
        for id in ids {
            self.take_offer(&id);
        }
        self.agents.remove(agent);
        self.forget_waits_of(agent);
        self.probe([agent.clone()], out);
    }

    fn forget_waits_of(&mut self, agent: &AgentId) {
        let keys: Vec<WaitKey> = self.state.waits.keys().cloned().collect();
        for key in keys {
            if let Some(wait) = self.state.waits.get_mut(&key) {
                Arc::make_mut(wait).remove(agent);
            }
        }
        self.changed = true;
    }

    pub(super) fn on_agents(&mut self, agents: Vec<AgentFacts>, out: &mut Out) {
        let known: BTreeSet<AgentId> = agents.iter().map(|agent| agent.id.clone()).collect();
        let gone: Vec<AgentId> = self.agents.keys().filter(|id| !known.contains(*id)).cloned().collect();
        for agent in &gone {
            self.forget_waits_of(agent);
        }
        self.agents = agents.into_iter().map(|agent| (agent.id.clone(), agent)).collect();
        self.check_placeable();
        self.leave_draining_agents(out);
    }

    /// Pods that were down before the drain, of which no status follows.
    fn leave_draining_agents(&mut self, out: &mut Out) {
        let is_draining = |pod: &Pod| {
            self.agents.get(&AgentId::new(pod.agent.as_str())).is_some_and(|agent| agent.is_draining)
        };
        let pods = self.state.pods.values().filter(|pod| is_draining(pod) && self.is_silent(&pod.instance));
        let pods: Vec<PodInstance> = pods.map(|pod| pod.instance.clone()).collect();
        for pod in pods {
            self.on_drained(&pod, out);
            self.release_replaced(&pod, out);
            self.recheck.insert(pod);
        }
    }

    /// Suppresses offers when nothing needs them, revives them when something does.
    pub(super) fn balance(&mut self, now: Now, out: &mut Out) {
        if !self.state.connected {
            return;
        }
        let work = self.waiting_steps(now);
        let has_new_work = work.iter().any(|step| self.known_work.binary_search(step).is_err());
        let needs_offers = !work.is_empty() || self.has_garbage();
        if needs_offers {
            self.is_revive_due |= self.state.suppressed || (has_new_work && self.is_filtered);
            if self.is_revive_due {
                self.revive(now, out);
            }
            if work.is_empty() && self.is_idle(now) {
                // Only agents with something to release are of interest.
                let is_needed = |held: &&Held| {
                    self.state.garbage.values().any(|own| own.agent == held.site.agent.as_str())
                };
                let others = self.offers.iter().filter(|held| !is_needed(held));
                let others: Vec<OfferId> = others.map(|held| held.id.clone()).collect();
                self.decline(others, self.config.timing.refuse_idle, out);
            }
        } else if self.is_idle(now) {
            self.is_revive_due = false;
            self.decline(self.offers.ids(), self.config.timing.refuse_idle, out);
            if !self.state.suppressed {
                self.state.suppressed = true;
                self.state.counters.suppresses += 1;
                self.changed = true;
                out.effect(Effect::Suppress);
            }
        }
        self.known_work = work;
    }

    fn revive(&mut self, now: Now, out: &mut Out) {
        let due = self.last_revive.map(|last| last + self.config.timing.revive_interval);
        if let Some(due) = due.filter(|due| *due > now.mono) {
            self.state.counters.revives_throttled += 1;
            self.timers.set(Timer::Revive, due);
            return;
        }
        self.is_revive_due = false;
        self.last_revive = Some(now.mono);
        self.is_filtered = false;
        self.state.suppressed = false;
        self.state.counters.revives += 1;
        self.changed = true;
        out.effect(Effect::Revive);
    }

    /// Steps that wait for an offer, in order.
    fn waiting_steps(&self, now: Now) -> Vec<Candidate> {
        let plans = &self.state.plans;
        let waits = |candidate: &&Candidate| {
            let step = plans[candidate.plan].step(candidate.phase, candidate.step);
            step.filter(|step| matches!(step.work, Work::Launch { .. })).is_some_and(|step| {
                let status = step.status(millis(now), &self.state.backoff);
                matches!(status, Status::Pending | Status::Prepared)
            })
        };
        self.candidates.iter().filter(waits).copied().collect()
    }

    /// Whether no plan is on its way: all are complete, delayed, held by an operator, or cannot go on.
    fn is_idle(&self, now: Now) -> bool {
        let status = |plan: &plan::Plan| plan.status(millis(now), &self.state.backoff);
        self.state.plans.iter().map(status).all(|status| match status {
            Status::Complete | Status::Delayed | Status::Waiting | Status::Error => true,
            Status::Pending | Status::Prepared | Status::Starting | Status::Started | Status::InProgress => {
                false
            }
        })
    }
}
