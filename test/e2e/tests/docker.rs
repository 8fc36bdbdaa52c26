//! Tasks in containers of a real Docker engine, from the API to the kernel's files and back. Needs root.

#[path = "../../../container/docker/tests/common/mod.rs"]
mod dockerd;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dockerd::{Dockerd, IMAGE, Networks, file_of};
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, scalar, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";
/// Exits soon after SIGTERM.
const POLITE: &str = "trap 'exit 0' TERM; while :; do sleep 0.1; done";

struct Bench {
    scheduler: Scheduler,
    cluster: Cluster,
    /// The last field: the cluster kills its tasks first.
    dockerd: Dockerd,
}

/// A cluster with an agent on the engine.
fn cluster(dockerd: &Dockerd) -> Cluster {
    let socket = format!("--docker_socket={}", dockerd.socket().display());
    // A busy machine may take long to bring executors back.
    let patient = "--executor_reregistration_timeout=15secs";
    let usual = [RESOURCES, "--containerizers=docker,mesos", "--docker_remove_delay=0ns", patient];
    Cluster::with(&[], &[&usual[..], &[socket.as_str()]].concat())
}

impl Bench {
    /// `None`: recorded as skipped.
    fn start(networks: Networks) -> Option<Self> {
        if !available(&[Facility::Docker]) {
            return None;
        }
        let dockerd = Dockerd::start(networks);
        let cluster = cluster(&dockerd);
        let scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
        Some(Self { scheduler, cluster, dockerd })
    }

    fn launch(&mut self, id: &str, command: &str, change: impl FnOnce(&mut Value)) {
        let offer = self.scheduler.fresh_offer();
        let mut task = Scheduler::task(&offer, id, command);
        task["resources"] = json!([scalar("cpus", 0.2), scalar("mem", 64.0)]);
        task["container"] = json!({"type": "DOCKER", "docker": {"image": IMAGE}});
        change(&mut task);
        assert_eq!(self.scheduler.launch(&offer, &[task]).status, 202);
    }

    /// Of a status.
    fn name(status: &Value) -> String {
        let id = status["container_status"]["container_id"]["value"].as_str().expect("a container id");
        format!("mesos-{id}")
    }

    fn sandbox(&self, task: &str) -> PathBuf {
        let frameworks = self.cluster.agents[0].work_dir.join("slaves");
        let agent =
            std::fs::read_dir(frameworks).expect("it is there").next().expect("one").expect("one").path();
        let framework = agent.join("frameworks").join(&self.scheduler.framework_id);
        framework.join("executors").join(task).join("runs/latest")
    }

    fn read(&self, task: &str, file: &str) -> String {
        std::fs::read_to_string(self.sandbox(task).join(file)).expect("a file of the sandbox")
    }

    /// Restarts the agent and waits for its reregistration.
    fn restart_agent(&mut self) {
        let subscribed_at = |cluster: &Cluster| {
            let agents = cluster.http().get("/slaves").json()?;
            Some(agents["slaves"][0]["reregistered_time"].clone())
                .filter(|_| agents["slaves"][0]["active"] == true)
        };
        let before = subscribed_at(&self.cluster);
        self.cluster.agents[0].kill();
        self.cluster.agents[0].restart();
        let news = || subscribed_at(&self.cluster).filter(|time| Some(time) != before.as_ref());
        wait_for("the agent to come back", news);
    }

    fn kill(&mut self, task: &str) -> Value {
        self.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": task}}}));
        self.scheduler.reach(task, "TASK_KILLED")
    }
}

