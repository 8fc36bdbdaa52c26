//! The scheduler: from candidate nodes to a ranked list, in two passes.
//!
//! The first pass enforces soft expressions, the second ignores them; the error is that of the second.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::Rng;

use crate::filter::{Filter, Soft};
use crate::node::Node;
use crate::spec::ContainerSpec;
use crate::strategy::Strategy;

/// Filters in their order, and the strategy.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub filters: Vec<Filter>,
    pub strategy: Strategy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleError {
    /// No engine is reached.
    Unhealthy,
    /// What was asked of each filter, up to the one that no node passed.
    Unsatisfied(Vec<Vec<String>>),
    /// There is no node at all.
    Empty,
    /// No node has the resources.
    Full,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self { filters: Filter::ALL.to_vec(), strategy: Strategy::default() }
    }
}

impl Scheduler {
    /// The nodes that may take the container, best first; at least one.
    pub fn rank<'n>(
        &self,
        spec: &ContainerSpec,
        nodes: &[Node<'n>],
        rng: &mut Rng,
    ) -> Result<Vec<Node<'n>>, ScheduleError> {
        self.pass(spec, nodes, Soft::Enforced, rng).or_else(|_| self.pass(spec, nodes, Soft::Ignored, rng))
    }

    fn pass<'n>(
        &self,
        spec: &ContainerSpec,
        nodes: &[Node<'n>],
        soft: Soft,
        rng: &mut Rng,
    ) -> Result<Vec<Node<'n>>, ScheduleError> {
        let mut kept: Vec<&Node<'n>> = nodes.iter().collect();
        for (at, filter) in self.filters.iter().enumerate() {
            kept.retain(|node| filter.keeps(spec, node, soft));
            if kept.is_empty() {
                return Err(match filter {
                    Filter::Health => ScheduleError::Unhealthy,
                    _ => ScheduleError::Unsatisfied(self.conditions(spec, at)),
                });
            }
        }
        if kept.is_empty() {
            return Err(ScheduleError::Empty);
        }
        let kept = kept.into_iter().cloned().collect();
        let ranked = self.strategy.rank(&spec.amounts.quantities(), kept, rng);
        if ranked.is_empty() { Err(ScheduleError::Full) } else { Ok(ranked) }
    }

    fn conditions(&self, spec: &ContainerSpec, last: usize) -> Vec<Vec<String>> {
        let all = self.filters[..=last].iter().map(|filter| filter.conditions(spec));
        all.filter(|conditions| !conditions.is_empty()).collect()
    }

    /// The first filter that does not let a container on a node.
    pub fn obstacle(&self, spec: &ContainerSpec, node: &Node<'_>) -> Option<Filter> {
        self.filters.iter().copied().find(|filter| !filter.keeps(spec, node, Soft::Ignored))
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScheduleError::Unhealthy => f.write_str("No healthy node available in the cluster"),
            ScheduleError::Empty => f.write_str("No nodes available in the cluster"),
            ScheduleError::Full => f.write_str("no resources available to schedule container"),
            ScheduleError::Unsatisfied(conditions) => {
                f.write_str("Unable to find a node that satisfies the following conditions ")?;
                conditions.iter().try_for_each(|list| write!(f, "\n[{}]", list.join(" ")))
            }
        }
    }
}

#[cfg(test)]
mod tests;
