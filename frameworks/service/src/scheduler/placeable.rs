//! Pods that fit no agent of the cluster, whoever uses it: told at once, before any offer.

use std::collections::BTreeMap;
use std::sync::Arc;

use tepui_placement::Kind;
use tepui_resources::{Name, Quantities, Resource, Scalar};

use super::need::{NeedKind, needs};
use super::obstacle::{Obstacle, Wait, phrase};
use super::site::Site;
use super::{AgentFacts, Scheduler};
use crate::spec::{PodSpec, VolumeKind};

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
        let amounts = amounts(pod, self);
        let mut wait = Wait::default();
        for facts in self.agents.values() {
            let obstacles = self.total_obstacles(pod, &amounts, facts);
            if obstacles.is_empty() {
                return None;
            }
            wait.insert(facts.id.clone(), phrase(&obstacles));
        }
        Some(wait)
    }

    fn total_obstacles(&self, pod: &PodSpec, amounts: &Quantities, facts: &AgentFacts) -> Vec<Obstacle> {
        let site = Site {
            agent: facts.id.clone(),
            hostname: facts.hostname.clone(),
            region: facts.region.clone(),
            zone: facts.zone.clone(),
            attributes: facts.attributes.clone(),
        };
        let mut obstacles: Vec<Obstacle> =
            self.rules.check_fixed(&pod.name, &site).err().map(Obstacle::Excluded).into_iter().collect();
        // Deactivation may end; a missing isolator or driver does not by itself.
        let fixed = self.facts_obstacles(pod, &facts.id);
        obstacles.extend(fixed.into_iter().filter(|own| *own != Obstacle::Deactivated));
        let plain = facts.total.filter(|resource: &Resource| resource.disk().is_none());
        let total = plain.quantities_of(|resource| Kind::of(resource) == Kind::Regular);
        for (name, requested) in amounts.iter() {
            let offered = total.get(name);
            if offered < requested {
                obstacles.push(Obstacle::Short { name: name.to_string(), requested, offered });
            }
        }
        obstacles
    }
}

/// All scalars of a pod; whole disks are not counted.
fn amounts(pod: &PodSpec, scheduler: &Scheduler) -> Quantities {
    let mut sum = Quantities::new();
    for need in needs(pod, &scheduler.config.executor) {
        let (name, amount) = match need.kind {
            NeedKind::Scalar { name, amount } => (name, amount),
            NeedKind::Volume { size, kind: VolumeKind::Root, .. } => (Name::Disk, size),
            NeedKind::Volume { kind: VolumeKind::Mount { .. }, .. } | NeedKind::Port { .. } => {
                (Name::Disk, Scalar::ZERO)
            }
        };
        sum.increase(&name, amount);
    }
    sum
}
