//! Rankings of nodes by each strategy.

use alloc::format;
use alloc::string::String;

use super::*;
use crate::node::HEALTH_MAX;
use crate::testing::{engine, spec};

/// Nodes as (name, cpus, MiB, containers).
fn rank(strategy: Strategy, options: &str, nodes: &[(&str, i64, i64, usize)]) -> String {
    let engines: Vec<_> =
        nodes.iter().map(|(name, _, _, count)| engine(name, &[], &["c"; 9][..*count], &[])).collect();
    let wrapped = nodes.iter().zip(&engines).map(|((name, cpus, memory, _), engine)| Node {
        id: name,
        name: &engine.name,
        labels: &engine.labels,
        res_type: None,
        health: HEALTH_MAX,
        occupancy: engine.occupants.len(),
        occupants: engine.occupants.iter().collect(),
        dependency_names: Vec::new(),
        images: &[],
        cpus: Scalar::from_thousandths(cpus * 1000),
        memory: Scalar::from_thousandths(memory * 1000),
    });
    let ranked = strategy.rank(&spec(options).amounts.quantities(), wrapped.collect(), &mut Rng::seeded(1));
    let names: Vec<&str> = ranked.iter().map(|node| node.name).collect();
    names.join(" ")
}

#[test]
fn nodes_are_ranked_by_utilization_after_placement() {
    use Strategy::{BinPack, Spread};
    for (strategy, options, nodes, expected) in [
        // A quarter, a half, all of the node.
        (Spread, "-c 2", &[("a", 2, 0, 0), ("b", 4, 0, 0), ("c", 8, 0, 0)][..], "c b a"),
        (BinPack, "-c 2", &[("a", 2, 0, 0), ("b", 4, 0, 0), ("c", 8, 0, 0)], "a b c"),
        // Not enough is left out.
        (Spread, "-c 3", &[("a", 2, 0, 0), ("b", 4, 0, 0)], "b"),
        (BinPack, "-c 3 -m 10", &[("a", 4, 9, 0), ("b", 4, 10, 0)], "b"),
        (Spread, "-c 9", &[("a", 2, 0, 0)], ""),
        // Cpus and memory add up.
        (Spread, "-c 1 -m 10", &[("a", 2, 100, 0), ("b", 4, 20, 0)], "a b"),
        // Ties: fewer containers, more containers, then the name.
        (Spread, "-c 1", &[("a", 2, 0, 2), ("b", 2, 0, 1), ("c", 2, 0, 1)], "b c a"),
        (BinPack, "-c 1", &[("c", 2, 0, 2), ("b", 2, 0, 1), ("a", 2, 0, 2)], "a c b"),
        // A request of memory only does not look at cpus.
        (Spread, "-m 10", &[("a", 0, 20, 0), ("b", 0, 40, 0)], "b a"),
        (Spread, "--cpus 0.5", &[("a", 1, 0, 0), ("b", 2, 0, 0)], "b a"),
    ] {
        assert_eq!(rank(strategy, options, nodes), expected, "{strategy} {options} {nodes:?}");
    }
}

#[test]
fn random_keeps_every_node_in_the_order_of_its_seed() {
    let nodes = [("a", 1, 0, 0), ("b", 1, 0, 0), ("c", 0, 0, 0)];
    let first = rank(Strategy::Random, "-c 1", &nodes);
    assert_eq!(first, rank(Strategy::Random, "-c 1", &nodes));
    for (name, ..) in nodes {
        assert!(first.contains(name), "{name} has no room, which is checked later");
    }
}

#[test]
fn strategies_are_parsed_by_name() {
    for (name, expected) in [
        ("spread", Some(Strategy::Spread)),
        ("binpack", Some(Strategy::BinPack)),
        ("binpacking", Some(Strategy::BinPack)),
        ("random", Some(Strategy::Random)),
        ("best", None),
    ] {
        assert_eq!(Strategy::named(name), expected, "{name}");
    }
    assert_eq!(format!("{}", Strategy::BinPack), "binpack");
}
