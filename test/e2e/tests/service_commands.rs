//! The commands of `tepui service` and the paths of its API on a running service: every one of them, watched trees, and plans on a
//! terminal.

use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::Value;
use tepui_e2e::{Cluster, Service, TerminalSession, binary, wait_for};

const RESOURCES: &str = "--resources=cpus:4;mem:2048;disk:8192;ports:[31000-31999]";

/// A master and so many agents.
fn cluster(agents: usize) -> Cluster {
    let mut cluster = Cluster::without_agents(&[]);
    for index in 0..agents {
        cluster.add_agent(&[RESOURCES, &format!("--hostname=agent-{index}")]);
    }
    cluster
}

/// Pods with a server, and a plan `greet` that needs a variable.
fn spec(name: &str, count: u32) -> String {
    format!(
        r#"
name: {name}
pods:
  hello:
    count: {count}
    tasks:
      server:
        goal: RUNNING
        cmd: "exec sleep 100000"
        cpus: 0.1
        memory: 32
        ports: {{http: {{port: 0, advertise: true}}}}
      greet: {{goal: FINISH, cmd: 'test "$WORD" = hello', cpus: 0.1, memory: 32}}
plans:
  deploy:
    phases:
      hello: {{pod: hello, steps: [{{default: [[server]]}}]}}
  greet:
    phases:
      hello: {{pod: hello, steps: [{{default: [[greet]]}}]}}
"#
    )
}

fn start(cluster: &Cluster, name: &str, count: u32) -> Service {
    Service::start(&cluster.master.address, &cluster.folder().join("hello"), &spec(name, count))
}

/// The service in the test of all commands: its name has folders.
const NAME: &str = "/team/hello";

/// Whether a command works, and what it prints.
fn command(cluster: &Cluster, verb: &str, arguments: &[&str]) -> (bool, String) {
    let master = format!("--master={}", cluster.master.address);
    let output = Command::new(binary()).args(["service", verb, NAME]).args(arguments).arg(master).output();
    let output = output.expect("the command starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn every_command_works_on_a_service_in_a_folder() {
    let cluster = cluster(1);
    let mut service = start(&cluster, NAME, 1);
    service.complete("deploy");
    let prints = |verb: &str, arguments: &[&str], part: &str| {
        let (works, text) = command(&cluster, verb, arguments);
        assert!(works && text.contains(part), "{verb} {arguments:?}: {text}");
        text
    };
    // Commands that change nothing, also as documents.
    let target = prints("config", &["target_id"], "-");
    let target: Vec<String> = serde_json::from_str(&target).expect("a list");
    let reads: &[(&str, &[&str], &str)] = &[
        ("plan", &[], "recovery (parallel strategy) (COMPLETE)"),
        ("plan", &["list"], "greet"),
        ("plan", &["show", "greet"], "greet (serial strategy) (WAITING)"),
        ("pod", &[], "hello-0-server (RUNNING)"),
        ("pod", &["list"], "hello-0"),
        ("pod", &["status", "hello-0"], "hello-0-server (RUNNING)"),
        ("pod", &["info", "hello-0"], "team.hello__hello-0-server__"),
    ];
    for (verb, arguments, part) in reads {
        prints(verb, arguments, part);
        let (works, text) = command(&cluster, verb, &[*arguments, &["--json"]].concat());
        assert!(works && serde_json::from_str::<Value>(&text).is_ok(), "{verb} {arguments:?} --json: {text}");
    }
    let documents: &[(&str, &[&str], &str)] = &[
        ("endpoints", &[], "http"),
        ("endpoints", &["http"], "hello-0-server.teamhello.autoip"),
        ("config", &["list"], &target[0]),
        ("config", &["show", &target[0]], "pod-specs"),
        ("config", &["target"], "pod-specs"),
        ("debug", &["offers"], "acceptedCount"),
        ("debug", &["plans", "deploy"], "schedulerState"),
        ("debug", &["task-statuses"], "TASK_RUNNING"),
        ("debug", &["reservations"], "agent-0"),
        ("debug", &["framework-id"], "-0000"),
        ("debug", &["properties"], "last-completed-update-type"),
        ("debug", &["health"], "200"),
    ];
    for (verb, arguments, part) in documents {
        let text = prints(verb, arguments, part);
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{verb} {arguments:?}: {text}");
    }

    prints("plan", &["start", "greet", "-p", "WORD=hello"], "\"greet\" plan has been started");
    service.complete("greet");
    prints("plan", &["force-restart", "greet"], "has been restarted");
    service.complete("greet");
    prints("plan", &["stop", "greet"], "has been stopped");
    service.step("greet", "hello-0:[greet]", "PENDING");
    prints("plan", &["force-complete", "greet", "hello", "hello-0:[greet]"], "has been forced to complete");
    service.complete("greet");
    prints("plan", &["start", "greet"], "has been started");
    service.step("greet", "hello-0:[greet]", "DELAYED"); // It lacks its variable.
    prints("plan", &["pause", "greet"], "has been paused");
    let (works, text) = command(&cluster, "plan", &["pause", "greet"]);
    assert!(!works && text.contains("nothing to do"), "{text}");
    prints("plan", &["resume", "greet"], "has been resumed");

    let first = service.running("hello-0", "hello-0-server");
    prints(
        "pod",
        &["pause", "hello-0", "--task", "server"],
        "pause of pod hello-0 is requested: hello-0-server",
    );
    wait_for("the pod to be paused", || {
        command(&cluster, "pod", &["status", "hello-0"]).1.contains("hello-0-server (PAUSED)").then_some(())
    });
    let paused = service.running_after("hello-0", "hello-0-server", &first);
    prints("pod", &["resume", "hello-0"], "resume of pod hello-0 is requested");
    service.running_after("hello-0", "hello-0-server", &paused);
    let (works, text) = command(&cluster, "pod", &["restart", "hello-9"]);
    assert!(!works && text.contains("Pod hello-9 not found"), "{text}");

    prints("uninstall", &["--yes", "--no_wait"], "uninstallation of service /team/hello is requested");
    assert!(service.wait().success(), "{}", service.log());
}

/// A form with one file.
fn form(size: usize) -> String {
    format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{}\r\n--b--\r\n",
        "x".repeat(size)
    )
}

