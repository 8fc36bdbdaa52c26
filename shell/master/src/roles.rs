//! Roles as operators see them: their frameworks, and their part of the cluster, with all roles below them.

use std::collections::{BTreeMap, BTreeSet};

use tepui_core_master::State;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master::response::GetRoles;
use tepui_resources::{Name, Quantities, Resource, Resources, Revocable, Role};
use tepui_types::FrameworkId;

use crate::index::Index;
use crate::slack;

/// Every known role, by name.
pub(crate) struct Roles<'a> {
    pub by_name: BTreeMap<String, RoleEntry<'a>>,
    /// What all roles together have.
    pub all: Amounts,
    /// What is used in the whole cluster.
    pub used: Resources,
}

/// One role.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoleEntry<'a> {
    pub weight: f64,
    /// Subscribed in exactly this role, or holding something in it.
    pub frameworks: BTreeSet<&'a FrameworkId>,
    /// With everything in the roles below it.
    pub amounts: Amounts,
}

/// Resources of a role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Amounts {
    pub allocated: Quantities,
    pub offered: Quantities,
    pub reserved: Quantities,
    /// Of what is reserved: what is allocated.
    reserved_allocated: Quantities,
    /// Allocation slack in use by borrowers in this role.
    pub borrowed: Quantities,
}

impl Amounts {
    /// What counts for a quota: what there is, and what is kept for it.
    pub fn consumed(&self) -> Quantities {
        let mut consumed = self.allocated.clone();
        consumed += &self.reserved;
        consumed -= &self.reserved_allocated;
        consumed
    }

    pub fn allocated_and_offered(&self) -> Quantities {
        let mut sum = self.allocated.clone();
        sum += &self.offered;
        sum
    }
}

impl<'a> Roles<'a> {
    pub fn new(state: &'a State, index: &Index) -> Self {
        let mut roles = Self { by_name: BTreeMap::new(), all: Amounts::default(), used: Resources::new() };
        for role in state.weights.keys().chain(state.quotas.keys()) {
            roles.entry(role);
        }
        for framework in state.frameworks.values() {
            for role in framework.roles() {
                roles.entry(&role).frameworks.insert(&framework.id);
            }
            let sums = index.framework(&framework.id);
            roles.used += sums.used;
            // Borrowed resources are not counted.
            let own = |resource: &Resource| resource.revocable() != Revocable::AllocationSlack;
            for role in sums.used.by_allocation().keys() {
                roles.entry(role.as_str()).frameworks.insert(&framework.id);
            }
            for (role, used) in sums.used.filter(own).by_allocation() {
                roles.add(&role, &used.quantities(), |amounts| &mut amounts.allocated);
            }
            for (role, lent) in slack::lent(sums.used).by_allocation() {
                roles.add(&role, &lent.quantities(), |amounts| &mut amounts.borrowed);
            }
            for (role, offered) in sums.offered.filter(own).by_allocation() {
                roles.add(&role, &offered.quantities(), |amounts| &mut amounts.offered);
            }
            for (role, used) in sums.used.by_reservation() {
                roles.add(&role, &used.quantities(), |amounts| &mut amounts.reserved_allocated);
            }
        }
        for agent in state.agents.values() {
            for (role, reserved) in agent.total.by_reservation() {
                roles.add(&role, &reserved.quantities(), |amounts| &mut amounts.reserved);
            }
        }
        roles.restrict(state);
        roles.weigh(state);
        roles
    }

    /// v1's GET_ROLES.
    pub fn message(&self) -> GetRoles {
        let roles = self.by_name.iter().map(|(name, entry)| pb::Role {
            name: name.clone(),
            weight: entry.weight,
            frameworks: entry.frameworks.iter().map(|id| id.to_proto()).collect(),
            resources: scalars(&entry.amounts.allocated_and_offered()),
            ..Default::default()
        });
        GetRoles { roles: roles.collect(), ..Default::default() }
    }

    /// A role and, with it, the roles above it.
    fn entry(&mut self, role: &str) -> &mut RoleEntry<'a> {
        for ancestor in Role::from(role).ancestors() {
            self.by_name.entry(ancestor.to_owned()).or_default();
        }
        self.by_name.entry(role.to_owned()).or_default()
    }

    /// Adds to a role, to the roles above it, and to all.
    fn add(&mut self, role: &Role, amount: &Quantities, part: fn(&mut Amounts) -> &mut Quantities) {
        *part(&mut self.entry(role.as_str()).amounts) += amount;
        for ancestor in role.ancestors() {
            if let Some(entry) = self.by_name.get_mut(ancestor) {
                *part(&mut entry.amounts) += amount;
            }
        }
        *part(&mut self.all) += amount;
    }

    /// With a whitelist these roles are known, whether used or not, and no others.
    fn restrict(&mut self, state: &State) {
        let Some(allowed) = &state.roles else { return };
        let allowed: Vec<Role> = allowed.iter().map(|role| Role::from(role.as_str())).collect();
        let above = allowed.iter().flat_map(|role| role.ancestors());
        let known: BTreeSet<&str> = allowed.iter().map(Role::as_str).chain(above).chain(["*"]).collect();
        for role in &known {
            self.entry(role);
        }
        self.by_name.retain(|role, _| known.contains(role.as_str()));
    }

    fn weigh(&mut self, state: &State) {
        for (role, entry) in &mut self.by_name {
            entry.weight = state.weights.get(role).copied().unwrap_or(1.0);
        }
    }
}

/// The four usual scalars, those that are not zero.
fn scalars(amounts: &Quantities) -> Vec<pb::Resource> {
    let usual = [Name::Cpus, Name::Disk, Name::Gpus, Name::Mem];
    let named = usual.iter().map(|name| (name, amounts.get(name))).filter(|(_, amount)| !amount.is_zero());
    named
        .map(|(name, amount)| pb::Resource {
            name: name.as_str().to_owned(),
            r#type: pb::value::Type::SCALAR,
            scalar: pb::value::Scalar { value: amount.to_f64(), ..Default::default() }.into(),
            ..Default::default()
        })
        .collect()
}

/// How much there is in all.
pub(crate) fn total(state: &State) -> Resources {
    state.agents.values().map(|agent| agent.total.clone()).sum()
}
