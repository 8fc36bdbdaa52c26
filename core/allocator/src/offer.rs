//! From an agent's free resources to a grant.
//!
//! An agent is shown to frameworks in their order. Each is offered what is free, fit for it and within its role's quota,
//! unless that is too little or it does not want it; the next one sees what is left.
//!
//! Never: which agents are looked at (`cycle`), who comes next (`ranking`).

use alloc::vec::Vec;

use tepui_resources::{Resource, Resources};

use crate::allocator::Wants;
use crate::booking::{Booking, is_plain};
use crate::cycle::Stage;
use crate::look::{Lending, Look};
use crate::marks::{Glance, Traits};
use crate::slab::{AgentSlot, ClientSlot};
use crate::walk::{Scope, Walk};
use crate::{Allocation, Allocator, Grant};

/// What a client may have of an agent now.
enum Verdict {
    Nothing,
    /// All that is free and fit for it.
    All,
    Part(Resources),
}

impl Allocator {
    pub(crate) fn look_at(&mut self, slot: AgentSlot, scope: Scope, decided: &mut Allocation) {
        let Some(agent) = self.agents.get(slot) else { return };
        if !agent.is_offerable() {
            return;
        }
        if self.tree.has_active_clients() {
            let lends = self.lends(slot);
            if lends || !self.agents[slot].ledger.free().is_empty() {
                self.show(slot, scope, lends, decided);
            }
        }
        if self.agents[slot].unavailable && self.cycle.stage == Stage::Everyone {
            self.ask_to_leave(slot, decided);
        }
    }

    /// Shows the agent to everybody in scope, until nothing is left of it.
    fn show(&mut self, slot: AgentSlot, scope: Scope, lends: bool, decided: &mut Allocation) {
        let mut look = core::mem::take(&mut self.cycle.look);
        let mut walk = core::mem::replace(self.walk_mut(scope), Walk::new(scope));
        let mut narrow = core::mem::replace(&mut self.cycle.narrow_walk, Walk::new(scope));
        self.tree.settle_order();
        self.tree.draw_order();
        walk.start(&self.tree, self.cycle.stage);
        look.begin(&mut self.agents[slot], &self.tree, self.options.filter_gpu_resources);
        look.lending = self.lending(slot, lends);
        let mut left = !self.is_spent(slot) || look.lending.is_some();
        let mut narrowed = self.narrow(scope, &look, &mut narrow);
        while left && let Some(client) = if narrowed { &mut narrow } else { &mut walk }.next(&self.tree) {
            let Some(grant) = self.offer(slot, client, &mut look) else { continue };
            self.add_grant(slot, client, grant, &mut decided.grants);
            left = !self.is_spent(slot) || look.lending.is_some();
            if left {
                look.begin(&mut self.agents[slot], &self.tree, self.options.filter_gpu_resources);
                narrowed |= self.narrow(scope, &look, &mut narrow);
            }
        }
        *self.walk_mut(scope) = walk;
        self.cycle.narrow_walk = narrow;
        self.cycle.look = look;
    }

