//! `tepui exec` and `tepui attach`: commands in task containers, terminals, and exit codes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, TerminalSession, binary, scalar, wait_for};
use tepui_facilities::{Facility, available};

/// A cluster with a command task `single` and a task `nested` of a group, both running.
struct Bench {
    cluster: Cluster,
    scheduler: Scheduler,
}

const FOREVER: &str = "while :; do sleep 0.1; done";

impl Bench {
    fn start() -> Self {
        Self::with(&[])
    }

    fn with(flags: &[&str]) -> Self {
        let cluster = Cluster::with(&[], flags);
        let scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
        Self { cluster, scheduler }
    }

    fn launch(&mut self, id: &str, command: &str, change: impl FnOnce(&mut Value)) {
        let offer = self.scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, id, command);
        change(&mut task);
        assert_eq!(self.scheduler.launch(&offer, &[task]).status, 202);
        self.scheduler.reach(id, "TASK_RUNNING");
    }

    fn launch_nested(&mut self, id: &str, command: &str, change: impl FnOnce(&mut Value)) {
        let offer = self.scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, id, command);
        change(&mut task);
        let executor = json!({
            "type": "DEFAULT", "executor_id": {"value": format!("group-{id}")},
            "framework_id": {"value": self.scheduler.framework_id},
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
        });
        let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
        self.scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
        self.scheduler.reach(id, "TASK_RUNNING");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).env("TEPUI_MASTER", &self.cluster.master.address).stdin(Stdio::null());
        command
    }

    fn tepui(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    fn fed(&self, arguments: &[&str], input: Vec<u8>) -> Output {
        let mut command = self.command(arguments);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("it ends");
        let _ = writer.join().expect("no panic"); // A command that does not read all input may exit first.
        output
    }

    fn session(&self, arguments: &[&str]) -> TerminalSession {
        TerminalSession::start((24, 80), arguments, &[("TEPUI_MASTER", &self.cluster.master.address)])
    }
}

