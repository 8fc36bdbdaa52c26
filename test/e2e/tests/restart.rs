//! SIGKILL of agents and masters: tasks keep running, nothing runs twice, no update is lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Framework, Gate, Scheduler, scalar, wait_for};

/// The maximum, because test machines are slow.
const PATIENT: &str = "--executor_reregistration_timeout=15secs";
const ROOMY: &str = "--resources=cpus:100;mem:64000;disk:64000;ports:[31000-32000]";

const TASKS: usize = 200;

#[test]
fn running_tasks_survive_agent_and_master_restart() {
    let mut cluster = Cluster::with(&[], &[ROOMY, PATIENT]);
    let diary = Diary::new(cluster.folder());
    let (mut first, mut second) =
        (Gate::new(cluster.folder(), "first"), Gate::new(cluster.folder(), "second"));
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = framework.offer();
    let tasks: Vec<Value> = (0..TASKS)
        .map(|index| {
            let gate = if index < TASKS / 2 { &first } else { &second };
            Scheduler::task(&offer, &name(index), &diary.command(&name(index), &gate.pass(), code(index)))
        })
        .collect();
    assert_eq!(framework.scheduler.launch(&offer, &tasks).status, 202);
    framework.until("all to run", |framework| framework.count("TASK_RUNNING") == TASKS);
    let executors = executor_pids(&framework);

    framework.expect_kill();
    cluster.agents[0].kill();
    first.open();
    wait_for("half to end without an agent", || (diary.ended() == TASKS / 2).then_some(()));
    cluster.agents[0].restart();
    framework.until("half to be told", |framework| framework.count("TASK_RUNNING") == TASKS / 2);
    framework.settled();

    framework.expect_kill();
    cluster.master.kill();
    second.open();
    wait_for("the rest to end without a master", || (diary.ended() == TASKS).then_some(()));
    cluster.master.restart();
    framework.until("the rest to be told", |framework| framework.count("TASK_RUNNING") == 0);
    framework.settled();

    for index in 0..TASKS {
        let end = if code(index) == 0 { "TASK_FINISHED" } else { "TASK_FAILED" };
        assert!(framework.is(&name(index), end), "{:?}", framework.diary[&name(index)]);
    }
    assert_eq!(executor_pids(&framework), executors, "the same executors ran to the end");
    assert!(diary.runs().values().all(|runs| *runs == 1), "{:?}", diary.runs());
    check_updates(&cluster, &mut framework);
    history_outlives_the_agent(&mut cluster);
}

/// Completed entries are the same after a restart.
fn history_outlives_the_agent(cluster: &mut Cluster) {
    let completed = |cluster: &Cluster| {
        let state = cluster.agent_http().get("/state").json()?;
        Some(state["completed_frameworks"].clone()).filter(Value::is_array)
    };
    let before = completed(cluster).expect("an agent that runs");
    let executors = before[0]["completed_executors"].as_array().map(Vec::len);
    assert_eq!(executors, Some(150), "as many as are shown");
    cluster.agents[0].kill();
    cluster.agents[0].restart();
    wait_for("the same history", || (completed(cluster)? == before).then_some(()));
}

/// Every acknowledgement eventually arrives, and no update was sent more often than necessary.
fn check_updates(cluster: &Cluster, framework: &mut Framework) {
    wait_for("the agent to have nothing left to tell", || {
        let state = cluster.agent_http().get("/state").json()?;
        framework.take_in_all();
        state["frameworks"].as_array()?.is_empty().then_some(())
    });
    assert_eq!(framework.repeated(), Vec::<String>::new());
    assert_eq!(framework.disordered(), Vec::<String>::new());
}

fn name(index: usize) -> String {
    format!("t{index:03}")
}

/// Every tenth task fails.
fn code(index: usize) -> u8 {
    if index % 10 == 3 { 7 } else { 0 }
}

/// The pid of each task's executor in the last update that has one.
fn executor_pids(framework: &Framework) -> BTreeMap<String, Value> {
    let pid = |status: &Value| status["container_status"].get("executor_pid").cloned();
    let tasks = framework.diary.iter();
    tasks
        .filter_map(|(task, diary)| {
            Some((task.clone(), diary.iter().rev().find_map(|delivery| pid(&delivery.status))?))
        })
        .collect()
}

/// Files in which tasks record their start and exit.
struct Diary {
    started: PathBuf,
    ended: PathBuf,
}

impl Diary {
    fn new(folder: &Path) -> Self {
        Self { started: folder.join("started"), ended: folder.join("ended") }
    }

    /// A command that records its start, runs, records its exit and exits.
    fn command(&self, name: &str, between: &str, code: u8) -> String {
        let (started, ended) = (self.started.display(), self.ended.display());
        format!("echo {name} >> {started}; {between}; echo {name} >> {ended}; exit {code}")
    }

