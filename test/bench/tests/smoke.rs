//! Every benchmark runs, at tiny sizes. The figures are not checked here.

use std::collections::BTreeSet;

use tepui_bench::{
    allocator, binary, containers, end_to_end, failover, idle, launch, long_running, memory, metrics,
    operators, reading, registry, service, state, swarm, swarm_front, swarm_run, takeover, weights,
};
use tepui_facilities::{Facility, available};

fn assert_built() {
    binary().expect("build the binary first: cargo build");
}

#[test]
fn launch_benchmark_uses_json_and_protobuf() {
    assert_built();
    for (json_api, calls) in [(false, 1), (false, 100), (true, 2)] {
        let options = launch::Options {
            tasks: 40,
            agents: 4,
            frameworks: 2,
            calls,
            window: Some(7),
            json_api,
            runs: 1,
            master_flags: vec!["--allocation_interval=50ms".to_owned()],
        };
        assert_eq!(launch::run(&options).expect("it runs").rows(), 1);
    }
}

#[test]
fn failover_benchmark_recovers_agents_and_tasks() {
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
fn container_benchmark_launches_and_destroys() {
    assert_built();
    if !available(&[Facility::Cgroups]) {
        return;
    }
    let options = containers::Options { alive: vec![0, 2], samples: 2, at_once: 2 };
    assert_eq!(containers::run(&options).expect("it runs").rows(), 5);
}

#[test]
fn containers_are_read_and_recovered() {
    assert_built();
    if !available(&[Facility::Cgroups]) {
        return;
    }
    let options =
        long_running::Options { tasks: 2, seconds: 0.1, reads: 2, recovered: 3, runs: 2, at_once: 2 };
    assert_eq!(long_running::run(&options).expect("it runs").rows(), 4);
}

#[test]
fn readers_and_launches_share_a_master() {
    assert_built();
    let options = reading::Options {
        agents: 4,
        tasks: 8,
        dashboards: 2,
        subscribers: 3,
        seconds: 0.5,
        rate: 40,
        rounds: 2,
        master_flags: vec!["--allocation_interval=50ms".to_owned()],
    };
    // Two in each round, one for all phases of a kind, and their ratio.
    assert_eq!(reading::run(&options).expect("it runs").rows(), 4 + 2 + 2 + 1);
}

#[test]
fn operator_benchmark_streams_events_to_subscribers() {
    assert_built();
    let options = operators::Options { subscribers: 3, tasks: 10, agents: 2, stalled: true };
    assert_eq!(operators::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn state_shows_running_and_completed_tasks_to_all_clients() {
    assert_built();
    let options = state::Options { agents: 4, running: 8, completed: 8, clients: vec![1, 3], rounds: 1 };
    assert_eq!(state::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn metrics_benchmark_reads_both_formats() {
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
    let options = allocator::Options {
        shape: None,
        agents: Some(10),
        frameworks: Some(4),
        agents_max: usize::MAX,
        runs: 2,
        instructions: false,
        program: Some(env!("CARGO_BIN_EXE_tepui-bench").into()),
    };
    let rows = allocator::run(&options).expect("it runs").to_json()["rows"].clone();
    let offers = |shape: &str, step: &str| -> Vec<u64> {
        let rows = rows.as_array().expect("rows").iter();
        rows.filter(|row| row["shape"] == shape && row["step"] == step)
            .map(|row| row["offers"].as_u64().expect("a number"))
            .collect()
    };
    // Every agent is offered once and there is nothing more to give; nothing goes to those who want nothing.
    assert_eq!((offers("roles", "first cycle"), offers("roles", "second cycle")), (vec![10], vec![0]));
    // One role wants two agents, three want half of one each.
    assert!(offers("quota-many-roles", "first cycle")[0] >= 4);
    assert_eq!(offers("quota-many-roles", "second cycle"), [0]);
    assert_eq!(offers("quota-roles", "first cycle"), [4]);
    assert_eq!(offers("add-and-update", "update agents"), [10]);
    assert_eq!(offers("suppress", "cycle"), [10; 5]);
    assert_eq!(offers("suppress", "cycle, all suppressed"), [0]);
    assert_eq!(offers("extreme-suppress", "cycle"), [10; 3]);
    assert_eq!(offers("decline", "early cycle"), [10]);
    assert_eq!(offers("decline", "late cycle, all agents again"), [0]);
    assert_eq!(offers("backlog", "add agents"), [10]);
    assert_eq!(offers("volumes", "cycle"), [10; 3]);
    assert_eq!(offers("multi-framework", "round"), [10; 10]);
    assert_eq!(offers("sorter", "allocate all"), [0]);
    assert!(offers("cluster", "first cycle")[0] >= 10);
    assert_eq!(offers("cluster", "the same, all agents again"), [0]);
    // Each shape says at its end what it took.
    let weighed = rows.as_array().expect("rows").iter().filter(|row| row["memory_mib"].is_number());
    let shapes: BTreeSet<&str> = weighed.filter_map(|row| row["shape"].as_str()).collect();
    assert_eq!(shapes.len(), 16, "{shapes:?}");
    assert!(allocator::run(&allocator::Options { shape: Some("none".to_owned()), ..options }).is_err());
}

#[test]
fn instructions_of_the_allocator_are_counted() {
    if !available(&[Facility::Program("valgrind")]) {
        return;
    }
    let options = allocator::Options {
        shape: Some("backlog".to_owned()),
        agents: Some(20),
        frameworks: Some(4),
        agents_max: usize::MAX,
        runs: 1,
        instructions: true,
        program: Some(env!("CARGO_BIN_EXE_tepui-bench").into()),
    };
    let count = || -> Vec<(String, u64)> {
        let rows = allocator::run(&options).expect("it runs").to_json()["rows"].clone();
        let rows = rows.as_array().expect("rows").iter();
        rows.map(|row| (row["step"].to_string(), row["instructions"].as_u64().expect("a number"))).collect()
    };
    let (first, second) = (count(), count());
    assert!(first.len() > 2, "{first:?}");
    for ((step, once), (_, again)) in first.into_iter().zip(second) {
        assert!(once > 1_000 && once.abs_diff(again) * 50 <= once, "{step}: {once}, then {again}");
    }
}

#[test]
fn takeover_benchmark_elects_another_master() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    assert_built();
    let options = takeover::Options {
        agents: 20,
        members: 3,
        lease_seconds: 1,
        backoff_ms: 20,
        backoff_max_ms: 100,
        runs: 2,
    };
    assert_eq!(takeover::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn registry_benchmark_commits_to_file_and_etcd() {
    assert_built();
    let options = registry::Options { operations: 20, clients: 4, members: vec![0, 1] };
    assert_eq!(registry::run(&options).expect("it runs").rows(), 2);
}

#[test]
fn swarm_creates_and_reads() {
    let options = swarm::Options { engines: 5, containers: 20, creates: 10, reads: 3, waiting: 10 };
    assert_eq!(swarm::run(&options).expect("it runs").rows(), 9);
}

#[test]
fn service_deploys_and_restarts() {
    let options = service::Options { pods: 20, agents: 5, running: vec![0, 10], launches: 5 };
    assert_eq!(service::run(&options).expect("it runs").rows(), 7);
}

#[test]
fn swarm_serves_readers_of_simulated_engines() {
    let options = swarm_front::Options {
        engines: 5,
        containers: 30,
        at_once: 3,
        single: 5,
        reads: 3,
        idle_seconds: 0.5,
    };
    let report = swarm_front::run(&options).expect("it runs").to_json();
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8, "{report}");
    assert_eq!(rows[7]["requests_to_engines"], 0, "{report}");
}

#[test]
fn swarm_runs_in_turns_with_its_engine() {
    if !available(&[Facility::Docker]) {
        return;
    }
    let report = swarm_run::run(&swarm_run::Options { samples: 2 }).expect("it runs");
    assert_eq!(report.rows(), 3);
}
