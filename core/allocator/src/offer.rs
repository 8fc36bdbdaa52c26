//! From an agent's free resources to a grant.
//!
//! An agent is shown to frameworks in their order. Each is offered the free resources that fit it and its role's
//! quota, unless that is too little or filtered; the next one gets the rest. Idle reservations of other roles go to a
//! borrower that is chosen first (`lending`): ordinary resources and slack are one offer, made if either part is
//! enough and not filtered, and then both are in it.
//!
//! Absent: the order of agents (`cycle`) and of clients (`ranking`).

use alloc::vec::Vec;

use tepui_resources::{Resource, Resources, Role};

use crate::agent::Agent;
use crate::candidates::Candidates;
use crate::cycle::Unallocatable;
use crate::grant::{Scope, Stage};
use crate::marks::ClientTraits;
use crate::slab::{AgentSlot, ClientSlot, FrameworkSlot};
use crate::tally::{Booking, is_plain};
use crate::walk::Walk;
use crate::{Allocation, Allocator, Grant, InverseGrant};

/// What a client may have of an agent now.
enum Verdict {
    Nothing,
    /// All that is free and fit for it.
    All,
    Part(Resources),
}

/// How an offer to a client is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Alone,
    /// The client is lent slack of the same agent, which is enough for an offer: whatever else it may have is added.
    WithLoan,
}

impl Allocator {
    pub(crate) fn allocate_agent(&mut self, slot: AgentSlot, scope: Scope, decided: &mut Allocation) {
        let Some(agent) = self.agents.get(slot) else { return };
        if !agent.is_offerable() {
            return;
        }
        if self.tree.has_active_clients() {
            let lends = self.lends(slot);
            if lends || !self.agents[slot].ledger.free().is_empty() {
                self.tree.settle_order();
                self.tree.draw_order();
                self.show_unless_unallocatable(slot, scope, lends, decided);
            }
        }
        if self.agents[slot].unavailable && self.cycle.stage == Stage::Everyone {
            self.ask_to_leave(slot, decided);
        }
    }

    /// Shows the agent, unless an equal one had no taker since the last change.
    fn show_unless_unallocatable(
        &mut self,
        slot: AgentSlot,
        scope: Scope,
        lends: bool,
        decided: &mut Allocation,
    ) {
        if !lends && self.is_skipped(slot, scope) {
            return;
        }
        let is_offered = self.show(slot, scope, lends, decided);
        if !lends && !is_offered && self.is_ordinary(slot) {
            let Agent { spec, ledger, has_gpus, remote, .. } = &self.agents[slot];
            self.cycle.unallocatable = Some(Unallocatable {
                version: self.tree.version,
                scope,
                capabilities: spec.capabilities,
                has_gpus: *has_gpus,
                remote: *remote,
                free: ledger.free().clone(),
            });
        }
    }

    /// Whether the agent's takers depend on the properties in `Unallocatable` only.
    fn is_ordinary(&self, slot: AgentSlot) -> bool {
        self.cycle.stage == Stage::Everyone
            // What is required and what is available change without the tree.
            && self.tree.required().is_empty()
            && !self.tree.has_constraints()
            && self.filters.on(slot).is_empty()
            && self.cycle.shared.of(slot).is_empty()
    }

    /// Whether the agent, that has nothing to lend, would not be shown. The order must be settled.
    pub(crate) fn is_skipped(&self, slot: AgentSlot, scope: Scope) -> bool {
        self.is_ordinary(slot) && self.is_unallocatable(slot, scope)
    }

    /// Whether an equal agent had no taker. The order must be settled.
    fn is_unallocatable(&self, slot: AgentSlot, scope: Scope) -> bool {
        let Agent { spec, ledger, has_gpus, remote, .. } = &self.agents[slot];
        self.cycle.unallocatable.as_ref().is_some_and(|known| {
            (known.version, known.scope) == (self.tree.version, scope)
                && (known.has_gpus, known.remote) == (*has_gpus, *remote)
                && known.capabilities == spec.capabilities
                && known.free == *ledger.free()
        })
    }