    fn ended(&self) -> usize {
        std::fs::read_to_string(&self.ended).unwrap_or_default().lines().count()
    }

    /// How often each task was started.
    fn runs(&self) -> BTreeMap<String, usize> {
        let mut runs = BTreeMap::new();
        for line in std::fs::read_to_string(&self.started).unwrap_or_default().lines() {
            *runs.entry(line.to_string()).or_default() += 1;
        }
        runs
    }
}

/// Agent and master are killed while tasks are launched, start and terminate; lost tasks are reported as lost.
#[test]
fn crashes_at_any_moment_lose_no_task_and_run_none_twice() {
    const ROUNDS: usize = 6;
    const TASKS_PER_ROUND: usize = 8;
    let mut cluster = Cluster::with(&[], &[ROOMY, PATIENT]);
    let diary = Diary::new(cluster.folder());
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    let mut agent_id = Value::Null;
    for round in 0..ROUNDS {
        let offer = framework.offer();
        agent_id = offer["agent_id"].clone();
        let tasks: Vec<Value> = (0..TASKS_PER_ROUND)
            .map(|index| format!("r{round}-{index}"))
            .map(|name| Scheduler::task(&offer, &name, &diary.command(&name, ":", 0)))
            .collect();
        framework.scheduler.launch(&offer, &tasks);
        // Rounds differ in how far their tasks get before the kill.
        framework.until("some updates", |framework| updates_of_round(framework, round) >= round * 4);
        framework.expect_kill();
        let of_agent = round % 2 == 0;
        let program = if of_agent { &mut cluster.agents[0] } else { &mut cluster.master };
        program.kill();
        program.restart();
        if !of_agent {
            framework.reconnect();
        }
        cluster.wait_for_agents(1);
        framework.take_in_all();
    }
    let all: Vec<String> = (0..ROUNDS)
        .flat_map(|round| (0..TASKS_PER_ROUND).map(move |index| format!("r{round}-{index}")))
        .collect();
    reconcile_until_over(&mut framework, &all, &agent_id);

    let runs = diary.runs();
    for task in &all {
        let runs = runs.get(task).copied().unwrap_or_default();
        match framework.states()[task.as_str()] {
            "TASK_FINISHED" => assert_eq!(runs, 1, "{:?}", framework.diary[task]),
            "TASK_DROPPED" | "TASK_GONE" => assert_eq!(runs, 0, "{:?}", framework.diary[task]),
            state => panic!("{task} ended as {state}: {:?}", framework.diary[task]),
        }
    }
    assert!(framework.count("TASK_FINISHED") > 0);
    check_updates(&cluster, &mut framework);
}

fn updates_of_round(framework: &Framework, round: usize) -> usize {
    let prefix = format!("r{round}-");
    framework.diary.iter().filter(|(task, _)| task.starts_with(&prefix)).map(|(_, diary)| diary.len()).sum()
}

/// Reconciles, as a framework must after it sent launches to a master that crashed.
fn reconcile_until_over(framework: &mut Framework, tasks: &[String], agent_id: &Value) {
    const OVER: &[&str] = &["TASK_FINISHED", "TASK_DROPPED", "TASK_GONE"];
    wait_for("every task to be over", || {
        let states = framework.states();
        let open: Vec<Value> = tasks
            .iter()
            .filter(|task| !states.get(task.as_str()).is_some_and(|state| OVER.contains(state)))
            .map(|task| json!({"task_id": {"value": task}, "agent_id": agent_id}))
            .collect();
        if open.is_empty() {
            return Some(());
        }
        framework.scheduler.call(json!({"type": "RECONCILE", "reconcile": {"tasks": open}}));
        framework.take_in_all();
        None
    });
}

