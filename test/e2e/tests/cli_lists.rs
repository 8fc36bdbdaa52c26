//! The commands that show a cluster, against real processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Gate, Scheduler, binary, patience, scalar, wait_for};

/// One cluster with a task of each kind, shared by all commands.
#[test]
fn lists_and_details_are_printed() {
    let cluster = Cluster::start();
    let mut gate = Gate::new(cluster.folder(), "gate");
    let cli = Cli { master: cluster.master.address.clone() };
    let failed = cli.tepui(&["run", "--name=broken", "--", "echo some words; exit 3"]);
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    let waiting = format!("mkdir data; echo hello; {}", gate.pass());
    let mut web = Running(cli.spawn(&["run", "--name=web", "--role=eng/web", "--", &waiting]));
    let id = wait_for("the task to run", || {
        let running = cli.json(&["tasks", "--state=running"]);
        Some(running.as_array()?.first()?["id"].as_str()?.to_string())
    });

    lists(&cli, &id);
    details(&cli, &id);
    sandbox(&cli, &id);
    mistyped_ids(&cli, &id);

    gate.open();
    assert!(web.0.wait().expect("it ends").success());
    let nothing = cli.tepui(&["tasks"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty(), "{nothing:?}");
    assert!(
        String::from_utf8_lossy(&nothing.stderr).contains("--all includes terminated ones"),
        "{nothing:?}"
    );
    assert!(cli.prints(&["task", &id]).contains("finished"));
    assert!(cli.prints(&["logs", "-f", &id]).contains("hello"), "a followed log ends with its task");
}

fn lists(cli: &Cli, id: &str) {
    let tasks = cli.prints(&["tasks"]);
    assert_eq!(tasks.lines().count(), 2, "a header and the task under way:\n{tasks}");
    assert!(tasks.contains(id) && tasks.contains("eng/web") && tasks.contains("S0"), "{tasks}");
    assert!(!tasks.contains('\x1b'), "colours only on a terminal: {tasks:?}");
    let all = cli.prints(&["tasks", "--all", "--sort=-name", "--agent=S0"]);
    let names: Vec<&str> = all.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(names, ["web", "broken"], "{all}");
    assert_eq!(cli.json(&["tasks", "--all", "--role=eng"]).as_array().map(Vec::len), Some(1));
    assert!(cli.prints(&["agents"]).contains("active"));
    assert!(cli.prints(&["frameworks", "--all"]).contains("completed"));
    let roles = cli.prints(&["roles"]);
    let names: Vec<&str> = roles.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.ends_with(&["eng", "web"]), "a tree of roles:\n{roles}");
    assert_eq!(cli.json(&["roles", "--role=eng/web"])[0]["name"], "eng/web");
    assert!(cli.prints(&["summary"]).contains("1 running"));
    assert!(cli.prints(&["metrics", "tasks_running"]).trim_end().ends_with('1'));
}

/// A framework that holds an offer, then one with an executor.
#[test]
fn offers_and_executors_are_listed() {
    let cluster = Cluster::start();
    let cli = Cli { master: cluster.master.address.clone() };
    assert!(cli.prints(&["offers"]).is_empty() && cli.prints(&["executors"]).is_empty());
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("eng/web"));
    let offer = scheduler.offer();
    let id = offer["id"]["value"].as_str().expect("an id");
    let table = cli.prints(&["offers", "--full"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..6], ["OFFER", "FRAMEWORK", "NAME", "ROLE", "AGENT", "CPUS"], "{table}");
    assert_eq!(lines[1][..4], [id, scheduler.framework_id.as_str(), "e2e", "eng/web"], "{table}");
    assert_eq!(lines.len(), 2, "{table}");
    assert_eq!(cli.json(&["offers", "--framework=e2e"])[0]["id"], id);

    let task = Scheduler::task(&offer, "stays", "while :; do sleep 0.1; done");
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "pod"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
    scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    scheduler.reach("stays", "TASK_RUNNING");
    let table = cli.prints(&["executors"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..5], ["EXECUTOR", "NAME", "TYPE", "TASKS", "CPUS"], "{table}");
    assert_eq!(lines[1][..6], ["pod", "default", "1", "0.1", "32M", "eng/web"], "{table}");
    assert_eq!(cli.json(&["executors", "--agent=S0"])[0]["executor_id"], "pod");
    let pod = cli.prints(&["executors", "pod"]);
    for part in ["own resources  cpus:0.1 mem:32M", "TASKS: 1", "stays", "running"] {
        assert!(pod.contains(part), "{part} is missing:\n{pod}");
    }
    assert_eq!(cli.json(&["executors", "pod"])["tasks"][0]["id"], "stays");
    assert!(cli.fails(&["executors", "none"]).contains("no executor"));
}

