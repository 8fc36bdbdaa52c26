//! Selection: the agent, the kind of resources and the parts of offers for one container.
//!
//! The nodes that the scheduler ranks are wrapped with the resources of one kind only, so that no choice of the user is left to
//! a filter. The fit into the offers is checked on each ranked node in turn, because sums over offers are not a fit and the
//! random strategy looks at no resources.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tepui_fsm::Rng;
use tepui_placement::{HeldOffer, Kind, Misfit, Placement, fit};
use tepui_resources::Scalar;
use tepui_types::AgentId;

use crate::agent::{Agent, EngineLink};
use crate::node::{HEALTH_MAX, Node};
use crate::occupant::Occupant;
use crate::res_type::Choice;
use crate::schedule::{ScheduleError, Scheduler};
use crate::spec::ContainerSpec;

/// Engines that an explanation lists.
const EXPLAINED_ENGINES_MAX: usize = 20;

/// An agent and everything that occupies its engine.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    pub id: &'a AgentId,
    pub agent: &'a Agent,
    /// How many containers are on its engine.
    pub occupancy: usize,
    /// Empty if the spec does not depend on them.
    pub occupants: Vec<&'a Occupant>,
    /// Of the containers that the spec depends on, those that have this name on some engine.
    pub dependency_names: Vec<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub agent: AgentId,
    pub kind: Kind,
    pub placement: Placement,
}

/// Places one container, or says why no node takes it.
pub fn select(
    scheduler: &Scheduler,
    spec: &ContainerSpec,
    candidates: &[Candidate<'_>],
    rng: &mut Rng,
) -> Result<Selection, ScheduleError> {
    match spec.choice {
        Choice::Only(kind) => of_kind(scheduler, spec, candidates, kind, rng),
        Choice::Prefer(kind) => of_kind(scheduler, spec, candidates, kind, rng)
            .or_else(|_| of_kind(scheduler, spec, candidates, kind.other(), rng)),
        Choice::Any => {
            let nodes: Vec<Node<'_>> = candidates.iter().filter_map(Candidate::whole).collect();
            of_nodes(scheduler, spec, candidates, &nodes, &Kind::ALL, rng)
        }
    }
}

fn of_kind(
    scheduler: &Scheduler,
    spec: &ContainerSpec,
    candidates: &[Candidate<'_>],
    kind: Kind,
    rng: &mut Rng,
) -> Result<Selection, ScheduleError> {
    let nodes: Vec<Node<'_>> = candidates.iter().filter_map(|candidate| candidate.wrapped(kind)).collect();
    of_nodes(scheduler, spec, candidates, &nodes, &[kind], rng)
}

/// Walks the ranked nodes; on each, tries the kinds in their order.
fn of_nodes(
    scheduler: &Scheduler,
    spec: &ContainerSpec,
    candidates: &[Candidate<'_>],
    nodes: &[Node<'_>],
    kinds: &[Kind],
    rng: &mut Rng,
) -> Result<Selection, ScheduleError> {
    if nodes.is_empty() && candidates.iter().any(|candidate| candidate.agent.is_healthy()) {
        return Err(ScheduleError::Full);
    }
    let request = spec.request();
    for node in scheduler.rank(spec, nodes, rng)? {
        let Some(candidate) = candidates.iter().find(|candidate| candidate.id.as_str() == node.id) else {
            continue;
        };
        let offers = candidate.offers();
        for kind in kinds {
            if let Ok(placement) = fit(&request, *kind, &offers) {
                return Ok(Selection { agent: candidate.id.clone(), kind: *kind, placement });
            }
        }
    }
    Err(ScheduleError::Full)
}

/// Which engines were considered and why each of them takes no container of this spec.
pub fn explain(scheduler: &Scheduler, spec: &ContainerSpec, candidates: &[Candidate<'_>]) -> Vec<String> {
    let listed = candidates.iter().take(EXPLAINED_ENGINES_MAX);
    let mut lines: Vec<String> = listed
        .map(|candidate| format!("{}: {}", candidate.agent.name(), candidate.obstacle(scheduler, spec)))
        .collect();
    if candidates.len() > EXPLAINED_ENGINES_MAX {
        lines.push(format!("and {} more engines", candidates.len() - EXPLAINED_ENGINES_MAX));
    }
    lines
}

impl<'a> Candidate<'a> {
    fn offers(&self) -> Vec<HeldOffer> {
        self.agent.offers.values().cloned().collect()
    }

    /// The node with the resources of one kind; none if the agent offers nothing of it.
    fn wrapped(&self, kind: Kind) -> Option<Node<'a>> {
        let (cpus, memory) = self.agent.offered(kind);
        let any = !cpus.is_zero() || !memory.is_zero();
        if any { self.node(Some(kind.as_str()), cpus, memory) } else { None }
    }

    /// The node with everything that is offered.
    fn whole(&self) -> Option<Node<'a>> {
        let [regular, revocable] = Kind::ALL.map(|kind| self.agent.offered(kind));
        self.node(self.agent.res_type(), regular.0 + revocable.0, regular.1 + revocable.1)
    }

    fn node(&self, res_type: Option<&'static str>, cpus: Scalar, memory: Scalar) -> Option<Node<'a>> {
        let engine = self.agent.engine()?;
        Some(Node {
            id: self.id.as_str(),
            name: &engine.name,
            labels: &engine.labels,
            res_type,
            health: if self.agent.is_healthy() { HEALTH_MAX } else { 0 },
            occupancy: self.occupancy,
            occupants: self.occupants.clone(),
            dependency_names: self.dependency_names.clone(),
            images: &engine.images,
            cpus,
            memory,
        })
    }

    fn obstacle(&self, scheduler: &Scheduler, spec: &ContainerSpec) -> String {
        match &self.agent.engine {
            EngineLink::Connecting => return "engine not connected yet".to_string(),
            EngineLink::Down { error, .. } => return format!("engine unreachable: {error}"),
            EngineLink::Up(_) => (),
        }
        if let Some(filter) = self.whole().and_then(|node| scheduler.obstacle(spec, &node)) {
            return match filter.conditions(spec) {
                conditions if conditions.is_empty() => format!("filter {filter}"),
                conditions => format!("filter {filter} [{}]", conditions.join(" ")),
            };
        }
        let request = spec.request();
        let offers = if self.agent.offers.is_empty() { self.agent.declined.clone() } else { self.offers() };
        let misfits = spec.choice.kinds().iter().filter_map(|kind| fit(&request, *kind, &offers).err());
        let mut texts: Vec<String> = misfits.map(|misfit: Misfit| misfit.to_string()).collect();
        texts.dedup();
        match texts.is_empty() {
            false => texts.join("; "),
            true if self.agent.offers.is_empty() => Misfit::NoOffers.to_string(),
            true => "has room now".to_string(),
        }
    }
}

#[cfg(test)]
mod tests;