#[test]
fn a_task_runs_in_its_image_with_its_sandbox() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    let script =
        "echo $NAME $MESOS_SANDBOX; echo err >&2; echo kept > /mnt/mesos/sandbox/kept; cat /data/x; exit 3";
    let data = bench.cluster.folder().join("data");
    std::fs::create_dir(&data).expect("made");
    std::fs::write(data.join("x"), "volume\n").expect("written");
    bench.launch("a", script, |task| {
        task["command"]["environment"] = json!({"variables": [{"name": "NAME", "value": "one"}]});
        task["container"]["volumes"] = json!([{"mode": "RO", "container_path": "/data", "host_path": data}]);
        task["container"]["docker"]["parameters"] = json!([{"key": "label", "value": "a=b"}]);
    });
    bench.scheduler.reach("a", "TASK_STARTING");
    let running = bench.scheduler.reach("a", "TASK_RUNNING");
    let data = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        running["data"].as_str().expect("data"),
    );
    let inspected: Value = serde_json::from_slice(&data.expect("base64")).expect("JSON");
    assert_eq!(inspected[0]["Name"], format!("/{}", Bench::name(&running)));
    assert_eq!(inspected[0]["Config"]["Labels"]["a"], "b");
    let failed = bench.scheduler.reach("a", "TASK_FAILED");
    assert_eq!(failed["message"], "Container exited with status 3");
    assert_eq!(failed["container_status"]["container_id"], running["container_status"]["container_id"]);
    assert_eq!(bench.read("a", "stdout"), "one /mnt/mesos/sandbox\nvolume\n");
    assert!(bench.read("a", "stderr").lines().any(|line| line == "err"));
    assert_eq!(bench.read("a", "kept"), "kept\n");
    wait_for("the container to be removed", || {
        bench.dockerd.inspect(&Bench::name(&failed)).is_none().then_some(())
    });

    bench.launch("b", "exit 0", |_| ());
    assert_eq!(bench.scheduler.reach("b", "TASK_FINISHED")["message"], "Container exited with status 0");
    bench.launch("c", "true", |task| task["container"]["docker"]["image"] = json!("127.0.0.1:1/no/image"));
    let failed = bench.scheduler.reach("c", "TASK_FAILED");
    assert_eq!(failed["reason"], "REASON_CONTAINER_LAUNCH_FAILED");
    let message = failed["message"].as_str().expect("a message");
    assert!(message.starts_with("Failed to launch container: cannot pull the image: "), "{message}");
    let metrics = bench.cluster.agent_http().get("/metrics/snapshot").json().expect("JSON");
    assert_eq!(
        metrics["containerizer/docker/image_pull_ms/count"], 1.0,
        "of the images that were not there: {metrics}"
    );
    bench.launch("d", "true", |task| task["container"]["linux_info"] = json!({"share_cgroups": true}));
    bench.scheduler.reach("d", "TASK_ERROR");
    // Other tasks are not for the engine.
    bench.launch("e", "exit 4", |task| drop(task.as_object_mut().expect("a task").remove("container")));
    assert_eq!(bench.scheduler.reach("e", "TASK_FAILED")["message"], "Command exited with status 4");
}

#[test]
fn custom_executor_runs_in_a_container() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    let program = env!("CARGO_BIN_EXE_letters_executor");
    let directory = std::path::Path::new(program).parent().expect("it is somewhere");
    // Neither the program nor its libraries are in the image.
    let volumes: Vec<Value> = ["/lib", "/lib64", "/usr/lib", directory.to_str().expect("text")]
        .map(|path| json!({"mode": "RO", "container_path": path, "host_path": path}))
        .to_vec();
    let offer = bench.scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "letters", "");
    drop(task.as_object_mut().expect("a task").remove("command"));
    task["executor"] = json!({
        "type": "CUSTOM", "executor_id": {"value": "letters"},
        "framework_id": {"value": bench.scheduler.framework_id},
        "command": {"value": format!("echo in $MESOS_CONTAINER_NAME; exec {program}")},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)],
        "container": {"type": "DOCKER", "docker": {"image": IMAGE}, "volumes": volumes}
    });
    bench.scheduler.launch(&offer, &[task]);
    let running = bench.scheduler.reach("letters", "TASK_RUNNING");
    let name = Bench::name(&running);
    assert!(bench.dockerd.is_running(&name));
    // The engine's log is copied while the executor works.
    let expected = format!("in {name}\n");
    wait_for("its output", || bench.read("letters", "stdout").starts_with(&expected).then_some(()));
    // The task's resources are added to those of its executor.
    let pid = bench.dockerd.pid(&name);
    wait_for("the limit of both", || {
        (file_of(pid, "memory", "memory.limit_in_bytes") == "67108864").then_some(())
    });
    bench.restart_agent();
    bench.kill("letters");
    let shutdown = json!({"agent_id": offer["agent_id"], "executor_id": {"value": "letters"}});
    bench.scheduler.call(json!({"type": "SHUTDOWN", "shutdown": shutdown}));
    wait_for("the container to be removed", || bench.dockerd.inspect(&name).is_none().then_some(()));
}