fn details(cli: &Cli, id: &str) {
    let web = cli.prints(&["task", "web"]);
    for part in [id, "eng/web", "HISTORY", "starting", "running", "cpus:0.1 mem:32M"] {
        assert!(web.contains(part), "{part} is missing:\n{web}");
    }
    let broken = cli.prints(&["task", "broken-"]);
    assert!(broken.contains("Command exited with status 3"), "{broken}");
    assert!(cli.prints(&["agent", "S0"]).contains(id));
    let framework = cli.prints(&["framework", "tepui run web"]);
    assert!(framework.contains(id) && framework.contains("active"), "{framework}");
    assert_eq!(cli.json(&["task", id])["name"], "web");
}

fn sandbox(cli: &Cli, id: &str) {
    let files = cli.prints(&["files", id]);
    assert!(files.contains("data/") && files.contains("stdout"), "{files}");
    assert!(cli.prints(&["files", id, "data"]).contains("empty directory"));
    assert!(cli.prints(&["files", id, "stdout"]).contains("stdout"));
    assert_eq!(cli.prints(&["logs", id]), "hello\n");
    assert_eq!(cli.prints(&["logs", "-n1", "broken"]), "some words\n");
    assert!(cli.fails(&["files", id, ".."]).contains("out of the sandbox"));
}

fn mistyped_ids(cli: &Cli, id: &str) {
    let near = &id[..id.len() - 1];
    let wrong = format!("{near}%");
    let table: &[(&[&str], &str)] = &[
        (&["task", &wrong], id),
        (&["logs", id, "stdour"], "stdout"),
        (&["agent", "S7"], "S0"),
        (&["framework", "tepui run wbe"], "tepui run web"),
        (&["tasks", "--framework=nobody"], "tepui frameworks"),
        (&["taks"], "tasks"),
        (&["tasks", "--sort=colour"], "columns: task, name"),
    ];
    for (arguments, hint) in table {
        let printed = cli.fails(arguments);
        assert!(printed.contains(hint), "{arguments:?} should hint at {hint}:\n{printed}");
    }
    let nobody = Cli { master: "127.0.0.1:1".to_string() };
    assert!(nobody.fails(&["tasks"]).contains("tepui dev"));
}

#[test]
fn agent_address_as_master_is_reported() {
    let cluster = Cluster::start();
    let cli = Cli { master: cluster.agents[0].address.clone() };
    assert!(cli.fails(&["tasks"]).contains("not a master"));
}

#[test]
fn events_are_printed_as_they_occur() {
    let cluster = Cluster::start();
    let cli = Cli { master: cluster.master.address.clone() };
    let mut lines = Running(cli.spawn(&["events"])).lines();
    let mut json = Running(cli.spawn(&["events", "--json"])).lines();
    assert!(lines.until("connected").contains("1 agent, 0 frameworks, 0 tasks"));
    json.until("SUBSCRIBED");
    assert!(cli.tepui(&["run", "--name=job", "--", "true"]).status.success());
    lines.until("framework added");
    lines.until("task added");
    assert!(lines.until("finished").contains("task updated"));
    lines.until("framework removed");
    let event: Value = serde_json::from_str(&json.until("TASK_UPDATED")).expect("one event on each line");
    assert_eq!(event["type"], "TASK_UPDATED");
}

#[test]
fn watched_list_is_redrawn_until_interrupted() {
    let cluster = Cluster::start();
    let cli = Cli { master: cluster.master.address.clone() };
    let mut watch = Running(cli.spawn(&["agents", "--watch"])).lines();
    for _ in 0..2 {
        watch.until("HOSTNAME");
        watch.until("active");
    }
    let id = watch.child.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill starts").success());
    assert!(watch.child.0.wait().expect("it ends").success(), "Ctrl-C is the way to end it");
}

#[test]
fn closed_pipe_is_not_an_error() {
    let cluster = Cluster::start();
    let cli = Cli { master: cluster.master.address.clone() };
    let mut watch = Running(cli.spawn(&["agents", "--watch"])).lines();
    watch.until("HOSTNAME");
    let Lines { mut child, lines, .. } = watch;
    drop(lines); // The thread that reads sees it at the next line, and closes the pipe.
    assert!(child.0.wait().expect("it ends").success());
}

/// The command line, pointed at a master.
struct Cli {
    master: String,
}

impl Cli {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env("TEPUI_MASTER", &self.master).stdin(Stdio::null());
        command
    }

    fn tepui(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts")
    }

    /// What a command that works prints.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.tepui(arguments);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        printed
    }

    /// What a command that does not work complains about.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.tepui(arguments);
        assert!(!output.status.success(), "{arguments:?} should fail: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.prints(&[arguments, &["--json"]].concat());
        serde_json::from_str(&printed).expect("JSON")
    }
}

/// A command that is killed on drop.
struct Running(Child);

impl Running {
    fn lines(mut self) -> Lines {
        let stdout = self.0.stdout.take().expect("stdout is piped");
        let (sender, lines) = mpsc::channel();
        // Exits when the command closes its output or the receiver is dropped.
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Lines { child: self, lines, seen: Vec::new() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a running command prints.
struct Lines {
    child: Running,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    /// The next line that contains the text; earlier lines are skipped.
    fn until(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(patience()) else {
                panic!("it did not say {text:?}, but:\n{}", self.seen.join("\n"));
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }
}
