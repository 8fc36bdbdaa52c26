//! Services on several real agents: deployment, pod operations, updates, removal, and faults of the scheduler.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Etcd, Http, Masters, Service, binary, wait_for};
use tepui_facilities::{Facility, available};

const RESOURCES: &str = "--resources=cpus:4;mem:2048;disk:8192;ports:[31000-31999]";
const ROLE: &str = "hello-role";
const O_NONBLOCK: i32 = 0o4000;

/// A master and so many agents.
fn cluster(agents: usize) -> Cluster {
    let mut cluster = Cluster::without_agents(&[]);
    for index in 0..agents {
        let name = format!("--hostname=agent-{index}");
        let attributes = format!("--attributes=rack:{index}");
        cluster.add_agent(&[RESOURCES, &name, &attributes]);
    }
    cluster
}

/// Two pods with a persistent volume each; every launch appends to `started`.
fn spec(count: u32, started: &Path, memory: u32) -> String {
    format!(
        r#"
name: hello
pods:
  hello:
    count: {count}
    placement: '["hostname", "UNIQUE"]'
    allow-decommission: true
    tasks:
      server:
        goal: RUNNING
        cmd: "echo $TASK_NAME $MESOS_TASK_ID >> {started}; echo data >> hello-data/kept; exec sleep 100000"
        cpus: 0.1
        memory: {memory}
        env: {{MESOS_TASK_ID: unused}}
        volume: {{path: hello-data, type: ROOT, size: 16}}
        ports:
          http: {{port: 0, env-key: PORT_HTTP, advertise: true}}
"#,
        started = started.display()
    )
}

fn start(cluster: &Cluster, count: u32) -> Service {
    let started = cluster.folder().join("started");
    Service::start(&cluster.master.address, &cluster.folder().join("hello"), &spec(count, &started, 32))
}