/// Only the agent knows why an executor's own container terminated.
#[test]
fn oom_kill_of_a_custom_executor_is_reported() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    let offer = bench.scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "hog", "");
    drop(task.as_object_mut().expect("a task").remove("command"));
    task["resources"] = json!([scalar("cpus", 0.1), scalar("mem", 32.0)]);
    let parameters = json!([{"key": "memory-swap", "value": "64m"}]);
    task["executor"] = json!({
        "type": "CUSTOM", "executor_id": {"value": "hog"},
        "framework_id": {"value": bench.scheduler.framework_id},
        "command": {"value": "sleep 0.5; tail /dev/zero; exit 9"},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)],
        "container": {"type": "DOCKER", "docker": {"image": IMAGE, "parameters": parameters}}
    });
    bench.scheduler.launch(&offer, &[task]);
    let failed = bench.scheduler.reach("hog", "TASK_FAILED");
    assert_eq!(failed["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{failed}");
    let reason = "Memory limit exceeded: Requested: 64MB Limit: 64MB Maximum Used: 64MB";
    assert_eq!(failed["message"], reason, "{failed}");
    assert_eq!(failed["limitation"]["resources"][0]["scalar"]["value"], 64.0, "{failed}");
}

/// The error of an engine that cannot start such containers is passed to the framework.
#[test]
fn privileged_containers_require_the_option() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    bench.launch("usual", POLITE, |_| ());
    let running = bench.scheduler.reach("usual", "TASK_RUNNING");
    let privileged = |bench: &Bench, status: &Value| {
        let found = bench.dockerd.inspect(&Bench::name(status)).expect("it is there");
        serde_json::from_str::<Value>(&found).expect("JSON")["HostConfig"]["Privileged"].clone()
    };
    assert_eq!(privileged(&bench, &running), false);
    bench.launch("privileged", POLITE, |task| task["container"]["docker"]["privileged"] = json!(true));
    let is_it = |event: &Value| event["update"]["status"]["task_id"]["value"] == "privileged";
    let status = loop {
        let event = bench.scheduler.event("what became of it", is_it).expect("the stream goes on");
        bench.scheduler.acknowledge(&event["update"]["status"]);
        if event["update"]["status"]["state"] != "TASK_STARTING" {
            break event["update"]["status"].clone();
        }
    };
    match status["state"].as_str() {
        Some("TASK_RUNNING") => assert_eq!(privileged(&bench, &status), true),
        _ => {
            let reason = status["message"].as_str().expect("a message");
            assert!(
                reason.starts_with("Failed to start the container: cannot start the container: "),
                "{reason}"
            );
        }
    }
}

#[test]
fn cli_runs_docker_images() {
    if !available(&[Facility::Docker]) {
        return;
    }
    let dockerd = Dockerd::start(Networks::Host);
    let cluster = cluster(&dockerd);
    let run = |arguments: &[&str]| {
        let command = std::process::Command::new(tepui_e2e::binary())
            .args(["run", "--master", &cluster.master.address, "--docker", IMAGE, "--"])
            .args(arguments)
            .output()
            .expect("it starts");
        (command.status.code(), String::from_utf8_lossy(&command.stdout).into_owned())
    };
    assert_eq!(run(&["ls /bin/busybox $MESOS_SANDBOX/stdout; exit 5"]).0, Some(5));
    let (code, printed) = run(&["/bin/echo", "several", "words"]);
    assert!(code == Some(0) && printed.contains("several words"), "{code:?} {printed}");
}

