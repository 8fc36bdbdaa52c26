//! Transitions of resources between grants: declined, launched, released, occupied, converted.
//!
//! Fed by the master, which has the offers and tasks. Resources carry their allocation role. A move of resources that
//! are not held is the master's mistake: in tests it panics, else it moves what is present.

use core::time::Duration;

use tepui_fsm::Mono;
use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::Allocator;
use crate::agent::Urgency;
use crate::held::{Held, Part};
use crate::slab::{AgentSlot, FrameworkSlot};
use crate::slack_books::is_slack;
use crate::tally::Booking;

/// Default duration of a decline filter.
const REFUSE_SECONDS_DEFAULT: f64 = 5.0;
/// The longest refusal; more is cut to this.
const REFUSE_SECONDS_MAX: f64 = 365.0 * 24.0 * 3600.0;

/// The holder of the resources of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder<'a> {
    /// None: operator calls.
    Free,
    Offered(&'a FrameworkId),
    Used(&'a FrameworkId),
}

impl Allocator {
    /// The end of the filter for `refuse_seconds` as a framework gave it; `None`: no filter.
    pub fn refusal(&self, now: Mono, refuse_seconds: Option<f64>) -> Option<Mono> {
        let seconds = refuse_seconds.filter(|seconds| *seconds >= 0.0).unwrap_or(REFUSE_SECONDS_DEFAULT);
        if seconds == 0.0 {
            return None;
        }
        let refused = Duration::from_secs_f64(seconds.min(REFUSE_SECONDS_MAX));
        Some(now + refused.max(self.options.allocation_interval))
    }

    /// Offered -> free, and not offered to that framework in that role again before `refused_until`.
    pub fn decline(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        resources: &Resources,
        refused_until: Option<Mono>,
    ) {
        let Some((agent, framework)) = self.pair(agent, framework) else { return };
        self.unhold(agent, framework, Part::Offered, resources);
        self.want(agent, Urgency::Batch);
        let (Some(until), Some(role)) = (refused_until, role_of(resources)) else { return };
        let client =
            self.tree.client(framework, &role).filter(|client| self.tree.clients[*client].subscribed);
        if let Some(client) = client.filter(|_| self.frameworks[framework].active) {
            let refused = resources.clone().unallocate();
            self.filters.counts.name(client, &role);
            self.filters.add(client, agent, refused, until, self.cycle.batches());
        }
    }

    /// Offered -> used. A shared resource stays offered as well, until the offer ends.
    pub fn launch(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        let Some((agent, framework)) = self.pair(agent, framework) else { return };
        let shared = self.agents[agent].ledger.launch(framework, resources);
        if resources.iter().any(is_slack) {
            self.agents[agent].served.clear();
        }
        self.note_free(agent);
        for (role, more) in shared.by_allocation() {
            let client = self.tree.ensure_client(framework, &role);
            self.tree.book(client, agent, &more, Booking::In);
        }
    }

    /// Used -> free. Unlike an offer, a task terminates once: there is no need to wait for the next batch.
    pub fn release(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        let Some((agent, framework)) = self.pair(agent, framework) else { return };
        self.unhold(agent, framework, Part::Used, resources);
        self.want(agent, Urgency::Release);
    }

    /// Used without an offer: reported by an agent. An unknown framework gets an inactive entry.
    pub fn occupy(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        let Some(agent) = self.agent_slot(agent) else { return };
        let framework = self.ensure_framework(framework);
        self.hold(agent, framework, Part::Used, resources);
        self.note_free(agent);
        if self.agents[agent].unavailable {
            self.want(agent, Urgency::Batch);
        }
    }

    /// An operation turned `consumed` into `converted`: in the holder's part and in the agent's total.
    /// False, and nothing happens, if the holder does not hold `consumed`.
    pub fn convert(
        &mut self,
        agent: &AgentId,
        holder: Holder<'_>,
        consumed: &Resources,
        converted: &Resources,
    ) -> bool {
        let Some(slot) = self.agent_slot(agent) else { return false };
        let (framework, part) = match holder {
            Holder::Free => (None, Part::Offered),
            Holder::Offered(framework) => (Some(framework), Part::Offered),
            Holder::Used(framework) => (Some(framework), Part::Used),
        };
        let holder = match framework.map(|framework| self.framework_slot(framework)) {
            None => None,
            Some(Some(framework)) => Some((framework, part)),
            Some(None) => return false,
        };
        let ledger = &mut self.agents[slot].ledger;
        // With a debt, less may leave the total than is converted.
        let whole = ledger.has_debt().then(|| ledger.total().clone());
        let lendable = ledger.lendable().clone();
        if !ledger.convert(holder, consumed, converted) {
            return false;
        }
        self.borrowers.tree.change_totals(&lendable, ledger.lendable());
        let (less, more) = match &whole {
            Some(before) => (before, ledger.total()),
            None => (consumed, converted),
        };
        self.tree.book_reservations(more, Booking::In);
        self.tree.book_reservations(less, Booking::Out);
        self.tree.change_totals(&less.scalar_quantities(), &more.scalar_quantities());
        self.note_free(slot);
        match holder {
            None => self.want(slot, Urgency::Batch),
            Some((framework, _)) => {
                self.book(slot, framework, converted, Booking::In);
                self.book(slot, framework, consumed, Booking::Out);
                self.note_holding(slot, framework);
                if self.agents[slot].ledger.may_lend() {
                    self.want(slot, Urgency::Batch);
                }
            }
        }
        true
    }

    /// The framework answered an inverse offer, or it was rescinded; the next one comes after `refused_until`.
    pub fn inverse_answered(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        refused_until: Option<Mono>,
    ) {
        let Some((agent, framework)) = self.pair(agent, framework) else { return };
        self.inverse.answered(agent, framework, refused_until);
        if refused_until.is_none() {
            self.want(agent, Urgency::Batch);
        }
    }
}

/// Questions.
impl Allocator {
    pub fn total(&self, agent: &AgentId) -> Option<&Resources> {
        Some(self.agents[self.agent_slot(agent)?].ledger.total())
    }

    pub fn free(&self, agent: &AgentId) -> Option<&Resources> {
        Some(self.agents[self.agent_slot(agent)?].ledger.free())
    }

    /// The holders of an agent's resources.
    pub fn holdings(&self, agent: &AgentId) -> impl Iterator<Item = (&FrameworkId, &Held)> + '_ {
        let held = self.agent_slot(agent).map(|slot| self.agents[slot].ledger.held());
        held.into_iter().flatten().map(|(slot, held)| (&self.frameworks[slot].id, held))
    }

    pub fn held(&self, agent: &AgentId, framework: &FrameworkId) -> Option<&Held> {
        let agent = self.agent_slot(agent)?;
        self.agents[agent].ledger.held_by(self.framework_slot(framework)?)
    }
}