fn cli(cluster: &Cluster, arguments: &[&str]) -> Output {
    let master = format!("--master={}", cluster.master.address);
    Command::new(binary()).arg("service").args(arguments).arg(master).output().expect("the command starts")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Reserved resources of a role on all agents, as the master lists them.
fn reserved(http: &Http, role: &str) -> Vec<Value> {
    let agents = http.get("/slaves").json().expect("a list of agents");
    let agents = agents["slaves"].as_array().expect("a list").clone();
    agents
        .into_iter()
        .map(|agent| agent["reserved_resources"][role].clone())
        .filter(|one| !one.is_null())
        .collect()
}

fn agent_hostname(http: &Http, id: &str) -> String {
    let agents = http.get("/slaves").json().expect("a list of agents");
    let found = agents["slaves"].as_array().expect("a list").iter().find(|agent| agent["id"] == id).cloned();
    found.expect("the agent is known")["hostname"].as_str().expect("a name").to_owned()
}

#[test]
fn a_service_is_deployed_inspected_and_uninstalled() {
    let cluster = cluster(3);
    let mut service = start(&cluster, 2);
    service.complete("deploy");
    let first = service.running("hello-0", "hello-0-server");
    let second = service.running("hello-1", "hello-1-server");
    assert_ne!(first.agent, second.agent, "hostname:UNIQUE");
    assert_eq!(first.info["container"]["type"], "MESOS");

    let tree = printed(&cli(&cluster, &["plan", "hello"]));
    assert!(tree.contains("└─ hello-1:[server] (COMPLETE)") && tree.contains("2/2 steps"), "{tree}");
    let pods = printed(&cli(&cluster, &["pod", "hello"]));
    assert!(pods.contains("hello-0-server (RUNNING)"), "{pods}");
    let list = printed(&cli(&cluster, &["list"]));
    assert!(list.contains("hello") && list.contains(&service.address), "{list}");
    let endpoint = printed(&cli(&cluster, &["endpoints", "hello", "http"]));
    assert!(endpoint.contains("address"), "{endpoint}");
    assert_eq!(service.get("/v1/health")["value"], 200);
    let target = printed(&cli(&cluster, &["config", "hello", "target"]));
    assert!(target.contains("hello-data"), "{target}");

    let metrics = service.get("/v1/metrics");
    assert_eq!(metrics["counters"]["operation.launch_group"]["count"], 2, "{metrics}");
    let prometheus = service.http().get("/v1/metrics/prometheus").text();
    assert!(prometheus.contains("# TYPE operation_reserve counter\noperation_reserve 2\n"), "{prometheus}");
    assert!(service.http().get("/v1/debug/threads").text().contains("ticks="));
    assert_eq!(
        service.get("/v1/debug/plans?plan=deploy")["serviceTopology"][0]["children"][1]["name"],
        "hello-1"
    );
    assert_eq!(service.get("/v1/debug/taskStatuses?plan=recovery").as_array().map(Vec::len), Some(1));
    assert_eq!(service.get("/v1/state/zone/tasks"), json!({}), "agents without a fault domain");
    assert_eq!(service.http().get("/v1/state/zone/tasks/hello-0-server").status, 404);

    let foreign =
        service.http().send("POST", "/v1/pod/hello-0/restart", &[("Sec-Fetch-Site", "cross-site")], b"");
    assert_eq!(foreign.status, 403, "{}", foreign.text());
    assert_eq!(service.http().get("/v1/pod/hello-7/status").status, 404);
    assert_eq!(service.post("/v1/plans/deploy/continue").status, 208);

    printed(&cli(&cluster, &["uninstall", "hello", "--yes"]));
    assert!(service.wait().success(), "{}", service.log());
    assert_eq!(reserved(&cluster.http(), ROLE), Vec::<Value>::new());
    assert!(service.output().contains("service hello is uninstalled"));
}

#[test]
fn pods_are_restarted_in_place_and_replaced_elsewhere() {
    let cluster = cluster(3);
    let service = start(&cluster, 1);
    service.complete("deploy");
    let first = service.running("hello-0", "hello-0-server");
    let restarted = printed(&cli(&cluster, &["pod", "hello", "restart", "hello-0"]));
    assert!(restarted.contains("hello-0-server"), "{restarted}");
    let second = service.running_after("hello-0", "hello-0-server", &first);
    assert_eq!(second.agent, first.agent, "a restart keeps the agent and its reservations");

    // The agent takes nothing more, so the replacement goes elsewhere.
    let deactivate =
        json!({"type": "DEACTIVATE_AGENT", "deactivate_agent": {"agent_id": {"value": first.agent}}});
    assert_eq!(cluster.http().post("/api/v1", &deactivate).status, 200);
    printed(&cli(&cluster, &["pod", "hello", "replace", "hello-0"]));
    let third = service.running_after("hello-0", "hello-0-server", &second);
    assert_ne!(third.agent, first.agent);
    let reactivate =
        json!({"type": "REACTIVATE_AGENT", "reactivate_agent": {"agent_id": {"value": first.agent}}});
    assert_eq!(cluster.http().post("/api/v1", &reactivate).status, 200);
    wait_for("the old reservations to be released", || {
        (reserved(&cluster.http(), ROLE).len() == 1).then_some(())
    });
}

#[test]
fn update_restarts_only_changed_pods_and_invalid_spec_is_rejected() {
    let cluster = cluster(2);
    let service = start(&cluster, 1);
    service.complete("deploy");
    let first = service.running("hello-0", "hello-0-server");
    let started = cluster.folder().join("started");

    // One more pod leaves the first alone.
    service.write(&spec(2, &started, 32));
    printed(&cli(&cluster, &["update", "hello", "--wait"]));
    assert_eq!(service.running("hello-0", "hello-0-server").id, first.id);
    service.running("hello-1", "hello-1-server");

    service.write("name: hello\npods: {}\n");
    let bad = cli(&cluster, &["update", "hello"]);
    assert!(!bad.status.success() && String::from_utf8_lossy(&bad.stderr).contains("pods"), "{bad:?}");
    assert_eq!(service.running("hello-0", "hello-0-server").id, first.id);

    // More memory rolls both.
    service.write(&spec(2, &started, 48));
    printed(&cli(&cluster, &["update", "hello", "--wait"]));
    service.running_after("hello-0", "hello-0-server", &first);

    // One less is decommissioned.
    service.write(&spec(1, &started, 48));
    printed(&cli(&cluster, &["update", "hello"]));
    wait_for("the second pod to be removed", || {
        (service.http().get("/v1/pod/hello-1/status").status == 404).then_some(())
    });
    wait_for("its reservations to be released", || {
        (reserved(&cluster.http(), ROLE).len() == 1).then_some(())
    });
}

/// A number of a sequence that looks random and is the same in every run.
fn moments(count: u64) -> impl Iterator<Item = Duration> {
    (1..=count).map(|step| Duration::from_millis((step * 2_654_435_761) % 700))
}

/// Kills of the schedulers in the tests below.
const KILLS: u64 = 20;

#[test]
fn a_scheduler_killed_at_any_moment_of_a_deployment_continues() {
    let cluster = cluster(3);
    let gate = cluster.folder().join("ready");
    let text = spec(KILLS as u32 + 1, &cluster.folder().join("started"), 32)
        .replace("    placement: '[\"hostname\", \"UNIQUE\"]'\n", "")
        .replace("cpus: 0.1\n", &format!("cpus: 0.1\n        readiness-check: {{cmd: 'test -e {}-$POD_INSTANCE_INDEX', interval: 1, timeout: 5}}\n", gate.display()));
    let mut service = Service::start(&cluster.master.address, &cluster.folder().join("hello"), &text);
    let ready = |pod: u64| std::fs::write(format!("{}-{pod}", gate.display()), "").expect("written");
    for (pod, moment) in (0..).zip(moments(KILLS)) {
        // The deployment proceeds by a pod, and is never complete at a kill.
        ready(pod);
        std::thread::sleep(moment); // The moment of the kill, not a wait for something.
        service.kill();
        service.restart();
    }
    ready(KILLS);
    service.complete("deploy");
    let tasks: Vec<_> = (0..=KILLS)
        .map(|index| service.running(&format!("hello-{index}"), &format!("hello-{index}-server")).id)
        .collect();
    assert_eq!(running_tasks(&cluster), tasks.len(), "no task runs twice: {tasks:?}");
    let started = std::fs::read_to_string(cluster.folder().join("started")).expect("the tasks have started");
    assert_eq!(started.lines().count(), tasks.len(), "no task was launched twice");
}

#[test]
fn a_scheduler_killed_at_any_moment_of_a_replacement_continues() {
    let cluster = cluster(2);
    let mut service = start(&cluster, 1);
    service.complete("deploy");
    let mut last = service.running("hello-0", "hello-0-server");
    for moment in moments(KILLS) {
        assert_eq!(service.post("/v1/pod/hello-0/replace").status, 200);
        std::thread::sleep(moment / 2);
        service.kill();
        service.restart();
        last = service.running_after("hello-0", "hello-0-server", &last);
    }
    service.complete("recovery");
    wait_for("one running task", || (running_tasks(&cluster) == 1).then_some(()));
    wait_for("old reservations to be released", || {
        (reserved(&cluster.http(), ROLE).len() == 1).then_some(())
    });
    let hostname = agent_hostname(&cluster.http(), &last.agent);
    let ids = service.get("/v1/debug/reservations")[&hostname].as_array().map_or(0, Vec::len);
    assert!(ids > 0, "the reservations are those of {hostname}");
}

#[test]
fn a_restart_of_a_pod_survives_a_kill_of_the_scheduler() {
    let cluster = cluster(1);
    let mut service = start(&cluster, 1);
    service.complete("deploy");
    let mut last = service.running("hello-0", "hello-0-server");
    let agent = last.agent.clone();
    for _ in 0..5 {
        assert_eq!(service.post("/v1/pod/hello-0/restart").status, 200);
        service.kill();
        service.restart();
        last = service.running_after("hello-0", "hello-0-server", &last);
    }
    assert_eq!(last.agent, agent);
    assert_eq!(running_tasks(&cluster), 1);
}

fn running_tasks(cluster: &Cluster) -> usize {
    let tasks = cluster.http().get("/tasks?limit=1000").json().expect("a list");
    tasks["tasks"].as_array().expect("a list").iter().filter(|task| task["state"] == "TASK_RUNNING").count()
}

#[test]
fn a_deployment_survives_the_failover_of_the_master() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let mut masters = Masters::start(2, 1);
    let first = masters.leader();
    let agents: Vec<_> =
        (0..2).map(|index| masters.agent(&format!("agent-{index}"), &masters.etcd.address())).collect();
    masters.wait_for_agents(first, 2);
    let spec = "name: hello\npods:\n  hello:\n    count: 4\n    tasks:\n      server: {goal: RUNNING, cmd: 'exec sleep 100000', cpus: 0.1, memory: 32, readiness-check: {cmd: 'sleep 0.3', interval: 1, timeout: 10}}\n";
    let service = Service::start(&masters.list(), &masters.folder().join("hello"), spec);
    service.running("hello-0", "hello-0-server");
    masters.masters[first].kill();
    service.complete("deploy");
    for index in 0..4 {
        service.running(&format!("hello-{index}"), &format!("hello-{index}-server"));
    }
    drop(agents);
}