#[test]
fn kill_grace_period_survives_agent_restart() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    bench.launch("polite", POLITE, |_| ());
    // The first process of a container ignores signals without a handler.
    bench.launch("deaf", "while :; do sleep 0.1; done", |task| {
        task["kill_policy"] = json!({"grace_period": {"nanoseconds": 100_000_000}});
    });
    let [polite, deaf] = ["polite", "deaf"].map(|task| bench.scheduler.reach(task, "TASK_RUNNING"));
    assert_eq!(bench.kill("deaf")["message"], "Container exited with status 137");
    bench.restart_agent();
    assert!(bench.dockerd.is_running(&Bench::name(&polite)), "it goes on, and is known");
    assert_eq!(bench.kill("polite")["message"], "Container exited with status 0");
    for status in [polite, deaf] {
        let gone = || bench.dockerd.inspect(&Bench::name(&status)).is_none().then_some(());
        wait_for("the container to be removed", gone);
    }
}

/// Killed at any moment of launches and kills, the agent loses no running container and leaves none.
#[test]
fn random_agent_crashes_lose_no_docker_task_and_leave_no_container() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    let (mut ran, mut over) = (BTreeSet::new(), BTreeMap::new());
    let mut launched = Vec::new();
    // Arbitrary moments, the same in every run.
    for (round, delay_ms) in [30_u64, 310, 120, 550, 0].into_iter().enumerate() {
        for task in ["a", "b"] {
            launched.push(format!("{task}{round}"));
            bench.launch(&format!("{task}{round}"), POLITE, |_| ());
        }
        if round > 0 {
            let kill = json!({"task_id": {"value": format!("a{}", round - 1)}});
            bench.scheduler.call(json!({"type": "KILL", "kill": kill}));
        }
        std::thread::sleep(Duration::from_millis(delay_ms));
        bench.restart_agent();
    }
    // All pending containers have started, then all are killed.
    let mut asked = false;
    while over.len() < launched.len() {
        let event = bench.scheduler.event("updates", |event| event["type"] == "UPDATE");
        let status = event.expect("the stream goes on")["update"]["status"].clone();
        bench.scheduler.acknowledge(&status);
        let task = status["task_id"]["value"].as_str().expect("an id").to_owned();
        match status["state"].as_str().expect("a state") {
            "TASK_STARTING" | "TASK_STAGING" | "TASK_KILLING" => (),
            "TASK_RUNNING" => drop(ran.insert(task)),
            end => drop(over.insert(task, end.to_owned())),
        }
        let known = launched.iter().all(|task| ran.contains(task) || over.contains_key(task));
        if known && !std::mem::replace(&mut asked, known) {
            // The answer to a KILL of a terminated task is TASK_UNKNOWN, which is not its end.
            for task in launched.iter().filter(|task| !over.contains_key(*task)) {
                let kill = json!({"task_id": {"value": task}});
                bench.scheduler.call(json!({"type": "KILL", "kill": kill}));
            }
        }
    }
    for (task, end) in over.iter().filter(|(task, _)| ran.contains(*task)) {
        assert_eq!(end, "TASK_KILLED", "{task} ran; {over:?}");
    }
    let listed = || dockerd::request(&bench.dockerd.socket(), "GET", "/containers/json?all=1", &[]);
    wait_for("no container to be left", || listed().filter(|(_, list)| list.trim() == "[]"));
    let folder = bench.cluster.folder().display().to_string();
    let supervisors = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let lines = all.filter_map(|one| std::fs::read_to_string(one.path().join("cmdline")).ok());
        lines.filter(|line| line.contains("supervise") && line.contains(&folder)).count()
    };
    wait_for("no supervisor to be left", || (supervisors() == 0).then_some(()));
}