#[test]
fn custom_executors_and_groups_survive_agent_restart() {
    let mut cluster = Cluster::with(&[], &[ROOMY, PATIENT]);
    let (mut first, mut second) =
        (Gate::new(cluster.folder(), "first"), Gate::new(cluster.folder(), "second"));
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));

    let offer = framework.offer();
    let mut task = Scheduler::task(&offer, "custom", "");
    drop(task.as_object_mut().expect("an object").remove("command"));
    task["executor"] = letters_executor(&framework.scheduler.framework_id);
    framework.scheduler.launch(&offer, &[task]);
    framework.until("the custom executor", |framework| framework.is("custom", "TASK_RUNNING"));

    let offer = framework.offer();
    launch_group(&framework, &offer, "group", [("one", first.pass()), ("two", second.pass())]);
    framework.until("the group to run", |framework| framework.count("TASK_RUNNING") == 3);

    framework.expect_kill();
    cluster.agents[0].kill();
    first.open();
    cluster.agents[0].restart();
    framework.until("one of the group to end", |framework| framework.is("one", "TASK_FINISHED"));
    cluster.wait_for_agents(1);
    framework.settled();
    second.open();
    framework.until("the group to end", |framework| framework.is("two", "TASK_FINISHED"));

    let to_executor =
        json!({"agent_id": offer["agent_id"], "executor_id": {"value": "letters"}, "data": "aGk="});
    framework.scheduler.call(json!({"type": "MESSAGE", "message": to_executor}));
    let answer =
        framework.scheduler.event("an echo", |event| event["type"] == "MESSAGE").expect("the stream lives");
    assert_eq!(answer["message"]["data"], "aGk=");
    framework.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "custom"}}}));
    framework.until("the custom task to be killed", |framework| framework.is("custom", "TASK_KILLED"));
    let shutdown = json!({"agent_id": offer["agent_id"], "executor_id": {"value": "letters"}});
    framework.scheduler.call(json!({"type": "SHUTDOWN", "shutdown": shutdown}));
    check_updates(&cluster, &mut framework);
}

fn launch_group(framework: &Framework, offer: &Value, executor: &str, tasks: [(&str, String); 2]) {
    let tasks = tasks.map(|(id, command)| Scheduler::task(offer, id, &command));
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": executor},
        "framework_id": {"value": framework.scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let group = json!({"executor": executor, "task_group": {"tasks": tasks}});
    framework.scheduler.accept(offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
}

/// A task kills its agent as soon as its sibling runs, and finishes.
#[test]
fn group_task_that_finishes_while_its_agent_is_down_is_task_finished() {
    const ROUNDS: usize = 3;
    let mut cluster = Cluster::with(&[], &[ROOMY, PATIENT]);
    let mut gate = Gate::new(cluster.folder(), "siblings");
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    for round in 0..ROUNDS {
        let offer = framework.offer();
        let file = |name: &str| cluster.folder().join(format!("{name}-{round}")).display().to_string();
        let (started, ended, agent) = (file("started"), file("ended"), cluster.agents[0].id());
        let killer =
            format!("until [ -e {started} ]; do sleep 0.01; done; kill -KILL {agent}; touch {ended}");
        let sibling = format!("touch {started}; {}", gate.pass());
        let ids = (format!("killer-{round}"), format!("sibling-{round}"));
        framework.expect_kill();
        let tasks = [(ids.0.as_str(), killer), (ids.1.as_str(), sibling)];
        launch_group(&framework, &offer, &format!("group-{round}"), tasks);
        cluster.agents[0].wait();
        wait_for("the task to finish without an agent", || Path::new(&ended).exists().then_some(()));
        cluster.agents[0].restart();
        framework.until("its end", |framework| framework.is(&ids.0, "TASK_FINISHED"));
        framework.until("its sibling", |framework| framework.is(&ids.1, "TASK_RUNNING"));
        cluster.wait_for_agents(1);
        framework.settled();
    }
    gate.open();
    framework.until("all to finish", |framework| framework.count("TASK_FINISHED") == 2 * ROUNDS);
}

/// The answer to a launch is lost with the agent: a repeated launch is accepted, and the container's status is available.
#[test]
fn nested_container_that_exits_while_its_agent_is_down_is_not_relaunched() {
    let mut cluster = Cluster::with(&[], &[ROOMY, PATIENT]);
    let diary = Diary::new(cluster.folder());
    let mut gate = Gate::new(cluster.folder(), "nested");
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = framework.offer();
    framework.scheduler.launch(&offer, &[Scheduler::task(&offer, "parent", "sleep 1000")]);
    framework.until("the parent", |framework| framework.is("parent", "TASK_RUNNING"));
    let status = framework.diary["parent"].last().map(|delivery| delivery.status.clone());
    let parent = status.expect("it runs")["container_status"]["container_id"].clone();
    let id = json!({"value": "nested", "parent": parent});
    let command = json!({"value": diary.command("nested", &gate.pass(), 3)});
    let launch = json!({"type": "LAUNCH_NESTED_CONTAINER",
        "launch_nested_container": {"container_id": id, "command": command}});
    assert_eq!(cluster.agent_http().post("/api/v1", &launch).status, 200);

    framework.expect_kill();
    cluster.agents[0].kill();
    gate.open();
    wait_for("the container to end without an agent", || (diary.ended() == 1).then_some(()));
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    assert_eq!(cluster.agent_http().post("/api/v1", &launch).status, 202);
    let wait = json!({"type": "WAIT_NESTED_CONTAINER", "wait_nested_container": {"container_id": id}});
    let answer = cluster.agent_http().post("/api/v1", &wait).json().expect("JSON");
    assert_eq!(answer["wait_nested_container"]["exit_status"], 3 << 8);
    assert_eq!(diary.runs()["nested"], 1);
    framework.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "parent"}}}));
    framework.until("the parent's end", |framework| framework.is("parent", "TASK_KILLED"));
}

