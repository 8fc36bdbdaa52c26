//! Invalid input: each request gets its status and a reason that names the error, and both programs keep running.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, scalar, wait_for};
use tepui_proto::mesos::v1::scheduler::{Call, call};
use tepui_proto::mesos::v1::{self as pb, value};
use tepui_proto::wire;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";
const SCHEDULER: &str = "/api/v1/scheduler";

/// The target of a request.
#[derive(Clone, Copy, Debug)]
enum To {
    Master,
    Agent,
}
use To::{Agent, Master};

fn send(cluster: &Cluster, to: To, path: &str, content_type: &str, body: &[u8]) -> Response {
    let http = match to {
        Master => cluster.http(),
        Agent => cluster.agent_http(),
    };
    http.send("POST", path, &[("Content-Type", content_type)], body)
}

/// Both programs answer, and are the ones that were started.
fn still_alive(cluster: &mut Cluster) {
    assert_eq!(cluster.http().get("/health").status, 200);
    assert_eq!(cluster.agent_http().get("/health").status, 200);
    assert!(cluster.master.is_running() && cluster.agents[0].is_running());
}

#[test]
fn malformed_calls_are_rejected_with_the_reason() {
    let mut cluster = Cluster::start();
    let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let subscribe_without_user = r#"{"type":"SUBSCRIBE","subscribe":{"framework_info":{"name":"x"}}}"#;
    let wrong_type = r#"{"type":"KILL","framework_id":{"value":5},"kill":{"task_id":{"value":"x"}}}"#;
    let not_a_number = r#"{"type":"SUBSCRIBE","subscribe":{"framework_info":{"failover_timeout":NaN}}}"#;
    let update_without_uuid = r#"{"type":"UPDATE","executor_id":{"value":"e"},"framework_id":{"value":"f"},
        "update":{"status":{"task_id":{"value":"t"},"state":"TASK_RUNNING"}}}"#;
    let unknown_framework = r#"{"type":"SUBSCRIBE","executor_id":{"value":"e"},"framework_id":{"value":"f"},
        "subscribe":{}}"#;
    let table: &[(To, &str, &str, &[u8], u16, &str)] = &[
        (
            Master,
            SCHEDULER,
            JSON,
            b"{\"type\":",
            400,
            "Failed to parse body into JSON: syntax error at line 1",
        ),
        (Master, SCHEDULER, JSON, b"{\"type\":\"\xff\"}", 400, "Failed to parse body into JSON"),
        (Master, SCHEDULER, JSON, b"[]", 400, "Expecting a JSON object"),
        (Master, SCHEDULER, JSON, deep.as_bytes(), 400, "nested deeper than"),
        (Master, SCHEDULER, JSON, b"{}", 400, "Expecting 'type' to be present"),
        (Master, SCHEDULER, JSON, b"{\"type\":\"FROBNICATE\"}", 400, "Expecting 'type' to be present"),
        (Master, SCHEDULER, JSON, b"{\"type\":[]}", 400, "type: expected"),
        (Master, SCHEDULER, JSON, subscribe_without_user.as_bytes(), 400, "subscribe.framework_info.user"),
        (Master, SCHEDULER, JSON, wrong_type.as_bytes(), 400, "framework_id.value: expected a string"),
        (Master, SCHEDULER, JSON, not_a_number.as_bytes(), 400, "NaN"),
        (Master, SCHEDULER, JSON, b"{\"type\":\"TEARDOWN\"}", 400, "'framework_id'"),
        (Master, SCHEDULER, PROTOBUF, b"\xff\xff\xff", 400, "Failed to parse body into Call protobuf"),
        (Master, SCHEDULER, PROTOBUF, b"", 400, "Expecting 'type' to be present"),
        (Master, SCHEDULER, "text/xml", b"{}", 415, "Content-Type"),
        (Master, "/api/v1", JSON, b"{\"type\":", 400, "Failed to parse body into JSON"),
        (Master, "/api/v1", JSON, b"{\"type\":\"NOPE\"}", 400, "Expecting 'type' to be present"),
        (Master, "/api/v1", JSON, b"{\"type\":\"UNKNOWN\"}", 501, "Not Implemented"),
        (Master, "/api/v1", PROTOBUF, b"\x08", 400, "Failed to parse body into Call protobuf"),
        (Master, "/api/v1/agent", JSON, b"{}", 415, "application/x-protobuf"),
        (Agent, "/api/v1", JSON, b"{\"type\":", 400, "Failed to parse body into JSON"),
        (Agent, "/api/v1", JSON, b"{}", 400, "Expecting 'type' to be present"),
        (Agent, "/api/v1", JSON, b"{\"type\":\"NOPE\"}", 400, "Expecting 'type' to be present"),
        (Agent, "/api/v1", PROTOBUF, b"\xff\xff\xff", 400, "Failed to parse body into Call protobuf"),
        (Agent, "/api/v1", "text/plain", b"{}", 415, "Content-Type"),
        (Agent, "/api/v1/executor", JSON, b"{}", 400, "executor_id, framework_id"),
        (Agent, "/api/v1/executor", JSON, update_without_uuid.as_bytes(), 400, "'uuid'"),
        (Agent, "/api/v1/executor", JSON, unknown_framework.as_bytes(), 400, "Framework cannot be found"),
        (Agent, "/api/v1/executor", PROTOBUF, b"\xff", 400, "Failed to parse body into Call protobuf"),
    ];
    for (to, path, content_type, body, status, expected) in table {
        let answer = send(&cluster, *to, path, content_type, body);
        let request = format!("{to:?} {path} {:.60}", String::from_utf8_lossy(body));
        assert_eq!(answer.status, *status, "{request}: {}", answer.text());
        assert!(answer.text().contains(expected), "{request}: {}", answer.text());
    }
    let without_type = cluster.http().send("POST", SCHEDULER, &[], b"{}");
    assert_eq!((without_type.status, without_type.text().contains("Content-Type")), (400, true));
    let other_encoding = [("Content-Type", JSON), ("Content-Encoding", "br")];
    assert_eq!(cluster.http().send("POST", SCHEDULER, &other_encoding, b"{}").status, 415);
    let broken_gzip = [("Content-Type", JSON), ("Content-Encoding", "gzip")];
    assert_eq!(cluster.http().send("POST", SCHEDULER, &broken_gzip, b"no gzip").status, 400);
    still_alive(&mut cluster);
}

