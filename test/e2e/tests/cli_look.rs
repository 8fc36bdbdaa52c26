//! The commands that look at a cluster, as a person types them, against real processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Gate, Scheduler, binary, patience, scalar, wait_for};

/// One cluster with a task of each kind, shared by everything that looks.
#[test]
fn people_see_what_there_is() {
    let cluster = Cluster::start();
    let mut gate = Gate::new(cluster.folder(), "gate");
    let look = Look { master: cluster.master.address.clone() };
    let failed = look.tepui(&["run", "--name=broken", "--", "echo some words; exit 3"]);
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    let waiting = format!("mkdir data; echo hello; {}", gate.pass());
    let mut web = Running(look.spawn(&["run", "--name=web", "--role=eng/web", "--", &waiting]));
    let id = wait_for("the task to run", || {
        let running = look.json(&["tasks", "--state=running"]);
        Some(running.as_array()?.first()?["id"].as_str()?.to_string())
    });

    lists(&look, &id);
    details(&look, &id);
    sandbox(&look, &id);
    slips(&look, &id);

    gate.open();
    assert!(web.0.wait().expect("it ends").success());
    let nothing = look.tepui(&["tasks"]);
    assert!(nothing.status.success() && nothing.stdout.is_empty(), "{nothing:?}");
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("--all shows those that ended"), "{nothing:?}");
    assert!(look.says(&["task", &id]).contains("finished"));
    assert!(look.says(&["logs", "-f", &id]).contains("hello"), "a followed log ends with its task");
}

fn lists(look: &Look, id: &str) {
    let tasks = look.says(&["tasks"]);
    assert_eq!(tasks.lines().count(), 2, "a header and the task under way:\n{tasks}");
    assert!(tasks.contains(id) && tasks.contains("eng/web") && tasks.contains("S0"), "{tasks}");
    assert!(!tasks.contains('\x1b'), "colours only on a terminal: {tasks:?}");
    let all = look.says(&["tasks", "--all", "--sort=-name", "--agent=S0"]);
    let names: Vec<&str> = all.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert_eq!(names, ["web", "broken"], "{all}");
    assert_eq!(look.json(&["tasks", "--all", "--role=eng"]).as_array().map(Vec::len), Some(1));
    assert!(look.says(&["agents"]).contains("active"));
    assert!(look.says(&["frameworks", "--all"]).contains("completed"));
    let roles = look.says(&["roles"]);
    let names: Vec<&str> = roles.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.ends_with(&["eng", "web"]), "a tree of roles:\n{roles}");
    assert_eq!(look.json(&["roles", "--role=eng/web"])[0]["name"], "eng/web");
    assert!(look.says(&["summary"]).contains("1 running"));
    assert!(look.says(&["metrics", "tasks_running"]).trim_end().ends_with('1'));
}

/// A framework that holds an offer, then one that brought an executor.
#[test]
fn offers_and_executors_are_listed() {
    let cluster = Cluster::start();
    let look = Look { master: cluster.master.address.clone() };
    assert!(look.says(&["offers"]).is_empty() && look.says(&["executors"]).is_empty());
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("eng/web"));
    let offer = scheduler.offer();
    let id = offer["id"]["value"].as_str().expect("an id");
    let table = look.says(&["offers", "--full"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..6], ["OFFER", "FRAMEWORK", "NAME", "ROLE", "AGENT", "CPUS"], "{table}");
    assert_eq!(lines[1][..4], [id, scheduler.framework_id.as_str(), "e2e", "eng/web"], "{table}");
    assert_eq!(lines.len(), 2, "{table}");
    assert_eq!(look.json(&["offers", "--framework=e2e"])[0]["id"], id);

    let task = Scheduler::task(&offer, "stays", "while :; do sleep 0.1; done");
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "pod"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
    scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    scheduler.reach("stays", "TASK_RUNNING");
    let table = look.says(&["executors"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..5], ["EXECUTOR", "NAME", "TYPE", "TASKS", "CPUS"], "{table}");
    assert_eq!(lines[1][..6], ["pod", "default", "1", "0.1", "32M", "eng/web"], "{table}");
    assert_eq!(look.json(&["executors", "--agent=S0"])[0]["executor_id"], "pod");
    let pod = look.says(&["executors", "pod"]);
    for part in ["own resources  cpus:0.1 mem:32M", "TASKS: 1", "stays", "running"] {
        assert!(pod.contains(part), "{part} is missing:\n{pod}");
    }
    assert_eq!(look.json(&["executors", "pod"])["tasks"][0]["id"], "stays");
    assert!(look.fails(&["executors", "none"]).contains("no executor"));
}

