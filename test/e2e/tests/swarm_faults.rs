//! What `tepui swarm` makes of faults: of itself, of executors, agents, engines and masters. Needs root.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tepui_e2e::dockerd::{Dockerd, IMAGE};
use tepui_e2e::swarm::{Node, Ran, Swarm, exit_code};
use tepui_e2e::{Scheduler, wait_for};

const SMALL: [&str; 4] = ["-m", "20m", "--net", "none"];

fn run<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], &SMALL[..], arguments].concat()
}

/// A container that ends soon after it was asked to.
fn start(swarm: &Swarm, name: &str) -> String {
    let script = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
    swarm.done(&run(&["-d", "--name", name, IMAGE, "sh", "-c", script]))
}

fn inspect(swarm: &Swarm, name: &str) -> Option<Value> {
    let ran = swarm.docker(&["inspect", name]);
    let all: Value = serde_json::from_str(&ran.stdout).ok()?;
    Some(all[0].clone()).filter(|it| it.is_object())
}

/// Live tasks of the swarm: name and state.
fn tasks(swarm: &Swarm) -> Vec<(String, String, Value)> {
    let state = swarm.cluster.http().get("/state").json().unwrap_or_default();
    let frameworks = state["frameworks"].as_array().cloned().unwrap_or_default();
    let frameworks = frameworks.iter().filter(|framework| framework["name"] == "swarm");
    let all = frameworks.filter_map(|framework| framework["tasks"].as_array().cloned()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.map(|task| (text(&task["name"]), text(&task["state"]), task)).collect()
}

fn wait_for_state(swarm: &Swarm, name: &str, state: &str) -> Value {
    wait_for(&format!("{name} to reach {state}"), || {
        tasks(swarm).into_iter().find(|it| it.0 == name && it.1 == state).map(|it| it.2)
    })
}

fn names(swarm: &Swarm, arguments: &[&str]) -> Vec<String> {
    let ran = swarm.docker(&[&["ps", "--format", "{{.Names}}"], arguments].concat());
    let mut names: Vec<String> =
        ran.stdout.lines().filter_map(|line| line.rsplit('/').next().map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn killed_manager_loses_no_container() {
    let Some(mut swarm) = Swarm::start(2, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let running: Vec<String> = (0..3).map(|index| start(&swarm, &format!("up{index}"))).collect();
    let mut attached = swarm.manager.command(&run(&[
        "--name",
        "attached",
        IMAGE,
        "sh",
        "-c",
        "echo begun; exec sleep 1000",
    ]));
    let mut attached = attached.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut output = BufReader::new(attached.stdout.take().expect("stdout is piped")).lines();
    assert_eq!(output.next().expect("a line").expect("output"), "begun");
    let creates: Vec<_> = (0..20)
        .map(|index| {
            let name = format!("new{index}");
            let create = [&["create", "--name", &name], &SMALL[..], &[IMAGE, "true"]].concat();
            swarm.manager.command(&create).spawn().expect("docker starts")
        })
        .collect();
    wait_for("some creates to be under way", || (tasks(&swarm).len() > 6).then_some(()));
    swarm.manager.kill();
    for mut create in creates {
        exit_code(&mut create); // With the id or with an error: its manager is gone.
    }
    assert!(output.next().is_none() && exit_code(&mut attached) != Some(0));
    let at_engine = |engine: &Dockerd, arguments: &[&str]| {
        let host = format!("unix://{}", engine.socket().display());
        Ran::of(tepui_e2e::swarm::docker_command(&host, arguments).output().expect("docker starts"))
    };
    // One exits while there is no manager.
    let killed = swarm.engines.iter().filter(|engine| at_engine(engine, &["kill", "up0"]).code == 0).count();
    assert_eq!(killed, 1);
    swarm.manager.restart();
    wait_for("the engines", || (swarm.docker(&["info"]).stdout.contains("Status: Healthy")).then_some(()));
    for (index, id) in running.iter().enumerate() {
        let found = wait_for("a container", || inspect(&swarm, &format!("up{index}")));
        let state = if index == 0 { "exited" } else { "running" };
        assert_eq!((&found["Id"], &found["State"]["Status"]), (&json!(id), &json!(state)));
    }
    assert_eq!(inspect(&swarm, "up0").expect("it is there")["State"]["ExitCode"], 137);
    assert_eq!(inspect(&swarm, "attached").expect("it is there")["State"]["Status"], "running");
    swarm.done(&["rm", "up0"]);
    // What the manager shows is what the engines have, and each has its task; none is there twice.
    wait_for("all creates to be settled", || {
        let shown = names(&swarm, &["-a"]);
        let mut engines: Vec<String> = Vec::new();
        for engine in &swarm.engines {
            let listed = at_engine(engine, &["ps", "-a", "--format", "{{.Names}}"]).stdout;
            engines.extend(listed.lines().map(str::to_owned));
        }
        engines.sort();
        let mut held: Vec<String> = tasks(&swarm).into_iter().map(|it| it.0).collect();
        held.sort();
        let is_unique = shown.windows(2).all(|pair| pair[0] != pair[1]);
        (is_unique && shown == engines && shown == held && shown.len() >= 3).then_some(())
    });
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "again"])), "again");
    for name in names(&swarm, &["-a"]) {
        swarm.done(&["rm", "-f", &name]);
    }
    wait_for("all tasks to terminate", || tasks(&swarm).is_empty().then_some(()));
}

