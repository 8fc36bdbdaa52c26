//! The audit log of real programs: principal, action, address and outcome, without secrets.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, wait_for};

const CREDENTIALS: &str = r#"{"credentials":[
    {"principal":"ops","secret":"ops-secret"},
    {"principal":"agent","secret":"agent-secret"}]}"#;

/// What must never be written: secrets of principals, keys, environments and data of tasks.
const SECRETS: [&str; 6] =
    ["ops-secret", "agent-secret", "wrong-secret", "the key of the tokens", "env-secret", "ZGF0YS1zZWNyZXQ"];

/// A cluster that requires authentication, and its audit logs.
struct Trail {
    cluster: Cluster,
    folder: tempfile::TempDir,
}

fn basic(principal: &str, secret: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{principal}:{secret}")))
}

fn ops() -> String {
    basic("ops", "ops-secret")
}

impl Trail {
    fn start(acls: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("ours");
            path.display().to_string()
        };
        let (credentials, acls) = (file("credentials", CREDENTIALS), file("acls", acls));
        let own = file("credential", r#"{"principal":"agent","secret":"agent-secret"}"#);
        let key = file("key", "the key of the tokens");
        let log = |program: &str| format!("--audit_log={}", folder.path().join(program).display());
        let master = [
            format!("--credentials={credentials}"),
            "--authenticate_http_readwrite".into(),
            "--authenticate_http_frameworks".into(),
            "--authenticate_agents".into(),
            format!("--acls={acls}"),
            log("master"),
        ];
        let mut cluster = Cluster::without_agents(&master.each_ref().map(String::as_str));
        let agent = [
            "--resources=cpus:8;mem:4096;disk:4096".into(),
            format!("--credential={own}"),
            format!("--http_credentials={credentials}"),
            "--authenticate_http_readwrite".into(),
            "--authenticate_http_executors".into(),
            format!("--jwt_secret_key={key}"),
            format!("--acls={acls}"),
            log("agent"),
        ];
        let (address, work_dir) = (cluster.master.address.clone(), cluster.folder().join("agent-0"));
        cluster.add_agent_of(&address, &work_dir, &agent.each_ref().map(String::as_str));
        Self { cluster, folder }
    }

    fn path(&self, program: &str) -> PathBuf {
        self.folder.path().join(program)
    }

    fn entries(&self, program: &str) -> Vec<Value> {
        entries(&self.path(program))
    }

    /// Waits for an entry of an action with this outcome; returns the newest.
    fn find(&self, program: &str, action: &str, outcome: &str) -> Value {
        wait_for(&format!("{action} {outcome}"), || {
            let all = self.entries(program);
            let found = |entry: &&Value| entry["action"] == action && entry["outcome"] == outcome;
            all.iter().rev().find(found).cloned()
        })
    }

    fn check_secrets(&self) {
        let mut texts: BTreeMap<String, String> = ["master", "agent"]
            .iter()
            .map(|program| {
                ((*program).to_owned(), std::fs::read_to_string(self.path(program)).expect("it is there"))
            })
            .collect();
        texts.insert("log of the master".into(), self.cluster.master.log());
        texts.insert("log of the agent".into(), self.cluster.agents[0].log());
        for (name, text) in texts {
            for secret in SECRETS {
                let encoded = BASE64_STANDARD.encode(secret);
                assert!(
                    !text.contains(secret) && !text.contains(&encoded),
                    "{secret} in the {name}:\n{text}"
                );
            }
        }
    }
}

fn entries(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // The last line may be incomplete.
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).expect("each line is an object"))
        .collect()
}

fn call(http: &Http, kind: &str, body: Value, proof: &str) -> Response {
    let mut call = json!({"type": kind});
    if !body.is_null() {
        call[kind.to_lowercase()] = body;
    }
    let headers = [("Content-Type", "application/json"), ("Authorization", proof)];
    http.send("POST", "/api/v1", &headers, call.to_string().as_bytes())
}