#[test]
fn calls_for_unknown_containers_are_rejected() {
    let mut cluster = Cluster::start();
    let nested = json!({"value": "nope", "parent": {"value": "neither"}});
    let sly = json!({"value": "../../x", "parent": {"value": "a/b"}});
    let top = json!({"value": "nope"});
    let table = [
        ("KILL_NESTED_CONTAINER", &nested, 404, "Container 'neither.nope' cannot be found"),
        ("KILL_CONTAINER", &top, 404, "Container 'nope' cannot be found (or is already killed)"),
        ("WAIT_NESTED_CONTAINER", &nested, 404, "Container neither.nope cannot be found"),
        ("WAIT_CONTAINER", &top, 404, "Container nope cannot be found"),
        ("REMOVE_NESTED_CONTAINER", &nested, 500, "neither.nope"),
        ("LAUNCH_NESTED_CONTAINER", &nested, 404, "Container neither cannot be found"),
        ("LAUNCH_NESTED_CONTAINER", &top, 400, "'launch_nested_container.container_id.parent'"),
        ("LAUNCH_NESTED_CONTAINER", &sly, 400, "'container_id.value' '../../x' is invalid"),
        ("KILL_CONTAINER", &sly, 400, "'container_id.value' '../../x' is invalid"),
        ("WAIT_CONTAINER", &json!({"value": ""}), 400, "'container_id.value' '' is invalid"),
        ("WAIT_CONTAINER", &json!({}), 400, "wait_container.container_id.value"),
    ];
    for (call, container, status, expected) in table {
        let mut body = json!({"type": call});
        body[call.to_lowercase()] = json!({"container_id": container});
        let answer = cluster.agent_http().post("/api/v1", &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        assert!(answer.text().contains(expected), "{body}: {}", answer.text());
        let bare = cluster.agent_http().post("/api/v1", &json!({"type": call}));
        assert!(bare.text().contains(&format!("'{}'", call.to_lowercase())), "{call}: {}", bare.text());
    }
    still_alive(&mut cluster);
}

#[test]
fn calls_require_a_subscription_and_its_stream_id() {
    let mut cluster = Cluster::start();
    let http = cluster.http();
    let kill =
        json!({"type": "KILL", "kill": {"task_id": {"value": "t"}}, "framework_id": {"value": "nobody"}});
    let answer = http.post(SCHEDULER, &kill);
    assert_eq!((answer.status, answer.text().as_str()), (400, "Framework cannot be found"));

    let scheduler = Scheduler::subscribe(&http, Scheduler::info("dev"));
    let mut own = kill.clone();
    own["framework_id"]["value"] = json!(scheduler.framework_id);
    let without = http.post(SCHEDULER, &own);
    assert_eq!(
        (without.status, without.text().contains("Mesos-Stream-Id")),
        (400, true),
        "{}",
        without.text()
    );
    let foreign = [("Content-Type", JSON), ("Mesos-Stream-Id", "00000000-0000-0000-0000-000000000000")];
    let foreign = http.send("POST", SCHEDULER, &foreign, own.to_string().as_bytes());
    assert_eq!((foreign.status, foreign.text().contains("stream")), (400, true), "{}", foreign.text());
    assert_eq!(scheduler.call(own).status, 202);

    // After a failover the old stream is invalid.
    let mut info = Scheduler::info("dev");
    info["id"] = json!({"value": scheduler.framework_id});
    let mut old = scheduler;
    let new = Scheduler::subscribe(&http, info);
    let goodbye = old.event("the end of the old stream", |event| event["type"] == "ERROR").expect("an ERROR");
    assert_eq!(goodbye["error"]["message"], "Framework failed over");
    assert_eq!(old.call(json!({"type": "REVIVE"})).status, 400);
    assert_eq!(new.call(json!({"type": "REVIVE"})).status, 202);
    still_alive(&mut cluster);
}

#[test]
fn calls_with_unknown_ids_are_accepted() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let (agent, offer) = (json!({"value": "no-agent"}), json!({"value": "no-offer"}));
    let uuid = "AAAAAAAAAAAAAAAAAAAAAA==";
    let calls = [
        json!({"type": "DECLINE", "decline": {"offer_ids": [offer]}}),
        json!({"type": "ACCEPT_INVERSE_OFFERS", "accept_inverse_offers": {"inverse_offer_ids": [offer]}}),
        json!({"type": "DECLINE_INVERSE_OFFERS", "decline_inverse_offers": {"inverse_offer_ids": [offer]}}),
        json!({"type": "SHUTDOWN", "shutdown": {"executor_id": {"value": "none"}, "agent_id": agent}}),
        json!({"type": "ACKNOWLEDGE",
               "acknowledge": {"agent_id": agent, "task_id": {"value": "none"}, "uuid": uuid}}),
        json!({"type": "MESSAGE",
               "message": {"agent_id": agent, "executor_id": {"value": "none"}, "data": "aGk="}}),
        json!({"type": "ACKNOWLEDGE_OPERATION_STATUS", "acknowledge_operation_status":
               {"agent_id": agent, "operation_id": {"value": "none"}, "uuid": uuid}}),
        json!({"type": "RECONCILE_OPERATIONS",
               "reconcile_operations": {"operations": [{"operation_id": {"value": "none"}, "agent_id": agent}]}}),
    ];
    for call in calls {
        let answer = scheduler.call(call.clone());
        assert_eq!(answer.status, 202, "{call}: {}", answer.text());
    }
    let short = json!({"agent_id": agent, "task_id": {"value": "none"}, "uuid": "AAAA"});
    let answer = scheduler.call(json!({"type": "ACKNOWLEDGE", "acknowledge": short}));
    assert_eq!((answer.status, answer.text().contains("uuid")), (400, true), "{}", answer.text());
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "none"}}}));
    assert_eq!(scheduler.update("none", "TASK_UNKNOWN")["reason"], "REASON_RECONCILIATION");
    still_alive(&mut cluster);
}