#[test]
fn container_survives_agent_restart_and_executor_kill() {
    let Some(mut swarm) = Swarm::start(1, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let id = start(&swarm, "web");
    let started = inspect(&swarm, "web").expect("it is there")["State"]["StartedAt"].clone();
    let task = wait_for_state(&swarm, "web", "TASK_RUNNING")["id"].clone();
    swarm.cluster.agents[0].kill();
    swarm.cluster.agents[0].restart();
    swarm.cluster.wait_for_agents(1);
    swarm.wait_for_offers(1);
    assert_eq!(wait_for_state(&swarm, "web", "TASK_RUNNING")["id"], task, "the same task");
    let executors = Command::new("pgrep").args(["-f", "executor container"]).output().expect("pgrep runs");
    let work_dir = swarm.cluster.agents[0].work_dir.clone();
    let own = String::from_utf8_lossy(&executors.stdout).lines().find_map(|pid| {
        let inside = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?.starts_with(&work_dir);
        inside.then(|| pid.to_owned())
    });
    let own = own.expect("the executor runs");
    assert!(Command::new("kill").args(["-KILL", &own]).status().expect("kill runs").success());
    let adopted = wait_for("another task to adopt the container", || {
        tasks(&swarm).into_iter().find(|it| it.1 == "TASK_RUNNING" && it.2["id"] != task)
    });
    assert_eq!(adopted.2["resources"]["mem"], 20.0);
    let found = inspect(&swarm, "web").expect("it is there");
    assert_eq!((&found["Id"], &found["State"]["StartedAt"]), (&json!(id), &started), "it went on");
    swarm.done(&["stop", "-t", "5", "web"]);
    wait_for("the task to terminate", || tasks(&swarm).is_empty().then_some(()));
}

#[test]
fn restarted_engine_is_reconciled() {
    let Some(mut swarm) = Swarm::start(2, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    swarm.done(&run(&["-d", "--name", "web", "-e", "constraint:node==node-0", IMAGE, "sleep", "1000"]));
    wait_for_state(&swarm, "web", "TASK_RUNNING");
    swarm.engines[0].stop();
    wait_for("the engine to be missed", || {
        swarm.docker(&["info"]).stdout.contains("Status: Unhealthy").then_some(())
    });
    let logs = swarm.docker(&["logs", "web"]);
    assert!(logs.code == 1 && logs.stderr.contains("running on unhealthy node node-0"), "{logs:?}");
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "elsewhere"])), "elsewhere");
    swarm.engines[0].restart();
    wait_for("the end of the container to be known", || {
        let is_over = tasks(&swarm).iter().all(|it| it.0 != "web");
        let found = inspect(&swarm, "web")?;
        (is_over && found["State"]["Status"] == "exited").then_some(())
    });
    swarm.done(&["start", "web"]);
    wait_for_state(&swarm, "web", "TASK_RUNNING");
}