/// Every operator call that changes a cluster, in an order in which all succeed, with the object of its entry.
fn operator_calls(agent: &str, framework: &str) -> Vec<(&'static str, Value, &'static str)> {
    let id = json!({"value": agent});
    let reserved = json!([{"name": "disk", "type": "SCALAR", "scalar": {"value": 64.0},
        "reservations": [{"type": "DYNAMIC", "role": "dev", "principal": "ops"}]}]);
    let volume = |size: f64| {
        json!({"name": "disk", "type": "SCALAR", "scalar": {"value": size},
            "reservations": [{"type": "DYNAMIC", "role": "dev", "principal": "ops"}],
            "disk": {"persistence": {"id": "v1", "principal": "ops"}, "volume": {"mode": "RW", "container_path": "v"}}})
    };
    let machine = json!({"hostname": "no-such-host"});
    let windows = json!([{"machine_ids": [machine],
        "unavailability": {"start": {"nanoseconds": 0}, "duration": {"nanoseconds": 1_000_000_000}}}]);
    vec![
        ("UPDATE_WEIGHTS", json!({"weight_infos": [{"role": "dev", "weight": 2.0}]}), "roles"),
        (
            "UPDATE_QUOTA",
            json!({"quota_configs": [{"role": "q", "limits": {"cpus": {"value": 1.0}}}]}),
            "roles",
        ),
        ("REMOVE_QUOTA", json!({"role": "q"}), "roles"),
        ("RESERVE_RESOURCES", json!({"agent_id": id, "resources": reserved}), "resources"),
        ("CREATE_VOLUMES", json!({"agent_id": id, "volumes": [volume(32.0)]}), "resources"),
        ("DESTROY_VOLUMES", json!({"agent_id": id, "volumes": [volume(32.0)]}), "agent_id"),
        ("UNRESERVE_RESOURCES", json!({"agent_id": id, "resources": reserved}), "agent_id"),
        ("UPDATE_MAINTENANCE_SCHEDULE", json!({"schedule": {"windows": windows}}), "machines"),
        ("START_MAINTENANCE", json!({"machines": [machine]}), "machines"),
        ("STOP_MAINTENANCE", json!({"machines": [machine]}), "machines"),
        ("DEACTIVATE_AGENT", json!({"agent_id": id}), "agent_id"),
        ("REACTIVATE_AGENT", json!({"agent_id": id}), "agent_id"),
        ("TEARDOWN", json!({"framework_id": {"value": framework}}), "framework_id"),
        ("DRAIN_AGENT", json!({"agent_id": id}), "agent_id"),
        ("MARK_AGENT_GONE", json!({"agent_id": id}), "agent_id"),
        ("SET_LOGGING_LEVEL", json!({"level": 0, "duration": {"nanoseconds": 0}}), "level"),
    ]
}

