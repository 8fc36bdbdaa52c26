//! A small cluster in the shapes of the classic answers, for the tests of everything that shows them.

use serde_json::{Value, json};

pub const NOW: f64 = 1_794_774_400.0;

const MASTER: &str = "1b2ac9de-da1d-4633-95a3-9f4a9a6a0764";
const MASTER_BEFORE: &str = "0a11c9de-da1d-4633-95a3-9f4a9a6a0764";

fn id(tail: &str) -> String {
    format!("{MASTER}-{tail}")
}

fn task(
    id_of: &str,
    name: &str,
    state: &str,
    (framework, agent): (&str, &str),
    cpus: f64,
    age: f64,
) -> Value {
    json!({
        "id": id_of, "name": name, "state": state, "framework_id": id(framework), "slave_id": id(agent), "role": "eng",
        "executor_id": "", "resources": {"cpus": cpus, "mem": 1536.0, "disk": 0.0, "gpus": 0.0},
        "statuses": [{"state": state, "timestamp": NOW - age}],
    })
}

fn live() -> Vec<Value> {
    let mut sick = task("web-2", "web", "TASK_RUNNING", ("0000", "S1"), 2.0, 7200.0);
    sick["statuses"][0]["healthy"] = json!(false);
    let mut staging = task("evil\u{1b}[31m", "x", "TASK_STAGING", ("0000", "S0"), 0.25, 0.0);
    staging["statuses"] = json!([]);
    vec![task("web-1", "web", "TASK_RUNNING", ("0000", "S0"), 0.5, 65.0), sick, staging]
}

fn ended() -> Vec<Value> {
    vec![
        task("job-1", "job", "TASK_FAILED", ("0001", "S0"), 10.0, 100_000.0),
        task("job-2", "job", "TASK_FINISHED", ("0001", "S1"), 1.0, 30.0),
    ]
}

/// `/tasks` with the names for filters.
pub fn tasks() -> Value {
    let mut answer = agents();
    let frameworks = frameworks();
    answer["frameworks"] = frameworks["frameworks"].clone();
    answer["completed_frameworks"] = frameworks["completed_frameworks"].clone();
    answer["tasks"] = live().into_iter().chain(ended()).collect();
    answer
}

/// `/slaves`
pub fn agents() -> Value {
    let agent = |tail: &str, hostname: &str, cpus: f64, active: bool| {
        json!({
            "id": id(tail), "hostname": hostname, "port": 5051, "pid": "slave(1)@10.0.0.2:5051", "active": active,
            "deactivated": false, "registered_time": NOW - 3700.0, "attributes": {"rack": "r1", "level": 2.0},
            "resources": {"cpus": 16.0, "mem": 8192.0, "disk": 1e6, "gpus": 0.0, "ports": "[31000-32000]"},
            "used_resources": {"cpus": cpus, "mem": 1536.0, "disk": 0.0, "gpus": 0.0},
        })
    };
    let mut draining = agent("S2", "host-c", 10.0, true);
    draining["drain_info"] = json!({"state": "DRAINING"});
    json!({
        "slaves": [agent("S0", "host-a", 0.5, true), agent("S1", "host-b", 2.0, false), draining],
        "recovered_slaves": [{"id": format!("{MASTER_BEFORE}-S0"), "hostname": "host-a", "port": 5051, "attributes": {}}],
    })
}

/// `/frameworks`
pub fn frameworks() -> Value {
    let offer = json!({
        "id": id("O7"), "framework_id": id("0000"), "slave_id": id("S0"), "allocation_info": {"role": "eng/web"},
        "resources": {"cpus": 15.5, "mem": 6656.0, "disk": 1e6, "gpus": 0.0, "ports": "[31000-32000]"},
    });
    let executor = json!({
        "executor_id": "group", "name": "", "type": "DEFAULT", "framework_id": id("0000"), "slave_id": id("S0"),
        "role": "eng", "resources": {"cpus": 0.1, "mem": 32.0, "disk": 0.0, "gpus": 0.0},
    });
    let mut tasks = live();
    tasks[0]["executor_id"] = json!("group");
    json!({
        "frameworks": [{
            "id": id("0000"), "name": "marathon", "user": "root", "principal": "ops", "hostname": "ctl",
            "webui_url": "http://ctl:8080", "active": true, "connected": true, "recovered": false, "checkpoint": true,
            "failover_timeout": 604_800.0, "registered_time": NOW - 90_000.0, "unregistered_time": 0.0,
            "roles": ["eng", "eng/web"], "capabilities": ["MULTI_ROLE", "PARTITION_AWARE"],
            "labels": [{"key": "team", "value": "a"}], "offer_constraints": {},
            "used_resources": {"cpus": 2.75, "mem": 4608.0, "disk": 0.0, "gpus": 0.0},
            "offered_resources": {"cpus": 15.5, "mem": 6656.0, "disk": 1e6, "gpus": 0.0, "ports": "[31000-32000]"},
            "tasks": tasks, "unreachable_tasks": [], "completed_tasks": [], "offers": [offer], "executors": [executor],
        }],
        "completed_frameworks": [{
            "id": id("0001"), "name": "batch", "user": "root", "hostname": "", "active": false, "connected": false,
            "recovered": false, "registered_time": NOW - 200.0, "unregistered_time": NOW - 10.0, "role": "ops",
            "used_resources": {"cpus": 0.0, "mem": 0.0, "disk": 0.0, "gpus": 0.0},
            "tasks": [], "completed_tasks": ended(), "offers": [], "executors": [],
        }],
    })
}

/// `/roles`
pub fn roles() -> Value {
    let role = |name: &str, weight: f64, frameworks: Value| {
        json!({
            "name": name, "weight": weight, "frameworks": frameworks, "resources": {}, "allocated": {}, "offered": {},
            "reserved": {}, "quota": {"role": name, "guarantee": {}, "limit": {}, "consumed": {}},
        })
    };
    let mut eng = role("eng", 1.0, json!([id("0000")]));
    eng["allocated"] = json!({"cpus": 0.5, "mem": 64.0});
    eng["offered"] = json!({"cpus": 15.5, "mem": 7936.0, "ports": 1001.0});
    let mut below = role("eng/web", 2.5, json!([id("0000")]));
    below["quota"]["limit"] = json!({"cpus": 4.0});
    json!({"roles": [role("*", 1.0, json!([])), eng, below, role("engine", 1.0, json!([]))]})
}