fn details(look: &Look, id: &str) {
    let web = look.says(&["task", "web"]);
    for part in [id, "eng/web", "HISTORY", "starting", "running", "cpus:0.1 mem:32M"] {
        assert!(web.contains(part), "{part} is missing:\n{web}");
    }
    let broken = look.says(&["task", "broken-"]);
    assert!(broken.contains("Command exited with status 3"), "{broken}");
    assert!(look.says(&["agent", "S0"]).contains(id));
    let framework = look.says(&["framework", "tepui run web"]);
    assert!(framework.contains(id) && framework.contains("active"), "{framework}");
    assert_eq!(look.json(&["task", id])["name"], "web");
}

fn sandbox(look: &Look, id: &str) {
    let files = look.says(&["files", id]);
    assert!(files.contains("data/") && files.contains("stdout"), "{files}");
    assert!(look.says(&["files", id, "data"]).contains("nothing in there"));
    assert!(look.says(&["files", id, "stdout"]).contains("stdout"));
    assert_eq!(look.says(&["logs", id]), "hello\n");
    assert_eq!(look.says(&["logs", "-n1", "broken"]), "some words\n");
    assert!(look.fails(&["files", id, ".."]).contains("out of the sandbox"));
}

fn slips(look: &Look, id: &str) {
    let near = &id[..id.len() - 1];
    let wrong = format!("{near}%");
    let table: &[(&[&str], &str)] = &[
        (&["task", &wrong], id),
        (&["logs", id, "stdour"], "stdout"),
        (&["agent", "S7"], "S0"),
        (&["framework", "tepui run wbe"], "tepui run web"),
        (&["tasks", "--framework=nobody"], "tepui frameworks"),
        (&["taks"], "tasks"),
        (&["tasks", "--sort=colour"], "there are: task, name"),
    ];
    for (arguments, hint) in table {
        let said = look.fails(arguments);
        assert!(said.contains(hint), "{arguments:?} should hint at {hint}:\n{said}");
    }
    let nobody = Look { master: "127.0.0.1:1".to_string() };
    assert!(nobody.fails(&["tasks"]).contains("tepui dev"));
}

#[test]
fn an_agent_is_no_master() {
    let cluster = Cluster::start();
    let look = Look { master: cluster.agents[0].address.clone() };
    assert!(look.fails(&["tasks"]).contains("not a master"));
}

#[test]
fn events_come_as_they_happen() {
    let cluster = Cluster::start();
    let look = Look { master: cluster.master.address.clone() };
    let mut lines = Running(look.spawn(&["events"])).lines();
    let mut json = Running(look.spawn(&["events", "--json"])).lines();
    assert!(lines.until("connected").contains("1 agent, 0 frameworks, 0 tasks"));
    json.until("SUBSCRIBED");
    assert!(look.tepui(&["run", "--name=job", "--", "true"]).status.success());
    lines.until("framework added");
    lines.until("task added");
    assert!(lines.until("finished").contains("task updated"));
    lines.until("framework removed");
    let event: Value = serde_json::from_str(&json.until("TASK_UPDATED")).expect("one event on each line");
    assert_eq!(event["type"], "TASK_UPDATED");
}

#[test]
fn a_watched_list_is_drawn_again_until_it_is_interrupted() {
    let cluster = Cluster::start();
    let look = Look { master: cluster.master.address.clone() };
    let mut watch = Running(look.spawn(&["agents", "--watch"])).lines();
    for _ in 0..2 {
        watch.until("HOSTNAME");
        watch.until("active");
    }
    let id = watch.child.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill starts").success());
    assert!(watch.child.0.wait().expect("it ends").success(), "Ctrl-C is the way to end it");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let cluster = Cluster::start();
    let look = Look { master: cluster.master.address.clone() };
    let mut watch = Running(look.spawn(&["agents", "--watch"])).lines();
    watch.until("HOSTNAME");
    let Lines { mut child, lines, .. } = watch;
    drop(lines); // The thread that reads sees it at the next line, and closes the pipe.
    assert!(child.0.wait().expect("it ends").success());
}

/// The command line, pointed at a master.
struct Look {
    master: String,
}

impl Look {
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
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.tepui(arguments);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// What a command that does not work complains about.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.tepui(arguments);
        assert!(!output.status.success(), "{arguments:?} should fail: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let said = self.says(&[arguments, &["--json"]].concat());
        serde_json::from_str(&said).expect("JSON")
    }
}

/// A command that ends with its value.
struct Running(Child);

impl Running {
    fn lines(mut self) -> Lines {
        let stdout = self.0.stdout.take().expect("stdout is piped");
        let (sender, lines) = mpsc::channel();
        // Ends when the command closes its output, or when nobody wants its lines any more.
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).all(|line| sender.send(line).is_ok())
        });
        Lines { child: self, lines, seen: Vec::new() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
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
    /// The next line that contains the text; what comes before it is passed over.
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
