//! `tepui swarm` with real engines and the real docker CLI. Needs root.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::dockerd::IMAGE;
use tepui_e2e::swarm::{Node, Ran, Swarm};
use tepui_e2e::wait_for;

/// What every container here asks for.
const SMALL: [&str; 4] = ["-m", "20m", "--net", "none"];

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], arguments].concat()
}

/// The tasks of the swarm, as the master sees them.
fn tasks(swarm: &Swarm) -> Vec<Value> {
    let state = swarm.cluster.http().get("/state").json().expect("a document");
    let frameworks = state["frameworks"].as_array().cloned().unwrap_or_default();
    let tasks = |key: &str| {
        let lists = frameworks.iter().filter_map(|framework| framework[key].as_array().cloned());
        lists.flatten().collect::<Vec<Value>>()
    };
    [tasks("tasks"), tasks("completed_tasks")].concat()
}

fn wait_for_state(swarm: &Swarm, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} to reach {state}"), || {
        tasks(swarm).into_iter().find(|task| task["name"] == name && task["state"] == state)
    })
}

fn inspect(swarm: &Swarm, name: &str) -> Value {
    let text = swarm.done(&["inspect", name]);
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all[0].clone()
}

#[test]
fn short_command_runs_once_and_shows_its_output() {
    let Some(swarm) = Swarm::start(1, &[]) else { return };
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "hi"])), "hi");
    let Ran { code, stdout, stderr } =
        swarm.docker(&run(&["--name", "three", IMAGE, "sh", "-c", "echo out; echo err >&2; exit 3"]));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (3, "out\n", "err\n"));
    assert_eq!(swarm.done(&["logs", "three"]), "out", "once");
    assert_eq!(swarm.done(&["ps", "-aq"]).lines().count(), 2);
    let failed = wait_for_state(&swarm, "three", "TASK_FAILED");
    assert_eq!(failed["statuses"].as_array().expect("a list").last().expect("one")["state"], "TASK_FAILED");
    assert_eq!(swarm.done(&run(&["--rm", IMAGE, "echo", "gone"])), "gone");
    wait_for("its removal", || (swarm.done(&["ps", "-aq"]).lines().count() == 2).then_some(()));
}

#[test]
fn create_allocates_requests_and_limits() {
    // Agents without these isolators reject limits.
    let agent_flags = vec!["--isolation=cgroups/cpu,cgroups/mem".to_owned()];
    let Some(swarm) = Swarm::with(&[Node { agent_flags, ..Node::default() }], &[], &[]) else { return };
    let amounts = ["-m", "64m", "--memory-reservation", "32m", "-c", "1", "--cpus", "1.5", "--net", "none"];
    let create = [&["create", "--name", "web"], &amounts[..], &[IMAGE, "sleep", "1000"]].concat();
    let id = swarm.done(&create);
    let task = wait_for_state(&swarm, "web", "TASK_STARTING");
    assert_eq!(
        (&task["resources"]["cpus"], &task["resources"]["mem"]),
        (&json!(1.0), &json!(32.0)),
        "{task}"
    );
    assert_eq!((&task["limits"]["cpus"], &task["limits"]["mem"]), (&json!(1.5), &json!(64.0)), "{task}");
    let found = inspect(&swarm, "web");
    assert_eq!((&found["Id"], &found["State"]["Status"]), (&json!(id), &json!("created")));
    assert_eq!(found["HostConfig"]["CpuShares"], 1024, "the engine's unit");
    assert_eq!(found["Config"]["Labels"]["res-type"], "regular");
    swarm.done(&["start", "web"]);
    wait_for_state(&swarm, "web", "TASK_RUNNING");
    assert_eq!(inspect(&swarm, "web")["State"]["Status"], "running");
    swarm.done(&["rm", "-f", "web"]);
    wait_for("the task to terminate", || {
        tasks(&swarm).iter().all(|task| task["state"] != "TASK_RUNNING").then_some(())
    });
    swarm.wait_for_offers(1);
}

#[test]
fn container_started_after_exit_gets_a_new_task() {
    let Some(swarm) = Swarm::start(1, &[]) else { return };
    swarm.done(&run(&["-d", "--name", "web", IMAGE, "sh", "-c", "echo run; exec sleep 1000"]));
    let started = |swarm: &Swarm| inspect(swarm, "web")["State"]["StartedAt"].clone();
    let before = started(&swarm);
    let task = wait_for_state(&swarm, "web", "TASK_RUNNING");
    swarm.done(&["restart", "-t", "0", "web"]);
    assert_ne!(started(&swarm), before);
    assert_eq!(wait_for_state(&swarm, "web", "TASK_RUNNING")["id"], task["id"], "a restart is the same task");
    swarm.done(&["kill", "web"]);
    let failed = wait_for_state(&swarm, "web", "TASK_FAILED");
    assert_eq!(failed["id"], task["id"]);
    swarm.done(&["start", "web"]);
    let again = wait_for_state(&swarm, "web", "TASK_RUNNING");
    assert_ne!(again["id"], task["id"]);
    assert_eq!(again["resources"]["mem"], 20.0);
    assert_eq!(swarm.done(&["logs", "web"]), "run\nrun\nrun");
    assert_eq!(swarm.done(&["ps", "-q"]).lines().count(), 1);
}