#[test]
fn invalid_tasks_are_task_error_naming_the_field() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let with = |resource: Value| json!([scalar("cpus", 0.1), resource]);
    let long = "x".repeat(300);
    type Change<'c> = &'c dyn Fn(&mut Value);
    let table: &[(&str, Change, &str)] = &[
        ("negative", &|task| task["resources"] = with(scalar("mem", -1.0)), "mem"),
        ("endless", &|task| task["resources"] = with(infinite("mem")), "mem"),
        ("too-much", &|task| task["resources"] = with(scalar("mem", 1e9)), "more than available"),
        ("none", &|task| task["resources"] = json!([]), "resources"),
        ("unnamed", &|task| task["resources"] = with(scalar("", 1.0)), "name"),
        ("no-value", &|task| task["resources"] = with(json!({"name": "mem", "type": "SCALAR"})), "mem"),
        ("elsewhere", &|task| task["agent_id"] = json!({"value": "no-agent"}), "agent"),
        ("a/b", &|_| {}, "'/'"),
        (&long, &|_| {}, "longer than"),
        ("grace", &|task| task["kill_policy"] = json!({"grace_period": {"nanoseconds": -1}}), "grace_period"),
        ("check", &|task| task["check"] = json!({"type": "UNKNOWN"}), "check"),
        ("health", &|task| task["health_check"] = json!({"type": "FROBNICATE"}), "health check"),
    ];
    for (id, change, expected) in table {
        let offer = scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, id, "true");
        change(&mut task);
        let answer = scheduler.launch(&offer, &[task]);
        assert_eq!(answer.status, 202, "{id}: {}", answer.text());
        let status = scheduler.update(id, "TASK_ERROR");
        let message = status["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{id}: {message}");
    }
    still_alive(&mut cluster);
}