fn letters_executor(framework_id: &str) -> Value {
    json!({
        "type": "CUSTOM", "executor_id": {"value": "letters"}, "framework_id": {"value": framework_id},
        "command": {"value": format!("exec {}", env!("CARGO_BIN_EXE_letters_executor"))},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]
    })
}

#[test]
fn recover_cleanup_kills_all_executors() {
    let mut cluster = Cluster::with(&[], &[ROOMY, "--executor_shutdown_grace_period=1secs"]);
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = framework.offer();
    let pid = cluster.folder().join("pid");
    let command = format!("echo $$ > {}; sleep 1000", pid.display());
    framework.scheduler.launch(&offer, &[Scheduler::task(&offer, "t", &command)]);
    framework.until("the task to run", |framework| framework.is("t", "TASK_RUNNING"));
    let process =
        wait_for("the task's process", || std::fs::read_to_string(&pid).ok()?.trim().parse::<u32>().ok());

    cluster.agents[0].kill();
    assert!(Path::new(&format!("/proc/{process}")).exists(), "the task outlives its agent");
    cluster.agents[0].add_flag("--recover=cleanup");
    cluster.agents[0].restart();
    assert!(cluster.agents[0].wait().success(), "cleaning up is no failure");
    wait_for("the task's process to end", || {
        (!Path::new(&format!("/proc/{process}")).exists()).then_some(())
    });

    cluster.agents[0].remove_flag("--recover=cleanup");
    cluster.agents[0].restart();
    framework.until("the task to be told lost", |framework| framework.is("t", "TASK_LOST"));
    cluster.wait_for_agents(1);
    let again = framework.offer();
    assert_ne!(again["agent_id"], offer["agent_id"], "it is a new agent");
}

/// An agent that stays away, once dead and once merely silent.
#[test]
fn disconnected_agent_is_unreachable_until_it_reregisters() {
    let mut cluster =
        Cluster::with(&["--agent_ping_timeout=1secs", "--max_agent_ping_timeouts=2"], &[ROOMY, PATIENT]);
    let mut gate = Gate::new(cluster.folder(), "gate");
    let mut framework = Framework::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = framework.offer();
    framework.scheduler.launch(&offer, &[Scheduler::task(&offer, "t", &gate.pass())]);
    framework.until("the task to run", |framework| framework.is("t", "TASK_RUNNING"));

    framework.expect_kill();
    cluster.agents[0].kill();
    framework.until("the dead agent to be missed", |framework| framework.is("t", "TASK_UNREACHABLE"));
    assert_eq!(cluster.http().get("/slaves").json().expect("JSON")["slaves"], json!([]));
    cluster.agents[0].restart();
    framework.until("it to be back", |framework| framework.is("t", "TASK_RUNNING"));

    framework.expect_kill();
    cluster.agents[0].signal("STOP");
    framework.until("the silent agent to be missed", |framework| framework.is("t", "TASK_UNREACHABLE"));
    let missed = framework.diary["t"].last().expect("an update").status.clone();
    assert_eq!(missed["reason"], "REASON_AGENT_REMOVED");
    assert!(missed["unreachable_time"]["nanoseconds"].is_u64(), "{missed}");
    cluster.agents[0].signal("CONT");
    framework.until("it to be back again", |framework| framework.is("t", "TASK_RUNNING"));
    framework.settled();

    gate.open();
    framework.until("the task to end", |framework| framework.is("t", "TASK_FINISHED"));
    check_updates(&cluster, &mut framework);
}

#[test]
fn master_exits_above_the_agent_removal_limit() {
    let mut cluster = Cluster::start();
    // An agent that is killed before it has recorded its ID registers as another one.
    wait_for("the agent to be registered", || {
        cluster.agents[0].log().contains("registered with master").then_some(())
    });
    cluster.master.kill();
    cluster.agents[0].kill();
    cluster.master.add_flag("--agent_reregister_timeout=1secs");
    cluster.master.add_flag("--recovery_agent_removal_limit=99%");
    let (status, printed) = cluster.master.restart_in_vain();
    assert!(!status.success());
    assert!(printed.contains("1 of 1 known agents (100.0%) did not come back"), "{printed}");
    // No agent was removed.
    cluster.master.remove_flag("--recovery_agent_removal_limit=99%");
    cluster.master.remove_flag("--agent_reregister_timeout=1secs");
    cluster.master.restart();
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    assert_eq!(
        cluster.http().get("/slaves").json().expect("JSON")["recovered_slaves"],
        serde_json::json!([])
    );
}
