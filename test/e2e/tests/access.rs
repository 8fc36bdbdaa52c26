//! Authentication and authorization: every realm, tokens of executors, rules, and filtered reads.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, binary, scalar, wait_for};
use tepui_facilities::{Facility, available};

const CREDENTIALS: &str = r#"{"credentials":[
    {"principal":"ops","secret":"ops-secret"},
    {"principal":"dev","secret":"dev-secret"},
    {"principal":"agent","secret":"agent-secret"}]}"#;

/// `Basic` of a principal whose secret is its name and `-secret`.
fn proof(principal: &str) -> String {
    // By hand: a test kit needs no more than three names.
    let encoded = match principal {
        "ops" => "b3BzOm9wcy1zZWNyZXQ=",
        "dev" => "ZGV2OmRldi1zZWNyZXQ=",
        other => panic!("nobody is called {other}"),
    };
    format!("Basic {encoded}")
}

fn get(http: &Http, path: &str, principal: Option<&str>) -> Response {
    send(http, "GET", path, principal, &Value::Null)
}

fn send(http: &Http, method: &str, path: &str, principal: Option<&str>, body: &Value) -> Response {
    let proof = principal.map(proof).unwrap_or_default();
    let mut headers = vec![("Content-Type", "application/json")];
    if principal.is_some() {
        headers.push(("Authorization", proof.as_str()));
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    http.send(method, path, &headers, body.as_bytes())
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the file can be written");
    path
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

/// A cluster that requires authentication, and the folder of its secrets.
fn closed(acls: Option<&str>) -> (Cluster, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let credentials = write(folder.path(), "credentials", CREDENTIALS);
    let own = write(folder.path(), "credential", r#"{"principal":"agent","secret":"agent-secret"}"#);
    let key = write(folder.path(), "key", "the key of the tokens");
    let mut master = vec![
        flag("credentials", &credentials),
        "--authenticate_http_readonly".into(),
        "--authenticate_http_readwrite".into(),
        "--authenticate_http_frameworks".into(),
        "--authenticate_agents".into(),
        "--http_framework_authenticators=basic".into(),
    ];
    let mut agent = vec![
        "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]".into(),
        flag("credential", &own),
        flag("http_credentials", &credentials),
        flag("jwt_secret_key", &key),
        "--authenticate_http_readonly".into(),
        "--authenticate_http_readwrite".into(),
        "--authenticate_http_executors".into(),
    ];
    if let Some(acls) = acls {
        let acls = write(folder.path(), "acls", acls);
        master.push(flag("acls", &acls));
        agent.push(flag("acls", &acls));
    }
    let text = |flags: &'_ [String]| flags.to_vec();
    let master = text(&master);
    let mut cluster = Cluster::without_agents(&master.iter().map(String::as_str).collect::<Vec<_>>());
    let work_dir = cluster.folder().join("agent-0");
    let address = cluster.master.address.clone();
    cluster.add_agent_of(&address, &work_dir, &agent.iter().map(String::as_str).collect::<Vec<_>>());
    wait_for("the agent to register", || {
        let agents = get(&cluster.http(), "/slaves", Some("ops")).json()?;
        (agents["slaves"][0]["active"] == true).then_some(())
    });
    (cluster, folder)
}

fn subscribe(cluster: &Cluster, principal: &str, role: &str) -> Scheduler {
    Scheduler::subscribe_as(&cluster.http(), Scheduler::info(role), &proof(principal))
}

#[test]
fn unauthenticated_requests_are_rejected_and_executors_have_tokens() {
    let (cluster, folder) = closed(None);
    let (master, agent) = (cluster.http(), cluster.agent_http());
    for (http, path, method, realm) in [
        (&master, "/state", "GET", "mesos-master-readonly"),
        (&master, "/metrics/snapshot", "GET", "mesos-master-readonly"),
        (&master, "/flags", "GET", "mesos-master-readonly"),
        (&master, "/api/v1", "POST", "mesos-master-readwrite"),
        (&master, "/teardown", "POST", "mesos-master-readwrite"),
        (&master, "/api/v1/scheduler", "POST", "mesos-master-scheduler"),
        (&master, "/api/v1/agent", "POST", "mesos-master-agent"),
        (&agent, "/state", "GET", "mesos-agent-readonly"),
        (&agent, "/files/debug", "GET", "mesos-agent-readonly"),
        (&agent, "/api/v1", "POST", "mesos-agent-readwrite"),
        (&agent, "/api/v1/executor", "POST", "mesos-agent-executor"),
    ] {
        for principal in [None, Some("wrong")] {
            // Each with another principal, so that none is throttled. The body is not JSON: it is not read.
            let wrong = format!("Basic {}", BASE64_STANDARD.encode(format!("{method}{path}:wrong")));
            let proof = principal.map(|_| ("Authorization", wrong.as_str()));
            let answer = http.send(method, path, &Vec::from_iter(proof), b"no call");
            assert_eq!(answer.status, 401, "{path} {principal:?}");
            let challenge = answer.header("www-authenticate").expect("a challenge").to_string();
            assert!(challenge.starts_with(&format!("Basic realm=\"{realm}\"")), "{path}: {challenge}");
        }
    }
    for path in ["/health", "/version", "/"] {
        assert_eq!(get(&master, path, None).status, 200, "{path}");
    }
    // The server does not wait for the body.
    for method_path in ["PUT /weights", "POST /api/v1", "POST /quota", "POST /machine/down"] {
        let head = format!("{method_path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n");
        let mut stream = master.raw(head.as_bytes()).expect("a connection");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer before the body");
        assert_eq!(&answer, b"HTTP/1.1 401", "{method_path}");
    }
    let health = json!({"type": "GET_HEALTH"});
    assert_eq!(send(&master, "POST", "/api/v1", Some("dev"), &health).status, 200);
    assert_eq!(send(&agent, "POST", "/api/v1", Some("dev"), &health).status, 200);

    // Both kinds of built-in executors do their work with the tokens they got.
    let mut scheduler = subscribe(&cluster, "dev", "dev");
    let offer = scheduler.offer();
    let plain = Scheduler::task(&offer, "plain", "sleep 1000");
    scheduler.launch(&offer, &[plain]);
    scheduler.reach("plain", "TASK_RUNNING");
    let offer = scheduler.fresh_offer();
    let executor = json!({"type": "DEFAULT", "executor_id": {"value": "e"},
        "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]});
    let group = json!({"tasks": [Scheduler::task(&offer, "grouped", "exit 0")]});
    scheduler.accept(
        &offer,
        json!([{"type": "LAUNCH_GROUP",
        "launch_group": {"executor": executor, "task_group": group}}]),
    );
    scheduler.reach("grouped", "TASK_FINISHED");

    // The principal of a framework is the authenticated one.
    let mut call = json!({"type": "KILL", "kill": {"task_id": {"value": "plain"}}});
    call["framework_id"] = json!({"value": scheduler.framework_id});
    let stream = scheduler.stream_id().to_string();
    let basic = proof("ops");
    let headers =
        [("Content-Type", "application/json"), ("Authorization", &*basic), ("Mesos-Stream-Id", &*stream)];
    let answer = master.send("POST", "/api/v1/scheduler", &headers, call.to_string().as_bytes());
    assert_eq!(answer.status, 400, "{}", answer.text());
    let info = get(&master, "/frameworks", Some("dev")).json().unwrap();
    assert_eq!(info["frameworks"][0]["principal"], "dev");

    // No secret is shown or written anywhere.
    let shown = [
        get(&master, "/flags", Some("ops")).text(),
        get(&master, "/state", Some("ops")).text(),
        get(&agent, "/state", Some("ops")).text(),
        get(&agent, "/flags", Some("ops")).text(),
        cluster.master.log(),
        cluster.agents[0].log(),
    ];
    for secret in ["ops-secret", "agent-secret", "the key of the tokens", "b3BzOm9wcy1zZWNyZXQ="] {
        assert!(shown.iter().all(|text| !text.contains(secret)), "{secret}");
    }
    drop(folder);
}

#[test]
fn cli_authenticates_by_flags_environment_and_file() {
    let (cluster, folder) = closed(None);
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let flag = format!("--master={}", cluster.master.address);
        let mut command = Command::new(binary());
        command.args(arguments).arg(flag).envs(variables.iter().copied());
        let output = command.output().expect("the binary starts");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (done, printed) = run(&[], &["agents"]);
    assert!(!done && printed.contains("requires authentication"), "{printed}");
    assert!(run(&[("TEPUI_PRINCIPAL", "ops"), ("TEPUI_SECRET", "ops-secret")], &["agents"]).0);
    assert!(run(&[], &["agents", "--principal=ops", "--secret=ops-secret"]).0);
    assert!(!run(&[], &["agents", "--principal=ops", "--secret=other"]).0);
    drop(folder);
}

const ACLS: &str = r#"{"permissive": true,
    "register_frameworks": [{"principals":{"values":["dev"]},"roles":{"values":["dev"]}},
                            {"principals":{"type":"ANY"},"roles":{"type":"NONE"}}],
    "run_tasks": [{"principals":{"values":["dev"]},"users":{"values":["root"]}},
                  {"principals":{"type":"ANY"},"users":{"type":"NONE"}}],
    "view_frameworks": [{"principals":{"values":["ops"]},"users":{"type":"ANY"}},
                        {"principals":{"type":"ANY"},"users":{"type":"NONE"}}],
    "view_flags": [{"principals":{"values":["ops"]},"flags":{"type":"ANY"}},
                   {"principals":{"type":"ANY"},"flags":{"type":"NONE"}}],
    "access_sandboxes": [{"principals":{"values":["ops"]},"users":{"type":"ANY"}},
                         {"principals":{"type":"ANY"},"users":{"type":"NONE"}}],
    "mark_agents_gone": [{"principals":{"values":["ops"]},"agents":{"type":"ANY"}},
                         {"principals":{"type":"ANY"},"agents":{"type":"NONE"}}],
    "update_weights": [{"principals":{"values":["ops"]},"roles":{"values":["dev"]}},
                       {"principals":{"type":"ANY"},"roles":{"type":"NONE"}}],
    "view_roles": [{"principals":{"values":["ops"]},"roles":{"type":"ANY"}},
                   {"principals":{"type":"ANY"},"roles":{"type":"NONE"}}],
    "teardown_frameworks": [{"principals":{"values":["ops"]},"framework_principals":{"values":["dev"]}},
                            {"principals":{"type":"ANY"},"framework_principals":{"type":"NONE"}}]}"#;

#[test]
fn acls_decide_actions_and_visibility() {
    let (cluster, folder) = closed(Some(ACLS));
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut scheduler = subscribe(&cluster, "dev", "dev");
    let offer = scheduler.offer();
    let allowed = Scheduler::task(&offer, "allowed", "echo hello; sleep 1000");
    let mut denied = Scheduler::task(&offer, "denied", "sleep 1000");
    denied["command"]["user"] = json!("nobody");
    scheduler.launch(&offer, &[allowed, denied]);
    let status = scheduler.update("denied", "TASK_ERROR");
    assert_eq!(status["reason"], "REASON_TASK_UNAUTHORIZED");
    scheduler.reach("allowed", "TASK_RUNNING");

    // Another role is not theirs.
    let other = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": Scheduler::info("prod")}});
    let basic = proof("dev");
    let mut stream = master.stream("/api/v1/scheduler", &[("Authorization", &basic)], &other);
    assert_eq!(stream.next_event().unwrap()["type"], "ERROR");

    // Reads are filtered by the principal.
    let names = |http: &Http, path: &str, principal: &str| {
        let document = get(http, path, Some(principal)).json().unwrap();
        document["frameworks"].as_array().unwrap().len()
    };
    for (http, path) in [(&master, "/state"), (&master, "/frameworks"), (&agent, "/state")] {
        assert_eq!(names(http, path, "ops"), 1, "{path}");
        assert_eq!(names(http, path, "dev"), 0, "{path}");
    }
    let tasks = |principal| {
        get(&master, "/tasks", Some(principal)).json().unwrap()["tasks"].as_array().unwrap().len()
    };
    assert_eq!((tasks("ops"), tasks("dev")), (1, 0));
    let call = json!({"type": "GET_FRAMEWORKS"});
    let seen = send(&master, "POST", "/api/v1", Some("dev"), &call).json().unwrap();
    assert_eq!(seen["get_frameworks"]["frameworks"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(get(&master, "/flags", Some("dev")).status, 403);
    assert_eq!(get(&master, "/flags", Some("ops")).status, 200);
    assert!(get(&master, "/state", Some("dev")).json().unwrap()["flags"].as_object().unwrap().is_empty());
    let sandbox = format!("/frameworks/{}/executors/allowed/runs/latest", scheduler.framework_id);
    let browse = format!("/files/browse?path={sandbox}");
    assert_eq!(get(&agent, &browse, Some("ops")).status, 200);
    assert_eq!(get(&agent, &browse, Some("dev")).status, 404);

    // Weights of authorized roles, all or nothing; the list contains visible roles.
    let put = |principal: &str, roles: &[&str]| {
        let list: Vec<Value> = roles.iter().map(|role| json!({"role": role, "weight": 2})).collect();
        send(&master, "PUT", "/weights", Some(principal), &Value::from(list)).status
    };
    assert_eq!((put("dev", &["dev"]), put("ops", &["dev", "prod"]), put("ops", &["prod"])), (403, 403, 403));
    assert_eq!(get(&master, "/weights", Some("ops")).json().unwrap(), json!([]));
    assert_eq!(put("ops", &["dev"]), 200);
    let seen =
        |principal: &str| get(&master, "/weights", Some(principal)).json().unwrap().as_array().unwrap().len();
    assert_eq!((seen("ops"), seen("dev")), (1, 0));
    assert_eq!(get(&master, "/weights/dev", Some("ops")).status, 200);
    assert_eq!(get(&master, "/weights/dev", Some("dev")).status, 403);

    // Changes require authorization.
    let id = get(&master, "/slaves", Some("ops")).json().unwrap()["slaves"][0]["id"].clone();
    let gone = json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": id}}});
    assert_eq!(send(&master, "POST", "/api/v1", Some("dev"), &gone).status, 403);
    let teardown =
        json!({"type": "TEARDOWN", "teardown": {"framework_id": {"value": scheduler.framework_id}}});
    assert_eq!(send(&master, "POST", "/api/v1", Some("dev"), &teardown).status, 403);
    assert_eq!(send(&master, "POST", "/api/v1", Some("ops"), &teardown).status, 200);
    assert_eq!(send(&master, "POST", "/api/v1", Some("ops"), &gone).status, 200);
    drop(folder);
}

#[test]
fn rate_limited_calls_are_delayed_or_rejected() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let credentials = write(folder.path(), "credentials", CREDENTIALS);
    // One call in a long time, and none may wait.
    let limits = r#"{"limits":[{"principal":"dev","qps":0.0001,"capacity":0},{"principal":"ops"}]}"#;
    let cluster = Cluster::without_agents(&[
        &flag("credentials", &credentials),
        "--authenticate_http_readwrite",
        "--authenticate_http_frameworks",
        &format!("--rate_limits={limits}"),
    ]);
    let health = json!({"type": "GET_HEALTH"});
    let call = |path: &str, principal: &str| send(&cluster.http(), "POST", path, Some(principal), &health);
    assert_eq!(call("/api/v1", "dev").status, 200);
    let refused = call("/api/v1", "dev");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(call("/api/v1/scheduler", "dev").status, 429, "the same limit for every way in");
    for _ in 0..50 {
        assert_eq!(call("/api/v1", "ops").status, 200, "who is named without a limit has none");
    }
    assert_eq!(cluster.http().get("/state").status, 200);
    drop(folder);
}

/// `{"alg":"HS256"}` and these claims, signed with a key.
fn token(claims: &Value, key: &str) -> String {
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = format!("{}.{}", encode(br#"{"alg":"HS256"}"#), encode(claims.to_string().as_bytes()));
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-binary", "-hmac", key])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl starts; test/setup installs it");
    child.stdin.take().expect("it is piped").write_all(signed.as_bytes()).expect("it listens");
    let signature = child.wait_with_output().expect("it ends").stdout;
    format!("{signed}.{}", encode(&signature))
}

#[test]
fn bearer_tokens_authenticate_and_bind_an_executor_to_its_id() {
    if !available(&[Facility::Program("openssl")]) {
        return;
    }
    let (cluster, folder) = closed(None);
    let agent = cluster.agent_http();
    let get =
        |token: &str| agent.send("GET", "/state", &[("Authorization", &format!("Bearer {token}"))], b"");
    let key = "the key of the tokens";
    assert_eq!(get(&token(&json!({"sub": "ops"}), key)).status, 200);
    assert_eq!(get(&token(&json!({"sub": "ops", "exp": 1}), key)).status, 401, "its time is over");
    assert_eq!(get(&token(&json!({"sub": "ops"}), "another key")).status, 401);

    // The command line reads a token from a file.
    let file = write(folder.path(), "token", &token(&json!({"sub": "ops"}), key));
    let run = |file: &Path| {
        let address = format!("--master={}", cluster.agents[0].address);
        [(flag("token-file", file), ""), (String::new(), file.to_str().expect("a path"))].map(
            |(flag, set)| {
                let mut command = Command::new(binary());
                command.args(["metrics", &address]).args(Some(flag).filter(|flag| !flag.is_empty()));
                let output = command.env("TEPUI_TOKEN_FILE", set).output().expect("the binary starts");
                (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
            },
        )
    };
    let done = run(&file);
    assert!(done.iter().all(|(done, _)| *done), "{done:?}");
    let other = write(folder.path(), "other", &token(&json!({"sub": "ops"}), "another key"));
    assert!(run(&other).iter().all(|(done, _)| !done));

    let mut scheduler = subscribe(&cluster, "dev", "dev");
    let offer = scheduler.offer();
    let seen = cluster.folder().join("environment");
    let command = format!("env > {}.part; mv {0}.part {0}; sleep 1000", seen.display());
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", &command)]);
    scheduler.reach("t", "TASK_RUNNING");
    let environment = wait_for("the task to look", || std::fs::read_to_string(&seen).ok());
    assert!(environment.contains("MESOS_SANDBOX") && !environment.contains("TOKEN"), "{environment}");
    let framework = scheduler.framework_id.clone();
    let subscribe = json!({"type": "SUBSCRIBE", "framework_id": {"value": framework},
        "executor_id": {"value": "t"}, "subscribe": {}});
    let claims = json!({"fid": framework, "eid": "another", "cid": "another"});
    let bearer = format!("Bearer {}", token(&claims, key));
    let headers = [("Content-Type", "application/json"), ("Authorization", &*bearer)];
    let answer = agent.send("POST", "/api/v1/executor", &headers, subscribe.to_string().as_bytes());
    assert_eq!(answer.status, 403, "{}", answer.text());
}

/// `dev` may neither use standalone containers nor view any container.
const CONTAINER_ACLS: &str = r#"{"permissive": true,
    "launch_standalone_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "wait_standalone_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "kill_standalone_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "remove_standalone_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "launch_nested_containers_under_parent_with_user": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "launch_nested_container_sessions_as_user": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "attach_containers_output": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "wait_nested_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "view_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "view_standalone_containers": [{"principals":{"values":["dev"]},"users":{"type":"NONE"}}]}"#;

#[test]
fn acls_apply_to_container_calls() {
    let (cluster, folder) = closed(Some(CONTAINER_ACLS));
    let agent = cluster.agent_http();
    let mut scheduler = subscribe(&cluster, "ops", "dev");
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "task", "sleep 1000")]);
    let status = scheduler.reach("task", "TASK_RUNNING");
    let nested = json!({"value": "nested", "parent": status["container_status"]["container_id"]});
    let call = |principal: &str, kind: &str, body: Value| {
        let call = json!({"type": kind, kind.to_lowercase(): body});
        send(&agent, "POST", "/api/v1", Some(principal), &call)
    };
    let alone = json!({"value": "alone"});
    for id in [&alone, &nested] {
        let launch = json!({"container_id": id, "command": {"value": "sleep 1000"}});
        assert_eq!(call("dev", "LAUNCH_CONTAINER", launch.clone()).status, 403, "{id}");
        assert_eq!(call("ops", "LAUNCH_CONTAINER", launch).status, 200, "{id}");
        assert_eq!(call("dev", "WAIT_CONTAINER", json!({"container_id": id})).status, 403, "{id}");
    }
    for kind in ["KILL_CONTAINER", "REMOVE_CONTAINER"] {
        assert_eq!(call("dev", kind, json!({"container_id": alone})).status, 403, "{kind}");
    }
    for kind in ["LAUNCH_NESTED_CONTAINER_SESSION", "ATTACH_CONTAINER_OUTPUT"] {
        assert_eq!(call("dev", kind, json!({"container_id": nested})).status, 403, "{kind}");
    }
    let seen = |principal: &str| {
        let parameters = json!({"show_nested": true, "show_standalone": true});
        let answer = call(principal, "GET_CONTAINERS", parameters).json().unwrap();
        answer["get_containers"]["containers"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((seen("ops"), seen("dev")), (3, 0));
    let listed =
        |principal| get(&agent, "/containers", Some(principal)).json().unwrap().as_array().unwrap().len();
    assert_eq!((listed("ops"), listed("dev")), (1, 0));
    for id in [&nested, &alone] {
        assert_eq!(call("ops", "KILL_CONTAINER", json!({"container_id": id})).status, 200);
    }
    drop(folder);
}
