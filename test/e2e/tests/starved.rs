//! Executors that stand still: what they do not end, their agent does, and it says so in their stead.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Limited, Sizes, wait_for};

const PLAIN: Sizes = Sizes::of((0.1, 32.0), None, None);
const MARGIN: &str = "--executor_kill_margin=1secs";
const KILLED: &str = "Killed by the agent: the executor did not end it in time";

/// A cluster whose agent is soon out of patience.
fn impatient() -> Option<Limited> {
    Limited::start(&[MARGIN])
}

fn kill(bench: &Limited, task: &str) {
    let policy = json!({"grace_period": {"nanoseconds": 500_000_000}});
    let kill = json!({"task_id": {"value": task}, "kill_policy": policy});
    bench.scheduler.call(json!({"type": "KILL", "kill": kill}));
}

fn says(status: &Value, why: &str) -> bool {
    status["message"].as_str().is_some_and(|said| said.starts_with(why))
}

/// The only process in the executor's own cgroup: what it runs is in others below.
struct Standing(String);

impl Standing {
    fn stop(bench: &Limited, executor: &Value) -> Self {
        let ids = bench.processes("freezer", executor);
        assert_eq!(ids.len(), 1, "the executor alone: {ids:?}");
        let this = Self(ids[0].clone());
        this.signal("-STOP");
        this
    }

    fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let done = Command::new("kill").args([name, &self.0]).status().expect("kill starts");
        assert!(done.success(), "it is there");
    }
}

/// The nested containers of an executor that have cgroups, by their names.
fn nested(bench: &Limited, executor: &Value) -> Vec<String> {
    let found = std::fs::read_dir(bench.cgroup("freezer", executor).join("mesos"));
    let names = found.into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// An executor that gets no processor time at all does not keep its task from being killed.
#[test]
fn a_kill_ends_a_task_whose_executor_stands_still() {
    let Some(mut bench) = impatient() else { return };
    bench.launch("t", "sleep 1000", PLAIN, |task| {
        task["kill_policy"] = json!({"grace_period": {"nanoseconds": 1_000_000_000}});
    });
    let container = bench.container("t");
    let frozen = bench.freeze(&container);
    bench.scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "t"}}}));
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(says(&status, KILLED), "{status}");
    wait_for("nothing of it to be left", || (!frozen.exists()).then_some(()));
}

/// Nor one of groups: the task that is killed ends in time, then the rest of its group, and at last the executor.
#[test]
fn a_kill_ends_a_group_whose_executor_stands_still() {
    let Some(mut bench) = impatient() else { return };
    bench.launch_group_with(
        "e",
        Some(false),
        &[("t", "sleep 1000", PLAIN), ("mate", "sleep 1000", PLAIN)],
        |executor| executor["shutdown_grace_period"] = json!({"nanoseconds": 1_000_000_000}),
    );
    let executor = bench.container("t")["parent"].clone();
    bench.container("mate");
    let cgroup = bench.cgroup("freezer", &executor);
    let _standing = Standing::stop(&bench, &executor);
    kill(&bench, "t");
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(says(&status, KILLED), "{status}");
    let status = bench.scheduler.reach("mate", "TASK_KILLED");
    assert!(says(&status, KILLED), "{status}");
    wait_for("nothing of them to be left", || (!cgroup.exists()).then_some(()));
}

/// What another group under the same executor runs goes on, and so does the executor when it can.
#[test]
fn other_groups_of_an_executor_that_stands_still_live_on() {
    let Some(mut bench) = impatient() else { return };
    bench.launch_group("e", Some(false), &[("t", "sleep 1000", PLAIN)]);
    let executor = bench.container("t")["parent"].clone();
    bench.launch_group("e", Some(false), &[("other", "sleep 1000", PLAIN)]);
    let other = bench.container("other");
    let standing = Standing::stop(&bench, &executor);
    kill(&bench, "t");
    let status = bench.scheduler.reach("t", "TASK_KILLED");
    assert!(says(&status, KILLED), "{status}");

    // It hears of this one, and that it is to be killed, when both are long over.
    bench.launch_group("e", Some(false), &[("late", "sleep 1000", PLAIN)]);
    wait_for("it to be handed over", || {
        let state = bench.cluster.agent_http().get("/state").json()?;
        let executor = &state["frameworks"][0]["executors"][0];
        executor["tasks"].as_array()?.iter().any(|task| task["id"] == "late").then_some(())
    });
    kill(&bench, "late");
    let status = bench.scheduler.reach("late", "TASK_KILLED");
    assert!(says(&status, KILLED), "{status}");
    let alone = [other["value"].as_str().expect("an id").to_owned()];
    assert_eq!(nested(&bench, &executor), alone);

    standing.go_on();
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
    assert!(says(&status, "Command terminated with signal"), "by its executor: {status}");
}

/// Nobody but the agent sees that a task takes longer than it may.
#[test]
fn a_task_ends_in_its_time_though_its_executor_stands_still() {
    let Some(mut bench) = impatient() else { return };
    bench.launch("t", "sleep 1000", PLAIN, |task| {
        // Longer than it takes a slow machine to stop the executor.
        task["max_completion_time"] = json!({"nanoseconds": 15_000_000_000_i64});
    });
    let container = bench.container("t");
    let frozen = bench.freeze(&container);
    let status = bench.scheduler.reach("t", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MAX_COMPLETION_TIME_REACHED", "{status}");
    assert!(says(&status, "Ended by the agent"), "{status}");
    wait_for("nothing of it to be left", || (!frozen.exists()).then_some(()));
}
