//! Use cases of the `res-type` constraint on agents that offer both kinds.

use alloc::vec;

use super::*;
use crate::filter::Filter;
use crate::strategy::Strategy;
use crate::testing::{agent, agent_with, engine, spec};

fn outcome_by(scheduler: &Scheduler, options: &str, agents: &[Agent]) -> String {
    let ids: Vec<AgentId> = agents.iter().map(|agent| AgentId::new(agent.name())).collect();
    let candidates: Vec<Candidate<'_>> = ids
        .iter()
        .zip(agents)
        .map(|(id, agent)| Candidate {
            id,
            agent,
            occupancy: 0,
            occupants: vec![],
            dependency_names: Vec::new(),
        })
        .collect();
    match select(scheduler, &spec(options), &candidates, &mut Rng::seeded(1)) {
        Ok(Selection { agent, kind, .. }) => format!("{agent} {kind}"),
        Err(error) => error.to_string(),
    }
}

fn outcome(options: &str, agents: &[Agent]) -> String {
    outcome_by(&Scheduler::default(), options, agents)
}

#[test]
fn each_use_case_gets_its_kind() {
    let none = "no resources available to schedule container";
    let regular = || agent("reg", &[("O1", "cpus:2")]);
    let revocable = || agent("rev", &[("O2", "rev cpus:4")]);
    let both = || agent("both", &[("O3", "cpus:1 + rev cpus:3")]);
    for (constraint, cpus, agents, expected) in [
        // 2. Regular only, also without a constraint.
        ("", 2, vec![regular(), revocable()], "reg regular"),
        ("==regular", 2, vec![regular(), revocable()], "reg regular"),
        ("==regular", 3, vec![regular(), revocable(), both()], none),
        ("==regular", 1, vec![both()], "both regular"),
        ("==regular", 1, vec![revocable()], none),
        ("", 1, vec![revocable()], none),
        // 3. Regular first, wherever that is.
        ("==~regular", 2, vec![regular(), revocable()], "reg regular"),
        ("==~regular", 3, vec![regular(), revocable()], "rev revocable"),
        ("==~regular", 1, vec![both()], "both regular"),
        ("==~regular", 3, vec![both()], "both revocable"),
        ("==~regular", 9, vec![regular(), revocable(), both()], none),
        // 4. Revocable only.
        ("==revocable", 2, vec![regular(), revocable()], "rev revocable"),
        ("==revocable", 1, vec![regular()], none),
        ("==revocable", 3, vec![both()], "both revocable"),
        ("==revocable", 4, vec![both()], none),
        // 5. Revocable first.
        ("==~revocable", 2, vec![regular(), revocable()], "rev revocable"),
        ("==~revocable", 1, vec![regular()], "reg regular"),
        ("==~revocable", 1, vec![both()], "both revocable"),
        // 6. Whatever the best node has, regular first on that node. Four cpus in all, but never of one kind.
        ("==*", 1, vec![both()], "both regular"),
        ("==*", 3, vec![both()], "both revocable"),
        ("==*", 4, vec![both()], none),
        ("==*", 1, vec![regular(), revocable()], "rev revocable"),
        ("==*", 2, vec![regular(), both()], "both revocable"),
        ("==re*", 2, vec![regular()], "reg regular"),
        ("!=gold", 2, vec![revocable()], "rev revocable"),
    ] {
        let constraint =
            if constraint.is_empty() { String::new() } else { format!("-e constraint:res-type{constraint}") };
        let options = format!("-c {cpus} {constraint}");
        assert_eq!(outcome(&options, &agents), expected, "{options}");
    }
}

#[test]
fn any_skips_nodes_where_no_single_kind_fits() {
    // The first by the sum of both kinds has four cpus, but two of each kind.
    let agents = [agent("sum", &[("O1", "cpus:2 + rev cpus:2")]), agent("whole", &[("O2", "cpus:3")])];
    assert_eq!(outcome("-c 3 -e constraint:res-type==*", &agents), "whole regular");
}

