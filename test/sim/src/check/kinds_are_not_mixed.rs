//! Kinds are not mixed: a container uses resources of one kind only, of a kind that its constraint allows, from offers of its
//! agent that were used for nothing else; its label names that kind. The label of an engine is the kind of the offers held,
//! which were received on this subscription and not rescinded since.

use std::collections::{BTreeMap, BTreeSet};

use tepui_resources::{Name, Resources};
use tepui_swarm::{Effect, Input, Kind, Launch, RES_TYPE, View};
use tepui_types::{AgentId, OfferId};

use super::{Check, Fact};
use crate::swarm::KINDS_LABEL;

#[derive(Debug, Default)]
pub(super) struct KindsAreNotMixed {
    offers: BTreeMap<OfferId, (AgentId, Resources)>,
    /// Those of the present subscription that were not rescinded.
    valid: BTreeSet<OfferId>,
    used: BTreeSet<OfferId>,
}

impl Check for KindsAreNotMixed {
    fn name(&self) -> &'static str {
        "kinds_are_not_mixed"
    }

    fn observe(&mut self, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::SwarmInput(input) => self.on_input(input),
            Fact::SwarmEffect(Effect::Accept(launch)) => return self.check_launch(launch),
            Fact::SwarmEffect(Effect::Decline { offers, .. }) => {
                return offers.iter().try_for_each(|offer| self.consume(offer));
            }
            Fact::SwarmTurn(view) => return self.check_labels(view),
            _ => (),
        }
        Ok(())
    }
}

impl KindsAreNotMixed {
    fn on_input(&mut self, input: &Input) {
        match input {
            Input::Subscribed { .. } | Input::Disconnected => self.valid.clear(),
            Input::Offers(offers) => {
                for offer in offers {
                    let held = (offer.agent.clone(), offer.resources.clone());
                    self.offers.insert(offer.id.clone(), held);
                    self.valid.insert(offer.id.clone());
                }
            }
            Input::Rescinded(offer) => drop(self.valid.remove(offer)),
            _ => (),
        }
    }

    fn consume(&mut self, offer: &OfferId) -> Result<(), String> {
        match self.used.insert(offer.clone()) {
            true => Ok(()),
            false => Err(format!("offer {offer} is used twice")),
        }
    }

    fn check_launch(&mut self, launch: &Launch) -> Result<(), String> {
        let Launch { task, kind, .. } = launch;
        let mut offered = Resources::new();
        for offer in &launch.offers {
            self.consume(offer)?;
            let (agent, resources) =
                self.offers.get(offer).ok_or_else(|| format!("offer {offer} is unknown"))?;
            if *agent != launch.agent {
                return Err(format!("{task} on {} uses offer {offer} of {agent}", launch.agent));
            }
            offered += resources;
        }
        if !offered.contains(&launch.resources) {
            return Err(format!("{task} uses {}, offered are {offered}", launch.resources));
        }
        if let Some(other) = launch.resources.iter().find(|it| Kind::of(it) != *kind) {
            return Err(format!("{task} is {kind} and uses {other}"));
        }
        let document: serde_json::Value =
            serde_json::from_str(&launch.document).map_err(|error| error.to_string())?;
        let label = |key: &str| document["Labels"][key].as_str().unwrap_or_default();
        if label(RES_TYPE) != kind.as_str() {
            return Err(format!("{task} is {kind} and labelled {:?}", label(RES_TYPE)));
        }
        let is_allowed = label(KINDS_LABEL).split(' ').any(|allowed| allowed == kind.as_str());
        is_allowed.then_some(()).ok_or_else(|| format!("{task} may use {:?} only", label(KINDS_LABEL)))
    }

    fn check_labels(&self, view: &View) -> Result<(), String> {
        for (id, agent) in view.agents.iter() {
            if let Some(offer) = agent.offers.keys().find(|offer| !self.valid.contains(*offer)) {
                return Err(format!("offer {offer} of {id} is held after it became invalid"));
            }
            let held = || agent.offers.values().flat_map(|offer| offer.resources.iter());
            let has =
                |kind| held().any(|it| Kind::of(it) == kind && matches!(it.name(), Name::Cpus | Name::Mem));
            let expected = match (has(Kind::Regular), has(Kind::Revocable)) {
                (true, true) => Some("any"),
                (true, false) => Some("regular"),
                (false, true) => Some("revocable"),
                (false, false) => None,
            };
            let label = agent.labels().get(RES_TYPE).cloned();
            if label.as_deref() != expected {
                return Err(format!("{id} is labelled {label:?}, its offers are {expected:?}"));
            }
        }
        Ok(())
    }
}
