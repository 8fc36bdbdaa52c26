//! The allocator's interface: everything the master tells it and asks it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use tepui_fsm::Mono;
use tepui_resources::{Resources, Role};
use tepui_types::{AgentId, FrameworkId};

use crate::{AgentSpec, FrameworkSpec, Options};

/// Free resources of an agent that are now offered to a framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub framework: FrameworkId,
    pub role: Role,
    pub agent: AgentId,
    /// Allocated to `role`.
    pub resources: Resources,
}

/// A framework that is to be asked to leave an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InverseGrant {
    pub framework: FrameworkId,
    pub agent: AgentId,
}

/// What one call of `allocate` decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    pub grants: Vec<Grant>,
    pub inverse: Vec<InverseGrant>,
}

/// Whose resources a conversion changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder<'a> {
    /// Nobody's: operator calls.
    Free,
    Offered(&'a FrameworkId),
    Used(&'a FrameworkId),
}

/// What one framework holds of one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    pub offered: Resources,
    pub used: Resources,
}

#[derive(Clone, Debug)]
pub struct Allocator {
    options: Options,
}

impl Allocator {
    pub fn new(options: Options) -> Self {
        Self { options }
    }

    // Agents.

    /// `used`: what is running there, allocated to roles, by framework; a framework not known yet gets an inactive place.
    pub fn add_agent(&mut self, id: AgentId, spec: AgentSpec, used: Vec<(FrameworkId, Resources)>) {
        unimplemented!()
    }
    /// New totals, attributes, capabilities. Changed attributes drop the filters on it. Returns whether anything changed.
    pub fn update_agent(&mut self, id: &AgentId, spec: AgentSpec) -> bool {
        unimplemented!()
    }
    /// Forgets it and everything held on it.
    pub fn remove_agent(&mut self, id: &AgentId) {
        unimplemented!()
    }
    /// A new agent is active.
    pub fn activate_agent(&mut self, id: &AgentId) {
        unimplemented!()
    }
    /// Nothing more is offered of it; what is held stays held.
    pub fn deactivate_agent(&mut self, id: &AgentId) {
        unimplemented!()
    }
    /// Its unavailability was set (true), changed (true again) or taken away (false): inverse offers begin anew or end.
    pub fn set_unavailable(&mut self, id: &AgentId, unavailable: bool) {
        unimplemented!()
    }

    // Frameworks.

    pub fn add_framework(&mut self, spec: FrameworkSpec) {
        unimplemented!()
    }
    /// Replaces everything; filters of roles it left are dropped. Offers of these roles are the caller's to take back.
    pub fn update_framework(&mut self, spec: FrameworkSpec) {
        unimplemented!()
    }
    /// Forgets it; everything it held is free.
    pub fn remove_framework(&mut self, id: &FrameworkId) {
        unimplemented!()
    }
    pub fn activate_framework(&mut self, id: &FrameworkId) {
        unimplemented!()
    }
    /// It is offered nothing, and its filters are dropped; what it holds it holds.
    pub fn deactivate_framework(&mut self, id: &FrameworkId) {
        unimplemented!()
    }
    /// No roles: all of them.
    pub fn suppress(&mut self, id: &FrameworkId, roles: &[Role]) {
        unimplemented!()
    }
    /// No roles: all of them. Drops the filters of these roles and all of its inverse filters.
    pub fn revive(&mut self, id: &FrameworkId, roles: &[Role]) {
        unimplemented!()
    }
    /// Weights by role; roles that are not named keep theirs.
    pub fn set_weights(&mut self, weights: &BTreeMap<Role, f64>) {
        unimplemented!()
    }

    // Moves. Resources carry the role they are allocated to.

    /// The end of a filter for `refuse_seconds` as a framework gave it (unset: 5 s); `None`: no filter.
    pub fn refusal(&self, now: Mono, refuse_seconds: Option<f64>) -> Option<Mono> {
        unimplemented!()
    }
    /// Offered -> free, and not offered to that framework in that role again before `refused_until`.
    pub fn give_back(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        resources: &Resources,
        refused_until: Option<Mono>,
    ) {
        unimplemented!()
    }
    /// Offered -> used. A shared resource stays offered as well, until it is given back.
    pub fn launch(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        unimplemented!()
    }
    /// Used -> free.
    pub fn release(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        unimplemented!()
    }
    /// Used though nobody offered it: learned from an agent.
    pub fn occupy(&mut self, agent: &AgentId, framework: &FrameworkId, resources: &Resources) {
        unimplemented!()
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
        unimplemented!()
    }

    // Decisions.

    /// Free -> offered, for everything that changed since. Cheap if nothing did.
    pub fn allocate(&mut self, now: Mono) -> Allocation {
        unimplemented!()
    }
    /// When `allocate` has something to do; in the past if it has it now.
    pub fn deadline(&self) -> Option<Mono> {
        unimplemented!()
    }
    /// The framework answered an inverse offer, or it was taken back; it gets no other before `refused_until`.
    pub fn inverse_answered(
        &mut self,
        agent: &AgentId,
        framework: &FrameworkId,
        refused_until: Option<Mono>,
    ) {
        unimplemented!()
    }

    // Questions.

    pub fn total(&self, agent: &AgentId) -> Option<&Resources> {
        unimplemented!()
    }
    pub fn free(&self, agent: &AgentId) -> Option<&Resources> {
        unimplemented!()
    }
    pub fn held(&self, agent: &AgentId, framework: &FrameworkId) -> Option<&Held> {
        unimplemented!()
    }
    /// Whether the books are right; what is wrong if not.
    pub fn audit(&self) -> Result<(), alloc::string::String> {
        unimplemented!()
    }
}
