//! `tepui exec` and `tepui attach`: commands beside tasks, terminals, and how they end.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Person, Scheduler, binary, scalar, wait_for};
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
        let _ = writer.join().expect("no panic"); // Who does not read all of it may end before.
        output
    }

    fn person(&self, arguments: &[&str]) -> Person {
        Person::at((24, 80), arguments, &[("TEPUI_MASTER", &self.cluster.master.address)])
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn terminal(task: &mut Value) {
    task["container"] = json!({"type": "MESOS", "tty_info": {"window_size": {"rows": 11, "columns": 33}}});
}

#[test]
fn a_command_runs_beside_a_task_and_its_end_is_ours() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    bench.launch_nested("nested", FOREVER, |_| ());
    for task in ["single", "nested"] {
        let both = bench.tepui(&["exec", task, "sh", "-c", "echo out; echo err >&2; exit 7"]);
        assert_eq!(said(&both), (Some(7), "out\n".into(), "err\n".into()), "{task}");
    }
    let signalled = bench.tepui(&["exec", "single", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(signalled.status.code(), Some(143));
    let unread = bench.tepui(&["exec", "single", "cat"]);
    assert_eq!(said(&unread), (Some(0), String::new(), String::new()), "its input is empty without -i");
    let variable = bench.tepui(&["exec", "--env", "WORD=a b", "single", "sh", "-c", "echo \"$WORD\""]);
    assert_eq!(said(&variable).1, "a b\n");

    let large: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let echoed = bench.fed(&["exec", "-i", "nested", "cat"], large.clone());
    assert!(echoed.status.success() && echoed.stdout == large, "{} bytes", echoed.stdout.len());
    let unread = bench.fed(&["exec", "-i", "nested", "true"], large);
    assert_eq!(unread.status.code(), Some(0), "{unread:?}");
}

/// Where tasks have namespaces of their own, a command beside one is in them.
#[test]
fn a_command_sees_the_processes_of_its_task_and_no_others() {
    if !available(&[Facility::Cgroups, Facility::Mounts]) {
        return;
    }
    let mut bench = Bench::with(&["--isolation=filesystem/linux,namespaces/pid,namespaces/ipc"]);
    bench.launch("single", "exec sleep 1000", |_| ());
    bench.launch_nested("nested", "exec sleep 1000", |_| ());
    let ours = std::fs::read_link("/proc/self/ns/pid").expect("a namespace").display().to_string();
    for task in ["single", "nested"] {
        let script = "readlink /proc/self/ns/pid; cat /proc/[0-9]*/comm | grep -c '^sleep$'; exit 5";
        let (code, output, error) = said(&bench.tepui(&["exec", task, "sh", "-c", script]));
        let (namespace, sleeps) = output.split_once('\n').expect("two lines");
        assert_eq!((code, sleeps), (Some(5), "1\n"), "{task}: {output}{error}");
        assert_ne!(namespace, ours, "{task}");
        let mut person = bench.person(&["exec", "-it", task, "sh"]);
        person.types("echo $((6*7)); exit 6\r");
        person.sees("42");
        assert_eq!(person.waits().code(), Some(6), "{task}");
    }
}

#[test]
fn who_cannot_be_run_says_why() {
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
        let (status, _, error) = said(&bench.tepui(&arguments));
        assert_eq!(status, Some(code), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn a_terminal_is_passed_on_and_given_back() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    let mut person = bench.person(&["exec", "-it", "single", "sh"]);
    person.types("tty && stty size\r");
    person.sees("/dev/pts/");
    person.sees("24 80");
    assert!(!person.terminal_echoes(), "keys are passed on as they are");
    person.resizes((40, 101));
    wait_for("the new size", || {
        person.types("stty size\r");
        person.has_seen("40 101").then_some(())
    });
    // Interrupts go to the programs there, not to us.
    person.types("echo bu''sy; sleep 1000\r");
    person.sees("busy\r\n");
    person.types("\x03");
    person.sees("^C\r\n");
    person.types("exit 3\r");
    assert_eq!(person.waits().code(), Some(3));
    assert!(person.terminal_echoes());
}

#[test]
fn who_is_told_to_end_gives_the_terminal_back_and_leaves_nothing_behind() {
    let mut bench = Bench::start();
    bench.launch("single", FOREVER, |_| ());
    let mark = bench.cluster.folder().join("pid");
    for (name, code) in [("TERM", 143), ("HUP", 129)] {
        let mut person = bench.person(&["exec", "-it", "single", "sh"]);
        person.types(&format!("echo $$ > {}; echo writ''ten\r", mark.display()));
        person.sees("written\r\n");
        let pid = std::fs::read_to_string(&mark).expect("written");
        assert!(!person.terminal_echoes());
        person.signals(name);
        assert_eq!(person.waits().code(), Some(code));
        assert!(person.terminal_echoes(), "{name}");
        let process = std::path::Path::new("/proc").join(pid.trim());
        wait_for("the command to end", || (!process.exists()).then_some(()));
    }
    let mut person = bench.person(&["exec", "-it", "single", "sh"]);
    person.types("echo he''re\r");
    person.sees("here\r\n");
    person.types("\x10\x11");
    assert_eq!(person.waits().code(), Some(0), "the detach keys leave");
    assert!(person.terminal_echoes());
}

#[test]
fn a_task_with_a_terminal_can_be_attached_to_and_left() {
    let mut bench = Bench::start();
    let script = "stty size > size; while read line; do echo \"heard $line\"; stty size; done; exit 4";
    bench.launch_nested("nested", script, terminal);
    let mut person = bench.person(&["attach", "nested"]);
    person.types("one\r");
    person.sees("heard one");
    person.sees("24 80");
    // Only one types.
    let (status, _, error) = said(&bench.fed(&["attach", "nested"], b"two\n".to_vec()));
    assert!(status == Some(1) && error.contains("somebody else types"), "{error}");
    let mut watcher = bench.person(&["attach", "--no-input", "nested"]);
    wait_for("both to see it", || {
        person.types("three\r");
        watcher.has_seen("heard three").then_some(())
    });
    person.types("\x10\x11");
    assert_eq!(person.waits().code(), Some(0));
    assert!(person.terminal_echoes());

    let mut again = bench.person(&["attach", "nested"]);
    again.types("four\r");
    again.sees("heard four");
    again.types("\x04");
    assert_eq!(again.waits().code(), Some(4), "as the task ended");
    assert_eq!(watcher.waits().code(), Some(4));
    let status = bench.scheduler.reach("nested", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 4");
    let size = bench.tepui(&["logs", "nested", "size"]);
    assert_eq!(said(&size).1, "11 33\n", "as the task asked for before anybody attached");
}

/// A command task's terminal is the task's and not its executor's.
#[test]
fn a_command_task_with_a_terminal_gets_keys_and_signals() {
    let mut bench = Bench::start();
    let script = "trap 'echo interrupted' INT; tty; read line; echo \"heard $line\"; read line; exit 6";
    bench.launch("single", script, terminal);
    let mut person = bench.person(&["attach", "single"]);
    person.types("one\r");
    person.sees("heard one");
    person.types("\x03");
    person.sees("interrupted");
    person.types("two\r");
    assert_eq!(person.waits().code(), Some(6), "as the task ended");
    let status = bench.scheduler.reach("single", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 6");
    let said = bench.tepui(&["logs", "single"]);
    assert!(said.stdout.starts_with(b"/dev/pts/"), "{said:?}");

    // And it can be killed.
    bench.launch("killed", FOREVER, terminal);
    bench.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "killed"}}}));
    bench.scheduler.reach("killed", "TASK_KILLED");
}