fn infinite(name: &str) -> Value {
    json!({"name": name, "type": "SCALAR", "scalar": {"value": "Infinity"}})
}

/// JSON has no NaN; protobuf has.
#[test]
fn nan_scalar_is_rejected() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let id = |id: &Value| id["value"].as_str().expect("an id").to_string();
    let resource = |name: &str, value: f64| pb::Resource {
        name: name.to_string(),
        r#type: value::Type::SCALAR,
        scalar: value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    };
    let task = pb::TaskInfo {
        name: "t".to_string(),
        task_id: pb::TaskID { value: "t".to_string(), ..Default::default() }.into(),
        agent_id: pb::AgentID { value: id(&offer["agent_id"]), ..Default::default() }.into(),
        command: pb::CommandInfo { value: Some("true".to_string()), ..Default::default() }.into(),
        resources: vec![resource("cpus", 0.1), resource("mem", f64::NAN)],
        ..Default::default()
    };
    let operation = pb::offer::Operation {
        r#type: Some(pb::offer::operation::Type::LAUNCH),
        launch: pb::offer::operation::Launch { task_infos: vec![task], ..Default::default() }.into(),
        ..Default::default()
    };
    let accept = call::Accept {
        offer_ids: vec![pb::OfferID { value: id(&offer["id"]), ..Default::default() }],
        operations: vec![operation],
        ..Default::default()
    };
    let call = Call {
        r#type: Some(call::Type::ACCEPT),
        framework_id: pb::FrameworkID { value: scheduler.framework_id.clone(), ..Default::default() }.into(),
        accept: accept.into(),
        ..Default::default()
    };
    let headers = [("Content-Type", PROTOBUF), ("Mesos-Stream-Id", scheduler.stream_id())];
    let answer = cluster.http().send("POST", SCHEDULER, &headers, &wire::encode(&call));
    match answer.status {
        202 => {
            let status = scheduler.update("t", "TASK_ERROR");
            assert!(status["message"].as_str().is_some_and(|message| message.contains("mem")), "{status}");
        }
        status => {
            assert_eq!(status, 400, "{}", answer.text());
            assert!(answer.text().contains("scalar.value"), "{}", answer.text());
        }
    }
    still_alive(&mut cluster);
}

