//! Quota not exceeded: no offer takes a role above its limit.
//!
//! A role may be above its limit for other reasons: the limit was set later, or an agent reregistered with its tasks.

use std::collections::BTreeSet;

use tepui_core_master::{Master, State};
use tepui_resources::{Name, Quantities, Resources, Role, Scalar};
use tepui_types::{OfferId, TaskStateExt};

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct QuotaNotExceeded {
    /// Offers that were out after the turn before.
    out: BTreeSet<OfferId>,
}

impl Check for QuotaNotExceeded {
    fn name(&self) -> &'static str {
        "quota_not_exceeded"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterTurn(master) => self.turn(master),
            _ => Ok(()),
        }
    }
}

impl QuotaNotExceeded {
    fn turn(&mut self, master: &Master) -> Result<(), String> {
        let state = master.state();
        let before = std::mem::replace(&mut self.out, state.offers.keys().cloned().collect());
        let new: Vec<_> = state.offers.values().filter(|offer| !before.contains(&offer.id)).collect();
        for (role, config) in state.quotas.iter().filter(|_| !new.is_empty()) {
            let role = Role::from(role.as_str());
            let consumed = consumed(state, &role);
            for (name, limit) in &config.limits {
                let name = Name::new(name);
                let limit = Scalar::from_f64(limit.value).unwrap_or(Scalar::ZERO);
                let of_role = new.iter().filter(|offer| is_below(&offer.role, &role));
                let mut offered = of_role.filter(|offer| !plain(&offer.resources).get(&name).is_zero());
                if consumed.get(&name) > limit
                    && let Some(offer) = offered.next()
                {
                    let (has, limit) = (consumed.get(&name).to_f64(), limit.to_f64());
                    return Err(format!("{} takes {role} to {has} of {limit} {}", offer.id, name.as_str()));
                }
            }
        }
        Ok(())
    }
}

fn is_below(role: &str, above: &Role) -> bool {
    let role = Role::from(role);
    role == *above || role.is_strict_subrole_of(above)
}

/// What is neither reserved nor lent.
fn plain(resources: &Resources) -> Quantities {
    resources.unreserved().non_revocable().scalar_quantities()
}

/// The resources allocated and reserved to the role and its subroles.
fn consumed(state: &State, role: &Role) -> Quantities {
    let mut sum = Quantities::new();
    let mut hold = |resources: &Resources| {
        for (holder, part) in resources.by_allocation() {
            if is_below(holder.as_str(), role) {
                sum += &plain(&part);
            }
        }
    };
    state.offers.values().for_each(|offer| hold(&offer.resources));
    let tasks = state.frameworks.values().flat_map(|framework| framework.tasks.values());
    tasks.filter(|task| !task.task.state.is_terminal()).for_each(|task| hold(&task.resources));
    let executors = state.agents.values().flat_map(|agent| agent.executors.values());
    executors.for_each(|executor| hold(&executor.resources));
    for agent in state.agents.values() {
        for (owner, reserved) in agent.total.non_revocable().by_reservation() {
            if is_below(owner.as_str(), role) {
                sum += &reserved.scalar_quantities();
            }
        }
    }
    sum
}
