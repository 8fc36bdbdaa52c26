//! Everything operators can read, from a real master and agent: under every name, in every form, by every query.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, wait_for};
use tepui_proto::mesos::v1::{agent, master};
use tepui_proto::{json, wire};

/// The largest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A cluster with one running and one failed task.
struct Busy {
    cluster: Cluster,
    scheduler: Scheduler,
    master: Http,
    agent: Http,
}

fn busy(master_flags: &[&str]) -> Busy {
    let mut flags = vec!["--hostname=localhost", "--cluster=demo", "--jsonp"];
    flags.extend(master_flags);
    let cluster = Cluster::with(
        &flags,
        &["--resources=cpus:8;mem:4096;disk:4096", "--attributes=rack:r1;zone:z", "--jsonp"],
    );
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut scheduler = Scheduler::subscribe(&master, Scheduler::info("eng/web"));
    let offer = scheduler.offer();
    let tasks = [
        Scheduler::task(&offer, "stays", "echo hello; sleep 1000"),
        Scheduler::task(&offer, "fails", "exit 3"),
    ];
    assert_eq!(scheduler.launch(&offer, &tasks).status, 202);
    scheduler.reach("fails", "TASK_FAILED");
    scheduler.reach("stays", "TASK_RUNNING");
    wait_for("the failed task to be over", || {
        let over = master.get("/frameworks").json()?["frameworks"][0]["completed_tasks"].as_array()?.len();
        (over == 1).then_some(())
    });
    Busy { cluster, scheduler, master, agent }
}

fn get(http: &Http, path: &str, headers: &[(&str, &str)]) -> Response {
    http.send("GET", path, headers, b"")
}

/// Documents of the master and the agent with the prefix they also answer to, and one key that must be there.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("/master", "/state", "slaves"),
    ("/master", "/state-summary", "slaves"),
    ("/master", "/slaves", "slaves"),
    ("/master", "/frameworks", "frameworks"),
    ("/master", "/frameworks/", "frameworks"),
    ("/master", "/tasks", "tasks"),
    ("/master", "/roles", "roles"),
    ("/master", "/flags", "flags"),
    ("", "/version", "version"),
    ("", "/metrics/snapshot", "master/elected"),
    ("", "/system/stats.json", "cpus_total"),
    ("", "/allocator/offer_constraints_debug", "frameworks"),
    ("", "/registrar(1)/registry", "slaves"),
    ("/slave(1)", "/state", "frameworks"),
    ("/slave(1)", "/flags", "flags"),
    ("/slave(1)", "/containers", ""),
    ("/slave(1)", "/monitor/statistics", ""),
    ("agent", "/version", "version"),
    ("agent", "/metrics/snapshot", "slave/registered"),
    ("agent", "/system/stats.json", "mem_total_bytes"),
    ("agent", "/containerizer/debug", "pending"),
    ("agent", "/files/debug", ""),
];