#[test]
fn a_second_scheduler_of_the_same_name_terminates() {
    let cluster = cluster(1);
    let service = start(&cluster, 1);
    service.complete("deploy");
    let started = cluster.folder().join("started");
    let text = spec(1, &started, 32);
    for (folder, message) in
        [("other", "already run by another scheduler"), ("hello", "another scheduler uses the records")]
    {
        let folder = cluster.folder().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("svc.yml"), &text).expect("written");
        let output = Command::new(binary())
            .args(["service", "run"])
            .arg(folder.join("svc.yml"))
            .arg(&cluster.master.address)
            .arg(format!("--work_dir={}", folder.join("work").display()))
            .output()
            .expect("starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{error}");
    }
}

#[test]
fn of_two_schedulers_that_start_together_one_deploys_and_the_other_leaves_nothing() {
    let cluster = cluster(1);
    let started = cluster.folder().join("started");
    let text = spec(1, &started, 32);
    let mut services = ["first", "second"]
        .map(|name| Service::begin(&cluster.master.address, &cluster.folder().join(name), &text));
    let ended = wait_for("one of them to end", || services.iter_mut().position(Service::has_ended));
    let log = services[ended].log();
    assert!(log.contains("already run by another scheduler"), "{log}");
    wait_for("the task of the other", || (running_tasks(&cluster) == 1).then_some(()));
    let frameworks = cluster.http().get("/frameworks").json().expect("a list");
    assert_eq!(frameworks["frameworks"].as_array().expect("a list").len(), 1, "{frameworks}");
    assert!(!services[1 - ended].has_ended(), "it runs on");
}