/// `dockerd --live-restore` leaves its containers running.
#[test]
fn container_keeps_its_task_while_its_engine_restarts() {
    let node = Node { engine_arguments: vec!["--live-restore".to_owned()], ..Node::default() };
    let Some(mut swarm) = Swarm::with(&[node], &[], &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let id = start(&swarm, "web");
    let task = wait_for_state(&swarm, "web", "TASK_RUNNING")["id"].clone();
    let started = inspect(&swarm, "web").expect("it is there")["State"]["StartedAt"].clone();
    swarm.engines[0].stop();
    wait_for("the engine to be missed", || {
        swarm.docker(&["info"]).stdout.contains("Status: Unhealthy").then_some(())
    });
    swarm.engines[0].restart();
    swarm.wait_for_offers(1);
    let found = inspect(&swarm, "web").expect("it is there");
    assert_eq!((&found["Id"], &found["State"]["StartedAt"]), (&json!(id), &started), "it went on");
    assert_eq!(wait_for_state(&swarm, "web", "TASK_RUNNING")["id"], task, "the same task");
    swarm.done(&["kill", "web"]);
    let failed = wait_for("the end of the task", || {
        let state = swarm.cluster.http().get("/state").json()?;
        let all = state["frameworks"].as_array()?.iter().flat_map(|it| it["completed_tasks"].as_array());
        all.flatten().find(|it| it["id"] == task).cloned()
    });
    assert_eq!(failed["state"], "TASK_FAILED");
}

/// The client of a running container gets an error, and the container has its true exit code afterwards.
#[test]
fn engine_death_during_run_reaches_the_client() {
    let Some(mut swarm) = Swarm::start(1, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let mut command =
        swarm.manager.command(&run(&["--name", "web", IMAGE, "sh", "-c", "echo begun; sleep 1000"]));
    let mut client = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("docker starts");
    let mut line = String::new();
    let mut output = BufReader::new(client.stdout.take().expect("stdout is piped"));
    output.read_line(&mut line).expect("output");
    assert_eq!(line, "begun\n");
    wait_for_state(&swarm, "web", "TASK_RUNNING");
    swarm.engines[0].kill();
    let ran = Ran::of(client.wait_with_output().expect("docker ends"));
    assert!(ran.code == 125 && !ran.stderr.is_empty(), "{ran:?}");
    let shown = wait_for("the engine to be missed", || {
        let shown = swarm.done(&["ps", "-a", "--format", "{{.Status}}"]);
        (shown == "Host Down").then_some(shown)
    });
    assert_eq!(names(&swarm, &[]), Vec::<String>::new(), "{shown}");
    swarm.engines[0].restart();
    wait_for("the end of the container", || {
        let is_over = tasks(&swarm).is_empty();
        (is_over && inspect(&swarm, "web")?["State"]["Status"] == "exited").then_some(())
    });
    swarm.done(&["start", "web"]);
    wait_for_state(&swarm, "web", "TASK_RUNNING");
}

#[test]
fn master_failover_loses_no_container() {
    let Some(mut swarm) = Swarm::start(2, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let mut ids: Vec<String> = (0..20).map(|index| start(&swarm, &format!("c{index}"))).collect();
    swarm.cluster.master.kill();
    swarm.cluster.master.restart();
    swarm.cluster.wait_for_agents(2);
    swarm.wait_for_offers(2);
    let mut shown: Vec<String> = swarm.done(&["ps", "-q", "--no-trunc"]).lines().map(str::to_owned).collect();
    shown.sort();
    ids.sort();
    assert_eq!(shown, ids);
    wait_for("all tasks to be known again", || {
        (tasks(&swarm).iter().filter(|it| it.1 == "TASK_RUNNING").count() == 20).then_some(())
    });
    assert_eq!(swarm.done(&run(&[IMAGE, "echo", "on"])), "on");
}

#[test]
fn container_moves_when_its_node_fails() {
    let flags = ["--agent_ping_timeout=1secs", "--max_agent_ping_timeouts=2"];
    let nodes = vec![Node::default(); 2];
    let swarm = Swarm::with(&nodes, &flags, &["--cluster-opt=mesos.tasktimeout=1m"]);
    let Some(mut swarm) = swarm else { return };
    let publish = ["-d", "-m", "20m", "-p", "31080:80"];
    let moving = ["-e", "reschedule:on-node-failure", "-e", "constraint:node==~node-0"];
    let on_node = ["-d", "-e", "constraint:node==node-0"];
    let command = ["--name", "moving", IMAGE, "sleep", "1000"];
    swarm.done(&[&["run"], &publish[..], &moving[..], &command[..]].concat());
    swarm.done(&[&["create", "--name", "idle"], &SMALL[..], &moving[..], &[IMAGE, "sleep", "1000"]].concat());
    let off = [&on_node[..], &["-e", "reschedule:off", "--name", "off", IMAGE, "sleep", "1000"]].concat();
    swarm.done(&run(&off));
    for name in ["staying", "given-up"] {
        swarm.done(&run(&[&on_node[..], &["--name", name, IMAGE, "sleep", "1000"]].concat()));
    }
    let node = |swarm: &Swarm| Some(inspect(swarm, "moving")?["Node"]["Name"].clone());
    assert_eq!(node(&swarm), Some(json!("node-0")));
    let before = inspect(&swarm, "moving").expect("it runs")["Id"].clone();
    swarm.cluster.agents[0].kill();
    swarm.engines[0].stop();
    wait_for("the container to move", || {
        node(&swarm).filter(|node| *node == "node-1")?;
        (inspect(&swarm, "moving")?["State"]["Status"] == "running").then_some(())
    });
    let moved = inspect(&swarm, "moving").expect("it runs");
    assert_ne!(moved["Id"], before);
    assert_eq!(moved["HostConfig"]["PortBindings"]["80/tcp"][0]["HostPort"], "31080");
    // One that was created only is there as well, and does not run.
    wait_for("the other to move", || {
        let idle = inspect(&swarm, "idle").filter(|idle| idle["Node"]["Name"] == "node-1")?;
        assert_eq!(idle["State"]["Status"], "created");
        Some(())
    });
    assert_eq!(names(&swarm, &["-a"]), ["given-up", "idle", "moving", "off", "staying"]);
    assert!(["off", "staying"].iter().all(|name| swarm.engines[1].inspect(name).is_none()));
    // One that stays with its node can be given up, and its name is free.
    for name in ["given-up", "staying"] {
        swarm.fails(&format!("rm {name}"), &["running on unhealthy node node-0"]);
    }
    swarm.ok("rm -f given-up");
    swarm.done(&run(&["-d", "--name", "given-up", IMAGE, "sleep", "1000"]));
    swarm.engines[0].restart();
    swarm.cluster.agents[0].restart();
    // What is left of them on the old node is removed: each is there once.
    wait_for("the old node to be cleaned", || {
        let gone = ["moving", "idle", "given-up"].iter().all(|name| swarm.engines[0].inspect(name).is_none());
        (gone && names(&swarm, &["-a"]) == ["given-up", "idle", "moving", "off", "staying"]).then_some(())
    });
    assert!(swarm.engines[1].is_running("given-up"));
}

/// The operator gives the agent up while its engine runs on: the container is stopped, and the reason is shown.
#[test]
fn container_of_a_gone_agent_shows_that_it_is_lost() {
    let Some(mut swarm) = Swarm::start(1, &["--cluster-opt=mesos.tasktimeout=1m"]) else { return };
    let id = start(&swarm, "web");
    wait_for_state(&swarm, "web", "TASK_RUNNING");
    let mut events = swarm.manager.command(&["events", "--since", "1h", "--filter", "container=web"]);
    let mut events = events.stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut lines = BufReader::new(events.stdout.take().expect("stdout is piped")).lines();
    assert!(lines.next().is_some(), "the stream has begun");
    let agents = swarm.cluster.http().get("/slaves").json().expect("agents");
    swarm.cluster.agents[0].kill();
    let gone = json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": agents["slaves"][0]["id"]}}});
    let answer = swarm.cluster.http().post("/api/v1", &gone);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let lost = lines.map_while(Result::ok).find(|line| line.contains("container lost"));
    assert!(
        lost.as_deref().is_some_and(|line| line.contains(&id) && line.contains("reason=lost")),
        "{lost:?}"
    );
    events.kill().expect("docker can be killed");
    events.wait().expect("docker ends");
    let state = inspect(&swarm, "web").expect("its engine has it")["State"].clone();
    assert!(
        state["Running"] == false && state["Error"].as_str().is_some_and(|it| it.starts_with("lost")),
        "{state}"
    );
    let shown = swarm.done(&["ps", "-a", "--format", "{{.Status}}"]);
    assert!(shown.starts_with("Exited (137)") && shown.contains("(lost"), "{shown}");
    swarm.done(&["rm", "web"]);
    assert_eq!(names(&swarm, &["-a"]), Vec::<String>::new());
}

/// So much of an offered resource, as it was offered.
fn reserved(offer: &Value, name: &str, amount: f64) -> Value {
    let mut all = offer["resources"].as_array().into_iter().flatten();
    let found = all.find(|one| one["name"] == name && one["reservations"][0]["role"] == "ads");
    let mut found = found.expect("a reserved resource").clone();
    found["scalar"]["value"] = json!(amount);
    found
}

/// A swarm with one container on resources that the role `ads` lends.
fn with_borrower() -> Option<Swarm> {
    let resources = Some("cpus(ads):2;cpus:1;mem(ads):256;mem:256;disk:64;ports:[31000-31001]".to_owned());
    let nodes = [Node { resources, ..Node::default() }];
    let manage = ["--cluster-opt=mesos.enablerevocable=true", "--cluster-opt=mesos.tasktimeout=1m"];
    let swarm = Swarm::with(&nodes, &[], &manage)?;
    let lent = ["-d", "-c", "2", "--net", "none", "-e", "constraint:res-type==revocable", "--name", "lent"];
    let script = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
    swarm.done(&[&["run"], &lent[..], &[IMAGE, "sh", "-c", script]].concat());
    Some(swarm)
}

/// The owner uses what it lent; returns when its task has run.
fn reclaim(swarm: &Swarm) {
    let mut owner = Scheduler::subscribe(&swarm.cluster.http(), Scheduler::info("ads"));
    let offer = owner.fresh_offer();
    let mut task = Scheduler::task(&offer, "owned", "true");
    task["resources"] = json!([reserved(&offer, "cpus", 2.0), reserved(&offer, "mem", 32.0)]);
    owner.launch(&offer, &[task]);
    owner.reach("owned", "TASK_FINISHED");
}

fn wait_for_reason(swarm: &Swarm) {
    let found = wait_for("the container to end", || {
        inspect(swarm, "lent").filter(|it| it["State"]["Status"] == "exited" && it["State"]["Error"] != "")
    });
    let error = found["State"]["Error"].as_str().unwrap_or_default();
    assert!(error.to_lowercase().contains("preempt"), "{found}");
    assert_eq!(names(swarm, &["-a"]), ["lent"], "it is not run again");
}

#[test]
fn preempted_container_shows_the_reason() {
    let Some(swarm) = with_borrower() else { return };
    assert_eq!(swarm.done(&["ps", "-q", "--filter", "label=res-type=revocable"]).lines().count(), 1);
    reclaim(&swarm);
    wait_for_reason(&swarm);
}

#[test]
fn lent_resources_are_reclaimed_without_the_manager() {
    let Some(mut swarm) = with_borrower() else { return };
    swarm.manager.kill();
    reclaim(&swarm);
    assert!(!swarm.engines[0].is_running("lent"), "the owner's task ran after the container");
    swarm.manager.restart();
    wait_for_reason(&swarm);
}