#[test]
fn requests_and_limits_are_set_and_oom_kill_is_reported() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    const MB: i64 = 1024 * 1024;
    let infinity = json!({"cpus": {"value": "Infinity"}, "mem": {"value": "Infinity"}});
    let limits = json!({"cpus": {"value": 0.5}, "mem": {"value": 128}});
    let endless = i64::MAX / 4096 * 4096;
    // Shares, quota, request and limit of memory, and whether it has a raised OOM score.
    for (id, limits, expected, bursts) in [
        ("none", json!({}), [204, -1, 64 * MB, 64 * MB], false),
        ("some", limits, [204, 50_000, 64 * MB, 128 * MB], true),
        ("infinite", infinity, [204, -1, 64 * MB, endless], true),
    ] {
        bench.launch(id, POLITE, |task| task["limits"] = limits);
        let running = bench.scheduler.reach(id, "TASK_RUNNING");
        let pid = bench.dockerd.pid(&Bench::name(&running));
        let number = |controller, file| file_of(pid, controller, file).parse::<i64>().expect("a number");
        let found = [
            number("cpu", "cpu.shares"),
            number("cpu", "cpu.cfs_quota_us"),
            number("memory", "memory.soft_limit_in_bytes"),
            number("memory", "memory.limit_in_bytes"),
        ];
        assert_eq!(found, expected, "{id}");
        let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("it runs");
        let score: i32 = score.trim().parse().expect("a number");
        assert_eq!(score > 900, bursts, "{id}: {score}");
        bench.kill(id);
    }
    // Above its request it has the highest OOM score.
    bench.launch("burst", "dd if=/dev/zero bs=90M count=1 | sleep 1000", |task| {
        task["limits"] = json!({"mem": {"value": 256}});
    });
    let pid = bench.dockerd.pid(&Bench::name(&bench.scheduler.reach("burst", "TASK_RUNNING")));
    let score = || std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).ok();
    wait_for("its score", || (score()?.trim() == "1000").then_some(()));
    bench.kill("burst");
    bench.launch("hog", "sleep 0.5; tail /dev/zero", |task| {
        task["container"]["docker"]["parameters"] = json!([{"key": "memory-swap", "value": "64m"}]);
    });
    assert_limited(&bench.scheduler.reach("hog", "TASK_FAILED"), "Requested: 64MB Limit: 64MB");
    // An OOM kill of a child terminates the task, whether it would continue or succeed.
    for (id, script) in
        [("survivor", "tail /dev/zero; sleep 1000"), ("quick", "sleep 0.5; tail /dev/zero; exit 0")]
    {
        bench.launch(id, script, |task| {
            task["container"]["docker"]["parameters"] = json!([{"key": "memory-swap", "value": "64m"}]);
        });
        assert_limited(&bench.scheduler.reach(id, "TASK_FAILED"), "Requested: 64MB Limit: 64MB");
    }
}

/// The reason, the figures and the limitation are those of a memory limit. Agent or executor may report first.
fn assert_limited(failed: &Value, figures: &str) {
    assert_eq!(failed["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{failed}");
    let message = failed["message"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("Memory limit exceeded: {figures} Maximum Used: ")), "{failed}");
    assert_eq!(failed["limitation"]["resources"][0]["name"], "mem", "{failed}");
}

/// A v1 cgroup with a limit as parent of the engine's containers, in place of a machine without memory.
struct ParentCgroup(PathBuf);

impl ParentCgroup {
    fn new(bench: &Bench, bytes: u64) -> Option<ParentCgroup> {
        let name = bench.cluster.folder().file_name().expect("a name");
        let path = Path::new("/sys/fs/cgroup/memory").join(name).join("docker");
        if !available(&[Facility::CgroupsV1]) {
            return None;
        }
        std::fs::create_dir_all(&path).expect("a cgroup");
        std::fs::write(path.join("memory.limit_in_bytes"), bytes.to_string()).expect("limited");
        Some(ParentCgroup(path))
    }

    fn name(&self) -> String {
        let below = self.0.strip_prefix("/sys/fs/cgroup/memory").expect("it is below");
        format!("/{}", below.display())
    }
}

impl Drop for ParentCgroup {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).ok(); // After a failed test its processes are killed with the engine.
    }
}