    /// Shows the agent to all clients in scope, until nothing is left of it. Returns whether a client was offered
    /// ordinary resources.
    fn show(&mut self, slot: AgentSlot, scope: Scope, lends: bool, decided: &mut Allocation) -> bool {
        let mut candidates = core::mem::take(&mut self.cycle.candidates);
        let mut walk = core::mem::replace(self.walk_mut(scope), Walk::new(scope));
        let mut narrow = core::mem::replace(&mut self.cycle.narrow_walk, Walk::new(scope));
        walk.start(&self.tree, self.cycle.stage);
        candidates.begin(&mut self.agents[slot], &self.tree, self.options.filter_gpu_resources);
        let mut lending = self.lending(slot, lends);
        let borrower =
            lending.as_mut().and_then(|lending| self.borrower_of(slot, scope, &candidates, lending));
        let (mut left, mut is_offered) = (!self.is_spent(slot), false);
        let mut narrowed = self.narrow(scope, &candidates, &mut narrow);
        while left && let Some(client) = if narrowed { &mut narrow } else { &mut walk }.next(&self.tree) {
            let judged = if borrower == Some(client) { Judged::WithLoan } else { Judged::Alone };
            let Some(grant) = self.offer(slot, client, &mut candidates, judged) else { continue };
            let at = self.add_grant(slot, client, grant, &mut decided.grants);
            is_offered = true;
            if let Some(lending) = &mut lending {
                lending.served.push((client, at));
            }
            left = !self.is_spent(slot);
            if left {
                candidates.begin(&mut self.agents[slot], &self.tree, self.options.filter_gpu_resources);
                narrowed |= self.narrow(scope, &candidates, &mut narrow);
            }
        }
        if let Some(lending) = lending {
            self.lend(slot, scope, borrower, lending, &mut decided.grants);
        }
        *self.walk_mut(scope) = walk;
        self.cycle.narrow_walk = narrow;
        self.cycle.candidates = candidates;
        is_offered
    }

    /// If all that is left is reserved for one role, or for roles without clients, no other client is checked.
    fn narrow(&self, scope: Scope, candidates: &Candidates, walk: &mut Walk) -> bool {
        let owner = match candidates.owners() {
            [] => None,
            [owner] => Some(*owner),
            [_, _, ..] => return false,
        };
        let narrows = self.cycle.stage == Stage::Everyone && candidates.all_reserved;
        if narrows {
            walk.start_below(&self.tree, scope, owner);
        }
        narrows
    }

    fn walk_mut(&mut self, scope: Scope) -> &mut Walk {
        match scope {
            Scope::All => &mut self.cycle.walk,
            Scope::Fresh => &mut self.cycle.fresh_walk,
        }
    }

    /// Nothing is left in this run: what is shared is offered once.
    fn is_spent(&self, slot: AgentSlot) -> bool {
        let free = self.agents[slot].ledger.free();
        let offered = self.cycle.shared.of(slot);
        let was_offered = |shared: &Resource| offered.copies(shared) > 0;
        free.iter().all(|resource| resource.is_shared() && was_offered(resource))
    }

    /// A framework that was given something of the agent in the stage of guarantees gets one offer, not two. Returns
    /// the place of the grant.
    fn add_grant(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        grant: Grant,
        grants: &mut Vec<Grant>,
    ) -> usize {
        match (self.cycle.stage, self.cycle.guaranteed.get(&(slot, client))) {
            (Stage::Everyone, Some(first)) => {
                grants[*first].resources += &grant.resources;
                return *first;
            }
            (Stage::Everyone, None) => (),
            (Stage::Guarantees, _) => drop(self.cycle.guaranteed.insert((slot, client), grants.len())),
        }
        grants.push(grant);
        grants.len() - 1
    }

    /// Offers the agent's free resources that fit the client, unless that is too little or filtered.
    fn offer(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        candidates: &mut Candidates,
        judged: Judged,
    ) -> Option<Grant> {
        let client_traits = self.tree.client_traits(client);
        if candidates.is_unfit_for(client_traits.traits) {
            return None;
        }
        let fit = match self.verdict(slot, client, client_traits, candidates, judged) {
            (Verdict::All, kind) => candidates.take_fit(kind),
            (Verdict::Part(part), _) => Some(part),
            (Verdict::Nothing, _) => return None,
        };
        let (framework, role) = (self.tree.clients[client].framework, self.tree.role_of(client).clone());
        let (resources, shared) = self.agents[slot].ledger.grant(self.cycle.now, framework, fit, &role);
        self.cycle.shared.add(slot, &shared);
        self.tree.book_parts(client, slot, &resources, &shared, Booking::In);
        self.note_free(slot);
        Some(self.grant(slot, client, role, resources))
    }

    /// The booked grant, for the master.
    pub(crate) fn grant(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        role: Role,
        resources: Resources,
    ) -> Grant {
        let entry = &mut self.tree.clients[client];
        entry.last_offered = Some(self.cycle.now);
        let framework = &mut self.frameworks[entry.framework];
        framework.agents.insert(slot);
        Grant { framework: framework.id.clone(), role, agent: self.agents[slot].id.clone(), resources }
    }

    /// What the client may have of what is free, and its kind.
    fn verdict(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        client_traits: ClientTraits,
        candidates: &mut Candidates,
        judged: Judged,
    ) -> (Verdict, usize) {
        match self.kind_of(slot, client, client_traits, candidates, judged) {
            Some(kind) => (self.within_quota(slot, client, candidates, kind, judged), kind),
            None => (Verdict::Nothing, 0),
        }
    }

