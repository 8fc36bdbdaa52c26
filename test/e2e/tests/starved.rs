//! Stopped executors: the agent kills their tasks and reports it.

use serde_json::{Value, json};
use tepui_e2e::{Limited, Sizes, wait_for};

const PLAIN: Sizes = Sizes::of((0.1, 32.0), None, None);
const MARGIN: &str = "--executor_kill_margin=1secs";
const KILLED: &str = "Killed by the agent: the executor did not kill the task in time";

/// A cluster whose agent is soon out of patience.
fn start() -> Option<Limited> {
    Limited::start(&[MARGIN])
}

fn kill(bench: &Limited, task: &str) {
    let policy = json!({"grace_period": {"nanoseconds": 500_000_000}});
    let kill = json!({"task_id": {"value": task}, "kill_policy": policy});
    bench.scheduler.call(json!({"type": "KILL", "kill": kill}));
}

fn has_message(status: &Value, reason: &str) -> bool {
    status["message"].as_str().is_some_and(|printed| printed.starts_with(reason))
}

/// The only process in the executor's own cgroup: its tasks are in nested ones.
struct Stopped(u32);

impl Stopped {
    fn stop(bench: &Limited, executor: &Value) -> Self {
        let ids = bench.processes("freezer", executor);
        assert_eq!(ids.len(), 1, "the executor alone: {ids:?}");
        let id = ids[0].parse().expect("a process id");
        tepui_e2e::signal(id, "STOP");
        Self(id)
    }

    fn resume(&self) {
        tepui_e2e::signal(self.0, "CONT");
    }
}

/// The nested containers of an executor that have cgroups, by their names.
fn nested(bench: &Limited, executor: &Value) -> Vec<String> {
    let found = std::fs::read_dir(bench.cgroup("freezer", executor).join("mesos"));
    let names = found.into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A task of an executor without cpu time is killed.
#[test]
fn kill_terminates_a_task_of_a_stopped_executor() {
    let Some(mut bench) = start() else { return };
    bench.launch("t", "sleep 1000", PLAIN, |task| {
        task["kill_policy"] = json!({"grace_period": {"nanoseconds": 1_000_000_000}});
    });
    let container = bench.container("t");
    let frozen = bench.freeze(&container);
    bench.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "t"}}}));
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(has_message(&status, KILLED), "{status}");
    wait_for("nothing of it to be left", || (!frozen.exists()).then_some(()));
}

/// The same for groups: the killed task terminates in time, then the rest of its group, then the executor.
#[test]
fn kill_terminates_a_group_of_a_stopped_executor() {
    let Some(mut bench) = start() else { return };
    bench.launch_group_with(
        "e",
        Some(false),
        &[("t", "sleep 1000", PLAIN), ("mate", "sleep 1000", PLAIN)],
        |executor| executor["shutdown_grace_period"] = json!({"nanoseconds": 1_000_000_000}),
    );
    let executor = bench.container("t")["parent"].clone();
    bench.container("mate");
    let cgroup = bench.cgroup("freezer", &executor);
    let _stopped = Stopped::stop(&bench, &executor);
    kill(&bench, "t");
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(has_message(&status, KILLED), "{status}");
    let status = bench.scheduler.reach("mate", "TASK_KILLED");
    assert!(has_message(&status, KILLED), "{status}");
    wait_for("nothing of them to be left", || (!cgroup.exists()).then_some(()));
}

/// Another group of the same executor keeps running, and so does the executor after SIGCONT.
#[test]
fn other_groups_of_a_stopped_executor_keep_running() {
    let Some(mut bench) = start() else { return };
    bench.launch_group("e", Some(false), &[("t", "sleep 1000", PLAIN)]);
    let executor = bench.container("t")["parent"].clone();
    bench.launch_group("e", Some(false), &[("other", "sleep 1000", PLAIN)]);
    let other = bench.container("other");
    let stopped = Stopped::stop(&bench, &executor);
    kill(&bench, "t");
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(has_message(&status, KILLED), "{status}");

    // It receives this launch and the kill after both have completed.
    bench.launch_group("e", Some(false), &[("late", "sleep 1000", PLAIN)]);
    wait_for("it to be handed over", || {
        let state = bench.cluster.agent_http().get("/state").json()?;
        let executor = &state["frameworks"][0]["executors"][0];
        executor["tasks"].as_array()?.iter().any(|task| task["id"] == "late").then_some(())
    });
    kill(&bench, "late");
    let status = bench.scheduler.reach("late", "TASK_KILLED");
    assert!(has_message(&status, KILLED), "{status}");
    let alone = [other["value"].as_str().expect("an id").to_owned()];
    assert_eq!(nested(&bench, &executor), alone);

    stopped.resume();
    bench.launch_group("e", Some(false), &[("new", "sleep 1000", PLAIN)]);
    let new = bench.container("new")["value"].as_str().expect("an id").to_owned();
    wait_for("the late one to be gone again", || {
        let found = nested(&bench, &executor);
        (found.len() == 2 && found.contains(&new) && found.contains(&alone[0])).then_some(())
    });
    // As long as it may take an executor of a busy machine.
    let policy = json!({"grace_period": {"nanoseconds": 60_000_000_000_i64}});
    let kill = json!({"task_id": {"value": "other"}, "kill_policy": policy});
    bench.scheduler.call(json!({"type": "KILL", "kill": kill}));
    let status = bench.scheduler.reach("other", "TASK_KILLED");
    assert!(has_message(&status, "Command terminated with signal"), "by its executor: {status}");
}

/// Only the agent can enforce the completion time.
#[test]
fn max_completion_time_holds_for_a_stopped_executor() {
    let Some(mut bench) = start() else { return };
    bench.launch("t", "sleep 1000", PLAIN, |task| {
        // Longer than it takes a slow machine to stop the executor.
        task["max_completion_time"] = json!({"nanoseconds": 15_000_000_000_i64});
    });
    let container = bench.container("t");
    let frozen = bench.freeze(&container);
    let status = bench.scheduler.reach("t", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MAX_COMPLETION_TIME_REACHED", "{status}");
    assert!(
        has_message(&status, "Killed by the agent: the executor did not kill the task after"),
        "{status}"
    );
    wait_for("nothing of it to be left", || (!frozen.exists()).then_some(()));
}