#[test]
fn every_path_of_the_api_answers_as_in_the_sdk() {
    let cluster = cluster(1);
    let service = start(&cluster, "hello", 1);
    service.complete("deploy");
    let target = service.get("/v1/configurations/targetId")[0].as_str().expect("an id").to_owned();
    let unknown = "00000000-0000-0000-0000-000000000000";
    const DONE: &str = "Command has already been reported or completed";
    let (file, large) = (form(1024), form(1025));
    let rows: &[(&str, &str, &str, u16, &str)] = &[
        ("GET", "/v1/plans", "", 200, "\"recovery\""),
        ("GET", "/v1/plans/deploy", "", 200, "\"strategy\": \"serial\""),
        ("GET", "/v1/plans/greet", "", 202, "\"status\": \"WAITING\""),
        ("GET", "/v1/plans/none", "", 404, "Plan none not found"),
        ("GET", "/v1/plan", "", 200, "hello-0:[server]"),
        ("POST", "/v1/plan/continue", "", 208, DONE),
        ("POST", "/v1/plan/interrupt", "", 208, DONE),
        ("POST", "/v1/plan/forceComplete?step=x", "", 400, "Missing phase"),
        ("POST", "/v1/plan/restart?phase=none", "", 404, "not found"),
        ("POST", "/v1/plans/greet/start", r#"{"1X": "y"}"#, 400, "1X"),
        ("POST", "/v1/plans/greet/start", "[]", 400, "JSON object"),
        ("POST", "/v1/plans/greet/interrupt", "", 208, DONE),
        ("POST", "/v1/plans/greet/forceComplete", "", 200, "forceComplete"),
        ("POST", "/v1/plans/greet/forceComplete", "", 208, DONE),
        ("POST", "/v1/plans/greet/stop", "", 200, "Received cmd: stop"),
        (
            "POST",
            "/v1/plans/greet/start",
            r#"{"WORD": "hello"}"#,
            200,
            "Received cmd: start greet with parameters",
        ),
        ("GET", "/v1/pod", "", 200, "hello-0"),
        ("GET", "/v1/pod/status", "", 200, "\"service\": \"hello\""),
        ("GET", "/v1/pod/hello-0/status", "", 200, "RUNNING"),
        ("GET", "/v1/pod/hello-1/status", "", 404, "Pod hello-1 not found"),
        ("GET", "/v1/pod/hello-0/info", "", 200, "TASK_RUNNING"),
        ("GET", "/v1/pod/hello-1/info", "", 404, "Pod hello-1 not found"),
        ("POST", "/v1/pod/hello-1/replace", "", 404, "Pod hello-1 not found"),
        ("POST", "/v1/pod/hello-0/pause", "x", 400, "JSON"),
        ("POST", "/v1/pod/hello-0/resume", r#"["other"]"#, 404, "Task other not found"),
        ("GET", "/v1/pod/hello-0/restart", "", 405, "POST"),
        ("GET", "/v1/endpoints", "", 200, "http"),
        ("GET", "/v1/endpoints/http", "", 200, "hello-0-server.hello.autoip"),
        ("GET", "/v1/endpoints/none", "", 404, ""),
        ("GET", "/v1/configurations", "", 200, &target),
        ("GET", "/v1/configurations/target", "", 200, "pod-specs"),
        ("GET", &format!("/v1/configurations/{target}"), "", 200, "pod-specs"),
        ("GET", &format!("/v1/configurations/{unknown}"), "", 404, "not found"),
        ("GET", "/v1/configurations/x", "", 400, "UUID"),
        (
            "GET",
            &format!("/v1/artifacts/template/{target}/hello/server/none"),
            "",
            404,
            "Template none not found",
        ),
        ("GET", "/v1/state/frameworkId", "", 200, "-0000"),
        ("GET", "/v1/state/properties", "", 200, "last-completed-update-type"),
        ("GET", "/v1/state/properties/last-completed-update-type", "", 200, "DEPLOY"),
        ("GET", "/v1/state/properties/none", "", 404, "Property none not found"),
        ("PUT", "/v1/state/files/note", &file, 200, ""),
        ("PUT", "/v1/state/files/large", &large, 400, "1024"),
        ("GET", "/v1/state/files", "", 200, "[note]"),
        ("GET", "/v1/state/files/note", "", 200, "xxx"),
        ("GET", "/v1/state/files/none", "", 404, "File none not found"),
        ("PUT", "/v1/state/refresh", "", 200, "Received cmd: refresh"),
        ("GET", "/v1/debug/offers", "", 200, "acceptedCount"),
        ("GET", "/v2/debug/offers", "", 200, "PASS(PlacementRule)"),
        ("GET", "/v1/debug/plans?plan=none", "", 200, "invalid-input"),
        ("GET", "/v1/debug/taskStatuses", "", 200, "taskStatus"),
        ("GET", "/v1/debug/reservations", "", 200, "agent-0"),
        ("GET", "/v1/debug/threads", "", 200, "ticks="),
        ("GET", "/v1/metrics", "", 200, "offers.received"),
        ("GET", "/v1/metrics/prometheus", "", 200, "# TYPE"),
        ("GET", "/v1/service/hello/plans", "", 404, ""),
    ];
    for (method, path, body, status, part) in rows {
        let kind = if *method == "PUT" { "multipart/form-data; boundary=b" } else { "application/json" };
        let answer = service.http().send(method, path, &[("Content-Type", kind)], body.as_bytes());
        let text = answer.text();
        assert!(answer.status == *status && text.contains(part), "{method} {path}: {} {text}", answer.status);
    }
    service.complete("greet");
    assert_eq!(service.http().get("/v1/health").status, 200);
}

/// `--watch` of a command, with its output in a file. Dropping it kills it.
struct Watch(Child, PathBuf);

impl Watch {
    fn start(cluster: &Cluster, command: &str) -> Self {
        let file = cluster.folder().join(command);
        let out = std::fs::File::create(&file).expect("a file");
        let master = format!("--master={}", cluster.master.address);
        let arguments = ["service", command, "hello", "--watch", &master];
        Self(Command::new(binary()).args(arguments).stdout(out).spawn().expect("the command starts"), file)
    }

    fn expect_text(&self, part: &str) {
        let text = || std::fs::read_to_string(&self.1).unwrap_or_default();
        wait_for(part, || text().contains(part).then_some(()));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.kill().expect("it runs until it is interrupted");
        self.0.wait().expect("it ends");
    }
}

#[test]
fn watched_plans_and_pods_are_redrawn_while_they_change() {
    let cluster = cluster(2);
    let service = start(&cluster, "hello", 1);
    service.complete("deploy");
    let [plans, pods] = ["plan", "pod"].map(|command| Watch::start(&cluster, command));
    plans.expect_text("1/1 steps COMPLETE");
    pods.expect_text("hello-0-server (RUNNING)");
    service.write(&spec("hello", 2));
    assert_eq!(service.post("/v1/update").status, 200);
    plans.expect_text("2/2 steps COMPLETE");
    pods.expect_text("hello-1-server (RUNNING)");
}

#[test]
fn run_draws_the_deployment_on_a_terminal_and_leaves_its_tasks() {
    let cluster = cluster(2);
    let folder = cluster.folder().join("hello");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("svc.yml"), spec("hello", 2)).expect("written");
    let (file, records) = (folder.join("svc.yml"), format!("--work_dir={}", folder.join("work").display()));
    let file = file.to_str().expect("a path");
    let arguments = ["service", "run", file, &cluster.master.address, &records];
    let mut terminal = TerminalSession::start((24, 100), &arguments, &[]);
    terminal.expect_text("deploy (serial strategy)");
    terminal.expect_text("hello-1:[server]");
    terminal.expect_text("█ 2/2 steps");
    terminal.send_keys("\u{3}");
    assert!(terminal.wait().success());
    let tasks = cluster.http().get("/tasks").json().expect("a list");
    let running =
        tasks["tasks"].as_array().expect("a list").iter().filter(|task| task["state"] == "TASK_RUNNING");
    assert_eq!(running.count(), 2, "the end of the scheduler is not the end of its tasks");
}
