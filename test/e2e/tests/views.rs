//! A principal with a restricted view: one table of every endpoint and call, of which those that read show nothing that it may
//! not view.
//!
//! The name of everything that is out of its view contains `veiled`. An endpoint or call that is missing in the table
//! fails the test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, scalar, wait_for};

const CREDENTIALS: &str = r#"{"credentials":[
    {"principal":"ops","secret":"ops-secret"},
    {"principal":"dev","secret":"dev-secret"},
    {"principal":"agent","secret":"agent-secret"}]}"#;
const OPS: &str = "Basic b3BzOm9wcy1zZWNyZXQ=";
const DEV: &str = "Basic ZGV2OmRldi1zZWNyZXQ=";

/// `dev` may read, and view nothing.
const RULES: [(&str, &str); 13] = [
    ("view_frameworks", "users"),
    ("view_tasks", "users"),
    ("view_executors", "users"),
    ("view_roles", "roles"),
    ("view_flags", "flags"),
    ("view_containers", "users"),
    ("view_standalone_containers", "users"),
    ("view_resource_providers", "resource_providers"),
    ("access_sandboxes", "users"),
    ("access_mesos_logs", "logs"),
    ("get_quotas", "roles"),
    ("get_maintenance_schedules", "machines"),
    ("get_maintenance_statuses", "machines"),
];

/// The mark of what is out of view, as it is and at the start of a file in base64.
const WORDS: [&str; 2] = ["veiled", "dmVpbGVk"];

