//! What the built-in executors do with real processes: kills, checks, limits of time, fetched files, users, groups.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, Web, scalar, wait_for};
use tepui_facilities::{Facility, Port, available};

/// A cluster with a scheduler.
struct Bench {
    cluster: Cluster,
    scheduler: Scheduler,
}

impl Bench {
    fn start() -> Self {
        let cluster = Cluster::start();
        let scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
        Self { cluster, scheduler }
    }

    /// Launches a command task that `change` made special.
    fn launch(&mut self, id: &str, command: &str, change: impl FnOnce(&mut Value)) {
        let offer = self.scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, id, command);
        change(&mut task);
        let answer = self.scheduler.launch(&offer, &[task]);
        assert_eq!(answer.status, 202, "{}", answer.text());
    }

    fn launch_group(&mut self, executor: &str, tasks: &[(&str, &str)]) {
        let offer = self.scheduler.fresh_offer();
        let tasks = tasks.iter().map(|(id, command)| Scheduler::task(&offer, id, command)).collect();
        self.group(executor, &offer, tasks);
    }

    fn group(&self, executor: &str, offer: &Value, tasks: Vec<Value>) {
        let executor = json!({
            "type": "DEFAULT", "executor_id": {"value": executor},
            "framework_id": {"value": self.scheduler.framework_id},
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
        });
        let group = json!({"executor": executor, "task_group": {"tasks": tasks}});
        self.scheduler.accept(offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    }

    fn kill(&self, id: &str, policy: Option<Value>) {
        let mut kill = json!({"task_id": {"value": id}});
        if let Some(policy) = policy {
            kill["kill_policy"] = policy;
        }
        assert_eq!(self.scheduler.call(json!({"type": "KILL", "kill": kill})).status, 202);
    }

    /// A path that tasks can write to.
    fn path(&self, name: &str) -> PathBuf {
        self.cluster.folder().join(name)
    }

    /// Waits for a file of a task's sandbox and returns its content.
    fn sandbox_file(&self, task: &str, name: &str) -> String {
        let sandbox = wait_for("the sandbox", || find_sandbox(&self.cluster.agents[0].work_dir, task));
        std::fs::read_to_string(sandbox.join(name)).expect("the file can be read")
    }
}

fn find_sandbox(work_dir: &Path, executor: &str) -> Option<PathBuf> {
    let children =
        |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let agents = children(work_dir.join("slaves"));
    let mut frameworks = agents.flat_map(|agent| children(agent.join("frameworks")));
    frameworks.find_map(|framework| {
        framework.join("executors").join(executor).join("runs/latest").canonicalize().ok()
    })
}

fn grace(seconds: f64) -> Value {
    json!({"grace_period": {"nanoseconds": (seconds * 1e9) as i64}})
}

fn appears(path: &Path) {
    wait_for(&format!("{}", path.display()), || path.exists().then_some(()));
}

#[test]
fn kill_sends_sigterm_then_sigkill() {
    let mut bench = Bench::start();
    let ready = |bench: &Bench, id: &str| format!("touch {}", bench.path(id).display());

    // It obeys SIGTERM and may tidy up.
    let polite =
        format!("trap 'echo tidied; exit 0' TERM; {}; while :; do sleep 0.1; done", ready(&bench, "polite"));
    bench.launch("polite", &polite, |task| task["kill_policy"] = grace(60.0));
    appears(&bench.path("polite"));
    bench.kill("polite", None);
    bench.scheduler.reach("polite", "TASK_KILLING");
    let status = bench.scheduler.reach("polite", "TASK_KILLED");
    assert_eq!(status["message"], "Command exited with status 0");
    assert!(bench.sandbox_file("polite", "stdout").contains("tidied"));

    // It ignores SIGTERM and is killed after its grace period, with its children.
    let child = bench.path("child");
    let stubborn = format!(
        "trap '' TERM; (while :; do sleep 0.1; done) & echo $! > {}; {}; while :; do sleep 0.1; done",
        child.display(),
        ready(&bench, "stubborn")
    );
    bench.launch("stubborn", &stubborn, |task| task["kill_policy"] = grace(0.2));
    appears(&bench.path("stubborn"));
    let child: u32 = std::fs::read_to_string(child).expect("a pid").trim().parse().expect("a number");
    bench.kill("stubborn", None);
    let status = bench.scheduler.reach("stubborn", "TASK_KILLED");
    assert_eq!(status["message"], "Command terminated with signal Killed");
    wait_for("its child to end", || (!Path::new(&format!("/proc/{child}")).exists()).then_some(()));

    // The policy of the call wins over the task's.
    let overruled = format!("trap '' TERM; {}; while :; do sleep 0.1; done", ready(&bench, "overruled"));
    bench.launch("overruled", &overruled, |task| task["kill_policy"] = grace(3600.0));
    appears(&bench.path("overruled"));
    bench.kill("overruled", Some(grace(0.0)));
    bench.scheduler.reach("overruled", "TASK_KILLED");
}