    /// What the client could have, if it could have anything and does not refuse it.
    fn kind_of(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        client_traits: ClientTraits,
        candidates: &mut Candidates,
        judged: Judged,
    ) -> Option<usize> {
        if judged == Judged::Alone && self.is_kept_from(slot, client_traits, candidates) {
            return None;
        }
        let kind = candidates.known_kind(&self.tree, client_traits).unwrap_or_else(|| {
            let free = self.agents[slot].ledger.free();
            let shared = self.cycle.shared.of(slot);
            let filters = self.filters.on(slot);
            candidates.add_kind(
                &self.tree,
                client_traits,
                free,
                shared,
                filters,
                &self.options.min_allocatable,
            )
        });
        let known = candidates.kind(kind);
        if judged == Judged::WithLoan {
            return (!known.is_empty()).then_some(kind);
        }
        if known.refused_by.contains(client) || !(known.enough || client_traits.own_least) {
            return None;
        }
        let least = self.tree.clients[client].terms.min_allocatable.as_ref();
        let enough = least.is_none_or(|least| least.allows(&known.quantities));
        (enough && self.accepts(slot, client)).then_some(kind)
    }

    /// Whether the client accepts the agent.
    pub(crate) fn accepts(&mut self, slot: AgentSlot, client: ClientSlot) -> bool {
        let Some(constraints) = &mut self.tree.clients[client].terms.constraints else { return true };
        constraints.known(slot).unwrap_or_else(|| constraints.judge(slot, &self.agents[slot].spec))
    }

    /// Whether the traits alone show that quota leaves the client too little.
    fn is_kept_from(&mut self, slot: AgentSlot, client: ClientTraits, candidates: &mut Candidates) -> bool {
        if !self.tree.has_quota() || client.own_least || self.cycle.stage == Stage::Guarantees {
            return false;
        }
        let full = self.tree.marks(client.top).full;
        let (free, least) = (self.agents[slot].ledger.free(), &self.options.min_allocatable);
        let hopeless = candidates.is_hopeless(client.top, full.union(candidates.short_of), free, least);
        if hopeless {
            let marks = self.tree.marks_mut(client.top);
            marks.cut |= marks.quotas > 0;
            self.cycle.short |= !candidates.short_of.is_empty();
        }
        hopeless
    }

    /// What quota leaves of it.
    fn within_quota(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        candidates: &Candidates,
        kind: usize,
        judged: Judged,
    ) -> Verdict {
        if !self.tree.has_quota() {
            return Verdict::All;
        }
        let entry = &self.tree.clients[client];
        let (node, kind, stage) = (entry.node, candidates.kind(kind), self.cycle.stage);
        if stage == Stage::Guarantees {
            let guaranteed = self.tree.guaranteed(node);
            if !kind.plain.iter().any(|(name, _)| !guaranteed.get(name).is_zero()) {
                return Verdict::Nothing;
            }
        }
        let allowance = self.tree.allowance(node, &kind.plain, stage);
        if allowance.amount == kind.plain {
            return Verdict::All;
        }
        self.tree.mark_cut(node);
        self.cycle.short |= allowance.short_of_headroom;
        // The most that can be left. Only if that is enough, it is worth finding out what it is.
        let most = kind.quantities.clone() - &kind.plain + &allowance.amount;
        let terms = &self.tree.clients[client].terms;
        let least = terms.min_allocatable.as_ref().unwrap_or(&self.options.min_allocatable);
        if judged == Judged::Alone && !least.allows(&most) {
            return Verdict::Nothing;
        }
        let fit = kind.fit.as_ref().unwrap_or_else(|| self.agents[slot].ledger.free());
        let rest = fit.filter(|resource| !is_plain(resource));
        let part = fit.filter(is_plain).shrink_to(&allowance.amount) + &rest;
        let offered = match judged {
            Judged::Alone => least.allows(&part.quantities()) && !self.filters.covers(client, slot, &part),
            Judged::WithLoan => !part.is_empty(),
        };
        if offered { Verdict::Part(part) } else { Verdict::Nothing }
    }
}

/// Inverse offers.
impl Allocator {
    /// Sends inverse offers to all holders of an agent that can receive one.
    pub(crate) fn ask_to_leave(&mut self, slot: AgentSlot, decided: &mut Allocation) {
        let holders: Vec<FrameworkSlot> = self.agents[slot].ledger.held().map(|(holder, _)| holder).collect();
        for holder in holders {
            let framework = &self.frameworks[holder];
            if framework.active && self.inverse.start_inverse_offer(slot, holder) {
                let (framework, agent) = (framework.id.clone(), self.agents[slot].id.clone());
                decided.inverse.push(InverseGrant { framework, agent });
            }
        }
    }
}