#[test]
fn standby_scheduler_with_etcd_takes_over() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let cluster = cluster(1);
    let etcd = Etcd::start(1);
    let store = format!("--store={}", etcd.address());
    let started = cluster.folder().join("started");
    let text = spec(1, &started, 32);
    let begin = |name: &str| {
        let flags = [store.as_str(), "--leader_lease=2secs"];
        Service::start_with(&cluster.master.address, &cluster.folder().join(name), &text, &[], &flags)
    };
    let mut first = begin("first");
    first.complete("deploy");
    let task = first.running("hello-0", "hello-0-server");
    let second = begin("second");
    let answer = wait_for("a redirect to the active scheduler", || {
        let answer = second.http().get("/v1/plans");
        (answer.status == 307).then_some(answer)
    });
    assert!(answer.header("location").is_some_and(|to| to.contains(&first.address)), "{answer:?}");
    first.kill();
    second.complete("deploy");
    assert_eq!(second.running("hello-0", "hello-0-server").id, task.id, "the task is not launched again");
}

/// Writes to a pipe until it is full, without an effect on other writers.
fn fill(pipe: &std::io::PipeWriter) {
    let mut options = File::options();
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let mut other = options.write(true).custom_flags(O_NONBLOCK).open(path).expect("a pipe");
    // A write that is no longer than a page is whole or not done.
    for bytes in [4096, 1] {
        while other.write(&[b'.'; 4096][..bytes]).is_ok() {}
    }
}

