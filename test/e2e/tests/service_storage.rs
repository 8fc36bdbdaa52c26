//! External volumes of services with a real volume driver: failures of tasks, agents and the storage. Faults that a real driver
//! does not show by request are in `service_volumes.rs`.

use std::path::Path;

use serde_json::{Value, json};
use tepui_e2e::{Buttervolume, Cluster, Service, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:4;mem:2048;disk:8192;ports:[31000-31999]";
const ISOLATION: &str = "--isolation=filesystem/linux,docker/volume";
const APPENDS: &str = "echo line >> data/kept && exec sleep 100000";

/// Agents of one machine with one real driver; the storage goes after the cluster.
struct Bench {
    cluster: Cluster,
    storage: Buttervolume,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// None: recorded as skipped.
    fn start(agents: usize) -> Option<Self> {
        Self::start_with(agents, &[])
    }

    fn start_with(agents: usize, master_flags: &[&str]) -> Option<Self> {
        if !available(&[Facility::Root, Facility::Mounts, Facility::Buttervolume]) {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("tepui-storage-").tempdir().expect("a folder");
        let plugins = folder.path().join("plugins");
        let storage = Buttervolume::start(folder.path(), &plugins);
        let mut cluster = Cluster::without_agents(master_flags);
        let plugins = format!("--docker_volume_plugin_dirs={}", plugins.display());
        for index in 0..agents {
            cluster.add_agent(&[RESOURCES, ISOLATION, &plugins, &format!("--hostname=agent-{index}")]);
        }
        Some(Self { cluster, storage, _folder: folder })
    }

    fn service(&self, spec: &str, environment: &[(&str, &str)]) -> Service {
        let backoff = [("FRAMEWORK_INITIAL_BACKOFF", "1"), ("FRAMEWORK_BACKOFF_FACTOR", "2")];
        let environment: Vec<(&str, &str)> = backoff.iter().chain(environment).copied().collect();
        let folder = self.cluster.folder().join("service");
        Service::start_with(&self.cluster.master.address, &folder, spec, &environment, &[])
    }

    /// A call of an operator about an agent.
    fn call(&self, call: &str, agent: &str) {
        let body = json!({"type": call, call.to_lowercase(): {"agent_id": {"value": agent}}});
        let answer = self.cluster.http().post("/api/v1", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// The place of an agent in the cluster.
    fn index(&self, agent: &str) -> usize {
        let agents = self.cluster.http().get("/slaves").json().expect("a list of agents");
        let agents: Vec<Value> = agents["slaves"].as_array().expect("a list").clone();
        let found = agents.iter().find(|one| one["id"] == agent).expect("the agent is known");
        let name = found["hostname"].as_str().expect("a name");
        name.rsplit('-').next().and_then(|index| index.parse().ok()).expect("an index")
    }
}

fn spec(count: u32, volume: &str, command: &str) -> String {
    format!(
        r#"
name: db
pods:
  node:
    count: {count}
    external-volumes:
      data: {{type: DOCKER, driver: {driver}, container-path: data{volume}}}
    tasks:
      server:
        goal: RUNNING
        cmd: "{command}"
        cpus: 0.1
        memory: 32
"#,
        driver = Buttervolume::DRIVER
    )
}

/// Pods of which each is on an agent of its own.
fn apart(spec: &str) -> String {
    spec.replace("    count: 2\n", "    count: 2\n    placement: 'hostname:UNIQUE'\n")
}

fn lines(volume: &Path) -> usize {
    std::fs::read_to_string(volume.join("kept")).unwrap_or_default().lines().count()
}

#[test]
fn data_follows_pods_that_are_restarted_replaced_and_drained() {
    let Some(bench) = Bench::start(2) else { return };
    let service = bench.service(&spec(1, ", driver-options: 'compression=true'", APPENDS), &[]);
    service.complete("deploy");
    let volume = bench.storage.volume("db_node_0");
    let has_lines = |count: usize| wait_for("one more line", || (lines(&volume) == count).then_some(()));
    let first = service.running("node-0", "node-0-server");
    has_lines(1);

    assert_eq!(service.post("/v1/pod/node-0/restart").status, 200);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_eq!(second.agent, first.agent);
    has_lines(2);

    bench.call("DEACTIVATE_AGENT", &first.agent);
    assert_eq!(service.post("/v1/pod/node-0/replace").status, 200);
    let third = service.running_after("node-0", "node-0-server", &second);
    assert_ne!(third.agent, first.agent);
    has_lines(3);

    bench.call("REACTIVATE_AGENT", &first.agent);
    bench.call("DRAIN_AGENT", &third.agent);
    let fourth = service.running_after("node-0", "node-0-server", &third);
    assert_eq!(fourth.agent, first.agent, "no operator asked for it");
    has_lines(4);
}

#[test]
fn a_volume_that_is_mounted_on_a_dead_agent_is_mounted_elsewhere() {
    let Some(mut bench) = Bench::start(2) else { return };
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    let volume = bench.storage.volume("db_node_0");
    wait_for("the first line", || (lines(&volume) == 1).then_some(()));
    let index = bench.index(&first.agent);
    bench.cluster.agents[index].kill();
    bench.call("MARK_AGENT_GONE", &first.agent);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_ne!(second.agent, first.agent);
    wait_for("both lines", || (lines(&volume) == 2).then_some(()));
}

#[test]
fn a_launch_that_the_driver_fails_is_repeated_on_the_same_agent() {
    let Some(bench) = Bench::start(2) else { return };
    // The driver cannot create the volume.
    bench.storage.set_read_only(true);
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    let message = service.step("deploy", "node-0:[server]", "DELAYED");
    assert!(message.contains("TASK_FAILED"), "{message}");
    let first = service.try_task("node-0", "node-0-server").expect("it was launched");
    bench.storage.set_read_only(false);
    service.complete("deploy");
    let second = service.running("node-0", "node-0-server");
    assert_ne!(second.id, first.id);
    assert_eq!(second.agent, first.agent, "the reservations are on that agent");
    wait_for("the line", || (lines(&bench.storage.volume("db_node_0")) == 1).then_some(()));
}

#[test]
fn a_driver_that_hangs_only_delays_a_relaunch() {
    let Some(bench) = Bench::start(1) else { return };
    let service = bench.service(&spec(1, "", APPENDS), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    bench.storage.set_hanging(true);
    assert_eq!(service.post("/v1/pod/node-0/restart").status, 200);
    wait_for("the recovery", || (service.get("/v1/plans/recovery")["status"] != "COMPLETE").then_some(()));
    assert_eq!(service.get("/v1/plans/deploy")["status"], "COMPLETE", "the API answers");
    bench.storage.set_hanging(false);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_eq!(second.agent, first.agent);
    wait_for("both lines", || (lines(&bench.storage.volume("db_node_0")) == 2).then_some(()));
}

#[test]
fn failed_pods_are_replaced_with_their_data_after_the_timeout_and_one_after_the_other() {
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
    let volumes = ["db_node_0", "db_node_1"].map(|name| bench.storage.volume(name));
    wait_for("the first lines", || volumes.iter().all(|volume| lines(volume) == 1).then_some(()));
    for task in &before {
        let index = bench.index(&task.agent);
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
    assert!(times[1] - times[0] >= 5_000_000_000, "min-replace-delay: {times:?}");
    for ((pod, task), old) in pods.into_iter().zip(&before) {
        assert_ne!(service.running_after(pod, task, old).agent, old.agent);
    }
    wait_for("the second lines", || volumes.iter().all(|volume| lines(volume) == 2).then_some(()));
}

#[test]
fn read_only_storage_fails_its_task_and_the_relaunch_is_on_the_same_agent() {
    let Some(bench) = Bench::start(2) else { return };
    let beats = "while echo beat >> data/kept; do sleep 0.1; done; exit 1";
    let service = bench.service(&spec(1, "", beats), &[]);
    service.complete("deploy");
    let first = service.running("node-0", "node-0-server");
    let volume = bench.storage.volume("db_node_0");
    wait_for("a beat", || (lines(&volume) > 0).then_some(()));
    bench.storage.set_read_only(true);
    let message = service.step("recovery", "node-0:[server]", "DELAYED");
    assert!(message.contains("TASK_FAILED"), "{message}");
    bench.storage.set_read_only(false);
    let before = lines(&volume);
    let second = service.running_after("node-0", "node-0-server", &first);
    assert_eq!(second.agent, first.agent);
    wait_for("beats after those of the first task", || (lines(&volume) > before).then_some(()));
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
    let volume = bench.storage.volume("all");
    wait_for("a line of each pod", || (lines(&volume) == 2).then_some(()));
    let reads = "cat data/kept && ! touch data/x 2>/dev/null && exec sleep 100000";
    service.write(&apart(&spec(2, &format!("{shared}, volume-mode: RO"), reads)));
    assert_eq!(service.post("/v1/update").status, 200);
    service.complete("deploy");
    service.running("node-1", "node-1-server");
    assert!(!volume.join("x").exists());
}
