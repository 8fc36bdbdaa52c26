//! External volumes of services on several agents of one machine, with a driver whose faults the test chooses: what each failure
//! of the driver, the task and the agent leads to.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Fault, Service, VolumeDriver, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:4;mem:2048;disk:8192;ports:[31000-31999]";
const ISOLATION: &str = "--isolation=filesystem/linux,docker/volume";
const DRIVER: &str = "shelf";

/// A cluster whose agents have the driver. None: recorded as skipped.
struct Bench {
    cluster: Cluster,
    driver: VolumeDriver,
}

impl Bench {
    fn start(agents: usize) -> Option<Self> {
        Self::start_with(agents, &[])
    }

    fn start_with(agents: usize, master_flags: &[&str]) -> Option<Self> {
        if !available(&[Facility::Root, Facility::Mounts]) {
            return None;
        }
        let cluster = Cluster::without_agents(master_flags);
        let driver = VolumeDriver::new(&cluster.folder().join("storage"));
        let mut bench = Self { cluster, driver };
        (0..agents).for_each(|index| bench.add_agent(index));
        Some(bench)
    }

    fn add_agent(&mut self, index: usize) {
        let plugins = self.driver.listen(&format!("agent-{index}"), DRIVER);
        let plugins = format!("--docker_volume_plugin_dirs={}", plugins.display());
        self.cluster.add_agent(&[RESOURCES, ISOLATION, &plugins, &format!("--hostname=agent-{index}")]);
    }

    fn service(&self, spec: &str, environment: &[(&str, &str)]) -> Service {
        let folder = self.cluster.folder().join("service");
        // Short, so that a test sees delays grow.
        let backoff = [("FRAMEWORK_INITIAL_BACKOFF", "1"), ("FRAMEWORK_BACKOFF_FACTOR", "2")];
        let environment: Vec<(&str, &str)> = backoff.iter().chain(environment).copied().collect();
        Service::start_with(&self.cluster.master.address, &folder, spec, &environment, &[])
    }

