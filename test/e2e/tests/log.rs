//! The logs of a master and an agent contain every transition of every entity, in order, without secrets.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, wait_for};

const CREDENTIALS: &str = r#"{"credentials":[{"principal":"ops","secret":"ops-secret"}]}"#;
/// ops:ops-secret
const OPS: &str = "Basic b3BzOm9wcy1zZWNyZXQ=";
const AGENT_FLAGS: [&str; 2] =
    ["--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]", "--executor_reregistration_timeout=15secs"];

/// One line of a JSON log.
fn parse(log: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
    log.lines().map(line).collect()
}

/// The complete lines of a log that is still being written.
fn complete(log: &str) -> &str {
    log.rfind('\n').map_or("", |end| &log[..=end])
}

/// What happened to one entity: each event, with the state if it has one.
fn story(lines: &[Value], field: &str, id: &str) -> Vec<String> {
    let matching = lines.iter().filter(|line| line[field] == id);
    let transitions = matching.map(|line| match line["state"].as_str() {
        Some(state) => format!("{} {state}", line["event"].as_str().unwrap_or_default()),
        None => line["event"].as_str().unwrap_or_default().to_owned(),
    });
    transitions.collect()
}

/// Whether these words appear in these lines, in this order.
fn is_logged_in_order(log: &str, words: &[&str]) -> bool {
    let mut lines = log.lines();
    words.iter().all(|words| lines.any(|line| words.split('|').all(|part| line.contains(part))))
}

fn as_operator(http: &Http, method: &str, path: &str, body: &Value) -> u16 {
    let headers = [("Content-Type", "application/json"), ("Authorization", OPS)];
    http.send(method, path, &headers, body.to_string().as_bytes()).status
}

#[test]
fn logs_contain_every_state_transition() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let credentials = folder.path().join("credentials");
    std::fs::write(&credentials, CREDENTIALS).expect("the file can be written");
    let flag = format!("--credentials={}", credentials.display());
    let mut cluster =
        Cluster::with(&["--log_format=json", &flag, "--authenticate_http_readwrite"], &AGENT_FLAGS);
    let http = cluster.http();
    let mut scheduler = Scheduler::subscribe(&http, Scheduler::info("dev"));

    let offer = scheduler.offer();
    let mut fails = Scheduler::task(&offer, "fails", "exit 3");
    fails["name"] = json!("forged\n{\"event\":\"agent gone\"}");
    fails["command"]["environment"] = json!({"variables": [{"name": "PASSWORD", "value": "hunter2"}]});
    let tasks = [
        Scheduler::task(&offer, "finishes", "true"),
        fails,
        Scheduler::task(&offer, "killed", "sleep 1000"),
        Scheduler::task(&offer, "stays", "sleep 1000"),
    ];
    assert_eq!(scheduler.launch(&offer, &tasks).status, 202);
    scheduler.reach("finishes", "TASK_FINISHED");
    scheduler.reach("fails", "TASK_FAILED");
    scheduler.reach("killed", "TASK_RUNNING");
    scheduler.reach("stays", "TASK_RUNNING");
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "killed"}}}));
    scheduler.reach("killed", "TASK_KILLED");

    let weights = json!([{"role": "dev", "weight": 2.5}]);
    assert_eq!(as_operator(&http, "PUT", "/weights", &weights), 200);

    // A program that is killed may not have written its last lines.
    wait_for("the agent to log the kill", || {
        cluster.agents[0].log().contains("task terminated task_id=killed").then_some(())
    });
    cluster.agents[0].kill();
    wait_for("the master to log the loss", || {
        cluster.master.log().contains("agent disconnected").then_some(())
    });
    cluster.agents[0].restart();
    wait_for("the agent to be back", || cluster.master.log().contains("agent reconnected").then_some(()));

    let id = scheduler.framework_id.clone();
    let teardown = json!({"type": "TEARDOWN", "teardown": {"framework_id": {"value": id}}});
    assert_eq!(as_operator(&http, "POST", "/api/v1", &teardown), 200);
    wait_for("the agent to log the end", || {
        let log = cluster.agents[0].log();
        log.contains(&format!("framework removed framework_id={id}")).then_some(())
    });
    wait_for("the master to log the end", || {
        cluster.master.log().contains("framework torn down").then_some(())
    });
    check_master(complete(&cluster.master.log()), &id);
    check_agent(&cluster.agents[0].log());
    for log in [cluster.master.log(), cluster.agents[0].log()] {
        assert!(!log.contains("hunter2") && !log.contains("ops-secret"), "a secret in the log:\n{log}");
    }
}

fn check_master(log: &str, framework: &str) {
    let lines = parse(log);
    let task = |id| story(&lines, "task_id", id);
    let started = ["task launched", "task updated TASK_STARTING", "task updated TASK_RUNNING"];
    let with = |rest: &[&'static str]| [&started[..], rest].concat();
    assert_eq!(task("finishes"), with(&["task terminated TASK_FINISHED"]));
    assert_eq!(task("fails"), with(&["task terminated TASK_FAILED"]));
    let killed = ["task kill requested", "task updated TASK_KILLING", "task terminated TASK_KILLED"];
    assert_eq!(task("killed"), with(&killed));
    assert_eq!(task("stays"), with(&["task terminated TASK_KILLED"]));

    let line = |event: &str| lines.iter().find(|line| line["event"] == event).unwrap_or(&Value::Null);
    let failed = lines.iter().find(|line| line["state"] == "TASK_FAILED").expect("a task failed");
    assert_eq!(failed["status_message"], "Command exited with status 3");
    let agent = line("agent registered")["agent_id"].as_str().expect("an agent registered");
    assert_eq!(line("task launched")["agent_id"], agent);
    let agent: Vec<String> = story(&lines, "agent_id", agent);
    let agent: Vec<&str> =
        agent.iter().map(String::as_str).filter(|event| event.starts_with("agent")).collect();
    assert_eq!(agent, ["agent registered", "agent disconnected", "agent reconnected"]);

    let framework = story(&lines, "framework_id", framework);
    let framework: Vec<&str> =
        framework.iter().map(String::as_str).filter(|event| event.starts_with("framework")).collect();
    assert_eq!(framework, ["framework subscribed", "framework removed", "framework torn down"]);
    assert_eq!(line("framework removed")["cause"], "teardown by operator");
    for (event, field, value) in
        [("weights updated", "roles", "dev=2.5"), ("framework torn down", "level", "INFO")]
    {
        assert_eq!((&line(event)["principal"], &line(event)[field]), (&json!("ops"), &json!(value)));
    }
    assert_eq!(line("agent gone"), &Value::Null, "the name of a task forged a line");
}

fn check_agent(log: &str) {
    let story = [
        "registered with master|master=",
        "framework added|user=",
        "task received task_id=fails|executor_id=fails",
        "executor launched executor_id=fails|container_id=",
        "container launched",
        "executor subscribed",
        "task updated|TASK_RUNNING",
        "task terminated task_id=fails|state=TASK_FAILED|status_message=\"Command exited with status 3\"",
        "task kill requested task_id=killed",
        "task terminated task_id=killed|state=TASK_KILLED",
        "agent recovered containers_alive=",
        "registered with master",
        "framework shutting down",
        "container terminated",
        "executor terminated executor_id=stays",
        "framework removed",
    ];
    assert!(is_logged_in_order(log, &story), "{log}");
}