/// What an endpoint or call is for.
enum Use {
    /// With this target, or these parameters, a principal without restrictions is shown something veiled.
    Shows(&'static str),
    /// Reads nothing that could be veiled.
    Reads(&'static str),
    /// No read.
    Changes,
}
use Use::{Changes, Reads, Shows};

#[rustfmt::skip]
const MASTER: &[(&str, Use)] = &[
    ("allocator/offer_constraints_debug", Reads("/allocator/offer_constraints_debug")),
    ("files/browse", Reads("/files/browse?path=/master/log")),
    ("files/debug", Reads("/files/debug")),
    ("files/download", Reads("/files/download?path=/master/log")),
    ("files/read", Reads("/files/read?path=/master/log&offset=0")),
    ("help/", Reads("/help")),
    ("logging/toggle", Changes),
    ("master/", Reads("/")),
    ("master/api/v1", Changes), // Its calls have a table of their own.
    ("master/api/v1/agent", Changes),
    ("master/api/v1/scheduler", Changes),
    ("master/create-volumes", Changes),
    ("master/destroy-volumes", Changes),
    ("master/explain/framework", Shows("/explain/framework/FRAMEWORK")),
    ("master/explain/role", Shows("/explain/role/veiled-role")),
    ("master/flags", Shows("/flags")),
    ("master/frameworks", Shows("/frameworks")),
    ("master/health", Reads("/health")),
    ("master/machine/down", Changes),
    ("master/machine/up", Changes),
    ("master/maintenance/schedule", Shows("/maintenance/schedule")),
    ("master/maintenance/status", Shows("/maintenance/status")),
    ("master/quota", Shows("/quota")),
    ("master/redirect", Reads("/redirect")),
    ("master/reserve", Changes),
    ("master/roles", Shows("/roles")),
    ("master/slaves", Shows("/slaves")),
    ("master/state", Shows("/state")),
    ("master/state-summary", Shows("/state-summary")),
    ("master/tasks", Shows("/tasks")),
    ("master/teardown", Changes),
    ("master/unreserve", Changes),
    ("master/weight", Shows("/weight")),
    ("master/weights", Shows("/weights")),
    ("metrics/", Shows("/metrics")),
    ("metrics/snapshot", Shows("/metrics/snapshot")),
    ("profiler/start", Changes),
    ("profiler/stop", Changes),
    ("registrar(1)/registry", Shows("/registrar(1)/registry")),
    ("system/stats.json", Reads("/system/stats.json")),
    ("version/", Reads("/version")),
];

#[rustfmt::skip]
const AGENT: &[(&str, Use)] = &[
    ("containerizer/debug", Reads("/containerizer/debug")),
    ("files/browse", Shows("/files/browse?path=SANDBOX")),
    ("files/debug", Shows("/files/debug")),
    ("files/download", Shows("/files/download?path=SANDBOX/veiled-file")),
    ("files/read", Shows("/files/read?path=SANDBOX/veiled-file&offset=0")),
    ("help/", Reads("/help")),
    ("logging/toggle", Changes),
    ("metrics/", Reads("/metrics")),
    ("metrics/snapshot", Reads("/metrics/snapshot")),
    ("profiler/start", Changes),
    ("profiler/stop", Changes),
    ("slave(1)/api/v1", Changes), // Its calls have a table of their own.
    ("slave(1)/api/v1/executor", Changes),
    ("slave(1)/containers", Shows("/containers")),
    ("slave(1)/flags", Shows("/flags")),
    ("slave(1)/health", Reads("/health")),
    ("slave(1)/monitor/statistics", Shows("/monitor/statistics")),
    ("slave(1)/state", Shows("/state")),
    ("slave(1)/volume_drivers", Reads("/volume_drivers")),
    ("system/stats.json", Reads("/system/stats.json")),
    ("version/", Reads("/version")),
];

#[rustfmt::skip]
const MASTER_CALLS: &[(&str, Use)] = &[
    ("GET_HEALTH", Reads("{}")), ("GET_FLAGS", Shows("{}")), ("GET_VERSION", Reads("{}")),
    ("GET_METRICS", Shows("{}")), ("GET_LOGGING_LEVEL", Reads("{}")), ("SET_LOGGING_LEVEL", Changes),
    ("LIST_FILES", Reads(r#"{"path":"/master/log"}"#)),
    ("READ_FILE", Reads(r#"{"path":"/master/log","offset":0}"#)),
    ("GET_STATE", Shows("{}")), ("GET_AGENTS", Shows("{}")), ("GET_FRAMEWORKS", Shows("{}")),
    ("GET_EXECUTORS", Shows("{}")), ("GET_OPERATIONS", Shows("{}")), ("GET_TASKS", Shows("{}")),
    ("GET_ROLES", Shows("{}")), ("GET_WEIGHTS", Shows("{}")), ("UPDATE_WEIGHTS", Changes),
    ("GET_MASTER", Reads("{}")), ("SUBSCRIBE", Shows("{}")),
    ("RESERVE_RESOURCES", Changes), ("UNRESERVE_RESOURCES", Changes), ("CREATE_VOLUMES", Changes),
    ("DESTROY_VOLUMES", Changes), ("GROW_VOLUME", Changes), ("SHRINK_VOLUME", Changes),
    ("GET_MAINTENANCE_STATUS", Shows("{}")), ("GET_MAINTENANCE_SCHEDULE", Shows("{}")),
    ("UPDATE_MAINTENANCE_SCHEDULE", Changes), ("START_MAINTENANCE", Changes), ("STOP_MAINTENANCE", Changes),
    ("DRAIN_AGENT", Changes), ("DEACTIVATE_AGENT", Changes), ("REACTIVATE_AGENT", Changes),
    ("GET_QUOTA", Shows("{}")), ("UPDATE_QUOTA", Changes), ("SET_QUOTA", Changes), ("REMOVE_QUOTA", Changes),
    ("TEARDOWN", Changes), ("MARK_AGENT_GONE", Changes),
];

#[rustfmt::skip]
const AGENT_CALLS: &[(&str, Use)] = &[
    ("GET_HEALTH", Reads("{}")), ("GET_FLAGS", Shows("{}")), ("GET_VERSION", Reads("{}")),
    ("GET_METRICS", Reads("{}")), ("GET_LOGGING_LEVEL", Reads("{}")), ("SET_LOGGING_LEVEL", Changes),
    ("LIST_FILES", Shows(r#"{"path":"SANDBOX"}"#)),
    ("READ_FILE", Shows(r#"{"path":"SANDBOX/veiled-file","offset":0}"#)),
    ("GET_STATE", Shows("{}")), ("GET_CONTAINERS", Shows(r#"{"show_nested":true,"show_standalone":true}"#)),
    ("GET_FRAMEWORKS", Shows("{}")), ("GET_EXECUTORS", Shows("{}")), ("GET_OPERATIONS", Shows("{}")),
    ("GET_TASKS", Shows("{}")), ("GET_AGENT", Shows("{}")), ("GET_RESOURCE_PROVIDERS", Reads("{}")),
    ("LAUNCH_NESTED_CONTAINER", Changes), ("WAIT_NESTED_CONTAINER", Changes),
    ("KILL_NESTED_CONTAINER", Changes), ("REMOVE_NESTED_CONTAINER", Changes),
    ("LAUNCH_NESTED_CONTAINER_SESSION", Changes), ("ATTACH_CONTAINER_INPUT", Changes),
    ("ATTACH_CONTAINER_OUTPUT", Changes), ("LAUNCH_CONTAINER", Changes), ("WAIT_CONTAINER", Changes),
    ("KILL_CONTAINER", Changes), ("REMOVE_CONTAINER", Changes), ("ADD_RESOURCE_PROVIDER_CONFIG", Changes),
    ("UPDATE_RESOURCE_PROVIDER_CONFIG", Changes), ("REMOVE_RESOURCE_PROVIDER_CONFIG", Changes),
    ("MARK_RESOURCE_PROVIDER_GONE", Changes), ("PRUNE_IMAGES", Changes),
];

const MASTER_PROTO: &str = include_str!("../../../api/proto/proto/mesos/v1/master/master.proto");
const AGENT_PROTO: &str = include_str!("../../../api/proto/proto/mesos/v1/agent/agent.proto");

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the file can be written");
    path
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// A cluster in which `dev` may view nothing.
fn start(folder: &Path) -> Cluster {
    let credentials = flag("credentials", &write(folder, "veiled-credentials", CREDENTIALS));
    let own = write(folder, "credential", r#"{"principal":"agent","secret":"agent-secret"}"#);
    let key = flag("jwt_secret_key", &write(folder, "key", "the key of the tokens"));
    let mut acls = json!({"permissive": true});
    for (action, objects) in RULES {
        acls[action] = json!([{"principals": {"values": ["dev"]}, (objects): {"type": "NONE"}}]);
    }
    let acls = flag("acls", &write(folder, "acls", &acls.to_string()));
    let closed = ["--authenticate_http_readonly", "--authenticate_http_readwrite"];
    let [reads, writes] = closed;
    let mut cluster = Cluster::without_agents(&[
        reads,
        writes,
        &credentials,
        &acls,
        "--authenticate_http_frameworks",
        "--http_framework_authenticators=basic",
        "--authenticate_agents",
    ]);
    let (work_dir, address) = (cluster.folder().join("agent-0"), cluster.master.address.clone());
    let flags = [
        reads,
        writes,
        &credentials.replace("--credentials", "--http_credentials"),
        &acls,
        &flag("credential", &own),
        &key,
        "--authenticate_http_executors",
        "--resources=cpus:8;mem:4096;disk:4096;disk(veiled-static):8;ports:[31000-32000]",
    ];
    cluster.add_agent_of(&address, &work_dir, &flags);
    wait_for("the agent to register", || {
        let agents = get(&cluster.http(), "/slaves", OPS).json()?;
        (agents["slaves"][0]["active"] == true).then_some(())
    });
    cluster
}

fn get(http: &Http, path: &str, proof: &str) -> Response {
    http.send("GET", path, &[("Authorization", proof)], b"")
}

fn call(http: &Http, kind: &str, body: &Value, proof: &str) -> Response {
    let call = json!({"type": kind, kind.to_lowercase(): body});
    let headers = [("Content-Type", "application/json"), ("Authorization", proof)];
    http.send("POST", "/api/v1", &headers, call.to_string().as_bytes())
}

/// What a read returns as `proof`'s principal.
fn read(http: &Http, kind: &str, body: &Value, proof: &str) -> (u16, String) {
    if kind != "SUBSCRIBE" {
        let answer = call(http, kind, body, proof);
        return (answer.status, answer.text());
    }
    let headers = [("Accept", "application/json"), ("Authorization", proof)];
    let mut stream = http.stream("/api/v1", &headers, &json!({"type": "SUBSCRIBE"}));
    (stream.status, stream.next_event().expect("the state").to_string())
}

/// Makes something of every kind. Returns the scheduler and the sandbox of a task.
fn fill(cluster: &Cluster) -> (Scheduler, String) {
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let change = |kind: &str, body: Value| {
        let answer = call(&master, kind, &body, OPS);
        assert!([200, 202].contains(&answer.status), "{kind}: {}", answer.text());
    };
    change("UPDATE_WEIGHTS", json!({"weight_infos": [{"role": "veiled-role", "weight": 2.0}]}));
    let quota = json!({"role": "veiled-role", "limits": {"cpus": {"value": 7.0}}});
    change("UPDATE_QUOTA", json!({"quota_configs": [quota]}));
    let machine = json!({"hostname": "veiled-machine"});
    let window = json!({"machine_ids": [machine], "unavailability": {"start": {"nanoseconds": 1}}});
    change("UPDATE_MAINTENANCE_SCHEDULE", json!({"schedule": {"windows": [window]}}));
    change("START_MAINTENANCE", json!({"machines": [machine]}));

    let info = |name: &str| {
        let mut info = Scheduler::info("veiled-role");
        info["name"] = json!(name);
        info["principal"] = json!("ops");
        info
    };
    let completed = Scheduler::subscribe_as(&master, info("veiled-completed"), OPS);
    completed.call(json!({"type": "TEARDOWN"}));

    let mut scheduler = Scheduler::subscribe_as(&master, info("veiled-framework"), OPS);
    let offer = scheduler.offer();
    let labels = json!({"labels": [{"key": "veiled-label", "value": "veiled-value"}]});
    let mut disk = scalar("disk", 64.0);
    disk["allocation_info"] = json!({"role": "veiled-role"});
    disk["reservations"] =
        json!([{"type": "DYNAMIC", "role": "veiled-role", "principal": "ops", "labels": labels}]);
    let mut volume = disk.clone();
    volume["disk"] = json!({"persistence": {"id": "veiled-volume", "principal": "ops"},
        "volume": {"container_path": "data", "mode": "RW"}});
    let mut task = Scheduler::task(&offer, "veiled-task", "echo veiled-output > veiled-file; sleep 1000");
    task["labels"] = labels;
    let done = Scheduler::task(&offer, "veiled-done", "true");
    let mut grouped = Scheduler::task(&offer, "veiled-grouped", "sleep 1000");
    grouped["resources"][0] = scalar("cpus", 0.1);
    let executor = json!({"type": "DEFAULT", "executor_id": {"value": "veiled-executor"},
        "framework_id": {"value": scheduler.framework_id}, "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 32.0)]});
    let accepted = scheduler.accept(
        &offer,
        json!([
            {"type": "RESERVE", "id": {"value": "veiled-operation"}, "reserve": {"resources": [disk]}},
            {"type": "CREATE", "create": {"volumes": [volume]}},
            {"type": "LAUNCH", "launch": {"task_infos": [task, done]}},
            {"type": "LAUNCH_GROUP", "launch_group": {"executor": executor, "task_group": {"tasks": [grouped]}}},
        ]),
    );
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    scheduler.reach("veiled-done", "TASK_FINISHED");
    scheduler.reach("veiled-grouped", "TASK_RUNNING");
    scheduler.reach("veiled-task", "TASK_RUNNING");
    let alone = json!({"container_id": {"value": "veiled-alone"}, "command": {"value": "sleep 1000"}});
    assert_eq!(call(&agent, "LAUNCH_CONTAINER", &alone, OPS).status, 200);
    let sandbox = format!("/frameworks/{}/executors/veiled-task/runs/latest", scheduler.framework_id);
    wait_for("the file", || {
        let file = get(&agent, &format!("/files/read?path={sandbox}/veiled-file&offset=0"), OPS);
        file.text().contains("veiled-output").then_some(())
    });
    (scheduler, sandbox)
}

/// The names in the first `enum Type` of a file, but UNKNOWN.
fn call_names(proto: &str) -> BTreeSet<String> {
    let names = proto.split("enum Type {").nth(1).and_then(|rest| rest.split('}').next()).expect("calls");
    let names = names.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().to_owned());
    names.filter(|name| name != "UNKNOWN").collect()
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().expect("a string")
}

fn endpoint_names(http: &Http) -> BTreeSet<String> {
    let help = http.get("/help?format=json").json().expect("help");
    let processes = help["processes"].as_array().expect("processes").clone();
    let names = processes.iter().flat_map(|process| {
        let endpoints = process["endpoints"].as_array().expect("endpoints").iter();
        endpoints.map(|endpoint| format!("{}{}", text(&process["id"]), text(&endpoint["name"])))
    });
    names.collect()
}

fn check_complete(table: &[(&str, Use)], names: &BTreeSet<String>) {
    let listed: BTreeSet<String> = table.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(&listed, names, "add what is new to the table above, with what it reads");
}

#[test]
fn nothing_out_of_view_is_in_any_answer() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let cluster = start(folder.path());
    let (master, agent) = (cluster.http(), cluster.agent_http());
    check_complete(MASTER, &endpoint_names(&master));
    check_complete(AGENT, &endpoint_names(&agent));
    check_complete(MASTER_CALLS, &call_names(MASTER_PROTO));
    check_complete(AGENT_CALLS, &call_names(AGENT_PROTO));

    let (scheduler, sandbox) = fill(&cluster);
    let mut faults = Vec::new();
    let mut check = |name: &str, shows: bool, read: &dyn Fn(&str) -> (u16, String)| {
        let (status, text) = read(OPS);
        if shows && !(status == 200 && WORDS.iter().any(|word| text.contains(word))) {
            faults.push(format!("{name}: shows nothing to ops: {status} {text}"));
        }
        let (status, text) = read(DEV);
        let words = WORDS.iter().copied().chain([scheduler.framework_id.as_str()]);
        let leaked = words.filter_map(|word| text.find(word)).min();
        if let Some(at) = leaked {
            let (start, end) =
                (text.floor_char_boundary(at.saturating_sub(150)), text.ceil_char_boundary(at + 60));
            faults.push(format!("{name}: shows dev {status} …{}…", &text[start..end]));
        }
    };
    let complete =
        |text: &str| text.replace("FRAMEWORK", &scheduler.framework_id).replace("SANDBOX", &sandbox);
    for (http, endpoints, calls) in [(&master, MASTER, MASTER_CALLS), (&agent, AGENT, AGENT_CALLS)] {
        for (name, purpose) in endpoints {
            let (Shows(path) | Reads(path)) = purpose else { continue };
            let path = complete(path);
            check(&path, matches!(purpose, Shows(_)), &|proof| {
                let answer = get(http, &path, proof);
                assert_ne!(answer.status, 401, "{name}");
                (answer.status, answer.text())
            });
        }
        for (kind, purpose) in calls {
            let (Shows(body) | Reads(body)) = purpose else { continue };
            let body: Value = serde_json::from_str(&complete(body)).expect("parameters");
            check(kind, matches!(purpose, Shows(_)), &|proof| read(http, kind, &body, proof));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
