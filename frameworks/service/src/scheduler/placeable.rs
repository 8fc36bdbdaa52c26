//! Pods that fit no agent of the cluster even if it were unused: reported at once, before any offer.
//!
//! An agent without tasks is evaluated as if all of it were offered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tepui_resources::{Resource, Resources};
use tepui_types::OfferId;

use super::evaluate::{Ask, Held, evaluate};
use super::need::{Need, needs};
use super::obstacle::{Obstacle, Wait, phrase};
use super::session::pod_role;
use super::site::Site;
use super::{AgentFacts, Scheduler};
use crate::spec::PodSpec;

impl Scheduler {
    /// Compares the pods of the target with the agents. Without knowledge of agents nothing is said.
    pub(super) fn check_placeable(&mut self) {
        let mut unplaceable = BTreeMap::new();
        if let Some((_, spec)) = self.target().filter(|_| !self.agents.is_empty()) {
            for pod in spec.pods.iter().filter(|pod| pod.count > 0) {
                if let Some(wait) = self.fits_no_agent(pod) {
                    unplaceable.insert(pod.name.clone(), format!("fits no agent of the cluster; {wait}"));
                }
            }
        }
        if *self.state.unplaceable != unplaceable {
            self.state.unplaceable = Arc::new(unplaceable);
            self.changed = true;
        }
    }

    /// Why none of the agents can ever take a pod of the type.
    fn fits_no_agent(&self, pod: &PodSpec) -> Option<Wait> {
        let needs = needs(pod, &self.config.executor);
        let mut wait = Wait::default();
        for facts in self.agents.values() {
            let obstacles = self.total_obstacles(pod, &needs, facts);
            if obstacles.is_empty() {
                return None;
            }
            wait.insert(facts.id.clone(), phrase(&obstacles));
        }
        Some(wait)
    }

    fn total_obstacles(&self, pod: &PodSpec, needs: &[Need], facts: &AgentFacts) -> Vec<Obstacle> {
        let held = self.hold_total(pod, facts);
        let rule = self.rules.check_fixed(&pod.name, &held.site);
        let mut obstacles: Vec<Obstacle> = rule.err().map(Obstacle::Excluded).into_iter().collect();
        // Deactivation may end; a missing isolator or driver does not by itself.
        let fixed = self.facts_obstacles(pod, &facts.id);
        obstacles.extend(fixed.into_iter().filter(|own| *own != Obstacle::Deactivated));
        if let Some(identity) = self.identity(&held.role, &pod.pre_reserved_role) {
            let ask = Ask { needs, owners: &BTreeSet::new(), pod: None, identity: &identity };
            obstacles.extend(evaluate(&ask, &[&held], &mut String::new).err().unwrap_or_default());
        }
        obstacles
    }

    /// All of an agent as one offer: dynamic reservations and their volumes may be gone one day.
    fn hold_total(&self, pod: &PodSpec, facts: &AgentFacts) -> Held {
        let role = pod_role(&self.config, &pod.pre_reserved_role);
        let offered = |resource: &Resource| {
            let mut resource = resource.clone().without_volume().with_allocation(Some(role.as_str().into()));
            while resource.is_dynamically_reserved() {
                resource = resource.pop_reservation();
            }
            resource
        };
        let site = Site {
            agent: facts.id.clone(),
            hostname: facts.hostname.clone(),
            region: facts.region.clone(),
            zone: facts.zone.clone(),
            attributes: facts.attributes.clone(),
        };
        let resources: Resources = facts.total.iter().map(offered).collect();
        Held { id: OfferId::new("total"), site, resources, executors: Vec::new(), role, number: 0 }
    }
}