#[test]
fn random_strategy_selects_only_nodes_with_enough_resources() {
    let agents = [
        agent("a", &[("O1", "cpus:1")]),
        agent("b", &[("O2", "rev cpus:9")]),
        agent("c", &[("O3", "cpus:4")]),
    ];
    for seed in 0..32 {
        let scheduler = Scheduler { strategy: Strategy::Random, ..Scheduler::default() };
        let ids: Vec<AgentId> = agents.iter().map(|agent| AgentId::new(agent.name())).collect();
        let candidates: Vec<Candidate<'_>> = ids
            .iter()
            .zip(&agents)
            .map(|(id, agent)| Candidate {
                id,
                agent,
                occupancy: 0,
                occupants: vec![],
                dependency_names: Vec::new(),
            })
            .collect();
        let selected =
            select(&scheduler, &spec("-c 4"), &candidates, &mut Rng::seeded(seed)).expect("there is room");
        assert_eq!((selected.agent.as_str(), selected.kind), ("c", Kind::Regular), "seed {seed}");
    }
}

#[test]
fn res_type_applies_without_the_constraint_filter() {
    let scheduler = Scheduler { filters: vec![Filter::Health], ..Scheduler::default() };
    let agents = [agent("rev", &[("O1", "rev cpus:4")]), agent("reg", &[("O2", "cpus:1")])];
    assert_eq!(outcome_by(&scheduler, "-c 1 -e constraint:res-type==regular", &agents), "reg regular");
}

#[test]
fn soft_types_dominate_other_soft_expressions() {
    let agents = [
        agent_with(engine("reg", &[("disk", "hdd")], &[], &[]), &[("O1", "cpus:4")]),
        agent_with(engine("rev", &[("disk", "ssd")], &[], &[]), &[("O2", "rev cpus:4")]),
    ];
    let options = "-c 1 -e constraint:disk==~ssd -e constraint:res-type==~regular";
    assert_eq!(outcome(options, &agents), "reg regular");
}

#[test]
fn ports_are_part_of_the_fit() {
    let agents = [agent("a", &[("O1", "cpus:8")]), agent("b", &[("O2", "cpus:1;ports:[80-80]")])];
    assert_eq!(outcome("-c 1 -p 80:80", &agents), "b regular");
    assert_eq!(outcome("-c 1 -p 81:80", &agents), "no resources available to schedule container");
}

#[test]
fn every_engine_is_explained() {
    let mut down = agent("down", &[]);
    down.engine = EngineLink::Down { error: "connection refused".into(), last: None };
    let mut slow = agent("slow", &[]);
    slow.engine = EngineLink::Connecting;
    let agents = [
        agent("small", &[("O1", "cpus:1 + rev cpus:2")]),
        agent_with(engine("other", &[("disk", "hdd")], &[], &[]), &[("O2", "cpus:9")]),
        agent("idle", &[]),
        down,
        slow,
    ];
    let ids: Vec<AgentId> = (0..agents.len()).map(|at| AgentId::new(format!("A{at}"))).collect();
    let candidates: Vec<Candidate<'_>> = ids
        .iter()
        .zip(&agents)
        .map(|(id, agent)| Candidate {
            id,
            agent,
            occupancy: 0,
            occupants: vec![],
            dependency_names: Vec::new(),
        })
        .collect();
    let explained = |options: &str| explain(&Scheduler::default(), &spec(options), &candidates).join("\n");
    expect_test::expect![[r#"
        small: requested 3 regular cpus, offered 1; requested 3 revocable cpus, offered 2
        other: filter constraint [res-type==~regular disk!=hdd]
        idle: no offers
        down:2375: engine unreachable: connection refused
        slow:2375: engine not connected yet"#]]
    .assert_eq(&explained("-c 3 -e constraint:res-type==~regular -e constraint:disk!=hdd"));
}