#[test]
fn an_uninstallation_is_finished_by_the_next_scheduler() {
    let cluster = cluster(1);
    let folder = cluster.folder().join("hello");
    let mut service = start(&cluster, 1);
    service.complete("deploy");
    service.kill();

    // The output blocks the process before its exit.
    let (output, blocked) = std::io::pipe().expect("a pipe");
    let mut child = Command::new(binary())
        .args(["service", "run"])
        .arg(folder.join("svc.yml"))
        .arg(&cluster.master.address)
        .arg(format!("--work_dir={}", folder.join("work").display()))
        .stdout(blocked.try_clone().expect("a descriptor"))
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening on")).expect("the address");
    let http = Http::new(line.rsplit_once("://").expect("a URL").1);
    let deploy = || http.get("/v1/plans/deploy").json().unwrap_or_default();
    wait_for("the deployment to be followed", || (deploy()["status"] == "COMPLETE").then_some(()));
    fill(&blocked);
    assert_eq!(http.post("/v1/uninstall", &json!({})).status, 200);
    // Both an answer and the end of the API come after what was recorded before them.
    wait_for("the uninstallation to be recorded", || {
        let answer = http.post("/v1/pod/hello-0/restart", &json!({}));
        (answer.status == 0 || answer.text().contains("the service is uninstalled")).then_some(())
    });
    child.kill().expect("a child");
    assert_eq!(child.wait().expect("a child").signal(), Some(9), "it did not exit by itself");
    assert_eq!(frameworks(&cluster), 0);

    let (status, log) = service.restart_in_vain();
    assert!(status.success(), "{log}");
    let output = service.output();
    assert!(output.contains("service hello is uninstalled"), "{output}");
    assert_eq!((frameworks(&cluster), reserved(&cluster.http(), ROLE).len()), (0, 0));
    let other = service.restart_in_vain().0;
    assert!(other.success(), "it stays uninstalled");

    let flag = output.split_whitespace().find(|word| word.starts_with("--reinstall=")).expect("a hint");
    let started = cluster.folder().join("started");
    let text = spec(1, &started, 32);
    let mut again = Service::start_with(&cluster.master.address, &folder, &text, &[], &[flag]);
    again.complete("deploy");
    again.running("hello-0", "hello-0-server");
    printed(&cli(&cluster, &["uninstall", "hello", "--yes"]));
    assert!(again.wait().success(), "{}", again.log());
    assert!(again.restart_in_vain().0.success(), "the flag names the first uninstallation");
    assert!(again.output().contains("service hello is uninstalled") && frameworks(&cluster) == 0);
}

fn frameworks(cluster: &Cluster) -> usize {
    let frameworks = cluster.http().get("/frameworks").json().expect("a list");
    frameworks["frameworks"].as_array().expect("a list").len()
}

#[test]
fn a_standby_of_an_uninstalled_service_exits_and_deploys_nothing() {
    if !available(&[Facility::Program("etcd")]) {
        return;
    }
    let cluster = cluster(1);
    let etcd = Etcd::start(1);
    let store = format!("--store={}", etcd.address());
    let text = spec(1, &cluster.folder().join("started"), 32);
    let begin = |name: &str| {
        let flags = [store.as_str(), "--leader_lease=2secs"];
        Service::start_with(&cluster.master.address, &cluster.folder().join(name), &text, &[], &flags)
    };
    let mut first = begin("first");
    first.complete("deploy");
    let mut second = begin("second");
    printed(&cli(&cluster, &["uninstall", "hello", "--yes"]));
    for service in [&mut first, &mut second] {
        assert!(service.wait().success(), "{}", service.log());
        assert!(service.output().contains("service hello is uninstalled"), "{}", service.output());
    }
    assert_eq!((frameworks(&cluster), reserved(&cluster.http(), ROLE).len()), (0, 0));
    assert!(first.restart_in_vain().0.success());
    assert!(first.output().contains("service hello is uninstalled") && frameworks(&cluster) == 0);
}

