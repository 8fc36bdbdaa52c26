//! Every benchmark does its work, at tiny sizes. What the numbers are is nobody's business here.

use tepui_bench::{
    allocator, binary, end_to_end, failover, idle, launch, memory, metrics, operators, reading, registry,
    takeover, weights,
};

fn assert_built() {
    binary().expect("build the binary first: cargo build");
}

#[test]
fn launch_through_both_forms_of_the_api() {
    assert_built();
    for json_api in [false, true] {
        let options = launch::Options {
            tasks: 40,
            agents: 4,
            frameworks: 2,
            window: Some(7),
            json_api,
            runs: 1,
            master_flags: vec!["--allocation_interval=50ms".to_owned()],
        };
        assert_eq!(launch::run(&options).expect("it runs").rows(), 1);
    }
}

#[test]
fn failover_brings_agents_and_tasks_back() {
    assert_built();
    let options = failover::Options {
        agents: 20,
        tasks: 2,
        frameworks: 2,
        backoff_ms: 50,
        runs: 2,
        master_flags: Vec::new(),
    };
    assert_eq!(failover::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn memory_grows_in_steps() {
    assert_built();
    let options = memory::Options { agents: 10, tasks: 2, steps: 2, settle_seconds: 0.0 };
    assert_eq!(memory::run(&options).expect("it runs").rows(), 5);
}

#[test]
fn idle_watches_a_dev_cluster() {
    assert_built();
    let options = idle::Options { seconds: 0.1, agents: 1, runs: 2, settle_seconds: 0.0 };
    assert_eq!(idle::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn end_to_end_runs_real_tasks() {
    assert_built();
    let options = end_to_end::Options {
        tasks: 6,
        agents: 2,
        slots: 2,
        allocation_interval: "100ms".to_owned(),
        command: "true".to_owned(),
        runs: 1,
    };
    assert_eq!(end_to_end::run(&options).expect("it runs").rows(), 1);
}

#[test]
fn readers_and_launches_share_a_master() {
    assert_built();
    let options = reading::Options {
        agents: 4,
        tasks: 8,
        readers: 2,
        seconds: 0.5,
        rate: 20,
        gzip: false,
        master_flags: vec!["--allocation_interval=50ms".to_owned()],
    };
    assert_eq!(reading::run(&options).expect("it runs").rows(), 5);
}

#[test]
fn operators_follow_what_happens() {
    assert_built();
    let options = operators::Options { subscribers: 3, tasks: 10, agents: 2, stalled: true };
    assert_eq!(operators::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn metrics_come_in_both_forms() {
    assert_built();
    let options = metrics::Options { frameworks: 3, runs: 2 };
    assert_eq!(metrics::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn weights_change_under_many_clients() {
    assert_built();
    let options = weights::Options { clients: 4, updates: 3, runs: 2 };
    assert_eq!(weights::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn allocator_runs_every_shape() {
    let small = allocator::Options { only: Some("roles".to_owned()), agents_max: 20, runs: 2 };
    assert_eq!(allocator::run(&small).expect("it runs").rows(), 4);
    let other = allocator::Options { only: Some("decline".to_owned()), agents_max: 0, runs: 1 };
    assert_eq!(allocator::run(&other).expect("it runs").rows(), 0);
}

#[test]
fn another_master_takes_over() {
    assert_built();
    let options = takeover::Options { agents: 5, members: 1, lease_seconds: 1, backoff_ms: 20, runs: 1 };
    assert_eq!(takeover::run(&options).expect("it runs").rows(), 1);
}

#[test]
fn the_registry_takes_changes_in_a_file_and_in_etcd() {
    assert_built();
    for members in [0, 1] {
        let options = registry::Options { operations: 20, clients: 4, members };
        assert_eq!(registry::run(&options).expect("it runs").rows(), 1);
    }
}
