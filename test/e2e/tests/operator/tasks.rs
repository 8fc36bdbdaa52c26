//! Brings the cluster into the state that the recorded one had.

use std::path::Path;

use serde_json::{Value, json};
use tepui_e2e::{Http, Scheduler, scalar, wait_for};

pub fn framework() -> Value {
    json!({
        "user": "root", "name": "ref", "roles": ["dev"], "failover_timeout": 60.0, "checkpoint": true,
        "principal": "ref", "webui_url": "http://ref/", "labels": {"labels": [{"key": "k", "value": "v"}]},
        "capabilities": [{"type": "MULTI_ROLE"}, {"type": "PARTITION_AWARE"}, {"type": "RESERVATION_REFINEMENT"},
                         {"type": "TASK_KILLING_STATE"}]
    })
}

/// One task that finishes, one that is killed by a signal, one long task with a health check, one that fails; and one
/// offer of the rest.
pub fn first_four(scheduler: &mut Scheduler, master: &Http, agent: &Http) -> Value {
    let offer = scheduler.offer();
    scheduler.call(json!({"type": "SUPPRESS"}));
    let mut staying = Scheduler::task(&offer, "t-run", "echo out; echo err >&2; sleep 1000");
    staying["resources"] = json!([scalar("cpus", 0.5), scalar("mem", 64.0)]);
    staying["labels"] = json!({"labels": [{"key": "a", "value": "b"}]});
    staying["kill_policy"] = json!({"grace_period": {"nanoseconds": 2_000_000_000_u64}});
    staying["discovery"] = json!({
        "visibility": "CLUSTER", "name": "svc",
        "ports": {"ports": [{"number": 80, "name": "http", "protocol": "tcp"}]}
    });
    staying["health_check"] = json!({
        "type": "COMMAND", "command": {"value": "true"}, "delay_seconds": 0.0, "grace_period_seconds": 1.0,
        "interval_seconds": 1.0
    });
    let tasks = [
        Scheduler::task(&offer, "t-fin", "echo hi"),
        Scheduler::task(&offer, "t-sig", "kill -9 $$"),
        staying,
        Scheduler::task(&offer, "t-fail", "exit 3"),
    ];
    assert_eq!(scheduler.launch(&offer, &tasks).status, 202);
    expect(scheduler, "t-fin", RUNS);
    expect(scheduler, "t-sig", FAILS);
    expect(scheduler, "t-fail", FAILS);
    // The second time because it is healthy.
    expect(scheduler, "t-run", &["TASK_STARTING", "TASK_RUNNING", "TASK_RUNNING"]);
    wait_until_over(master, agent, 3);
    scheduler.fresh_offer()
}

/// Frameworks that subscribe and disconnect.
pub fn other_frameworks(http: &Http) {
    for info in [
        json!({"user": "root", "name": "x", "failover_timeout": -1.0}),
        json!({"user": "root", "name": "x", "id": {"value": "nope"}}),
        json!({"user": "root", "name": ""}),
    ] {
        let over = || http.get("/frameworks").json()?["completed_frameworks"].as_array().map(Vec::len);
        let before = over();
        let mut call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}});
        if let Some(id) = info.get("id") {
            call["framework_id"] = id.clone();
        }
        // Dropping the stream disconnects the framework.
        drop(http.stream("/api/v1/scheduler", &[("Accept", "application/json")], &call));
        wait_for("the framework to end", || (over() > before).then_some(()));
    }
}

/// Tasks in every terminal state.
pub fn the_rest(scheduler: &mut Scheduler, offer: &Value, master: &Http, agent: &Http, folder: &Path) {
    scheduler.call(json!({"type": "SUPPRESS"}));
    let mut tasks = Vec::new();
    for (name, change, _) in CASES {
        let mut task = Scheduler::task(offer, name, "true");
        change(&mut task);
        tasks.push(task);
    }
    let group = group(scheduler, offer, folder);
    let operations = json!([
        {"type": "LAUNCH", "launch": {"task_infos": tasks}}, {"type": "LAUNCH_GROUP", "launch_group": group}
    ]);
    assert_eq!(scheduler.accept(offer, operations).status, 202);
    for (name, _, states) in CASES {
        expect(scheduler, name, states);
    }
    expect(scheduler, "g-ok", &["TASK_STARTING", "TASK_RUNNING"]);
    std::fs::write(folder.join("go"), "").expect("the file can be written");
    expect(scheduler, "g-ok", &["TASK_FINISHED"]);
    wait_until_over(master, agent, 3 + CASES.len() + 1);
}

pub fn kill(scheduler: &mut Scheduler, task: &str, master: &Http) {
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": task}}}));
    expect(scheduler, task, &["TASK_KILLING", "TASK_KILLED"]);
    wait_for("the task to be over", || {
        let frameworks = master.get("/frameworks").json()?;
        frameworks["frameworks"][0]["tasks"].as_array()?.is_empty().then_some(())
    });
}

const RUNS: &[&str] = &["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"];
const FAILS: &[&str] = &["TASK_STARTING", "TASK_RUNNING", "TASK_FAILED"];

type Change = fn(&mut Value);

const CASES: &[(&str, Change, &[&str])] = &[
    (
        "v-dupres",
        |task| task["resources"] = json!([scalar("cpus", 0.1), scalar("cpus", 0.1), scalar("mem", 32.0)]),
        RUNS,
    ),
    ("v-norole", |_| (), RUNS),
    ("v-share-true", |task| task["container"] = json!({"type": "MESOS", "linux_info": {}}), RUNS),
    ("v-cmdempty", |task| task["command"] = json!({}), &["TASK_STARTING", "TASK_FAILED"]),
    (
        "v-argv",
        |task| task["command"] = json!({"shell": false, "value": "/bin/true", "arguments": ["true"]}),
        RUNS,
    ),
    ("v-uri", |task| task["command"]["uris"] = json!([{"value": "/does/not/exist"}]), &["TASK_FAILED"]),
    ("v-user", |task| task["command"]["user"] = json!("nobody"), RUNS),
    ("v-nouser", |task| task["command"]["user"] = json!("no-such-user-x"), &["TASK_DROPPED"]),
    ("v-nocmd", |task| task["command"] = json!({"value": "no-such-command-x"}), FAILS),
    ("o-stale", |_| (), RUNS),
];

/// A task in a group that exits on request: of a terminated container only its id is reported.
fn group(scheduler: &Scheduler, offer: &Value, folder: &Path) -> Value {
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "ge-g-ok"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let go = folder.join("go");
    let task = Scheduler::task(offer, "g-ok", &format!("until [ -e {} ]; do sleep 0.1; done", go.display()));
    json!({"executor": executor, "task_group": {"tasks": [task]}})
}

fn expect(scheduler: &mut Scheduler, task: &str, states: &[&str]) {
    for state in states {
        scheduler.update(task, state);
    }
}

/// Waits until master and agent have closed the books on so many tasks, with their executors.
fn wait_until_over(master: &Http, agent: &Http, count: usize) {
    wait_for("tasks to be over", || {
        let frameworks = master.get("/frameworks").json()?;
        let one = &frameworks["frameworks"][0];
        let over = one["completed_tasks"].as_array()?.len();
        (over == count && one["executors"].as_array()?.is_empty()).then_some(())
    });
    wait_for("executors to be over", || {
        let state = agent.get("/state").json()?;
        let one = &state["frameworks"][0];
        let over = one["completed_executors"].as_array()?.len();
        (over == count && one["executors"].as_array()?.len() == 1).then_some(())
    });
}
