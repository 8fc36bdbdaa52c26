//! Two passes over filters and strategy, and the texts of their failures.

use alloc::string::ToString;
use alloc::vec;

use tepui_resources::Scalar;

use super::*;
use crate::agent::Engine;
use crate::node::HEALTH_MAX;
use crate::testing::{engine, spec};

fn node(engine: &Engine, health: i64) -> Node<'_> {
    Node {
        id: &engine.id,
        name: &engine.name,
        labels: &engine.labels,
        res_type: Some("regular"),
        health,
        occupancy: engine.occupants.len(),
        occupants: engine.occupants.iter().collect(),
        dependency_names: Vec::new(),
        images: &engine.images,
        cpus: Scalar::from_thousandths(2000),
        memory: Scalar::ZERO,
    }
}

fn outcome(options: &str, scheduler: &Scheduler, engines: &[(Engine, i64)]) -> String {
    let nodes: Vec<Node<'_>> = engines.iter().map(|(engine, health)| node(engine, *health)).collect();
    match scheduler.rank(&spec(options), &nodes, &mut Rng::seeded(1)) {
        Ok(ranked) => ranked.iter().map(|node| node.name).collect::<Vec<_>>().join(" "),
        Err(error) => error.to_string(),
    }
}

#[test]
fn soft_expressions_are_dropped_and_unmet_ones_are_listed() {
    let engines = [
        (engine("node-0", &[("disk", "ssd")], &["web 80"], &[]), HEALTH_MAX),
        (engine("node-1", &[("containerslots", "0")], &[], &[]), HEALTH_MAX),
    ];
    let conditions = "Unable to find a node that satisfies the following conditions ";
    for (options, expected) in [
        ("-e constraint:node==node-*", "node-0".into()),
        ("-e constraint:disk==~hdd", "node-0".into()),
        ("-e constraint:disk==~ssd", "node-0".into()),
        (
            "-e constraint:node==node-9",
            alloc::format!("{conditions}\n[available container slots]\n[node==node-9]"),
        ),
        // The tilde is not shown, and what is soft is listed with the rest.
        (
            "-e constraint:node==node-9 -e constraint:disk==~ssd -e affinity:group!=~x",
            alloc::format!(
                "{conditions}\n[available container slots]\n[group!=x (soft=true)]\n[node==node-9 disk==ssd]"
            ),
        ),
        (
            "-p 80:80 -e affinity:container==none",
            alloc::format!("{conditions}\n[port 80 (Bridge mode)]\n[available container slots]"),
        ),
        (
            "--link none:x -e constraint:res-type==~regular -e whitelist:node==x",
            alloc::format!("{conditions}\n[available container slots]\n[--link=none:x]"),
        ),
        (
            "-e constraint:res-type==~regular -e whitelist:node==x",
            alloc::format!(
                "{conditions}\n[available container slots]\n[res-type==~regular]\n[node==x (soft=false)]"
            ),
        ),
        ("-c 3", "no resources available to schedule container".into()),
    ] {
        assert_eq!(outcome(options, &Scheduler::default(), &engines), expected, "{options}");
    }
    let host = [(engine("node-0", &[], &["web !80"], &[]), HEALTH_MAX)];
    assert_eq!(
        outcome("--net host --expose 80", &Scheduler::default(), &host),
        alloc::format!("{conditions}\n[port 80/tcp (Host mode)]")
    );
}

#[test]
fn soft_expression_is_ignored_if_resources_are_insufficient() {
    // Both satisfy the filters; only the pass without the soft constraint leaves a node with room.
    let engines = [(engine("node-0", &[], &[], &[]), HEALTH_MAX)];
    assert_eq!(outcome("-c 2 -e constraint:node==~other", &Scheduler::default(), &engines), "node-0");
}

#[test]
fn missing_healthy_nodes_have_a_single_message() {
    let down = [(engine("node-0", &[], &[], &[]), 0)];
    assert_eq!(outcome("", &Scheduler::default(), &down), "No healthy node available in the cluster");
    assert_eq!(outcome("", &Scheduler::default(), &[]), "No healthy node available in the cluster");
    let no_filters = Scheduler { filters: vec![], ..Scheduler::default() };
    assert_eq!(outcome("", &no_filters, &[]), "No nodes available in the cluster");
    let constraint_only = Scheduler { filters: vec![Filter::Constraint], ..Scheduler::default() };
    assert_eq!(outcome("", &constraint_only, &down), "node-0", "only the configured filters count");
}