#[test]
fn operator_changes_are_audited() {
    let trail = Trail::start(r#"{"permissive": true}"#);
    let registered = trail.find("master", "REGISTER_AGENT", "allowed");
    assert_eq!(registered["principal"], "agent", "{registered}");
    let agent = registered["agent_id"].as_str().expect("an id");
    let scheduler = Scheduler::subscribe_as(&trail.cluster.http(), Scheduler::info("dev"), &ops());
    for (kind, body, named) in operator_calls(agent, &scheduler.framework_id) {
        // An operation of the agent may still be pending.
        let answer = wait_for(kind, || {
            Some(call(&trail.cluster.http(), kind, body.clone(), &ops())).filter(|answer| answer.status < 400)
        });
        let entry = trail.find("master", kind, "allowed");
        assert_eq!(
            (&entry["principal"], &entry["status"]),
            (&json!("ops"), &json!(answer.status)),
            "{entry}"
        );
        assert!(entry["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{entry}");
        assert!(entry[named].as_str().is_some_and(|text| !text.is_empty()), "{kind} names {named}: {entry}");
        assert!(entry["time"].is_string() && entry["program"] == "master", "{entry}");
    }
    let form = format!("frameworkId={}", scheduler.framework_id);
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Authorization", &*ops()),
        ("Accept", "*/*"),
    ];
    trail.cluster.http().send("POST", "/teardown", &headers, form.as_bytes());
    let entry = trail.find("master", "TEARDOWN", "refused");
    assert_eq!(
        entry["framework_id"],
        scheduler.framework_id.as_str(),
        "the classic endpoint, again: {entry}"
    );
    trail.check_secrets();
}

#[test]
fn rejected_requests_are_audited() {
    let trail = Trail::start(
        r#"{"permissive": false,
        "register_agents": [{"principals": {"values": ["agent"]}, "agents": {"values": ["nobody-else"]}}]}"#,
    );
    let http = trail.cluster.http();
    let entry = trail.find("master", "REGISTER_AGENT", "refused");
    assert_eq!(entry["principal"], "agent");
    assert!(entry["reason"].as_str().is_some_and(|reason| reason.contains("Not authorized")), "{entry}");
    for (kind, body, _) in operator_calls("S0", "F0") {
        let answer = call(&http, kind, body, &ops());
        assert!((400..500).contains(&answer.status), "{kind}: {} {}", answer.status, answer.text());
        let entry = trail.find("master", kind, "refused");
        let (principal, status) = (&entry["principal"], &entry["status"]);
        assert_eq!((principal, status), (&json!("ops"), &json!(answer.status)), "{entry}");
    }
    let subscribe = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": Scheduler::info("dev")}});
    let headers = [("Accept", "application/json"), ("Authorization", &*ops())];
    drop(http.stream("/api/v1/scheduler", &headers, &subscribe));
    let entry = trail.find("master", "SUBSCRIBE", "refused");
    assert_eq!((&entry["principal"], &entry["name"]), (&json!("ops"), &json!("e2e")), "{entry}");
    let kill = json!({"type": "KILL", "framework_id": {"value": "F0"}, "kill": {"task_id": {"value": "t"}}});
    let headers = [("Content-Type", "application/json"), ("Authorization", &*ops())];
    http.send("POST", "/api/v1/scheduler", &headers, kill.to_string().as_bytes());
    let entry = trail.find("master", "KILL", "refused");
    assert_eq!((&entry["framework_id"], &entry["task_id"]), (&json!("F0"), &json!("t")), "{entry}");
    let container = json!({"container_id": {"value": "c1"}, "command": {"value": "true", "user": "root"}});
    for (kind, body) in [
        ("LAUNCH_CONTAINER", container.clone()),
        ("LAUNCH_NESTED_CONTAINER", container.clone()),
        ("LAUNCH_NESTED_CONTAINER_SESSION", container),
        ("KILL_CONTAINER", json!({"container_id": {"value": "c1"}})),
        ("REMOVE_CONTAINER", json!({"container_id": {"value": "c1"}})),
        ("ATTACH_CONTAINER_OUTPUT", json!({"container_id": {"value": "c1"}})),
    ] {
        let answer = call(&trail.cluster.agent_http(), kind, body, &ops());
        assert_eq!(answer.status, 403, "{kind}: {}", answer.text());
        let entry = trail.find("agent", kind, "refused");
        assert_eq!((&entry["principal"], &entry["container_id"]), (&json!("ops"), &json!("c1")), "{entry}");
    }
    wait_for("the line of the log", || {
        let line = "call rejected action=ATTACH_CONTAINER_OUTPUT principal=ops";
        trail.cluster.agents[0].log().contains(line).then_some(())
    });
    trail.check_secrets();
}

