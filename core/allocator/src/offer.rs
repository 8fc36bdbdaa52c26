//! From an agent's free resources to a grant.
//!
//! An agent is shown to frameworks in their order. Each is offered what is free, fit for it and within its role's quota,
//! unless that is too little or it does not want it; the next one sees what is left.
//!
//! Never: which agents are looked at (`cycle`), who comes next (`ranking`).

use alloc::vec::Vec;

use tepui_resources::{Resource, Resources, Role};

use crate::allocator::Agent;
use crate::booking::{is_plain, plain_quantities};
use crate::constraints::admits;
use crate::cycle::Stage;
use crate::ledger::Part;
use crate::order::Scope;
use crate::slab::{AgentSlot, ClientSlot};
use crate::tree::{Client, Wishes};
use crate::{Allocation, Allocator, Grant};

impl Allocator {
    pub(crate) fn look_at(&mut self, slot: AgentSlot, scope: Scope, decided: &mut Allocation) {
        let Some(agent) = self.agents.get(slot) else { return };
        if !agent.is_offerable() {
            return;
        }
        self.tree.settle_order();
        let stage = self.cycle.stage;
        let mut walk = core::mem::take(&mut self.cycle.walk);
        walk.restart(&self.tree);
        while !self.agents[slot].ledger.free().is_empty()
            && let Some(client) = walk.next(&self.tree, scope, stage)
        {
            if let Some(grant) = self.offer(slot, client) {
                self.add_grant(slot, client, grant, &mut decided.grants);
            }
        }
        self.cycle.walk = walk;
        if self.agents[slot].unavailable && stage == Stage::Everyone {
            self.ask_to_leave(slot, decided);
        }
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

    /// Offers what is free of the agent and fit for the client, unless that is too little or not wanted.
    fn offer(&mut self, slot: AgentSlot, client: ClientSlot) -> Option<Grant> {
        let (agent, entry) = (&self.agents[slot], &self.tree.clients[client]);
        let role = self.tree.role_of(client);
        if !self.suits(agent, entry, role) {
            return None;
        }
        let shared = self.cycle.shared.get(&slot);
        let fit = agent.ledger.free().filter(|resource| is_fit(resource, &entry.wishes, role, shared));
        let fit = self.within_quota(client, fit)?;
        let (agent, entry) = (&self.agents[slot], &self.tree.clients[client]);
        let least = entry.wishes.min_allocatable.as_ref().unwrap_or(&self.options.min_allocatable);
        if !least.allows(&fit.quantities()) || self.filters.covers(client, slot, &fit) {
            return None;
        }
        let (role, framework) = (self.tree.role_of(client).clone(), entry.framework);
        let agent = agent.id.clone();
        let shared = fit.shared();
        if !shared.is_empty() {
            *self.cycle.shared.entry(slot).or_default() += &shared;
        }
        let resources = fit.allocate(&role);
        self.hold(slot, framework, Part::Offered, &resources);
        Some(Grant { framework: self.frameworks[framework].id.clone(), role, agent, resources })
    }

    /// Whether any resources of this agent may go to this client at all.
    fn suits(&self, agent: &Agent, client: &Client, role: &Role) -> bool {
        let can = &client.wishes.capabilities;
        let gpus = can.gpu_resources || !agent.has_gpus || !self.options.filter_gpu_resources;
        let region = can.region_aware || !agent.remote;
        let roles = !can.multi_role || agent.spec.capabilities.multi_role;
        let depth = !role.is_nested() || agent.spec.capabilities.hierarchical_role;
        let wanted = client.wishes.groups.as_ref().is_none_or(|groups| admits(groups, &agent.spec));
        gpus && region && roles && depth && wanted
    }

    /// What quota leaves of it; `None` if it is not the client's turn in this stage.
    fn within_quota(&mut self, client: ClientSlot, fit: Resources) -> Option<Resources> {
        let node = self.tree.clients[client].node;
        let plain = plain_quantities(&fit);
        let stage = self.cycle.stage;
        if stage == Stage::Guarantees {
            let guaranteed = self.tree.guaranteed(node);
            let helps = plain.iter().any(|(name, _)| !guaranteed.get(name).is_zero());
            if !helps {
                return None;
            }
        }
        let allowance = self.tree.allowance(node, &plain, stage);
        if allowance.amount == plain {
            return Some(fit);
        }
        self.tree.mark_cut(node);
        self.cycle.short |= allowance.short_of_headroom;
        let rest = fit.filter(|resource| !is_plain(resource));
        Some(fit.filter(is_plain).shrink_to(&allowance.amount) + &rest)
    }
}

/// Whether the client may have this resource and can handle it. A shared one is offered once per run.
fn is_fit(resource: &Resource, wishes: &Wishes, role: &Role, shared: Option<&Resources>) -> bool {
    let can = &wishes.capabilities;
    resource.is_allocatable_to(role)
        && (can.revocable_resources || !resource.is_revocable())
        && (can.reservation_refinement || !resource.is_refined())
        && (!resource.is_shared()
            || (can.shared_resources && shared.is_none_or(|shared| shared.copies(resource) == 0)))
}
