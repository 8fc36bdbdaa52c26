//! An offer has one owner: its id is used once, for a connected framework and a connected agent.

use std::collections::BTreeSet;

use tepui_core_master::{AgentLink, Effect, FrameworkLink, Master};
use tepui_proto::mesos::v1::scheduler::event::Type;

use super::{Check, Fact};

#[derive(Debug, Default)]
pub(super) struct OfferHasOneOwner {
    given: BTreeSet<String>,
}

impl Check for OfferHasOneOwner {
    fn name(&self) -> &'static str {
        "offer_has_one_owner"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::MasterEffect(Effect::Scheduler { event, .. }) if event.r#type == Some(Type::OFFERS) => {
                for offer in &event.offers.offers {
                    if !self.given.insert(offer.id.value.clone()) {
                        return Err(format!("offer {} is given again", offer.id.value));
                    }
                }
                Ok(())
            }
            Fact::MasterTurn(master) => owners(master),
            _ => Ok(()),
        }
    }
}

fn owners(master: &Master) -> Result<(), String> {
    let state = master.state();
    for offer in state.offers.values() {
        let framework = state.frameworks.get(&offer.framework_id).map(|framework| &framework.link);
        if !matches!(framework, Some(FrameworkLink::Connected { .. })) {
            return Err(format!("offer {} is {}'s, which is not connected", offer.id, offer.framework_id));
        }
        let agent = state.agents.get(&offer.agent_id).map(|agent| &agent.link);
        if !matches!(agent, Some(AgentLink::Connected { .. })) {
            return Err(format!("offer {} is of {}, which is not connected", offer.id, offer.agent_id));
        }
    }
    Ok(())
}