#[test]
fn frameworks_and_sessions_are_audited_without_secrets() {
    let trail = Trail::start(r#"{"permissive": true}"#);
    let (http, agent) = (trail.cluster.http(), trail.cluster.agent_http());
    trail.find("master", "REGISTER_AGENT", "allowed");
    let mut scheduler = Scheduler::subscribe_as(&http, Scheduler::info("dev"), &ops());
    let entry = trail.find("master", "SUBSCRIBE", "allowed");
    let id = json!(scheduler.framework_id);
    assert_eq!((&entry["framework_id"], &entry["principal"]), (&id, &json!("ops")), "{entry}");

    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "t1", "while :; do sleep 0.1; done");
    task["command"]["environment"] = json!({"variables": [{"name": "TOKEN", "value": "env-secret"}]});
    task["data"] = json!("ZGF0YS1zZWNyZXQ=");
    let reserve = json!({"type": "RESERVE", "reserve": {"resources": [{"name": "disk", "type": "SCALAR",
        "scalar": {"value": 64.0}, "reservations": [{"type": "DYNAMIC", "role": "dev", "principal": "ops"}]}]}});
    let launch = json!({"type": "LAUNCH", "launch": {"task_infos": [task]}});
    assert_eq!(scheduler.accept(&offer, json!([reserve, launch])).status, 202);
    scheduler.reach("t1", "TASK_RUNNING");
    assert_eq!(trail.find("master", "RESERVE", "allowed")["framework_id"], id);

    let container = wait_for("the container", || {
        let listed = call(&agent, "GET_CONTAINERS", Value::Null, &ops()).json()?;
        listed["get_containers"]["containers"][0]["container_id"]["value"].as_str().map(str::to_owned)
    });
    let nested = json!({"value": "session", "parent": {"value": container}});
    let session = json!({"type": "LAUNCH_NESTED_CONTAINER_SESSION", "launch_nested_container_session": {
        "container_id": nested, "command": {"value": "true",
            "environment": {"variables": [{"name": "TOKEN", "value": "env-secret"}]}}}});
    let headers = [
        ("Accept", "application/recordio"),
        ("Message-Accept", "application/json"),
        ("Authorization", &*ops()),
    ];
    drop(agent.stream("/api/v1", &headers, &session));
    let entry = trail.find("agent", "LAUNCH_NESTED_CONTAINER_SESSION", "allowed");
    assert_eq!(entry["principal"], "ops");
    assert_eq!(entry["container_id"], format!("{container}.session"), "{entry}");
    call(&agent, "KILL_CONTAINER", json!({"container_id": {"value": "no-such"}}), &ops());
    trail.find("agent", "KILL_CONTAINER", "refused");

    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "t1"}}}));
    let entry = trail.find("master", "KILL", "allowed");
    assert_eq!((&entry["framework_id"], &entry["task_id"]), (&id, &json!("t1")), "{entry}");
    scheduler.reach("t1", "TASK_KILLED");
    scheduler.call(json!({"type": "TEARDOWN"}));
    assert_eq!(trail.find("master", "TEARDOWN", "allowed")["framework_id"], id);
    trail.check_secrets();
}

