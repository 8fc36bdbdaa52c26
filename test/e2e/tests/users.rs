//! Users of tasks: a framework that may only use `nobody` tries all ways to become root.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, scalar, wait_for};
use tepui_facilities::{Facility, available};

const CREDENTIALS: &str =
    r#"{"credentials":[{"principal":"dev","secret":"s"},{"principal":"agent","secret":"s"}]}"#;
const KEY: &str = "the key of the tokens";
const ACLS: &str = r#"{"permissive": true,
    "run_tasks": [{"principals":{"values":["dev"]},"users":{"values":["nobody"]}},
                  {"principals":{"type":"ANY"},"users":{"type":"NONE"}}],
    "launch_nested_container_sessions_as_user": [{"principals":{"values":["dev"]},"users":{"values":["nobody"]}},
                                                 {"principals":{"type":"ANY"},"users":{"type":"NONE"}}]}"#;

fn basic() -> String {
    format!("Basic {}", BASE64_STANDARD.encode("dev:s"))
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("the file can be written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("the file is ours");
    path
}

/// A cluster with authentication; only the master has ACLs.
fn cluster(acls: &str) -> (Cluster, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| format!("--{name}={}", write(folder.path(), name, text).display());
    let credentials = file("credentials", CREDENTIALS);
    let mut cluster = Cluster::without_agents(&[
        &credentials,
        &file("acls", acls),
        "--authenticate_http_frameworks",
        "--authenticate_agents",
        "--http_framework_authenticators=basic",
    ]);
    // Tasks of another user have to reach their sandboxes.
    std::fs::set_permissions(cluster.folder(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let (address, work_dir) = (cluster.master.address.clone(), cluster.folder().join("agent-0"));
    let flags = [
        "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]",
        &file("credential", r#"{"principal":"agent","secret":"s"}"#),
        &credentials.replace("--credentials", "--http_credentials"),
        &file("jwt_secret_key", KEY),
        "--authenticate_http_readonly",
        "--authenticate_http_readwrite",
        "--authenticate_http_executors",
    ];
    cluster.add_agent_of(&address, &work_dir, &flags);
    cluster.wait_for_agents(1);
    (cluster, folder)
}

fn subscribe(cluster: &Cluster) -> Scheduler {
    let mut info = Scheduler::info("dev");
    info["user"] = json!("nobody");
    Scheduler::subscribe_as(&cluster.http(), info, &basic())
}

fn executor(scheduler: &Scheduler, id: &str, more: Value) -> Value {
    let mut executor = json!({"type": "DEFAULT", "executor_id": {"value": id},
        "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]});
    if let Some(more) = more.as_object() {
        executor.as_object_mut().expect("an object").extend(more.clone());
    }
    executor
}

fn launch_group(scheduler: &Scheduler, offer: &Value, executor: Value, task: Value) {
    let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
    scheduler.accept(offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
}

#[test]
fn no_field_of_a_launch_makes_a_process_root() {
    let (cluster, folder) = cluster(ACLS);
    let mut scheduler = subscribe(&cluster);
    let root = json!({"value": "true", "user": "root"});
    let mut attempts = Vec::new();
    for field in ["command", "health_check", "check"] {
        for in_group in [false, true] {
            attempts.push((field, in_group));
        }
    }
    for (field, in_group) in attempts {
        let offer = scheduler.fresh_offer();
        let id = format!("{field}-{in_group}");
        let mut task = Scheduler::task(&offer, &id, "sleep 1000");
        match field {
            "health_check" => task[field] = json!({"type": "COMMAND", "command": root}),
            "check" => task[field] = json!({"type": "COMMAND", "command": {"command": root}}),
            _ => task[field] = root.clone(),
        }
        match in_group {
            true => launch_group(&scheduler, &offer, executor(&scheduler, &id, Value::Null), task),
            false => drop(scheduler.launch(&offer, &[task])),
        }
        let status = scheduler.update(&id, "TASK_ERROR");
        assert!(
            status["reason"].as_str().is_some_and(|reason| reason.ends_with("_UNAUTHORIZED")),
            "{status}"
        );
    }
    let offer = scheduler.fresh_offer();
    let custom = json!({"type": "CUSTOM", "command": root});
    let task = Scheduler::task(&offer, "custom", "true");
    launch_group(&scheduler, &offer, executor(&scheduler, "custom", custom.clone()), task);
    scheduler.update("custom", "TASK_ERROR");
    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "own-executor", "true");
    task.as_object_mut().expect("an object").remove("command");
    task["executor"] = executor(&scheduler, "own", custom);
    scheduler.launch(&offer, &[task]);
    scheduler.update("own-executor", "TASK_ERROR");
    drop(folder);
}

/// `{"alg":"HS256"}` and these claims, signed with the key of the agent: a stolen token.
fn token(claims: &Value) -> String {
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = format!("{}.{}", encode(br#"{"alg":"HS256"}"#), encode(claims.to_string().as_bytes()));
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-binary", "-hmac", KEY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl starts; test/setup installs it");
    child.stdin.take().expect("it is piped").write_all(signed.as_bytes()).expect("it listens");
    format!("{signed}.{}", encode(&child.wait_with_output().expect("it ends").stdout))
}

fn ask(agent: &Http, proof: &str, call: &Value) -> Response {
    let headers = [("Content-Type", "application/json"), ("Authorization", proof)];
    agent.send("POST", "/api/v1", &headers, call.to_string().as_bytes())
}

/// A command that counts the tokens in the environments of all processes that it can read.
const STEAL: &str = "for pid in /proc/[0-9]*; do tr '\\0' '\\n' < $pid/environ; done 2>/dev/null \
                     | grep -c AUTHENTICATION_TOKEN > found; mv found stolen; sleep 1000";

/// What it counted, in a sandbox below the work directory of the agent.
fn stolen(cluster: &Cluster, sandbox: &str) -> String {
    let file = format!("{}/{sandbox}/stolen", cluster.agents[0].work_dir.display());
    wait_for("the task to have looked", || {
        let output = Command::new("sh").args(["-c", &format!("cat {file}")]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    })
}

#[test]
fn executor_token_allows_only_its_containers_and_users() {
    if !available(&[Facility::Root, Facility::Program("openssl")]) {
        return;
    }
    let (cluster, folder) = cluster(ACLS);
    let mut scheduler = subscribe(&cluster);
    let offer = scheduler.offer();
    let task = Scheduler::task(&offer, "thief", STEAL);
    launch_group(&scheduler, &offer, executor(&scheduler, "e", Value::Null), task);
    let status = scheduler.reach("thief", "TASK_RUNNING");
    let own = status["container_status"]["container_id"].clone();
    let runs = format!("slaves/*/frameworks/*/executors/e/runs/{}", own["parent"]["value"].as_str().unwrap());
    assert_eq!(
        stolen(&cluster, &format!("{runs}/containers/*")),
        "0",
        "tokens that a task of a group could read"
    );
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "alone", STEAL)]);
    scheduler.reach("alone", "TASK_RUNNING");
    let runs = "slaves/*/frameworks/*/executors/alone/runs/latest";
    assert_eq!(stolen(&cluster, runs), "0", "tokens that a task could read");

    let claims = json!({"fid": scheduler.framework_id, "eid": "e", "cid": own["parent"]["value"]});
    let (agent, bearer) = (cluster.agent_http(), format!("Bearer {}", token(&claims)));
    let launch = |kind: &str, id: Value, command: Value| {
        let call = json!({"type": kind, kind.to_lowercase(): {"container_id": id, "command": command}});
        ask(&agent, &bearer, &call).status
    };
    let nested = |name: &str| json!({"value": name, "parent": own["parent"]});
    let (root, plain) = (json!({"value": "sleep 9", "user": "root"}), json!({"value": "sleep 9"}));
    for kind in ["LAUNCH_CONTAINER", "LAUNCH_NESTED_CONTAINER", "LAUNCH_NESTED_CONTAINER_SESSION"] {
        assert_eq!(launch(kind, nested("r"), root.clone()), 403, "{kind}");
    }
    assert_eq!(launch("LAUNCH_CONTAINER", nested("n"), plain.clone()), 200);
    assert_eq!(launch("LAUNCH_CONTAINER", json!({"value": "alone"}), plain), 403);
    // Nothing but containers.
    for call in ["PRUNE_IMAGES", "GET_FLAGS", "SET_LOGGING_LEVEL"] {
        let level = json!({"level": 1, "duration": {"nanoseconds": 1}});
        let call = json!({"type": call, "set_logging_level": level, "prune_images": {}});
        assert_eq!(ask(&agent, &bearer, &call).status, 403, "{call}");
    }
    let headers = [("Authorization", bearer.as_str())];
    assert_eq!(agent.send("GET", "/flags", &headers, b"").status, 403);
    let state = agent.send("GET", "/state", &headers, b"").json().expect("a document");
    assert_eq!(state["frameworks"], json!([]), "frameworks that a token shows");
    drop(folder);
}

#[test]
fn root_submissions_applies_to_every_user_of_a_task() {
    let cluster = Cluster::with(&["--no-root_submissions"], &["--resources=cpus:4;mem:1024;disk:1024"]);
    let mut info = Scheduler::info("dev");
    info["user"] = json!("nobody");
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let offer = scheduler.offer();
    let mut task = Scheduler::task(&offer, "t", "true");
    task["command"]["user"] = json!("root");
    scheduler.launch(&offer, &[task]);
    let status = scheduler.update("t", "TASK_ERROR");
    assert!(
        status["message"].as_str().is_some_and(|reason| reason.contains("--root_submissions")),
        "{status}"
    );
}

/// Paths below a directory that others than their owner can use, sandboxes left out.
fn open_paths(dir: &Path) -> String {
    let script =
        r#"find "$0" -path '*/runs/*' -prune -o -type f -perm /077 -print -o -type d -perm /066 -print"#;
    let output = Command::new("sh").args(["-c", script]).arg(dir).output().expect("find runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn work_directories_are_private() {
    if !available(&[Facility::Root]) {
        return;
    }
    let secrets = tempfile::tempdir().expect("a temporary directory");
    let credentials = write(secrets.path(), "credentials", CREDENTIALS);
    std::fs::set_permissions(&credentials, PermissionsExt::from_mode(0o644)).expect("the file is ours");
    let mut cluster = Cluster::without_agents(&[&format!("--credentials={}", credentials.display())]);
    std::fs::set_permissions(cluster.folder(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    cluster.add_agent(&["--resources=cpus:4;mem:1024;disk:1024"]);
    assert!(cluster.master.log().contains("can be accessed by every user of this machine"), "a warning");
    let mut info = Scheduler::info("dev");
    info["user"] = json!("nobody");
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let offer = scheduler.offer();
    // A task can access its sandbox by path, but not its siblings.
    let script = "cd / && echo found > $MESOS_SANDBOX/found && ! ls $MESOS_SANDBOX/.. && sleep 1000";
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", script)]);
    scheduler.reach("t", "TASK_RUNNING");
    let agent = cluster.agents[0].work_dir.clone();
    let runs = agent.join("slaves");
    let modes = wait_for("the task to have written", || {
        let script =
            r#"find "$0" -name found -printf x; find "$0" -path '*/runs/*' -prune -type d -printf ' %m %u'"#;
        let output = Command::new("sh").args(["-c", script]).arg(&runs).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.strip_prefix('x').map(str::to_owned)
    });
    assert_eq!(modes, " 750 nobody");
    for dir in [&agent, &cluster.master.work_dir] {
        assert_eq!(open_paths(dir), "", "{}", dir.display());
    }
    // What an older agent left open is closed at the start.
    cluster.agents[0].kill();
    let loosened = Command::new("chmod").args(["-R", "a+rX"]).arg(&agent).status().expect("chmod runs");
    assert!(loosened.success() && !open_paths(&agent).is_empty());
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    assert_eq!(open_paths(&agent), "");
}

/// The status of a call from a process of the user `nobody`.
fn as_unprivileged_user(agent: &Http, call: &Value) -> String {
    let (host, port) = agent.address().rsplit_once(':').expect("host:port");
    let body = call.to_string();
    let head = format!(
        "POST /api/v1 HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; cat >&3; head -n 1 <&3");
    let mut child = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "bash", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("setpriv starts");
    let request = format!("{head}{body}");
    child.stdin.take().expect("it is piped").write_all(request.as_bytes()).expect("it listens");
    let output = child.wait_with_output().expect("it ends");
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    line.split_whitespace().nth(1).unwrap_or("none").to_owned()
}

#[test]
fn unauthenticated_local_users_cannot_launch_as_root() {
    if !available(&[Facility::Root, Facility::Program("setpriv")]) {
        return;
    }
    let mut cluster = Cluster::without_agents(&[]);
    std::fs::set_permissions(cluster.folder(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    cluster.add_agent(&["--resources=cpus:4;mem:1024;disk:1024"]);
    let agent = cluster.agent_http();
    let launch = |id: Value, user: &str| {
        let command = json!({"value": "sleep 9", "user": user});
        json!({"type": "LAUNCH_CONTAINER", "launch_container": {"container_id": id, "command": command}})
    };
    let alone = json!({"value": "alone"});
    assert_eq!(as_unprivileged_user(&agent, &launch(alone.clone(), "root")), "403");
    assert_eq!(as_unprivileged_user(&agent, &launch(alone.clone(), "nobody")), "403");
    assert_eq!(agent.post("/api/v1", &launch(alone.clone(), "root")).status, 200, "root may");
    let kill = json!({"type": "KILL_CONTAINER", "kill_container": {"container_id": alone}});
    assert_eq!(as_unprivileged_user(&agent, &kill), "403");
    assert_eq!(as_unprivileged_user(&agent, &json!({"type": "GET_HEALTH"})), "200", "reads are as they were");

    // Executors of other users do their work, and no more.
    let mut info = Scheduler::info("dev");
    info["user"] = json!("nobody");
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    let offer = scheduler.offer();
    let task = Scheduler::task(&offer, "grouped", "sleep 1000");
    launch_group(&scheduler, &offer, executor(&scheduler, "e", Value::Null), task);
    let status = scheduler.reach("grouped", "TASK_RUNNING");
    let nested = json!({"value": "n", "parent": status["container_status"]["container_id"]["parent"]});
    assert_eq!(as_unprivileged_user(&agent, &launch(nested.clone(), "root")), "403");
    assert_eq!(as_unprivileged_user(&agent, &launch(nested, "nobody")), "200");
}