    /// If all that is left is reserved for one role, or for roles that nobody is in, nobody else needs to be asked.
    fn narrow(&self, scope: Scope, look: &Look, walk: &mut Walk) -> bool {
        let owner = match look.owners() {
            [] => None,
            [owner] => Some(*owner),
            [_, _, ..] => return false,
        };
        let narrows = self.cycle.stage == Stage::Everyone && look.lending.is_none() && look.all_reserved;
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

    /// A framework that was given something of the agent in the stage of guarantees gets one offer, not two.
    fn add_grant(&mut self, slot: AgentSlot, client: ClientSlot, grant: Grant, grants: &mut Vec<Grant>) {
        match (self.cycle.stage, self.cycle.guaranteed.get(&(slot, client))) {
            (Stage::Everyone, Some(first)) => grants[*first].resources += &grant.resources,
            (Stage::Everyone, None) => grants.push(grant),
            (Stage::Guarantees, _) => {
                self.cycle.guaranteed.insert((slot, client), grants.len());
                grants.push(grant);
            }
        }
    }

    /// What is idle of this agent is lent to one framework in a run, and not before guarantees are served.
    fn lending(&mut self, slot: AgentSlot, lends: bool) -> Option<Lending> {
        let may = self.cycle.stage == Stage::Everyone && lends && !self.cycle.lent.contains(slot);
        may.then(|| Lending::new(&self.tree, &mut self.agents[slot]))
    }

    /// Offers what is free of the agent or can be lent, and fit for the client, unless that is too little or not wanted.
    fn offer(&mut self, slot: AgentSlot, client: ClientSlot, look: &mut Look) -> Option<Grant> {
        let glance = self.tree.glance(client);
        if look.is_unfit_for(glance.traits) {
            return None;
        }
        let loan = self.loan(slot, client, glance, look);
        let fit = match self.verdict(slot, client, glance, look) {
            (Verdict::All, kind) => Some(look.take_fit(kind)),
            (Verdict::Part(part), _) => Some(Some(part)),
            (Verdict::Nothing, _) if loan.is_none() => return None,
            (Verdict::Nothing, _) => None,
        };
        let (framework, role) = (self.tree.clients[client].framework, self.tree.role_of(client).clone());
        let (now, ledger) = (self.cycle.now, &mut self.agents[slot].ledger);
        let mut resources = Resources::new();
        let lent = loan.is_some();
        if let Some(fit) = fit {
            let shared;
            (resources, shared) = ledger.grant(now, framework, fit, &role);
            self.cycle.shared.add(slot, &shared);
            self.tree.book_parts(client, slot, &resources, &shared, Booking::In);
        }
        if let Some(loan) = loan {
            let slack = loan.allocate(&role);
            self.agents[slot].ledger.lend(now, framework, &slack);
            self.cycle.lent.insert(slot);
            look.lending = None;
            resources += slack;
        }
        self.note_free(slot);
        // What this role could not borrow, being its own, another one may in the next run.
        if lent && self.agents[slot].ledger.may_lend() {
            self.want(slot, Wants::Batch);
        }
        self.frameworks[framework].agents.insert(slot);
        self.tree.clients[client].last_offered = Some(now);
        let (framework, agent) = (self.frameworks[framework].id.clone(), self.agents[slot].id.clone());
        Some(Grant { framework, role, agent, resources })
    }

    /// What the client could borrow, if that is enough and it does not refuse it.
    fn loan(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        glance: Glance,
        look: &mut Look,
    ) -> Option<Resources> {
        let lending = look.lending.as_mut().filter(|_| glance.traits.has_any(Traits::REVOCABLE))?;
        let (filters, least) = (self.filters.on(slot), &self.options.min_allocatable);
        let loan = lending.loan(&self.tree, glance.node, filters, least);
        let enough = match &self.tree.clients[client].wishes.min_allocatable {
            None => loan.enough,
            Some(own) => own.allows(&loan.quantities),
        };
        let taken = enough && !loan.refused_by.contains(client) && self.is_wanted(slot, client);
        taken.then(|| loan.slack.clone())
    }

    /// What the client may have of what is free, and its kind.
    fn verdict(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        glance: Glance,
        look: &mut Look,
    ) -> (Verdict, usize) {
        match self.kind_of(slot, client, glance, look) {
            Some(kind) => (self.within_quota(slot, client, look, kind), kind),
            None => (Verdict::Nothing, 0),
        }
    }

    /// What the client could have, if it could have anything and does not refuse it.
    fn kind_of(
        &mut self,
        slot: AgentSlot,
        client: ClientSlot,
        glance: Glance,
        look: &mut Look,
    ) -> Option<usize> {
        if self.is_kept_from(slot, glance, look) {
            return None;
        }
        let kind = look.known_kind(&self.tree, glance).unwrap_or_else(|| {
            let free = self.agents[slot].ledger.free();
            let shared = self.cycle.shared.of(slot);
            let filters = self.filters.on(slot);
            look.add_kind(&self.tree, glance, free, shared, filters, &self.options.min_allocatable)
        });
        let known = look.kind(kind);
        if known.refused_by.contains(client) || !(known.enough || glance.own_least) {
            return None;
        }
        let least = self.tree.clients[client].wishes.min_allocatable.as_ref();
        let enough = least.is_none_or(|least| least.allows(&known.quantities));
        (enough && self.is_wanted(slot, client)).then_some(kind)
    }

    /// Whether the agent is one that the client wants to hear of.
    fn is_wanted(&mut self, slot: AgentSlot, client: ClientSlot) -> bool {
        let Some(constraints) = &mut self.tree.clients[client].wishes.constraints else { return true };
        constraints.known(slot).unwrap_or_else(|| constraints.judge(slot, &self.agents[slot].spec))
    }

    /// Whether it can be seen at a glance that quota leaves the client too little.
    fn is_kept_from(&mut self, slot: AgentSlot, client: Glance, look: &mut Look) -> bool {
        if !self.tree.has_quota() || client.own_least || self.cycle.stage == Stage::Guarantees {
            return false;
        }
        let full = self.tree.marks(client.top).full;
        let (free, least) = (self.agents[slot].ledger.free(), &self.options.min_allocatable);
        let hopeless = look.is_hopeless(client.top, full.union(look.short_of), free, least);
        if hopeless {
            let marks = self.tree.marks_mut(client.top);
            marks.cut |= marks.quotas > 0;
            self.cycle.short |= !look.short_of.is_empty();
        }
        hopeless
    }

    /// What quota leaves of it.
    fn within_quota(&mut self, slot: AgentSlot, client: ClientSlot, look: &Look, kind: usize) -> Verdict {
        if !self.tree.has_quota() {
            return Verdict::All;
        }
        let entry = &self.tree.clients[client];
        let (node, kind, stage) = (entry.node, look.kind(kind), self.cycle.stage);
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
        let wishes = &self.tree.clients[client].wishes;
        let least = wishes.min_allocatable.as_ref().unwrap_or(&self.options.min_allocatable);
        if !least.allows(&most) {
            return Verdict::Nothing;
        }
        let fit = kind.fit.as_ref().unwrap_or_else(|| self.agents[slot].ledger.free());
        let rest = fit.filter(|resource| !is_plain(resource));
        let part = fit.filter(is_plain).shrink_to(&allowance.amount) + &rest;
        match least.allows(&part.quantities()) && !self.filters.covers(client, slot, &part) {
            true => Verdict::Part(part),
            false => Verdict::Nothing,
        }
    }
}