#[test]
fn oom_kill_by_the_host_differs_from_one_by_the_limit() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    const MB: u64 = 1024 * 1024;
    let Some(parent) = ParentCgroup::new(&bench, 96 * MB) else { return };
    // The OOM kill hits a child; the delay lets the watcher attach first.
    let script = "sleep 0.5; tail /dev/zero; exit 9";
    let limit = |task: &mut Value, mem: Value, cgroup: Option<String>| {
        task["limits"] = json!({"mem": {"value": mem}});
        let mut parameters = vec![json!({"key": "memory-swappiness", "value": "0"})];
        parameters.extend(cgroup.map(|value| json!({"key": "cgroup-parent", "value": value})));
        task["container"]["docker"]["parameters"] = parameters.into();
    };
    for (id, mem) in [("endless", json!("Infinity")), ("limited", json!(512))] {
        bench.launch(id, script, |task| limit(task, mem, Some(parent.name())));
        let failed = bench.scheduler.reach(id, "TASK_FAILED");
        let message = failed["message"].as_str().expect("a message");
        assert_eq!(failed["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{message}");
        let (reason, used) = message.split_once("Maximum Used: ").expect("what was used");
        let limit = if id == "endless" { "Infinity" } else { "512MB" };
        let end = "Memory request exceeded while the machine ran out of memory";
        assert!(reason.ends_with(&format!("{end}: Requested: 64MB Limit: {limit} ")), "{message}");
        let used: u64 = used.trim_end_matches("MB").parse().expect("a number");
        assert!((80..=96).contains(&used), "{message}");
    }
    bench.launch("own", script, |task| limit(task, json!(80), None));
    assert_limited(&bench.scheduler.reach("own", "TASK_FAILED"), "Requested: 64MB Limit: 80MB");
}

#[test]
fn exec_in_a_docker_task_is_rejected() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    bench.launch("a", POLITE, |_| ());
    bench.scheduler.reach("a", "TASK_RUNNING");
    let output = std::process::Command::new(tepui_e2e::binary())
        .args(["exec", "--master", &bench.cluster.master.address, "a", "ls"])
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && printed.contains("a DOCKER container cannot have nested containers"),
        "{printed}"
    );
    bench.kill("a");
}

#[test]
fn command_check_is_killed_at_its_timeout() {
    let Some(mut bench) = Bench::start(Networks::Host) else { return };
    // Found among all processes of the machine: no other test sleeps so long.
    let seconds = (1_000_000 + std::process::id()).to_string();
    bench.launch("slow", POLITE, |task| {
        task["health_check"] = json!({"type": "COMMAND", "delay_seconds": 0, "interval_seconds": 0.2,
            "timeout_seconds": 0.2, "grace_period_seconds": 0, "consecutive_failures": 1000,
            "command": {"value": format!("sleep {seconds} & sleep {seconds}")}});
    });
    let running = bench.scheduler.reach("slow", "TASK_RUNNING");
    for _ in 0..3 {
        let sick =
            bench.scheduler.event("a failed check", |event| event["update"]["status"]["healthy"] == false);
        bench.scheduler.acknowledge(&sick.expect("the stream goes on")["update"]["status"]);
    }
    let sleepers = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let lines = all.filter_map(|one| std::fs::read_to_string(one.path().join("cmdline")).ok());
        lines.filter(|line| line.contains(&format!("sleep\0{seconds}"))).count()
    };
    wait_for("a check to be there", || (sleepers() > 0).then_some(()));
    wait_for("none to be left between two", || (sleepers() == 0).then_some(()));
    assert!(bench.dockerd.is_running(&Bench::name(&running)));
    bench.kill("slow");
}

