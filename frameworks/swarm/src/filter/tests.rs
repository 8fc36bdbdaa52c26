//! Each filter against one node.

use super::*;
use crate::node::HEALTH_MAX;
use crate::testing::{engine, spec};
use tepui_resources::Scalar;

fn keeps(filter: Filter, options: &str, soft: Soft) -> bool {
    let engine = engine(
        "node-1",
        &[("foo", "a"), ("containerslots", "3")],
        &["web group=x 80", "db 10.0.0.1:5432 !9000"],
        &["repo:5000/app:1.0"],
    );
    let node = Node {
        id: "agent-1",
        name: &engine.name,
        labels: &engine.labels,
        res_type: Some("regular"),
        health: HEALTH_MAX,
        occupancy: engine.occupants.len(),
        occupants: engine.occupants.iter().collect(),
        dependency_names: Vec::new(),
        images: &engine.images,
        cpus: Scalar::ONE,
        memory: Scalar::ONE,
    };
    filter.keeps(&spec(options), &node, soft)
}

#[test]
fn filters_keep_nodes_that_satisfy_the_container() {
    use Filter::{Affinity, Constraint, ContainerSlots, Dependency, Health, Port, Whitelist};
    for (filter, options, expected) in [
        (Health, "", true),
        (Port, "-p 81:80", true),
        (Port, "-p 80:80", false),
        (Port, "-p 10.0.0.2:80:80", false), // The other is bound on every address.
        (Port, "-p 5432:1", false),         // This one is.
        (Port, "-p 10.0.0.1:5432:1", false),
        (Port, "-p 10.0.0.2:5432:1", true),
        (Port, "-p :80", true), // Any port.
        (Port, "--net host --expose 9000", false),
        (Port, "--net host --expose 80", true),
        (Port, "--expose 9000", true),
        (ContainerSlots, "", true),
        (Dependency, "--link web:w", true),
        (Dependency, "--link /web:w", true),
        (Dependency, "--link node-1/web:w", true),
        (Dependency, "--link id-we:w", true),
        (Dependency, "--link other:w", false),
        (Dependency, "--volumes-from db:ro", true),
        (Dependency, "--volumes-from db --volumes-from other", false),
        (Dependency, "--net container:db", true),
        (Dependency, "--net container:x", false),
        (Affinity, "-e affinity:container==web", true),
        (Affinity, "-e affinity:container==id-web", true),
        (Affinity, "-e affinity:container==we", false),
        (Affinity, "-e affinity:container!=web", false),
        (Affinity, "-e affinity:container!=other", true),
        (Affinity, "-e affinity:image==repo:5000/app:1.0", true),
        (Affinity, "-e affinity:image==repo:5000/app", true),
        (Affinity, "-e affinity:image==sha256:*", true),
        (Affinity, "-e affinity:image==app", false),
        (Affinity, "-e affinity:group==x", true),
        (Affinity, "-e affinity:group!=x", false),
        (Affinity, "-e affinity:group==y", false),
        (Constraint, "-e constraint:node==node-1", true),
        (Constraint, "-e constraint:node==agent-1", true),
        (Constraint, "-e constraint:node==node-2", false),
        (Constraint, "-e constraint:node!=node-1", false),
        (Constraint, "-e constraint:foo==a", true),
        (Constraint, "-e constraint:foo==b", false),
        (Constraint, "-e constraint:foo==a -e constraint:node==node-2", false),
        (Constraint, "-e constraint:missing==*", true),
        (Constraint, "-e constraint:missing!=x", true),
        (Constraint, "-e constraint:missing==x", false),
        // Enforced by the choice of nodes, not here.
        (Constraint, "-e constraint:res-type==revocable", true),
        (Whitelist, "-e whitelist:any==node-1|node-2", true),
        (Whitelist, "-e whitelist:any!=node-1", true),
        (Whitelist, "-e whitelist:any==node-2", false),
        (Whitelist, "-e whitelist:any==node-*", false),
    ] {
        assert_eq!(keeps(filter, options, Soft::Enforced), expected, "{filter} {options}");
    }
}

#[test]
fn soft_expressions_count_only_while_they_are_enforced() {
    for options in ["-e constraint:node==~x", "-e constraint:node!=~node-1"] {
        assert!(!keeps(Filter::Constraint, options, Soft::Enforced), "{options}");
        assert!(keeps(Filter::Constraint, options, Soft::Ignored), "{options}");
    }
    assert!(!keeps(Filter::Affinity, "-e affinity:image==~x", Soft::Enforced));
    assert!(keeps(Filter::Affinity, "-e affinity:image==~x", Soft::Ignored));
}

#[test]
fn slots_are_whole_numbers_or_unlimited() {
    for (label, occupants, expected) in [
        (Some("2"), 1, true),
        (Some("2"), 2, false),
        (Some("0"), 0, false),
        (Some("many"), 9, true),
        (Some("2.5"), 9, true),
        (None, 9, true),
    ] {
        let labels: Vec<(&str, &str)> = label.map(|value| (SLOTS_LABEL, value)).into_iter().collect();
        let engine = engine("n", &labels, &["c"; 9][..occupants], &[]);
        let node = Node {
            id: "a",
            name: &engine.name,
            labels: &engine.labels,
            res_type: None,
            health: HEALTH_MAX,
            occupancy: engine.occupants.len(),
            occupants: engine.occupants.iter().collect(),
            dependency_names: Vec::new(),
            images: &[],
            cpus: Scalar::ONE,
            memory: Scalar::ONE,
        };
        assert_eq!(has_free_slot(&node), expected, "{label:?} {occupants}");
    }
}

#[test]
fn filter_names_round_trip() {
    for filter in Filter::ALL {
        assert_eq!(Filter::named(filter.as_str()), Some(filter));
    }
    assert_eq!(Filter::named("cpu"), None);
}