#[test]
fn a_step_that_fits_no_agent_is_explained() {
    let cluster = cluster(2);
    let started = cluster.folder().join("started");
    let service =
        Service::start(&cluster.master.address, &cluster.folder().join("hello"), &spec(1, &started, 4096));
    let message = wait_for("the reason", || {
        let plan = service.plan("deploy");
        let message = plan["phases"][0]["steps"][0]["message"].as_str()?.to_owned();
        message.contains("fits no agent").then_some(message)
    });
    // The executor of the pod needs 32 MB besides.
    assert!(message.contains("2 agents: 2 lack mem 4128"), "{message}");
    assert_eq!(service.http().get("/v1/health").status, 204);
    let health = printed(&cli(&cluster, &["debug", "hello", "health"]));
    assert!(health.contains("\"value\":204") && health.contains("plan deploy is"), "{health}");
}

#[test]
fn a_change_that_is_not_allowed_keeps_the_old_configuration_and_shows_in_the_plan() {
    let cluster = cluster(2);
    let started = cluster.folder().join("started");
    let text =
        |count| spec(count, &started, 32).replace("allow-decommission: true", "allow-decommission: false");
    let service = Service::start(&cluster.master.address, &cluster.folder().join("hello"), &text(2));
    service.complete("deploy");
    let kept = service.running("hello-1", "hello-1-server");
    service.write(&text(1));
    let rejected = cli(&cluster, &["update", "hello"]);
    let error = String::from_utf8_lossy(&rejected.stderr).into_owned();
    assert!(!rejected.status.success() && error.contains("hello"), "{error}");
    wait_for("the plan to be in ERROR", || {
        (service.http().get("/v1/plans/deploy").status == 417).then_some(())
    });
    let tree = printed(&cli(&cluster, &["plan", "hello", "show", "deploy"]));
    assert!(tree.contains("Errors:"), "{tree}");
    assert_eq!(service.running("hello-1", "hello-1-server").id, kept.id);
    service.write(&text(2));
    printed(&cli(&cluster, &["update", "hello", "--wait"]));
    assert_eq!(service.running("hello-1", "hello-1-server").id, kept.id);
}

#[test]
fn an_api_with_credentials_requires_authentication() {
    let cluster = cluster(1);
    let started = cluster.folder().join("started");
    let file = cluster.folder().join("credentials");
    std::fs::write(&file, r#"{"credentials": [{"principal": "ops", "secret": "sesame"}]}"#).expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("ours");
    let flag = format!("--api_credentials={}", file.display());
    let folder = cluster.folder().join("hello");
    let service =
        Service::start_with(&cluster.master.address, &folder, &spec(1, &started, 32), &[], &[&flag]);
    assert_eq!(service.http().get("/v1/plans").status, 401);
    assert_eq!(service.post("/v1/pod/hello-0/restart").status, 401);
    let proof = [("Authorization", "Basic b3BzOnNlc2FtZQ==")];
    assert_eq!(service.http().send("GET", "/v1/plans", &proof, b"").status, 200);
    let template = "/v1/artifacts/template/00000000-0000-0000-0000-000000000000/hello/server/x";
    assert_eq!(service.http().get(template).status, 404, "templates are for tasks, which have no credential");
    let unnamed = cli(&cluster, &["plan", "hello", "--principal=ops", "--secret=sesame"]);
    assert!(String::from_utf8_lossy(&unnamed.stderr).contains("requires authentication"), "{unnamed:?}");
    let api = format!("--api=http://{}", service.address);
    printed(&cli(&cluster, &["plan", "hello", &api, "--principal=ops", "--secret=sesame"]));
}