fn result_of(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn terminal(task: &mut Value) {
    task["container"] = json!({"type": "MESOS", "tty_info": {"window_size": {"rows": 11, "columns": 33}}});
}

#[test]
fn exec_runs_in_the_task_and_returns_its_exit_code() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    bench.launch_nested("nested", FOREVER, |_| ());
    for task in ["single", "nested"] {
        let both = bench.tepui(&["exec", task, "sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!(result_of(&both), (Some(7), "out\n".into(), "err\n".into()), "{task}");
    }
    let signalled = bench.tepui(&["exec", "single", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(signalled.status.code(), Some(143));
    let unread = bench.tepui(&["exec", "single", "cat"]);
    assert_eq!(result_of(&unread), (Some(0), String::new(), String::new()), "its input is empty without -i");
    let variable = bench.tepui(&["exec", "--env", "WORD=a b", "single", "sh", "-c", "echo \"$WORD\""]);
    assert_eq!(result_of(&variable).1, "a b\n");

    let large: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let echoed = bench.fed(&["exec", "-i", "nested", "cat"], large.clone());
    assert!(echoed.status.success() && echoed.stdout == large, "{} bytes", echoed.stdout.len());
    let unread = bench.fed(&["exec", "-i", "nested", "true"], large);
    assert_eq!(unread.status.code(), Some(0), "{unread:?}");
}

/// Where tasks have namespaces of their own, a command beside one is in them.
#[test]
fn exec_shares_the_pid_namespace_of_its_task() {
    if !available(&[Facility::Cgroups, Facility::Mounts]) {
        return;
    }
    let mut bench = Bench::with(&["--isolation=filesystem/linux,namespaces/pid,namespaces/ipc"]);
    bench.launch("single", "exec sleep 1000", |_| ());
    bench.launch_nested("nested", "exec sleep 1000", |_| ());
    let ours = std::fs::read_link("/proc/self/ns/pid").expect("a namespace").display().to_string();
    for task in ["single", "nested"] {
        let script = "readlink /proc/self/ns/pid; cat /proc/[0-9]*/comm | grep -c '^sleep$'; exit 5";
        let (code, output, error) = result_of(&bench.tepui(&["exec", task, "sh", "-c", script]));
        let (namespace, sleeps) = output.split_once('\n').expect("two lines");
        assert_eq!((code, sleeps), (Some(5), "1\n"), "{task}: {output}{error}");
        assert_ne!(namespace, ours, "{task}");
        let mut session = bench.session(&["exec", "-it", task, "sh"]);
        session.send_keys("echo $((6*7)); exit 6\r");
        session.expect_text("42");
        assert_eq!(session.wait().code(), Some(6), "{task}");
    }
}

#[test]
fn failed_exec_has_a_reason() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    bench.launch("short", "true", |_| ());
    bench.scheduler.reach("short", "TASK_FINISHED");
    for (arguments, code, words) in [
        (vec!["exec", "single", "/no/such/program"], 127, "/no/such/program"),
        (vec!["exec", "short", "true"], 1, "does not run any more: it is finished"),
        (vec!["exec", "nobody", "true"], 1, "nobody"),
        (vec!["exec", "-it", "single", "true"], 1, "not a terminal"),
        (vec!["exec", "--detach-keys=escape", "single", "true"], 1, "ctrl-p,ctrl-q"),
        (vec!["attach", "single"], 1, "has no terminal"),
        (vec!["attach", "short"], 1, "does not run any more"),
    ] {
        let (status, _, error) = result_of(&bench.tepui(&arguments));
        assert_eq!(status, Some(code), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn exec_forwards_and_restores_the_terminal() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    let mut session = bench.session(&["exec", "-it", "single", "sh"]);
    session.send_keys("tty && stty size\r");
    session.expect_text("/dev/pts/");
    session.expect_text("24 80");
    assert!(!session.terminal_echoes(), "keys are passed on as they are");
    session.resize((40, 101));
    wait_for("the new size", || {
        session.send_keys("stty size\r");
        session.has_text("40 101").then_some(())
    });
    // Interrupts go to the remote programs.
    session.send_keys("echo bu''sy; sleep 1000\r");
    session.expect_text("busy\r\n");
    session.send_keys("\x03");
    session.expect_text("^C\r\n");
    session.send_keys("exit 3\r");
    assert_eq!(session.wait().code(), Some(3));
    assert!(session.terminal_echoes());
}

#[test]
fn signalled_exec_restores_the_terminal_and_kills_its_command() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    let mark = bench.cluster.folder().join("pid");
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let mut session = bench.session(&["exec", "-it", "single", "sh"]);
        session.send_keys(&format!("echo $$ > {}; echo writ''ten\r", mark.display()));
        session.expect_text("written\r\n");
        let pid = std::fs::read_to_string(&mark).expect("written");
        assert!(!session.terminal_echoes());
        session.signal(name);
        assert_eq!(session.wait().code(), Some(code));
        assert!(session.terminal_echoes(), "{name}");
        let process = std::path::Path::new("/proc").join(pid.trim());
        wait_for("the command to end", || (!process.exists()).then_some(()));
    }
    let mut session = bench.session(&["exec", "-it", "single", "sh"]);
    session.send_keys("echo he''re\r");
    session.expect_text("here\r\n");
    session.send_keys("\x10\x11");
    assert_eq!(session.wait().code(), Some(0), "the detach keys leave");
    assert!(session.terminal_echoes());
}

#[test]
fn task_with_a_terminal_can_be_attached_and_detached() {
    let mut bench = Bench::start();
    let script = "stty size > size; while read line; do echo \"heard $line\"; stty size; done; exit 4";
    bench.launch_nested("nested", script, terminal);
    let mut session = bench.session(&["attach", "nested"]);
    session.send_keys("one\r");
    session.expect_text("heard one");
    session.expect_text("24 80");
    // Only one types.
    let (status, _, error) = result_of(&bench.fed(&["attach", "nested"], b"two\n".to_vec()));
    assert!(status == Some(1) && error.contains("another client is attached"), "{error}");
    let mut watcher = bench.session(&["attach", "--no-input", "nested"]);
    wait_for("both to see it", || {
        session.send_keys("three\r");
        watcher.has_text("heard three").then_some(())
    });
    session.send_keys("\x10\x11");
    assert_eq!(session.wait().code(), Some(0));
    assert!(session.terminal_echoes());

    let mut again = bench.session(&["attach", "nested"]);
    again.send_keys("four\r");
    again.expect_text("heard four");
    again.send_keys("\x04");
    assert_eq!(again.wait().code(), Some(4), "as the task ended");
    assert_eq!(watcher.wait().code(), Some(4));
    let status = bench.scheduler.reach("nested", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 4");
    let size = bench.tepui(&["logs", "nested", "size"]);
    assert_eq!(result_of(&size).1, "11 33\n", "as the task asked for before anybody attached");
}

/// A command task's terminal is the task's and not its executor's.
#[test]
fn a_command_task_with_a_terminal_gets_keys_and_signals() {
    let mut bench = Bench::start();
    let script = "trap 'echo interrupted' INT; tty; read line; echo \"heard $line\"; read line; exit 6";
    bench.launch("single", script, terminal);
    let mut session = bench.session(&["attach", "single"]);
    session.send_keys("one\r");
    session.expect_text("heard one");
    session.send_keys("\x03");
    session.expect_text("interrupted");
    session.send_keys("two\r");
    assert_eq!(session.wait().code(), Some(6), "as the task ended");
    let status = bench.scheduler.reach("single", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 6");
    let result_of = bench.tepui(&["logs", "single"]);
    assert!(result_of.stdout.starts_with(b"/dev/pts/"), "{result_of:?}");

    // And it can be killed.
    bench.launch("killed", FOREVER, terminal);
    bench.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "killed"}}}));
    bench.scheduler.reach("killed", "TASK_KILLED");
}