#[test]
fn standalone_containers_and_attachments_are_audited() {
    let trail = Trail::start(r#"{"permissive": true}"#);
    trail.find("master", "REGISTER_AGENT", "allowed");
    let agent = trail.cluster.agent_http();
    let entry = |action: &str, container: &str| {
        let entry = trail.find("agent", action, "allowed");
        let found = (&entry["principal"], &entry["container_id"]);
        assert_eq!(found, (&json!("ops"), &json!(container)), "{entry}");
    };
    let alone = json!({"value": "alone"});
    let environment = json!({"variables": [{"name": "TOKEN", "value": "env-secret"}]});
    let command = json!({"value": "sleep 1000", "environment": environment});
    let launch = json!({"container_id": alone, "command": command});
    let answer = call(&agent, "LAUNCH_CONTAINER", launch, &ops());
    assert_eq!(answer.status, 200, "{}", answer.text());
    entry("LAUNCH_CONTAINER", "alone");

    // A session whose input and output others can join.
    let session = json!({"value": "session", "parent": alone});
    let streamed = [
        ("Accept", "application/recordio"),
        ("Message-Accept", "application/json"),
        ("Authorization", &*ops()),
    ];
    let launch = json!({"type": "LAUNCH_NESTED_CONTAINER_SESSION", "launch_nested_container_session": {
        "container_id": session, "command": {"value": "cat > /dev/null"}}});
    let open = agent.stream("/api/v1", &streamed, &launch);
    let attach =
        json!({"type": "ATTACH_CONTAINER_OUTPUT", "attach_container_output": {"container_id": session}});
    drop(agent.stream("/api/v1", &streamed, &attach));
    entry("ATTACH_CONTAINER_OUTPUT", "alone.session");
    let input = json!({"type": "ATTACH_CONTAINER_INPUT",
        "attach_container_input": {"type": "CONTAINER_ID", "container_id": session}})
    .to_string();
    let records = format!("{}\n{input}", input.len());
    let headers = [
        ("Content-Type", "application/recordio"),
        ("Message-Content-Type", "application/json"),
        ("Authorization", &*ops()),
    ];
    let answer = agent.send("POST", "/api/v1", &headers, records.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    entry("ATTACH_CONTAINER_INPUT", "alone.session");
    drop(open);

    let nested = json!({"value": "nested", "parent": alone});
    let launch = json!({"container_id": nested, "command": {"value": "true"}});
    assert_eq!(call(&agent, "LAUNCH_CONTAINER", launch, &ops()).status, 200);
    call(&agent, "WAIT_CONTAINER", json!({"container_id": nested}), &ops());
    let answer = call(&agent, "REMOVE_CONTAINER", json!({"container_id": nested}), &ops());
    assert_eq!(answer.status, 200, "{}", answer.text());
    entry("REMOVE_CONTAINER", "alone.nested");
    let answer = call(&agent, "KILL_CONTAINER", json!({"container_id": alone}), &ops());
    assert_eq!(answer.status, 200, "{}", answer.text());
    entry("KILL_CONTAINER", "alone");
    trail.check_secrets();
}

#[test]
fn failed_authentication_is_audited_and_delayed() {
    let trail = Trail::start(r#"{"permissive": true}"#);
    let http = trail.cluster.http();
    let wrong = basic("ops", "wrong-secret");
    let statuses: Vec<u16> = (0..8).map(|_| call(&http, "GET_HEALTH", Value::Null, &wrong).status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 401, 429, 429]);
    let refused = call(&http, "GET_HEALTH", Value::Null, &ops());
    assert_eq!(refused.status, 429, "a right secret is not looked at meanwhile");
    let seconds: u64 = refused.header("retry-after").and_then(|text| text.parse().ok()).expect("a time");
    assert!((1..=2).contains(&seconds), "{seconds}");
    let entry = trail.find("master", "LOGIN", "refused");
    assert_eq!((&entry["principal"], &entry["endpoint"]), (&json!("ops"), &json!("/api/v1")), "{entry}");
    let other = call(&http, "GET_HEALTH", Value::Null, &basic("agent", "agent-secret"));
    assert_eq!(other.status, 200, "another principal is not concerned");
    wait_for("the pause to end", || {
        (call(&http, "GET_HEALTH", Value::Null, &ops()).status == 200).then_some(())
    });
    wait_for("the lines of both logs", || {
        let logged = trail.cluster.master.log().contains("call rejected action=LOGIN principal=ops");
        let entries = trail.entries("master");
        (logged && entries.iter().filter(|entry| entry["action"] == "LOGIN").count() >= 9).then_some(())
    });
    trail.check_secrets();
}

#[test]
fn audit_log_is_private_and_can_be_rotated() {
    let trail = Trail::start(r#"{"permissive": true}"#);
    trail.find("master", "REGISTER_AGENT", "allowed");
    let (path, old) = (trail.path("master"), trail.path("master.1"));
    std::fs::rename(&path, &old).expect("renamed");
    let weights = json!({"weight_infos": [{"role": "dev", "weight": 2.0}]});
    assert_eq!(call(&trail.cluster.http(), "UPDATE_WEIGHTS", weights, &ops()).status, 200);
    trail.find("master", "UPDATE_WEIGHTS", "allowed");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&old)), (0o600, 0o600));
    assert!(entries(&old).iter().all(|entry| entry["action"] != "UPDATE_WEIGHTS"));
}