#[test]
fn max_completion_time_kills_the_task() {
    let mut bench = Bench::start();
    bench.launch("long", "sleep 1000", |task| {
        task["max_completion_time"] = json!({"nanoseconds": 300_000_000})
    });
    let status = bench.scheduler.reach("long", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MAX_COMPLETION_TIME_REACHED");
    bench.launch("short", "true", |task| {
        task["max_completion_time"] = json!({"nanoseconds": 3_600_000_000_000_i64})
    });
    bench.scheduler.reach("short", "TASK_FINISHED");
}

fn often(check: Value) -> Value {
    let mut check = check;
    for (key, value) in [
        ("delay_seconds", 0.0),
        ("interval_seconds", 0.1),
        ("grace_period_seconds", 0.0),
        ("timeout_seconds", 20.0),
    ] {
        check[key] = json!(value);
    }
    check
}

#[test]
fn command_http_and_tcp_health_checks_are_reported() {
    let mut bench = Bench::start();
    let web = Web::serve(&[("/ok", 200, b""), ("/bad", 500, b"")]);
    let closed = Port::take();
    let healthy = [
        ("command", json!({"type": "COMMAND", "command": {"value": "test \"$CHECKED\" = yes"}})),
        ("http", json!({"type": "HTTP", "http": {"port": web.port, "path": "/ok"}})),
        ("tcp", json!({"type": "TCP", "tcp": {"port": web.port}})),
    ];
    for (kind, check) in healthy {
        let id = format!("{kind}-healthy");
        bench.launch(&id, "sleep 1000", |task| {
            task["health_check"] = often(check);
            task["command"]["environment"] = json!({"variables": [{"name": "CHECKED", "value": "yes"}]});
        });
        bench.scheduler.reach(&id, "TASK_RUNNING");
        let status = bench.scheduler.update(&id, "TASK_RUNNING");
        assert_eq!(status["healthy"], true, "{status}");
        assert_eq!(status["reason"], "REASON_TASK_HEALTH_CHECK_STATUS_UPDATED");
        bench.kill(&id, None);
        bench.scheduler.reach(&id, "TASK_KILLED");
    }
    let unhealthy = [
        ("command", json!({"type": "COMMAND", "command": {"value": "false"}})),
        ("http", json!({"type": "HTTP", "http": {"port": web.port, "path": "/bad"}})),
        ("tcp", json!({"type": "TCP", "tcp": {"port": closed.number()}})),
    ];
    for (kind, mut check) in unhealthy {
        let id = format!("{kind}-unhealthy");
        check["consecutive_failures"] = json!(2);
        bench.launch(&id, "sleep 1000", |task| task["health_check"] = often(check));
        let status = bench.scheduler.reach(&id, "TASK_KILLED");
        assert_eq!(status["healthy"], false, "{status}");
    }
}

#[test]
fn command_http_and_tcp_checks_are_reported() {
    let mut bench = Bench::start();
    let web = Web::serve(&[("/teapot", 418, b"")]);
    let closed = Port::take();
    let table = [
        (
            "command",
            json!({"type": "COMMAND", "command": {"command": {"value": "exit 7"}}}),
            json!({"type": "COMMAND", "command": {"exit_code": 7}}),
        ),
        (
            "http",
            json!({"type": "HTTP", "http": {"port": web.port, "path": "/teapot"}}),
            json!({"type": "HTTP", "http": {"status_code": 418}}),
        ),
        (
            "tcp",
            json!({"type": "TCP", "tcp": {"port": closed.number()}}),
            json!({"type": "TCP", "tcp": {"succeeded": false}}),
        ),
    ];
    for (id, mut check, expected) in table {
        check["delay_seconds"] = json!(0.0);
        check["interval_seconds"] = json!(0.1);
        bench.launch(id, "sleep 1000", |task| task["check"] = check);
        bench.scheduler.reach(id, "TASK_RUNNING");
        let status = bench.scheduler.update(id, "TASK_RUNNING");
        assert_eq!(status["check_status"], expected, "{status}");
        assert_eq!(status["reason"], "REASON_TASK_CHECK_STATUS_UPDATED");
        bench.kill(id, None);
        bench.scheduler.reach(id, "TASK_KILLED");
    }
}

#[test]
fn uris_are_fetched_and_extracted_into_the_sandbox() {
    let mut bench = Bench::start();
    let (plain, script) = (bench.path("plain"), bench.path("archive.tar.gz"));
    std::fs::write(&plain, "from a file\n").expect("a file");
    std::fs::write(bench.path("inner"), "from an archive\n").expect("a file");
    let tar = Command::new("tar")
        .arg("-czf")
        .arg(&script)
        .arg("-C")
        .arg(bench.cluster.folder())
        .arg("inner")
        .status();
    assert!(tar.expect("tar starts").success());
    let archive = std::fs::read(&script).expect("the archive");
    let web = Web::serve(&[
        ("/page.txt", 200, b"from the web\n"),
        ("/run.sh", 200, b"#!/bin/sh\necho runs\n"),
        ("/archive.tar.gz", 200, &archive),
        ("/once", 200, b"cached\n"),
    ]);
    let uris = json!([
        {"value": plain.display().to_string()},
        {"value": format!("file://{}", plain.display()), "output_file": "below/renamed"},
        {"value": web.url("/page.txt")},
        {"value": web.url("/run.sh"), "executable": true},
        {"value": web.url("/archive.tar.gz")},
        {"value": web.url("/archive.tar.gz"), "extract": false, "output_file": "unextracted"},
    ]);
    let command =
        "cat plain below/renamed page.txt inner && ./run.sh && test -s unextracted && test ! -x page.txt";
    bench.launch("fetches", command, |task| task["command"]["uris"] = uris);
    bench.scheduler.reach("fetches", "TASK_FINISHED");
    let printed = bench.sandbox_file("fetches", "stdout");
    let words = "from a file\nfrom a file\nfrom the web\nfrom an archive\nruns\n";
    assert!(printed.contains(words), "{printed}");

    for id in ["first", "second"] {
        bench.launch(id, "cat once", |task| {
            task["command"]["uris"] = json!([{"value": web.url("/once"), "cache": true}])
        });
        bench.scheduler.reach(id, "TASK_FINISHED");
        assert!(bench.sandbox_file(id, "stdout").contains("cached"));
    }
    assert_eq!(web.visits("/once"), 1, "the second comes from the cache");

    bench.launch("missing", "true", |task| {
        task["command"]["uris"] = json!([{"value": web.url("/not-there")}])
    });
    let status = bench.scheduler.reach("missing", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_CONTAINER_LAUNCH_FAILED");
    assert!(status["message"].as_str().is_some_and(|printed| printed.contains("404")), "{status}");
}

#[test]
fn tasks_have_their_environment_and_sandbox() {
    let mut bench = Bench::start();
    let command = "test \"$GREETING\" = hello && test \"$MESOS_SANDBOX\" = \"$PWD\" && test -n \"$MESOS_TASK_ID\" -o \
                   -n \"$MESOS_EXECUTOR_ID\" && test \"$MESOS_ALLOCATION_ROLE\" = dev && env && echo problem >&2";
    bench.launch("env", command, |task| {
        task["command"]["environment"] = json!({"variables": [{"name": "GREETING", "value": "hello"}]})
    });
    bench.scheduler.reach("env", "TASK_FINISHED");
    assert!(bench.sandbox_file("env", "stdout").contains("MESOS_AGENT_ENDPOINT="));
    assert!(bench.sandbox_file("env", "stderr").contains("problem"));

    let arguments = json!({"shell": false, "value": "sh", "arguments": ["sh", "-c", "exit 9"]});
    bench.launch("argv", "", |task| task["command"] = arguments);
    assert_eq!(bench.scheduler.reach("argv", "TASK_FAILED")["message"], "Command exited with status 9");

    bench.launch("nothing", "", |task| task["command"] = json!({"shell": true}));
    let status = bench.scheduler.reach("nothing", "TASK_FAILED");
    assert!(
        status["message"].as_str().is_some_and(|printed| printed.contains("the command has no 'value'")),
        "{status}"
    );
}

#[test]
fn tasks_run_as_their_user() {
    if !available(&[Facility::Root]) {
        return;
    }
    let mut bench = Bench::start();
    // The sandbox of another user must be reachable.
    let open = Command::new("chmod").arg("755").arg(bench.cluster.folder()).status();
    assert!(open.expect("chmod starts").success());
    bench.launch("nobody", "id -un; touch mine", |task| task["command"]["user"] = json!("nobody"));
    bench.scheduler.reach("nobody", "TASK_FINISHED");
    assert!(bench.sandbox_file("nobody", "stdout").contains("nobody"));
}

#[test]
fn failed_task_kills_its_group() {
    let mut bench = Bench::start();
    bench.launch_group("group", &[("fails", "sleep 0.2; exit 3"), ("stays", "sleep 1000")]);
    let status = bench.scheduler.reach("fails", "TASK_FAILED");
    assert_eq!(status["message"], "Command exited with status 3");
    bench.scheduler.reach("stays", "TASK_KILLED");
    let failure =
        bench.scheduler.event("FAILURE", |event| event["type"] == "FAILURE").expect("the stream lives");
    assert_eq!(failure["failure"]["executor_id"]["value"], "group");
}

#[test]
fn group_command_checks_run_in_its_containers() {
    let mut bench = Bench::start();
    let ill = bench.path("ill");
    let offer = bench.scheduler.fresh_offer();
    let mut checked = Scheduler::task(&offer, "checked", "echo 7 > answer; sleep 1000");
    checked["check"] = json!({
        "type": "COMMAND", "delay_seconds": 0.0, "interval_seconds": 0.1,
        "command": {"command": {"value": "exit $(cat answer || echo 1)"}}
    });
    let mut sick = Scheduler::task(&offer, "sick", "sleep 1000");
    sick["health_check"] = often(json!({
        "type": "COMMAND", "consecutive_failures": 2,
        "command": {"value": format!("test ! -e {}", ill.display())}
    }));
    bench.group("group", &offer, vec![checked, sick]);
    for id in ["checked", "sick"] {
        bench.scheduler.reach(id, "TASK_RUNNING");
    }
    // It runs in the task's container, perhaps before the answer.
    wait_for("the right exit code", || {
        let status = bench.scheduler.update("checked", "TASK_RUNNING");
        (status["check_status"] == json!({"type": "COMMAND", "command": {"exit_code": 7}})).then_some(())
    });
    let status = bench.scheduler.update("sick", "TASK_RUNNING");
    assert_eq!(status["healthy"], true, "{status}");
    std::fs::write(&ill, "").expect("a file");
    let status = bench.scheduler.reach("sick", "TASK_KILLED");
    assert_eq!(status["healthy"], false, "{status}");
    bench.scheduler.reach("checked", "TASK_KILLED");
}

#[test]
fn http_and_tcp_checks_of_group_tasks_are_reported() {
    let mut bench = Bench::start();
    let web = Web::serve(&[("/ok", 200, b""), ("/teapot", 418, b"")]);
    let closed = Port::take();
    let offer = bench.scheduler.fresh_offer();
    let checks = [
        ("http", "health_check", json!({"type": "HTTP", "http": {"port": web.port, "path": "/ok"}})),
        ("tcp", "health_check", json!({"type": "TCP", "tcp": {"port": web.port}})),
        ("teapot", "check", json!({"type": "HTTP", "http": {"port": web.port, "path": "/teapot"}})),
        ("closed", "check", json!({"type": "TCP", "tcp": {"port": closed.number()}})),
    ];
    let task = |(id, kind, check): &(&str, &str, Value)| {
        let mut task = Scheduler::task(&offer, id, "sleep 1000");
        task[*kind] = check.clone();
        task[*kind]["delay_seconds"] = json!(0.0);
        task[*kind]["interval_seconds"] = json!(0.1);
        task
    };
    bench.group("group", &offer, checks.iter().map(task).collect());
    for (id, key, expected) in [
        ("http", "healthy", json!(true)),
        ("tcp", "healthy", json!(true)),
        ("teapot", "check_status", json!({"type": "HTTP", "http": {"status_code": 418}})),
        ("closed", "check_status", json!({"type": "TCP", "tcp": {"succeeded": false}})),
    ] {
        bench.scheduler.reach(id, "TASK_RUNNING");
        wait_for("the result of a check", || {
            (bench.scheduler.update(id, "TASK_RUNNING")[key] == expected).then_some(())
        });
    }
}

#[test]
fn kill_of_one_task_kills_its_group_and_finished_groups_complete() {
    let mut bench = Bench::start();
    bench.launch_group("first", &[("a", "sleep 1000"), ("b", "sleep 1000")]);
    for id in ["a", "b"] {
        bench.scheduler.reach(id, "TASK_RUNNING");
    }
    bench.kill("a", None);
    for id in ["a", "b"] {
        bench.scheduler.reach(id, "TASK_KILLED");
    }
    let shared = "echo $MESOS_SANDBOX; test \"$PWD\" = \"$MESOS_SANDBOX\"";
    bench.launch_group("second", &[("c", shared), ("d", shared)]);
    for id in ["c", "d"] {
        bench.scheduler.reach(id, "TASK_FINISHED");
    }
}

#[test]
fn nested_containers_are_launched_by_the_agent_api() {
    let mut bench = Bench::start();
    bench.launch("parent", "sleep 1000", |_| {});
    let status = bench.scheduler.reach("parent", "TASK_RUNNING");
    let parent = status["container_status"]["container_id"].clone();
    let http = bench.cluster.agent_http();
    let call = |kind: &str, body: Value| {
        let mut call = json!({"type": kind});
        call[kind.to_lowercase()] = body;
        http.post("/api/v1", &call)
    };
    let id = |value: &str| json!({"value": value, "parent": parent});
    let launch = |value: &str, command: &str| {
        let body = json!({"container_id": id(value), "command": {"value": command}});
        call("LAUNCH_NESTED_CONTAINER", body)
    };
    let wait = |value: &str| {
        let answer = call("WAIT_NESTED_CONTAINER", json!({"container_id": id(value)}));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json().expect("JSON")["wait_nested_container"].clone()
    };
    let answer = launch("ends", "exit 5");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(wait("ends")["exit_status"], 5 << 8);
    assert_eq!(launch("ends", "exit 5").status, 202, "it has run");

    assert_eq!(launch("stays", "sleep 1000").status, 200);
    assert_eq!(launch("stays", "sleep 1000").status, 202, "it is there already");
    assert_eq!(call("KILL_NESTED_CONTAINER", json!({"container_id": id("stays")})).status, 200);
    assert_eq!(wait("stays")["exit_status"], 9);
    for value in ["ends", "stays"] {
        let answer = call("REMOVE_NESTED_CONTAINER", json!({"container_id": id(value)}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    // Nested containers terminate with their parent.
    assert_eq!(launch("orphan", "sleep 1000").status, 200);
    bench.kill("parent", None);
    bench.scheduler.reach("parent", "TASK_KILLED");
    let containers = || {
        let answer = call("GET_CONTAINERS", json!({"show_nested": true})).json()?;
        Some(answer["get_containers"]["containers"].as_array().map_or(0, Vec::len))
    };
    wait_for("all containers to end", || (containers()? == 0).then_some(()));
}