#[test]
fn documents_have_all_paths_and_formats() {
    let busy = busy(&[]);
    for (prefix, path, key) in DOCUMENTS {
        let http = if matches!(*prefix, "/slave(1)" | "agent") { &busy.agent } else { &busy.master };
        let prefixes: &[&str] = if prefix.starts_with('/') { &["", *prefix] } else { &[""] };
        for prefix in prefixes {
            let path = format!("{prefix}{path}");
            let plain = get(http, &path, &[]);
            assert_eq!(plain.status, 200, "{path}: {}", plain.text());
            assert_eq!(plain.header("content-type"), Some("application/json"), "{path}");
            let document = plain.json().expect("JSON");
            assert!(key.is_empty() || document.get(*key).is_some(), "{path} lacks {key}: {document}");
            let script = get(http, &format!("{path}?jsonp=angular.callbacks._0"), &[]);
            assert_eq!(script.header("content-type"), Some("text/javascript"), "{path}");
            let inside = script.text();
            let inside = inside.strip_prefix("angular.callbacks._0(").and_then(|text| text.strip_suffix(')'));
            let inside: Value = serde_json::from_str(inside.expect("a call")).expect("JSON");
            assert_eq!(kinds(&inside), kinds(&document), "{path}");
        }
    }
    for http in [&busy.master, &busy.agent] {
        for path in ["/health", "/logging/toggle"] {
            assert_eq!(http.get(path).status, 200, "{path}");
        }
        let text = http.get("/metrics");
        assert_eq!(text.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        assert!(
            text.text().contains("\n# TYPE tepui_") && text.text().contains(" gauge\n"),
            "{}",
            text.text()
        );
        assert_eq!(http.get("/metrics/nope").status, 404);
        assert!(http.get("/help").text().contains(r#"<a href="/help/metrics">/metrics</a>"#));
        assert_eq!(http.get("/profiler/start").status, 400);
    }
    assert_eq!(busy.agent.get("/slave(1)/health").status, 200);
    assert_eq!(busy.master.get("/master/health").status, 200);
}

/// The names of the members, and the kind of array elements.
fn kinds(document: &Value) -> Vec<String> {
    match document {
        Value::Object(members) => members.keys().cloned().collect(),
        Value::Array(values) => values.first().map(kinds).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[test]
fn unchanged_document_is_304() {
    let busy = busy(&[]);
    // Only the decline filters of this framework expire.
    busy.scheduler.call(json!({"type": "SUPPRESS"}));
    for (http, path) in [(&busy.master, "/state"), (&busy.master, "/tasks"), (&busy.agent, "/slave(1)/state")]
    {
        let tag = wait_for("two answers of one version", || {
            let first = get(http, path, &[]).header("etag")?.to_string();
            let again = get(http, path, &[("If-None-Match", &first)]);
            (again.status == 304 && again.body.is_empty()).then_some(first)
        });
        let other = get(http, path, &[("If-None-Match", "W/\"0-0\"")]);
        assert_eq!(other.status, 200);
        assert!(other.header("etag").is_some() && tag.starts_with("W/"), "{tag}");
    }
    let packed = get(&busy.master, "/state", &[("Accept-Encoding", "gzip")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_eq!(packed.body[..2], [0x1f, 0x8b]);
    assert!(get(&busy.master, "/state", &[]).header("content-encoding").is_none());
}

#[test]
fn query_parameters_select_entities() {
    let busy = busy(&[]);
    let ids = |path: &str, list: &str| -> Vec<String> {
        let document = busy.master.get(path).json().expect("JSON");
        let list = document[list].as_array().expect("a list");
        list.iter().map(|one| one["id"].as_str().expect("an id").to_string()).collect()
    };
    let framework = busy.scheduler.framework_id.clone();
    let agent = busy.scheduler.agent_id["value"].as_str().expect("an id").to_string();
    let [both, stays, fails, none]: [&[&str]; 4] = [&["stays", "fails"], &["stays"], &["fails"], &[]];
    let in_any_order = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    for (query, expected) in [
        ("", both),
        ("?limit=-1&order=asc", both),
        ("?limit=0", none),
        ("?offset=2", none),
        ("?offset=-1", none),
        ("?limit=x&offset=y", both),
        ("?task_id=stays", stays),
        ("?task_id=fails&limit=5", fails),
        ("?task_id=nope", none),
        ("?framework_id=nope", none),
        ("?framework_id=nope&framework_id=FRAMEWORK", both),
        ("?framework_id=FRAMEWORK&task_id=stays", stays),
    ] {
        let got = ids(&format!("/tasks{}", query.replace("FRAMEWORK", &framework)), "tasks");
        let expected: Vec<String> = expected.iter().map(|id| id.to_string()).collect();
        assert_eq!(in_any_order(got), in_any_order(expected), "{query}");
    }
    let (up, down) = (ids("/tasks?order=asc", "tasks"), ids("/tasks?order=desc", "tasks"));
    assert_eq!(up, down.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(ids("/tasks?order=asc&limit=1", "tasks"), up[..1]);
    assert_eq!(ids("/tasks?order=asc&limit=1&offset=1", "tasks"), up[1..]);
    assert_eq!(ids(&format!("/frameworks?framework_id={framework}"), "frameworks"), [framework]);
    assert_eq!(ids("/frameworks?framework_id=", "frameworks"), [""; 0]);
    assert_eq!(ids(&format!("/slaves?slave_id={agent}"), "slaves"), [agent]);
    assert_eq!(ids("/slaves?slave_id=nope", "slaves"), [""; 0]);
}

#[test]
fn query_parameters_select_containers() {
    let mut busy = busy(&[]);
    let offer = busy.scheduler.fresh_offer();
    busy.scheduler.launch(&offer, &[Scheduler::task(&offer, "too", "sleep 1000")]);
    busy.scheduler.reach("too", "TASK_RUNNING");
    let contained = |query: &str| -> Vec<Value> {
        let answer = busy.agent.get(&format!("/containers{query}")).json().expect("JSON");
        answer.as_array().expect("a list").clone()
    };
    let all = contained("");
    assert_eq!(all.len(), 2, "{all:?}");
    for one in &all {
        let [id, framework, executor] =
            ["container_id", "framework_id", "executor_id"].map(|key| one[key].as_str().expect("an id"));
        let selected = contained(&format!("?container_id={id}"));
        assert_eq!((selected.len(), &selected[0]["executor_id"]), (1, &one["executor_id"]));
        assert!(selected[0]["statistics"]["processes"].is_number(), "{selected:?}");
        let selected = contained(&format!("?framework_id={framework}&executor_id={executor}"));
        assert_eq!((selected.len(), &selected[0]["container_id"]), (1, &one["container_id"]));
        assert_eq!(contained(&format!("?framework_id={framework}")).len(), 2);
    }
    for query in ["?container_id=nope", "?framework_id=nope"] {
        assert_eq!(contained(query), [Value::Null; 0], "{query}");
    }
}

#[test]
fn completed_entries_are_limited_by_flags() {
    let mut busy = busy(&["--max_completed_tasks_per_framework=2", "--max_completed_frameworks=1"]);
    for id in ["a", "b"] {
        let offer = busy.scheduler.fresh_offer();
        busy.scheduler.launch(&offer, &[Scheduler::task(&offer, id, "true")]);
        busy.scheduler.reach(id, "TASK_FINISHED");
    }
    let completed = wait_for("the tasks to be over", || {
        let frameworks = busy.master.get("/frameworks").json()?;
        let tasks = frameworks["frameworks"][0]["completed_tasks"].as_array()?.clone();
        let ids: Vec<String> =
            tasks.iter().filter_map(|task| Some(task["id"].as_str()?.to_string())).collect();
        ids.contains(&"b".to_string()).then_some(ids)
    });
    assert_eq!(completed, ["a", "b"]);
    for name in ["first", "second"] {
        let ended = Scheduler::subscribe(&busy.master, json!({"user": "root", "name": name}));
        ended.call(json!({"type": "TEARDOWN"}));
    }
    wait_for("only the last framework to be remembered", || {
        let ended = busy.master.get("/frameworks").json()?["completed_frameworks"].as_array()?.clone();
        (ended.len() == 1 && ended[0]["name"] == "second").then_some(())
    });
}

#[test]
fn unreachable_entries_are_limited_by_a_flag() {
    let flags = [
        "--agent_ping_timeout=1secs",
        "--max_agent_ping_timeouts=1",
        "--max_unreachable_tasks_per_framework=1",
    ];
    let mut busy = busy(&flags);
    let offer = busy.scheduler.fresh_offer();
    busy.scheduler.launch(&offer, &[Scheduler::task(&offer, "too", "sleep 1000")]);
    busy.scheduler.reach("too", "TASK_RUNNING");
    busy.cluster.agents[0].kill();
    wait_for("one of the two tasks to be remembered", || {
        let framework = busy.master.get("/frameworks").json()?["frameworks"][0].clone();
        let [tasks, away] = ["tasks", "unreachable_tasks"].map(|key| framework[key].as_array().map(Vec::len));
        (tasks? == 0 && away? == 1).then_some(())
    });
    let calls = busy.master.post("/api/v1", &json!({"type": "GET_TASKS"})).json().expect("JSON");
    assert_eq!(calls["get_tasks"]["unreachable_tasks"].as_array().map(Vec::len), Some(1), "{calls}");
}

/// Read calls with their parameters.
const MASTER_READS: &[&str] = &[
    r#"{"type":"GET_HEALTH"}"#,
    r#"{"type":"GET_FLAGS"}"#,
    r#"{"type":"GET_VERSION"}"#,
    r#"{"type":"GET_LOGGING_LEVEL"}"#,
    r#"{"type":"GET_STATE"}"#,
    r#"{"type":"GET_AGENTS"}"#,
    r#"{"type":"GET_FRAMEWORKS"}"#,
    r#"{"type":"GET_EXECUTORS"}"#,
    r#"{"type":"GET_OPERATIONS"}"#,
    r#"{"type":"GET_TASKS"}"#,
    r#"{"type":"GET_ROLES"}"#,
    r#"{"type":"GET_WEIGHTS"}"#,
    r#"{"type":"GET_QUOTA"}"#,
    r#"{"type":"GET_MAINTENANCE_STATUS"}"#,
    r#"{"type":"GET_MAINTENANCE_SCHEDULE"}"#,
    r#"{"type":"GET_MASTER"}"#,
];

const AGENT_READS: &[&str] = &[
    r#"{"type":"GET_HEALTH"}"#,
    r#"{"type":"GET_FLAGS"}"#,
    r#"{"type":"GET_VERSION"}"#,
    r#"{"type":"GET_LOGGING_LEVEL"}"#,
    r#"{"type":"GET_STATE"}"#,
    r#"{"type":"GET_FRAMEWORKS"}"#,
    r#"{"type":"GET_EXECUTORS"}"#,
    r#"{"type":"GET_OPERATIONS"}"#,
    r#"{"type":"GET_TASKS"}"#,
    r#"{"type":"GET_AGENT"}"#,
    r#"{"type":"GET_RESOURCE_PROVIDERS"}"#,
    r#"{"type":"LIST_FILES","list_files":{"path":"SANDBOX"}}"#,
    r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/stdout","offset":0}}"#,
];

/// All four combinations of request and answer encodings agree.
#[test]
fn calls_agree_in_json_and_protobuf() {
    let busy = busy(&[]);
    busy.scheduler.call(json!({"type": "SUPPRESS"}));
    for call in MASTER_READS {
        let message: master::Call = json::from_slice(call.as_bytes()).expect("a call");
        let answers = in_all_ways(&busy.master, "/master/api/v1", call, &wire::encode(&message));
        let [first, others @ ..] =
            answers.map(|(is_json, body)| -> master::Response { decoded(is_json, &body) });
        assert!(first.r#type.is_some(), "{call}");
        others.iter().for_each(|other| assert_eq!(*other, first, "{call}"));
    }
    let sandbox = sandbox(&busy.agent);
    for call in AGENT_READS {
        let call = call.replace("SANDBOX", &sandbox);
        let message: agent::Call = json::from_slice(call.as_bytes()).expect("a call");
        let answers = in_all_ways(&busy.agent, "/slave(1)/api/v1", &call, &wire::encode(&message));
        let [first, others @ ..] =
            answers.map(|(is_json, body)| -> agent::Response { decoded(is_json, &body) });
        assert!(first.r#type.is_some(), "{call}");
        others.iter().for_each(|other| assert_eq!(*other, first, "{call}"));
    }
    // What is measured differs from one moment to the next: their names do not.
    let metrics = r#"{"type":"GET_METRICS","get_metrics":{"timeout":{"nanoseconds":5000000000}}}"#;
    let message: master::Call = json::from_slice(metrics.as_bytes()).expect("a call");
    let names =
        in_all_ways(&busy.master, "/api/v1", metrics, &wire::encode(&message)).map(|(is_json, body)| {
            let answer: master::Response = decoded(is_json, &body);
            answer.get_metrics.metrics.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
        });
    assert!(names.iter().all(|one| *one == names[0] && one.len() > 100), "{names:?}");
    let containers = r#"{"type":"GET_CONTAINERS","get_containers":{"show_nested":true}}"#;
    let message: agent::Call = json::from_slice(containers.as_bytes()).expect("a call");
    for (is_json, body) in in_all_ways(&busy.agent, "/api/v1", containers, &wire::encode(&message)) {
        let answer: agent::Response = decoded(is_json, &body);
        assert_eq!(answer.get_containers.containers[0].executor_id.value, "stays");
    }
}

fn decoded<M: tepui_proto::Wire>(is_json: bool, body: &[u8]) -> M {
    match is_json {
        true => json::from_slice(body).expect("JSON of a message"),
        false => wire::decode(body, ANSWER_BYTES_MAX).expect("a message"),
    }
}

/// A call in JSON and in protobuf, each answered in JSON and in protobuf.
fn in_all_ways(http: &Http, path: &str, in_json: &str, in_protobuf: &[u8]) -> [(bool, Vec<u8>); 4] {
    let protobuf = "application/x-protobuf";
    let ways = [("application/json", "application/json"), ("application/json", protobuf)];
    let ways = [ways[0], ways[1], (protobuf, "application/json"), (protobuf, protobuf)];
    ways.map(|(sent, wanted)| {
        let body = if sent == protobuf { in_protobuf } else { in_json.as_bytes() };
        let answer = http.send("POST", path, &[("Content-Type", sent), ("Accept", wanted)], body);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(wanted)), "{}", answer.text());
        (wanted == "application/json", answer.body)
    })
}

fn sandbox(agent: &Http) -> String {
    let debug = agent.get("/files/debug").json().expect("JSON");
    let paths = debug.as_object().expect("an object").values();
    let mut paths = paths.filter_map(Value::as_str).filter(|path| path.contains("/executors/stays/"));
    paths.next().expect("the executor has a sandbox").to_string()
}

#[test]
fn log_level_is_changed_and_logs_are_readable() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("words.log");
    std::fs::write(&log, "first words\n").expect("it can be written");
    let flag = format!("--external_log_file={}", log.display());
    let cluster = Cluster::with(&[&flag], &[&flag, "--resources=cpus:1;mem:64"]);
    for (http, path) in [(cluster.http(), "/master/log"), (cluster.agent_http(), "/slave/log")] {
        let state = http.get("/state").json().expect("JSON");
        assert_eq!(state["external_log_file"], log.display().to_string());
        let read = http.get(&format!("/files/read?path={path}&offset=6")).json();
        assert_eq!(read, Some(json!({"data": "words\n", "offset": 6})));
        assert_eq!(http.get(&format!("/files/browse?path={path}")).json(), Some(json!([])));
        assert_eq!(http.get(&format!("/files/download?path={path}")).text(), "first words\n");
        assert_eq!(http.get("/files/debug").json().expect("JSON")[path], log.display().to_string());
        let read = json!({"type": "READ_FILE", "read_file": {"path": path, "offset": 0, "length": 5}});
        let answer = http.post("/api/v1", &read).json().expect("JSON");
        assert_eq!(answer["read_file"], json!({"size": 12, "data": "Zmlyc3Q="}));
        let list = json!({"type": "LIST_FILES", "list_files": {"path": format!("{path}/nope")}});
        assert_eq!(http.post("/api/v1", &list).status, 404);

        let level = || http.post("/api/v1", &json!({"type": "GET_LOGGING_LEVEL"})).json().expect("JSON");
        let set = json!({"type": "SET_LOGGING_LEVEL",
            "set_logging_level": {"level": 1, "duration": {"nanoseconds": 60_000_000_000_u64}}});
        assert_eq!(http.post("/api/v1", &set).status, 200);
        assert_eq!(level()["get_logging_level"]["level"], 1);
        assert_eq!(http.get("/logging/toggle").text(), "1\n");
        assert_eq!(http.get("/logging/toggle?level=2&duration=1ns").status, 200);
        wait_for("the level to go back", || (level()["get_logging_level"]["level"] == 0).then_some(()));
    }
}

#[test]
fn log_file_is_written_to_log_dir() {
    let folder = tempfile::tempdir().expect("a directory");
    let logs = folder.path().join("logs");
    let flag = format!("--log_dir={}", logs.display());
    let cluster = Cluster::with(&[&flag], &[&flag, "--resources=cpus:1;mem:64"]);
    for (http, path, file, expected) in [
        (cluster.http(), "/master/log", "mesos-master.INFO", "master listening"),
        (cluster.agent_http(), "/slave/log", "mesos-agent.INFO", "agent"),
    ] {
        let state = http.get("/state").json().expect("JSON");
        assert_eq!((&state["log_dir"], &state["external_log_file"]), (&json!(logs.to_str()), &Value::Null));
        let real = logs.join(file).display().to_string();
        assert_eq!(http.get("/files/debug").json().expect("JSON")[path], real);
        let printed = http.get(&format!("/files/download?path={path}")).text();
        assert!(printed.contains(expected) && !printed.contains('\u{1b}'), "{printed}");
    }
}

#[test]
fn disabled_endpoints_are_403() {
    let rules = |path: &str| {
        format!("--firewall_rules={{\"disabled_endpoints\":{{\"paths\":[\"{path}\",\"/files/debug\"]}}}}")
    };
    let (master, agent) = (rules("/master/state"), rules("/slave(1)/state"));
    let cluster = Cluster::with(&[&master], &[&agent, "--resources=cpus:1;mem:64"]);
    for (http, prefix) in [(cluster.http(), "/master"), (cluster.agent_http(), "/slave(1)")] {
        for path in ["/state", &format!("{prefix}/state"), "/state/", "/files/debug"] {
            let answer = http.get(path);
            assert_eq!(answer.status, 403, "{path}");
            assert!(answer.text().ends_with(" is disabled"), "{path}: {}", answer.text());
        }
        for path in ["/flags", "/health", &format!("{prefix}/health"), "/metrics/snapshot"] {
            assert_eq!(http.get(path).status, 200, "{path}");
        }
    }
}

#[test]
fn constraints_debug_lists_filtered_agents() {
    let busy = busy(&[]);
    let constraint =
        json!({"selector": {"attribute_name": "rack"}, "predicate": {"text_equals": {"value": "r2"}}});
    let constraints =
        json!({"role_constraints": {"ops": {"groups": [{"attribute_constraints": [constraint]}]}}});
    let info = Scheduler::info("ops");
    let call =
        json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info, "offer_constraints": constraints}});
    let mut stream = busy.master.stream("/api/v1/scheduler", &[("Accept", "application/json")], &call);
    let subscribed = stream.next_event().expect("an event");
    let id = subscribed["subscribed"]["framework_id"]["value"].as_str().expect("an id").to_string();
    busy.scheduler.call(json!({"type": "SUPPRESS"}));
    let frameworks = wait_for("the role to be suppressed", || {
        let debug = busy.master.get("/allocator/offer_constraints_debug").json()?;
        let own = &debug["frameworks"][&busy.scheduler.framework_id];
        (own["suppressed_roles"] == json!(["eng/web"])).then(|| debug["frameworks"].clone())
    });
    let left_out = json!({"ops": [busy.scheduler.agent_id["value"]]});
    assert_eq!(frameworks[id]["excluded_by_attribute_constraints"], left_out);
    assert_eq!(frameworks[&busy.scheduler.framework_id]["excluded_by_attribute_constraints"], json!({}));
}

#[test]
fn framework_metrics_can_be_disabled() {
    let busy = busy(&["--publish_per_framework_metrics=false"]);
    let metrics = busy.master.get("/metrics/snapshot").json().expect("JSON");
    let names: Vec<&String> = metrics.as_object().expect("an object").keys().collect();
    assert!(!names.iter().any(|name| name.starts_with("master/frameworks/")), "{names:?}");
    assert_eq!(metrics["allocator/mesos/offer_filters/roles/eng/web/active"], 0.0);
    let offer_filters = || {
        let metrics = busy.master.get("/metrics/snapshot").json()?;
        metrics["allocator/mesos/offer_filters/roles/eng/web/active"].as_f64()
    };
    // The first framework declines its offers and gets no more.
    busy.scheduler.call(json!({"type": "SUPPRESS"}));
    wait_for("the first to hold no offer", || {
        let frameworks = busy.master.get("/frameworks").json()?;
        let offers = frameworks["frameworks"][0]["offers"].as_array()?;
        for offer in offers {
            let refusal = json!({"offer_ids": [{"value": offer["id"]}], "filters": {"refuse_seconds": 0.0}});
            busy.scheduler.call(json!({"type": "DECLINE", "decline": refusal}));
        }
        offers.is_empty().then_some(())
    });
    // Everything that the second is offered is refused for long: one filter for the one agent.
    let mut scheduler = Scheduler::subscribe(&busy.master, Scheduler::info("eng/web"));
    wait_for("a filter to be counted", || {
        let offer = scheduler.offer();
        let refusal = json!({"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 1000.0}});
        scheduler.call(json!({"type": "DECLINE", "decline": refusal}));
        (offer_filters() == Some(1.0)).then_some(())
    });
    scheduler.call(json!({"type": "TEARDOWN"}));
    wait_for("the filter to go with its framework", || (offer_filters() == Some(0.0)).then_some(()));
    drop(busy.cluster);
}

#[test]
fn quota_metrics_are_published() {
    let busy = busy(&[]);
    let config =
        json!({"role": "eng", "guarantees": {"cpus": {"value": 2.0}}, "limits": {"cpus": {"value": 4.0}}});
    let update = json!({"type": "UPDATE_QUOTA", "update_quota": {"quota_configs": [config]}});
    let answer = busy.master.post("/api/v1", &update);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let metrics = busy.master.get("/metrics/snapshot").json().expect("JSON");
    let of = |name: &str| metrics[format!("allocator/mesos/quota/roles/eng/resources/cpus/{name}")].as_f64();
    assert_eq!((of("guarantee"), of("limit"), of("consumed")), (Some(2.0), Some(4.0), Some(0.1)));
    assert!(of("offered_or_allocated").is_some_and(|cpus| cpus >= 0.1));
}

#[test]
fn teardown_accepts_a_form_post() {
    let mut busy = busy(&[]);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("frameworkId={}", busy.scheduler.framework_id);
    for (path, body, status, expected) in [
        ("/master/teardown", "", 400, "frameworkId"),
        ("/teardown", "frameworkId=nope", 400, "No framework found with specified ID"),
        ("/master/teardown", body.as_str(), 200, ""),
        ("/teardown", body.as_str(), 400, "No framework found with specified ID"),
    ] {
        let answer = busy.master.send("POST", path, &form, body.as_bytes());
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains(expected), "{path} {body}: {}", answer.text());
    }
    assert_eq!(busy.master.get("/teardown").status, 405);
    assert!(busy.scheduler.event("the end", |_| false).is_none(), "its stream ends");
}
