//! The command line: a cluster in one process, tasks with their output and exit code, lists, flags in every form, and
//! errors with suggestions.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tepui_e2e::{Http, binary, wait_for};

/// `tepui dev` with a temporary directory that only it uses.
struct Dev {
    child: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Dev {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("tepui-cli-").tempdir().expect("a temporary directory");
        let mut child = Command::new(binary())
            .args(["dev", "--port=0"])
            .args(arguments)
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts; build it first: cargo build -p tepui");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_string();
        Self { child, address, folder }
    }

    /// Runs a subcommand against this cluster.
    fn tepui(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env("TEPUI_MASTER", &self.address).stdin(Stdio::null());
        command
    }

    /// Ctrl-C, and a clean exit.
    fn interrupt(mut self) {
        signal(&self.child, "INT");
        let status = wait_for("dev to end", || self.child.try_wait().expect("it can be waited for"));
        assert!(status.success(), "{status}");
        wait_for("its processes to end", || processes_in(self.folder.path()).is_empty().then_some(()));
        let left: Vec<_> = std::fs::read_dir(self.folder.path()).expect("the directory").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            signal(&self.child, "INT");
            let _ = self.child.wait();
        }
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(status.expect("kill starts").success());
}

/// Processes whose command line or working directory is in this directory.
fn processes_in(folder: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let named = processes.filter_map(|process| {
        let command = std::fs::read(process.path().join("cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command).into_owned();
        let inside = std::fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        (inside || command.contains(folder.to_str()?)).then_some(command)
    });
    named.collect()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn interrupted_dev_cluster_kills_its_tasks() {
    let dev = Dev::start(&["--agents", "2", "--resources=cpus:4;mem:1024"]);
    let http = Http::new(&dev.address);
    wait_for("two agents", || (http.get("/slaves").json()?["slaves"].as_array()?.len() == 2).then_some(()));
    let hello = dev.tepui(&["run", "--", "echo", "hello"]);
    assert_eq!((hello.status.code(), stdout(&hello).as_str()), (Some(0), "hello\n"), "{}", stderr(&hello));

    // One task outlives its wish to run: it ends with the cluster.
    let mut staying = dev.command(&["run", "--name=stays", "--", "sleep", "1000"]);
    let mut staying = staying.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    wait_for("a running task", || {
        let tasks = http.get("/tasks").json()?;
        tasks["tasks"].as_array()?.iter().any(|task| task["state"] == "TASK_RUNNING").then_some(())
    });
    dev.interrupt();
    staying.kill().expect("it can be killed");
    staying.wait().expect("it can be waited for");
}

#[test]
fn dev_agent_is_restarted_after_maintenance() {
    let dev = Dev::start(&["--resources=cpus:4;mem:1024"]);
    let http = Http::new(&dev.address);
    let agents = |count: usize| {
        wait_for(&format!("{count} agents"), || {
            let agents = http.get("/slaves").json()?["slaves"].as_array()?.clone();
            let active = agents.iter().filter(|agent| agent["active"] == true).count();
            (active == count).then(|| agents.first().cloned())
        })
    };
    let agent = agents(1).expect("one");
    let machine = json!({"hostname": agent["hostname"], "ip": "127.0.0.1"});
    let windows = json!([{"machine_ids": [machine], "unavailability": {"start": {"nanoseconds": 0}}}]);
    for (path, body, left) in [
        ("/maintenance/schedule", json!({"windows": windows}), 1),
        ("/machine/down", json!([machine]), 0),
        ("/machine/up", json!([machine]), 1),
    ] {
        let answer = http.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        agents(left);
    }
    let hello = dev.tepui(&["run", "--", "echo", "hello"]);
    assert_eq!((hello.status.code(), stdout(&hello).as_str()), (Some(0), "hello\n"), "{}", stderr(&hello));
    dev.interrupt();
}

#[test]
fn run_prints_output_and_returns_the_exit_code() {
    let dev = Dev::start(&["--resources=cpus:4;mem:1024"]);
    let output = dev.tepui(&["run", "--", "echo out; echo err >&2; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stdout(&output), "out\n");
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("Command exited with status 7"), "{}", stderr(&output));

    let output = dev.tepui(&["run", "--env", "A=b c", "--name=named", "--", "printenv", "A"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "b c\n"));

    // Much output, in order and complete.
    let output = dev.tepui(&["run", "--", "seq 1 50000"]);
    assert_eq!(stdout(&output).lines().count(), 50_000);
    assert!(stdout(&output).ends_with("49999\n50000\n"));

    let output = dev.tepui(&["run", "--count", "20", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("20 tasks terminated, 0 of them failed"), "{}", stderr(&output));
    let output = dev.tepui(&["run", "--count=3", "--", "exit 5"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(stderr(&output).contains("3 tasks terminated, 3 of them failed"), "{}", stderr(&output));

    interrupted_run(&dev);
}

/// Ctrl-C ends the task too.
fn interrupted_run(dev: &Dev) {
    let pid = dev.folder.path().join("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", pid.display());
    let mut run = dev.command(&["run", "--", &script]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let task = wait_for("the task", || std::fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok());
    signal(&run, "INT");
    let output = run.wait_with_output().expect("it ends");
    assert!(!output.status.success());
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    wait_for("the task to end", || (!Path::new(&format!("/proc/{task}")).exists()).then_some(()));
    std::fs::remove_file(pid).expect("the file can be removed");
}

#[test]
fn task_that_fits_no_agent_is_explained() {
    let dev = Dev::start(&["--resources=cpus:1;mem:1024"]);
    let mut run = dev.command(&["run", "--cpus=1000", "--", "true"]);
    let mut run = run.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    let mut stderr_lines = BufReader::new(run.stderr.take().expect("a pipe"));
    stderr_lines.read_line(&mut line).expect("a line");
    assert!(line.contains("waiting for room for 1 task of cpus:1000"), "{line}");
    signal(&run, "INT");
    assert!(!run.wait().expect("it ends").success());
}

#[test]
fn tasks_agents_and_logs_are_printed() {
    let dev = Dev::start(&["--resources=cpus:4;mem:1024"]);
    assert!(stderr(&dev.tepui(&["tasks"])).contains("no tasks"));
    let run = dev.tepui(&["run", "--name=logger", "--", "echo kept; echo aside >&2"]);
    assert!(run.status.success());

    let all = stdout(&dev.tepui(&["tasks", "--all"]));
    assert!(all.contains("logger") && all.contains("finished"), "{all}");
    let json: Value = serde_json::from_str(&stdout(&dev.tepui(&["tasks", "--all", "--json"]))).expect("JSON");
    assert_eq!(json[0]["name"], "logger");
    let agents = stdout(&dev.tepui(&["agents"]));
    assert!(agents.contains("active") && agents.contains('4'), "{agents}");
    assert_eq!(stdout(&dev.tepui(&["logs", "logger"])), "kept\n");
    assert_eq!(stdout(&dev.tepui(&["logs", "logger", "stderr"])), "aside\n");
    assert_eq!(stdout(&dev.tepui(&["logs", "-f", "logger"])), "kept\n");
    let unknown = dev.tepui(&["logs", "nobody"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("no task \"nobody\""), "{}", stderr(&unknown));
    assert!(stdout(&dev.tepui(&["version"])).starts_with("tepui "));
}

#[test]
fn errors_suggest_a_remedy() {
    let dev = Dev::start(&["--resources=cpus:1;mem:128"]);
    let port = dev.address.rsplit(':').next().expect("a port");
    let nobody = "--master=127.0.0.1:1";
    let taken = format!("--port={port}");
    let table: &[(&[&str], i32, &str)] = &[
        (&["tasks", nobody], 1, "no master at 127.0.0.1:1"),
        (&["tasks", nobody], 1, "start one with `tepui dev`"),
        (&["run", nobody, "--", "true"], 1, "no master at 127.0.0.1:1"),
        (&["agents", "--master=not an address"], 1, "not an address"),
        (&["run"], 2, "<COMMAND>"),
        (&["run", "--cpus=-1", "--", "true"], 1, "--cpus=-1 must be a number"),
        (&["run", "--env=x", "--", "true"], 1, "KEY=VALUE"),
        (&["dev", &taken], 1, "--port takes another one"),
        (&["master", "--no_such_flag"], 2, "--no_such_flag"),
        (&["master", "--port=abc"], 2, "abc"),
        (&["master", "--zk=zk://host/path"], 1, "--zk is not supported"),
        (&["agent", "--master=127.0.0.1:5050"], 2, "--work_dir"),
        (&["frobnicate"], 2, "frobnicate"),
    ];
    for (arguments, code, expected) in table {
        let output = dev.tepui(arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{arguments:?}: {}", stderr(&output));
    }
    let help = dev.tepui(&["--help"]);
    assert!(help.status.success() && stdout(&help).contains("Usage: tepui"));
}

#[test]
fn flags_are_accepted_in_every_form() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut master = Command::new(binary())
        .args(["master", "--agent-ping-timeout", "7secs", "--max_agent_ping_timeouts=3"])
        .env("MESOS_WORK_DIR", folder.path())
        .env("MESOS_PORT", "1")
        .env("TEPUI_PORT", "0")
        .env("MESOS_CLUSTER", "from the environment")
        .env("MESOS_AGENT_PING_TIMEOUT", "9secs")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    BufReader::new(master.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let address = line.trim().rsplit("http://").next().expect("an address").to_string();
    let flags = Http::new(&address).get("/flags").json().expect("JSON")["flags"].clone();
    signal(&master, "TERM");
    assert!(master.wait().expect("it ends").success(), "SIGTERM is an ordinary end");
    assert_eq!(flags["agent_ping_timeout"], "7secs", "what is typed wins");
    assert_eq!(flags["max_agent_ping_timeouts"], "3");
    assert_eq!(flags["cluster"], "from the environment");
    assert_eq!(flags["port"], "0", "TEPUI_ wins over MESOS_");
}
