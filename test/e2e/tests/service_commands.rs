//! The commands of `tepui service` on a running service: every one of them, watched trees, and plans on a terminal.

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
