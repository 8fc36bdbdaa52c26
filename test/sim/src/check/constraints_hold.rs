//! Constraints hold: a framework is offered no agent that its offer constraints exclude. Offers made before a constraint
//! stay valid.

use std::collections::BTreeSet;

use tepui_core_master::Master;
use tepui_types::OfferId;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct ConstraintsHold {
    /// Offers that were out after the turn before.
    out: BTreeSet<OfferId>,
}

impl Check for ConstraintsHold {
    fn name(&self) -> &'static str {
        "constraints_hold"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterTurn(master) => self.turn(master),
            _ => Ok(()),
        }
    }
}

impl ConstraintsHold {
    fn turn(&mut self, master: &Master) -> Result<(), String> {
        let state = master.state();
        let before = std::mem::replace(&mut self.out, state.offers.keys().cloned().collect());
        for offer in state.offers.values().filter(|offer| !before.contains(&offer.id)) {
            let framework = state.frameworks.get(&offer.framework_id);
            let constraints = framework.and_then(|framework| framework.offer_constraints.as_deref());
            let agent = state.agents.get(&offer.agent_id);
            let (Some(constraints), Some(agent)) = (constraints, agent) else { continue };
            let of_role = constraints.role_constraints.get(&*offer.role);
            let hosts = of_role.into_iter().flat_map(|role| &role.groups);
            let mut avoided = hosts
                .flat_map(|group| &group.attribute_constraints)
                .map(|constraint| &constraint.predicate.text_not_equals.value);
            if avoided.any(|host| *host == agent.info.hostname) {
                return Err(format!(
                    "offer {} is of {}, which its framework avoids",
                    offer.id, agent.info.hostname
                ));
            }
        }
        Ok(())
    }
}