#[test]
fn bridge_networks_map_ports_and_health_checks_work() {
    let Some(mut bench) = Bench::start(Networks::Own) else { return };
    let often = |check: Value| {
        let mut all = json!({"delay_seconds": 0, "interval_seconds": 0.1, "grace_period_seconds": 0, "consecutive_failures": 2});
        all.as_object_mut().expect("an object").extend(check.as_object().expect("an object").clone());
        all
    };
    let server = "mkdir /tmp/w; echo ok > /tmp/w/index.html; exec httpd -f -p 80 -h /tmp/w";
    bench.launch("web", server, |task| {
        task["resources"].as_array_mut().expect("a list").push(
            json!({"name": "ports", "type": "RANGES", "ranges": {"range": [{"begin": 31000, "end": 31000}]}}),
        );
        task["container"]["docker"]["network"] = json!("BRIDGE");
        task["container"]["docker"]["port_mappings"] = json!([{"host_port": 31000, "container_port": 80}]);
        task["health_check"] =
            often(json!({"type": "HTTP", "http": {"port": 80, "path": "/"}, "grace_period_seconds": 60}));
    });
    let running = bench.scheduler.reach("web", "TASK_RUNNING");
    let address = &running["container_status"]["network_infos"][0]["ip_addresses"][0]["ip_address"];
    assert!(address.as_str().is_some_and(|ip| ip.starts_with("172.")), "{running}");
    let inspected = bench.dockerd.inspect(&Bench::name(&running)).expect("it is there");
    let inspected: Value = serde_json::from_str(&inspected).expect("JSON");
    assert_eq!(inspected["NetworkSettings"]["Ports"]["80/tcp"][0]["HostPort"], "31000");
    // That port has a listener in the container's own network only.
    let healthy = bench.scheduler.event("health", |event| event["update"]["status"]["healthy"] == true);
    let healthy = healthy.expect("the stream goes on")["update"]["status"].clone();
    bench.scheduler.acknowledge(&healthy);
    assert_eq!(healthy["container_status"]["network_infos"], running["container_status"]["network_infos"]);
    let page = bench.dockerd.ask(31000);
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("ok\n"), "the port leads there: {page}");
    bench.kill("web");

    // A network of the user's own, in which the container has a name beside its address.
    bench.dockerd.create_network("own", "10.213.0.0/24");
    bench.launch("named", POLITE, |task| {
        task["container"]["docker"]["network"] = json!("USER");
        task["container"]["network_infos"] = json!([{"name": "own"}]);
        task["container"]["docker"]["parameters"] = json!([{"key": "network-alias", "value": "it"}]);
    });
    let running = bench.scheduler.reach("named", "TASK_RUNNING");
    let network = &running["container_status"]["network_infos"][0];
    let address = network["ip_addresses"][0]["ip_address"].as_str().unwrap_or_default();
    assert!(network["name"] == "own" && address.starts_with("10.213.0."), "{running}");
    bench.launch("asks", "ping -c 1 it > /dev/null && exit 7", |task| {
        task["container"]["docker"]["network"] = json!("USER");
        task["container"]["network_infos"] = json!([{"name": "own"}]);
    });
    assert_eq!(bench.scheduler.reach("asks", "TASK_FAILED")["message"], "Container exited with status 7");
    bench.kill("named");
    bench.launch("nowhere", "true", |task| {
        task["container"]["docker"]["network"] = json!("USER");
        task["container"]["network_infos"] = json!([{"name": "missing"}]);
    });
    let failed = bench.scheduler.reach("nowhere", "TASK_FAILED");
    assert!(
        failed["message"].as_str().is_some_and(|reason| reason.contains("network missing not found")),
        "{failed}"
    );

    // Who listens only on the container's own loopback interface is found there, and nowhere else.
    bench.launch("tcp", "exec httpd -f -p 127.0.0.1:80 -h /tmp", |task| {
        task["container"]["docker"]["network"] = json!("NONE");
        task["health_check"] = often(json!({"type": "TCP", "tcp": {"port": 80}, "grace_period_seconds": 60}));
    });
    bench.scheduler.reach("tcp", "TASK_RUNNING");
    let healthy = bench.scheduler.event("health", |event| event["update"]["status"]["healthy"] == true);
    bench.scheduler.acknowledge(&healthy.expect("the stream goes on")["update"]["status"]);
    bench.kill("tcp");
    for (id, check) in [
        ("deaf", json!({"type": "TCP", "tcp": {"port": 81}})),
        ("wrong", json!({"type": "HTTP", "http": {"port": 80, "path": "/missing", "statuses": [200]}})),
    ] {
        bench.launch(
            id,
            "trap 'exit 0' TERM; httpd -p 127.0.0.1:80 -h /tmp; while :; do sleep 0.1; done",
            |task| {
                task["container"]["docker"]["network"] = json!("NONE");
                task["health_check"] = often(check);
            },
        );
        assert_eq!(bench.scheduler.reach(id, "TASK_KILLED")["healthy"], false, "{id}");
    }

    bench.launch("sick", POLITE, |task| {
        task["container"]["docker"]["network"] = json!("NONE");
        let command = json!({"value": "test -e /tmp/well"});
        task["health_check"] = often(json!({"type": "COMMAND", "command": command}));
    });
    let killed = bench.scheduler.reach("sick", "TASK_KILLED");
    assert_eq!(
        (&killed["healthy"], &killed["message"]),
        (&json!(false), &json!("Container exited with status 0"))
    );
}