/// The same moves by slots, for ledger, tree and index together.
impl Allocator {
    /// Must be followed by `note_free`.
    pub(crate) fn hold(
        &mut self,
        agent: AgentSlot,
        framework: FrameworkSlot,
        part: Part,
        resources: &Resources,
    ) {
        self.agents[agent].ledger.add(framework, part, resources);
        self.book(agent, framework, resources, Booking::In);
        self.note_holding(agent, framework);
    }

    fn unhold(&mut self, agent: AgentSlot, framework: FrameworkSlot, part: Part, resources: &Resources) {
        let removed = self.agents[agent].ledger.remove(framework, part, resources);
        self.note_free(agent);
        self.book(agent, framework, &removed, Booking::Out);
        self.note_holding(agent, framework);
    }

    /// The framework holds nothing on this agent any more.
    pub(crate) fn drop_held(&mut self, agent: AgentSlot, framework: FrameworkSlot) {
        let held = self.agents[agent].ledger.held_by(framework).cloned().unwrap_or_default();
        self.unhold(agent, framework, Part::Offered, &held.offered);
        self.unhold(agent, framework, Part::Used, &held.used);
    }

    /// What is borrowed counts among borrowers only.
    fn book(&mut self, agent: AgentSlot, framework: FrameworkSlot, resources: &Resources, way: Booking) {
        if resources.iter().any(is_slack) {
            self.book_loan(agent, framework, &resources.filter(is_slack), way);
            let own = resources.filter(|resource| !is_slack(resource));
            return self.book(agent, framework, &own, way);
        }
        match role_of(resources).filter(|role| in_one_role(resources, role)) {
            Some(role) => self.book_role(agent, framework, &role, resources, way),
            None => {
                for (role, part) in resources.by_allocation() {
                    self.book_role(agent, framework, &role, &part, way);
                }
            }
        }
    }

    fn book_role(
        &mut self,
        agent: AgentSlot,
        framework: FrameworkSlot,
        role: &Role,
        resources: &Resources,
        way: Booking,
    ) {
        let client = self.tree.ensure_client(framework, role);
        self.tree.book(client, agent, resources, way);
        if way == Booking::Out {
            self.drop_client_if_unused(client);
        }
    }

    fn note_holding(&mut self, agent: AgentSlot, framework: FrameworkSlot) {
        let holds = self.agents[agent].ledger.held_by(framework).is_some();
        self.frameworks[framework].agents.set(agent, holds);
    }

    fn pair(&self, agent: &AgentId, framework: &FrameworkId) -> Option<(AgentSlot, FrameworkSlot)> {
        Some((self.agent_slot(agent)?, self.framework_slot(framework)?))
    }
}

/// The role that the first of these is allocated to.
fn role_of(resources: &Resources) -> Option<Role> {
    resources.iter().next()?.allocation().cloned()
}

fn in_one_role(resources: &Resources, role: &Role) -> bool {
    resources.iter().all(|resource| resource.allocation() == Some(role))
}
