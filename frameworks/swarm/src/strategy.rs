//! Strategies: the order of the nodes that passed the filters, best first.

use alloc::vec::Vec;
use core::fmt;

use tepui_fsm::Rng;
use tepui_resources::{Name, Quantities, Scalar};

use crate::node::Node;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The least loaded node.
    #[default]
    Spread,
    /// The most loaded node that has room.
    BinPack,
    Random,
}

impl Strategy {
    /// By its name on the command line.
    pub fn named(name: &str) -> Option<Strategy> {
        match name {
            "spread" => Some(Strategy::Spread),
            "binpack" | "binpacking" => Some(Strategy::BinPack),
            "random" => Some(Strategy::Random),
            _ => None,
        }
    }

    /// Nodes without room are left out, except by `Random`, which does not look at resources: the fit is checked afterwards.
    pub fn rank<'n>(self, request: &Quantities, mut nodes: Vec<Node<'n>>, rng: &mut Rng) -> Vec<Node<'n>> {
        let (health_factor, direction) = match self {
            Strategy::Random => {
                rng.shuffle(&mut nodes);
                return nodes;
            }
            Strategy::Spread => (-10, 1),
            Strategy::BinPack => (10, -1),
        };
        let mut weighed: Vec<(i64, Node<'n>)> = nodes
            .into_iter()
            .filter_map(|node| Some((direction * weight(request, &node, health_factor)?, node)))
            .collect();
        weighed.sort_by(|(weight_a, a), (weight_b, b)| {
            let occupancy = |node: &Node<'_>| direction * node.occupancy as i64;
            weight_a
                .cmp(weight_b)
                .then(occupancy(a).cmp(&occupancy(b)))
                .then(a.name.cmp(b.name))
                .then(a.id.cmp(b.id))
        });
        weighed.into_iter().map(|(_, node)| node).collect()
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Strategy::Spread => "spread",
            Strategy::BinPack => "binpack",
            Strategy::Random => "random",
        })
    }
}

/// The share of the node that the container would take, in percent of cpus and of memory, and its health. None without room.
fn weight(request: &Quantities, node: &Node<'_>, health_factor: i64) -> Option<i64> {
    let cpus = score(request.get(&Name::Cpus), node.cpus)?;
    let memory = score(request.get(&Name::Mem), node.memory)?;
    Some(cpus + memory + health_factor * node.health)
}

fn score(requested: Scalar, total: Scalar) -> Option<i64> {
    match (requested > Scalar::ZERO, requested <= total) {
        (false, _) => Some(100),
        (true, false) => None,
        (true, true) => {
            let percent = i128::from(requested.thousandths()) * 100 / i128::from(total.thousandths());
            i64::try_from(percent).ok()
        }
    }
}

#[cfg(test)]
mod tests;