#[test]
fn task_ids_of_live_tasks_cannot_be_reused() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let twice = [Scheduler::task(&offer, "t", "sleep 1000"), Scheduler::task(&offer, "t", "sleep 1000")];
    scheduler.launch(&offer, &twice);
    let refused = scheduler.update("t", "TASK_ERROR");
    assert!(
        refused["message"].as_str().is_some_and(|message| message.contains("duplicate ID: t")),
        "{refused}"
    );
    scheduler.reach("t", "TASK_RUNNING");
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", "sleep 1000")]);
    scheduler.update("t", "TASK_ERROR");
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "t"}}}));
    scheduler.reach("t", "TASK_KILLED");
    still_alive(&mut cluster);
}

#[test]
fn sandbox_paths_cannot_escape_the_sandbox() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let command = "echo inside > file; ln -s file good; ln -s /etc/passwd bad; ln -s / root; \
                   ln -s ../../../../../../.. up; mkfifo pipe; echo done";
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", command)]);
    scheduler.reach("t", "TASK_FINISHED");
    let http = cluster.agent_http();
    let sandbox = sandbox(&http, "t");
    let get = |verb: &str, path: &str| http.get(&format!("/files/{verb}?path={sandbox}{path}&offset=0"));

    assert_eq!(get("read", "/file").json().expect("JSON")["data"], "inside\n");
    assert_eq!(get("read", "/good").json().expect("JSON")["data"], "inside\n");
    assert_eq!(get("download", "/file").text(), "inside\n");
    for path in [
        "/bad",
        "/root",
        "/root/etc/passwd",
        "/up",
        "/pipe",
        "/../../../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    ] {
        for verb in ["read", "browse", "download"] {
            let answer = get(verb, path);
            assert!(
                [400, 404].contains(&answer.status),
                "{verb} {path}: {} {}",
                answer.status,
                answer.text()
            );
            assert!(!answer.text().contains("root:"), "{verb} {path}: {}", answer.text());
        }
    }
    for path in ["/etc/passwd", "/", "../../etc/passwd", "%00", "relative"] {
        let answer = http.get(&format!("/files/read?path={path}&offset=0"));
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
    }
    let call = |path: &str| {
        let read =
            json!({"type": "READ_FILE", "read_file": {"path": format!("{sandbox}{path}"), "offset": 0}});
        http.post("/api/v1", &read).status
    };
    assert_eq!((call("/file"), call("/bad"), call("/../../x")), (200, 400, 404));
    still_alive(&mut cluster);
}

/// The directory of a terminated task in the agent's state.
fn sandbox(http: &Http, task: &str) -> String {
    wait_for("the task's executor", || {
        let state = http.get("/state").json()?;
        let frameworks =
            state["frameworks"].as_array()?.iter().chain(state["completed_frameworks"].as_array()?);
        let executors = frameworks.flat_map(|framework| {
            ["executors", "completed_executors"]
                .map(|key| framework[key].as_array().cloned().unwrap_or_default())
        });
        let executor = executors.flatten().find(|executor| executor["id"] == task)?;
        Some(executor["directory"].as_str()?.to_string())
    })
}
