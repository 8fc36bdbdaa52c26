//! Every recorded answer of a v1 master and agent about the operator's side, met by the running binaries.
//!
//! The cluster is brought into the state that the recorded one had: the same framework, the same tasks in the same
//! states. Then every recorded request is sent again, with the ids and directories of this run, and the answers are
//! held against each other: status, headers, keys, types, and values unless they differ from run to run.
//! A difference that is not listed in `DIFFERENCES`, and named in docs/compat.md, fails.

mod operator {
    pub mod battery;
    pub mod personal;
    pub mod tasks;
}

use operator::battery::Battery;
use operator::tasks;
use serde_json::json;
use tepui_e2e::{Cluster, Scheduler, wait_for};

const RECORDED: &str = include_str!("../recorded/operator.jsonl");
const RECORDED_WRITES: &str = include_str!("../recorded/operator_writes.jsonl");

/// Where our answers differ on purpose: the name in docs/compat.md, and the places, as `recorded name: path` with `*`.
const DIFFERENCES: &[(&str, &[&str])] = &[
    ("Flags in answers", &["*.flags.*"]),
    ("Charset of pages", &["master GET /redirect: header content-type*"]),
    ("Content-Type", &["master v1 body charset: *"]),
    ("Messages for malformed JSON", &["master v1 body wrong field type: body*"]),
    ("`agent_info.checkpoint`", &["*.agent_info.checkpoint: missing"]),
    ("Commands of built-in executors", &["agent v1 GET_*.executor_info.command.*"]),
    ("Executor output in a sandbox", &["agent files browse: [0].size*"]),
    ("Equal resources of a task", &["operator event SUBSCRIBED: *.completed_tasks[3].resources*"]),
    ("A command without a value", &["*completed_tasks[6].*"]),
    (
        "Sentence of `update v-uri TASK_FAILED REASON_CONTAINER_LAUNCH_FAILED`",
        &["operator event SUBSCRIBED: *.completed_tasks[8].statuses[0].message*"],
    ),
    (
        "`reregistered_time` of an unknown framework",
        &["*.completed_frameworks[1].reregistered_time: missing"],
    ),
    ("`master/messages_update_slave`", &["*master/messages_update_slave*"]),
    (
        "More metrics",
        &[
            "*master/turn*",
            "*registrar/log/*",
            "*/slack_*",
            "*slave/memory_evictions*",
            "*disk_pressure*",
            "*disk_available*",
            "*disk_reserve*",
            "*disk_evictions*",
            "*slave/container_waits_pending*",
        ],
    ),
    (
        "Statuses of group tasks",
        &[
            "*.completed_tasks[12].statuses[*].container_status.executor_pid: extra",
            "*.completed_tasks[12].statuses[2].container_status.network_infos: extra",
        ],
    ),
    ("Calls of the replay", &["*/calls*", "*messages_revive_offers*", "*messages_suppress_offers*"]),
];

#[test]
fn answers_match_the_recorded_ones() {
    let cluster = Cluster::with(
        &["--hostname=localhost", "--jsonp"],
        &["--resources=cpus:16;mem:8000;disk:1000;ports:[31000-32000]", "--hostname=localhost", "--jsonp"],
    );
    let http = cluster.http();
    let mut scheduler = Scheduler::subscribe(&http, tasks::framework());
    let mut battery = Battery::new(RECORDED, &cluster, DIFFERENCES);
    let offer = tasks::first_four(&mut scheduler, &http, &cluster.agent_http());
    battery.know_sandbox("t-run");
    for name in battery.names_until("agent v1 attach output unknown") {
        battery.replay(&name);
    }
    for name in [
        "master v1 UPDATE_WEIGHTS empty",
        "master POST teardown unknown",
        "master v1 MARK_AGENT_GONE unknown",
        "master v1 TEARDOWN unknown",
    ] {
        battery.replay(name);
    }
    tasks::other_frameworks(&http);
    tasks::the_rest(&mut scheduler, &offer, &http, &cluster.agent_http(), cluster.folder());
    let mut stream = http.stream("/api/v1", &[("Accept", "application/json")], &json!({"type": "SUBSCRIBE"}));
    for name in ["operator event SUBSCRIBED", "operator event HEARTBEAT"] {
        battery.meet(name, &stream.next_event().expect("an event"));
    }
    tasks::kill(&mut scheduler, "t-run", &http);
    scheduler.fresh_offer();
    battery.replay("master GET /state at end");
    scheduler.call(json!({"type": "TEARDOWN"}));
    wait_for("the framework to end", || {
        let frameworks = http.get("/frameworks").json()?;
        frameworks["frameworks"].as_array()?.is_empty().then_some(())
    });
    battery.replay("master GET /frameworks at end");
    battery.finish();
}

/// The same for writes of operators.
const DIFFERENCES_OF_WRITES: &[(&str, &[&str])] = &[
    ("Message for a missing quota", &["master DELETE quota none: body*"]),
    ("Revocable amounts", &["master GET /slaves reserved: *.mem_revocable: extra"]),
    ("Roles of weight 1", &["master GET /roles after: .roles: 3 elements instead of 4"]),
];

#[test]
fn answers_to_writes_match_the_recorded_ones() {
    let cluster = Cluster::with(
        &["--hostname=localhost", "--jsonp"],
        &["--resources=cpus:16;mem:8000;disk:1000;ports:[31000-32000]", "--hostname=localhost", "--jsonp"],
    );
    let http = cluster.http();
    let mut scheduler = Scheduler::subscribe(&http, tasks::framework());
    tasks::first_four(&mut scheduler, &http, &cluster.agent_http());
    // The recorded master had weights before.
    let weights = json!([{"role": "a", "weight": 2.0}, {"role": "b", "weight": 3.0}]).to_string();
    assert_eq!(http.send("PUT", "/weights", &[], weights.as_bytes()).status, 200);
    let mut battery = Battery::new(RECORDED_WRITES, &cluster, DIFFERENCES_OF_WRITES);
    let agents = http.get("/slaves").json().expect("JSON");
    battery
        .know("1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-S0", agents["slaves"][0]["id"].as_str().expect("an id"));
    battery.know_address("127.0.0.1:15051", cluster.agent_http().address());
    for name in battery.names() {
        if name == "master GET /slaves reserved" {
            scheduler.fresh_offer();
        }
        battery.replay(&name);
    }
    battery.finish();
}

#[test]
fn every_difference_is_explained() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat.md");
    let compat = std::fs::read_to_string(path).expect("docs/compat.md can be read");
    for (name, _) in DIFFERENCES.iter().chain(DIFFERENCES_OF_WRITES) {
        assert!(compat.contains(&format!("- **{name}.**")), "docs/compat.md does not name {name:?}");
    }
}