#[test]
fn oom_kill_of_a_swarm_container_is_task_failed() {
    let Some(swarm) = Swarm::start(1, &[]) else { return };
    let hungry = "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done";
    let ran = swarm.docker(&run(&["--memory-swap", "20m", "--name", "hungry", IMAGE, "sh", "-c", hungry]));
    assert_eq!(ran.code, 137, "{ran:?}");
    let failed = wait_for_state(&swarm, "hungry", "TASK_FAILED");
    let status = failed["statuses"].as_array().and_then(|all| all.last()).expect("a status").clone();
    assert_eq!(status["state"], "TASK_FAILED");
    let all = swarm.cluster.http().post("/api/v1", &json!({"type": "GET_TASKS"})).json().expect("tasks");
    let completed = all["get_tasks"]["completed_tasks"].as_array().expect("a list");
    let task = completed.iter().find(|task| task["name"] == "hungry").expect("the task");
    let last = task["statuses"].as_array().and_then(|all| all.last()).expect("a status");
    assert_eq!(last["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{last}");
    assert_eq!(inspect(&swarm, "hungry")["State"]["OOMKilled"], true);
}

#[test]
fn failures_name_the_cause() {
    let Some(swarm) = Swarm::start(1, &["--cluster-opt=mesos.tasktimeout=1s"]) else { return };
    let text = |arguments: &[&str]| {
        let ran = swarm.docker(arguments);
        assert_eq!(ran.code, 125, "{ran:?}");
        ran.stderr
    };
    let none = text(&["run", "--net", "none", IMAGE, "true"]);
    assert!(none.contains("resources constraints (-c and/or -m) are required by mesos"), "{none}");
    let large = text(&["run", "-m", "100g", "--net", "none", IMAGE, "true"]);
    assert!(large.contains("container failed to start after 1s: no resources available"), "{large}");
    assert!(large.contains("node-0: "), "{large}");
    let image = text(&run(&["localhost:1/no-such-image", "true"]));
    assert!(image.contains("localhost:1") && image.contains("refused"), "{image}");
    let image =
        text(&[&["run", "--pull", "never"], &SMALL[..], &["localhost:1/no-such-image", "true"]].concat());
    assert!(image.contains("No such image: localhost:1/no-such-image: cannot pull the image"), "{image}");
    swarm.done(&run(&["-d", "--name", "web", IMAGE, "sleep", "1000"]));
    let taken = text(&run(&["--name", "web", IMAGE, "true"]));
    assert!(taken.contains("Conflict: The name web is already assigned"), "{taken}");
    assert_eq!(swarm.done(&["ps", "-aq"]).lines().count(), 1);
}

#[test]
fn interrupted_client_cancels_its_pending_create() {
    let Some(swarm) = Swarm::start(1, &["--cluster-opt=mesos.tasktimeout=10m"]) else { return };
    let large = ["run", "-m", "100g", "--net", "none", "--name", "large", IMAGE, "true"];
    let mut waiting = swarm.manager.command(&large).spawn().expect("docker starts");
    // Offers are asked for when a create finds no node.
    wait_for("the create to wait", || swarm.manager.log().contains("effect=revive").then_some(()));
    let taken = swarm.docker(&["create", "-m", "20m", "--net", "none", "--name", "large", IMAGE, "true"]);
    assert!(taken.stderr.contains("Conflict: The name large"), "{taken:?}");
    // Ctrl-C.
    let pid = waiting.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    assert!(!waiting.wait().expect("it can be waited for").success());
    wait_for("the name to be free", || {
        let created =
            swarm.docker(&["create", "-m", "20m", "--net", "none", "--name", "large", IMAGE, "true"]);
        (created.code == 0).then_some(())
    });
}

#[test]
fn invalid_mesos_user_is_named_in_the_error() {
    let manage = ["--cluster-opt=mesos.user=test_wrong_user", "--cluster-opt=mesos.tasktimeout=1m"];
    let Some(swarm) = Swarm::start(1, &manage) else { return };
    let ran = swarm.docker(&run(&[IMAGE, "true"]));
    assert_eq!(ran.code, 125, "{ran:?}");
    assert!(ran.stderr.contains("please verify your SWARM_MESOS_USER is correctly set"), "{ran:?}");
    assert_eq!(swarm.done(&["ps", "-aq"]), "");
}