    fn call(&self, call: &Value) {
        let answer = self.cluster.http().post("/api/v1", call);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    fn hostname(&self, agent: &str) -> String {
        let agents = self.cluster.http().get("/slaves").json().expect("a list of agents");
        let agents = agents["slaves"].as_array().expect("a list").clone();
        let found = agents.into_iter().find(|one| one["id"] == agent).expect("the agent is known");
        found["hostname"].as_str().expect("a name").to_owned()
    }
}

/// Pods whose tasks append to their volume and keep running.
fn spec(count: u32, volume: &str, command: &str) -> String {
    format!(
        r#"
name: db
pods:
  node:
    count: {count}
    external-volumes:
      data: {{type: DOCKER, driver: {DRIVER}, container-path: data{volume}}}
    tasks:
      server:
        goal: RUNNING
        cmd: "{command}"
        cpus: 0.1
        memory: 32
"#
    )
}

/// Pods of which each is on an agent of its own.
fn apart(spec: &str) -> String {
    spec.replace("    count: 2\n", "    count: 2\n    placement: 'hostname:UNIQUE'\n")
}

const APPENDS: &str = "echo line >> data/kept && exec sleep 100000";

fn lines(volume: &Path) -> usize {
    std::fs::read_to_string(volume.join("kept")).unwrap_or_default().lines().count()
}

#[test]
fn volumes_follow_pods_that_are_restarted_and_replaced() {
    let Some(bench) = Bench::start(2) else { return };
    let service = bench.service(&spec(2, ", driver-options: 'a=1;b=2', volume-name: team", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    assert_eq!(bench.driver.created()["team_0"], json!({"a": "1", "b": "2"}));
    let volume = bench.driver.volume("team_0");
    wait_for("the first line", || (lines(&volume) == 1).then_some(()));

    assert_eq!(service.post("/v1/pod/node-0/restart").status, 200);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_eq!(second.agent, first.agent);
    wait_for("the second line", || (lines(&volume) == 2).then_some(()));

    bench
        .call(&json!({"type": "DEACTIVATE_AGENT", "deactivate_agent": {"agent_id": {"value": first.agent}}}));
    assert_eq!(service.post("/v1/pod/node-0/replace").status, 200);
    let third = service.running_after("node-0", "node-0-server", &second);
    assert_ne!(third.agent, first.agent);
    wait_for("the third line, after two of the other agent", || (lines(&volume) == 3).then_some(()));
    let at = bench.hostname(&third.agent);
    wait_for("one mount", || (bench.driver.mounted("team_0").iter().eq([&at])).then_some(()));
    assert_eq!(lines(&bench.driver.volume("team_1")), 1, "the other pod has a volume of its own");
}

#[test]
fn shared_volumes_are_mounted_in_all_pods_and_read_only_is_enforced() {
    let Some(bench) = Bench::start(2) else { return };
    let command = "echo $TASK_NAME >> data/kept && exec sleep 100000";
    let shared = ", volume-name: all, volume-sharing: POD_SHARED";
    let service = bench.service(&apart(&spec(2, shared, command)), &[]);
    service.complete("deploy");
    let agents = ["node-0", "node-1"].map(|pod| service.running(pod, &format!("{pod}-server")).agent);
    assert_ne!(agents[0], agents[1]);
    let volume = bench.driver.volume("all");
    wait_for("a line of each pod", || (lines(&volume) == 2).then_some(()));

    let reads = "cat data/kept && ! touch data/x 2>/dev/null && exec sleep 100000";
    service.write(&apart(&spec(2, &format!("{shared}, volume-mode: RO"), reads)));
    assert_eq!(service.post("/v1/update").status, 200);
    service.complete("deploy");
    service.running("node-1", "node-1-server");
    assert!(!volume.join("x").exists());
}

#[test]
fn a_launch_that_the_driver_fails_is_repeated_on_the_same_agent_with_growing_delay() {
    let Some(bench) = Bench::start(2) else { return };
    bench.driver.set(Fault::Fails);
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    let message = service.step("deploy", "node-0:[server]", "DELAYED");
    assert!(message.contains("TASK_FAILED"), "{message}");
    let first = service.try_task("node-0", "node-0-server").expect("it was launched");
    wait_for("a third attempt", || (bench.driver.count("Mount db_node_0") >= 3).then_some(()));
    let third = service.try_task("node-0", "node-0-server").expect("it was launched");
    assert_ne!(third.id, first.id);
    assert_eq!(third.agent, first.agent, "the reservations are on that agent");
    wait_for("a delay that has grown from one second to four", || {
        let message = service.plan("deploy")["phases"][0]["steps"][0]["message"].as_str()?.to_owned();
        message.contains("launched again in 4 s").then_some(())
    });
    bench.driver.set(Fault::None);
    service.complete("deploy");
    let running = service.running("node-0", "node-0-server");
    assert_eq!(running.agent, first.agent);
}

#[test]
fn slow_hanging_and_forgetful_drivers_only_delay_a_launch() {
    let Some(bench) = Bench::start(1) else { return };
    bench.driver.set(Fault::Slow(Duration::from_millis(500)));
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");

    // The container is not there while Mount is not answered; other pods and the API go on.
    bench.driver.set(Fault::Hangs);
    let mounts = bench.driver.count("Mount db_node_0");
    assert_eq!(service.post("/v1/pod/node-0/restart").status, 200);
    wait_for("the next mount", || (bench.driver.count("Mount db_node_0") > mounts).then_some(()));
    assert_eq!(service.http().get("/v1/plans").status, 200);
    bench.driver.set(Fault::None);
    let second = service.running_after("node-0", "node-0-server", &first);

    // A volume that the driver forgot is created again under its name.
    bench.driver.set(Fault::Forgets);
    assert_eq!(service.post("/v1/pod/node-0/restart").status, 200);
    service.running_after("node-0", "node-0-server", &second);
    assert!(bench.driver.created().contains_key("db_node_0"));
    wait_for("three lines", || (lines(&bench.driver.volume("db_node_0")) == 3).then_some(()));
}

#[test]
fn a_provider_that_fails_while_its_task_runs_leads_to_a_relaunch_on_the_same_agent() {
    let Some(bench) = Bench::start(2) else { return };
    let beats = "while echo beat >> data/kept; do sleep 0.1; done; exit 1";
    let service = bench.service(&spec(1, "", beats), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    let volume = bench.driver.volume("db_node_0");
    wait_for("a beat", || (lines(&volume) > 0).then_some(()));
    // The storage goes away below the running task.
    wait_for("the storage to be gone", || std::fs::remove_dir_all(&volume).is_ok().then_some(()));
    bench.driver.set(Fault::Forgets);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_eq!(second.agent, first.agent);
    wait_for("a beat of the new task", || (lines(&volume) > 0).then_some(()));
}

#[test]
fn pods_of_drained_and_gone_agents_are_replaced_automatically() {
    let Some(bench) = Bench::start(2) else { return };
    // No policy: nothing else could replace the pod.
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    bench.call(&json!({"type": "DRAIN_AGENT", "drain_agent": {"agent_id": {"value": first.agent}}}));
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_ne!(second.agent, first.agent);
    let volume = bench.driver.volume("db_node_0");
    wait_for("both lines", || (lines(&volume) == 2).then_some(()));

    bench
        .call(&json!({"type": "REACTIVATE_AGENT", "reactivate_agent": {"agent_id": {"value": first.agent}}}));
    bench.call(&json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": second.agent}}}));
    let third = service.running_after("node-0", "node-0-server", &second);
    assert_eq!(third.agent, first.agent);
    wait_for("three lines", || (lines(&volume) == 3).then_some(()));
}

#[test]
fn failed_pods_are_replaced_after_the_timeout_and_one_after_the_other() {
    let pings = ["--agent_ping_timeout=2secs", "--max_agent_ping_timeouts=2"];
    let Some(mut bench) = Bench::start_with(4, &pings) else { return };
    let policy = [
        ("ENABLE_AUTOMATIC_POD_REPLACEMENT", "true"),
        ("PERMANENT_FAILURE_TIMEOUT_SECS", "2"),
        ("MIN_REPLACE_DELAY_SECS", "5"),
    ];
    let service = bench.service(&apart(&spec(2, "", APPENDS)), &policy);
    service.complete("deploy");
    let pods = [("node-0", "node-0-server"), ("node-1", "node-1-server")];
    let before = pods.map(|(pod, task)| service.running(pod, task));
    assert_ne!(before[0].agent, before[1].agent);
    // Their agents die: the pods can only come back elsewhere.
    let died = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    for task in &before {
        let hostname = bench.hostname(&task.agent);
        let index =
            hostname.rsplit('-').next().and_then(|index| index.parse::<usize>().ok()).expect("an index");
        bench.cluster.agents[index].kill();
    }
    let mut times: Vec<u64> = Vec::new();
    wait_for("both pods to be replaced", || {
        let last = service.http().get("/v1/state/properties/last-replacement").text().parse().unwrap_or(0);
        if last > 0 && times.last() != Some(&last) {
            times.push(last);
        }
        (times.len() == 2).then_some(())
    });
    assert!(Duration::from_nanos(times[0]) >= died + Duration::from_secs(2), "permanent-failure-timeout");
    assert!(times[1] - times[0] >= 5_000_000_000, "min-replace-delay: {times:?}");
    for ((pod, task), old) in pods.into_iter().zip(&before) {
        assert_ne!(service.running_after(pod, task, old).agent, old.agent);
    }
}

#[test]
fn plan_explains_agents_without_the_isolator_or_driver() {
    if !available(&[Facility::Root, Facility::Mounts]) {
        return;
    }
    let mut cluster = Cluster::without_agents(&[]);
    let driver = VolumeDriver::new(&cluster.folder().join("storage"));
    let others = driver.listen("other", "other");
    let others = format!("--docker_volume_plugin_dirs={}", others.display());
    cluster.add_agent(&[RESOURCES, "--isolation=filesystem/linux", "--hostname=plain"]);
    cluster.add_agent(&[RESOURCES, ISOLATION, &others, "--hostname=other"]);
    let mut bench = Bench { cluster, driver };
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    let message = wait_for("the reason", || {
        let plan = service.plan("deploy");
        let message = plan["phases"][0]["steps"][0]["message"].as_str()?.to_owned();
        (message.contains("docker/volume") && message.contains(DRIVER)).then_some(message)
    });
    assert!(message.contains("2 agents"), "{message}");
    bench.add_agent(2);
    service.complete("deploy");
    let task = service.running("node-0", "node-0-server");
    assert_eq!(bench.hostname(&task.agent), "agent-2");
}

#[test]
fn a_pod_is_replaced_while_its_volume_is_mounted_on_an_agent_that_died() {
    let Some(mut bench) = Bench::start(2) else { return };
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    let dead = bench.hostname(&first.agent);
    let index: usize = dead.rsplit('-').next().and_then(|index| index.parse().ok()).expect("an index");
    bench.cluster.agents[index].kill();
    bench.call(&json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": first.agent}}}));
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_ne!(second.agent, first.agent);
    assert!(bench.driver.mounted("db_node_0").contains(&dead), "nobody could unmount it there");
    wait_for("both lines", || (lines(&bench.driver.volume("db_node_0")) == 2).then_some(()));
}
