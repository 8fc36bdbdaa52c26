//! Every key that the v1 web interface and the v1 command line read, where they read it.
//!
//! A missing key breaks their scripts, not just a cell of a table.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, scalar, wait_for};

/// Where, and which keys are read of it. `[]` is the first element; `a|b` is one of two; `?` may be absent.
type Keys = &'static [(&'static str, &'static str)];

const SCALARS: &str = "cpus gpus mem disk";

const STATE: Keys = &[
    (
        "",
        "id pid leader leader_info version build_time build_user start_time elected_time activated_slaves cluster \
         deactivated_slaves unreachable_slaves flags slaves frameworks completed_frameworks orphan_tasks \
         unregistered_frameworks recovered_slaves capabilities hostname",
    ),
    ("leader_info", "hostname port id pid"),
    (
        "slaves[]",
        "id hostname pid port resources used_resources registered_time deactivated active attributes",
    ),
    ("slaves[].resources", SCALARS),
    ("slaves[].used_resources", SCALARS),
    ("slaves[].offered_resources", SCALARS),
    (
        "frameworks[]",
        "id name user hostname webui_url active connected recovered roles resources used_resources principal \
         offered_resources registered_time unregistered_time tasks unreachable_tasks completed_tasks offers executors",
    ),
    ("frameworks[].resources", SCALARS),
    ("frameworks[].used_resources", SCALARS),
    ("frameworks[].offered_resources", SCALARS),
    ("frameworks[].offers[]", "id framework_id slave_id allocation_info resources"),
    ("frameworks[].offers[].allocation_info", "role"),
    ("frameworks[].offers[].resources", SCALARS),
    ("frameworks[].tasks[]", "id name framework_id executor_id slave_id state role statuses resources"),
    ("frameworks[].tasks[].statuses[]", "state timestamp container_status"),
    (
        "frameworks[].completed_tasks[]",
        "id name framework_id executor_id slave_id state role statuses resources",
    ),
    ("frameworks[].completed_tasks[].resources", SCALARS),
];

const SUMMARY: Keys = &[
    ("", "hostname cluster slaves frameworks"),
    (
        "slaves[]",
        "id hostname pid TASK_STAGING TASK_STARTING TASK_RUNNING TASK_KILLING TASK_FINISHED TASK_KILLED TASK_FAILED \
         TASK_LOST TASK_ERROR TASK_UNREACHABLE framework_ids reserved_resources unreserved_resources version",
    ),
    (
        "frameworks[]",
        "id name used_resources offered_resources capabilities hostname webui_url active connected recovered \
         TASK_RUNNING TASK_FAILED slave_ids",
    ),
];

const SLAVES: Keys = &[
    ("", "slaves recovered_slaves"),
    (
        "slaves[]",
        "id hostname active pid reserved_resources_full unreserved_resources_full used_resources_full \
         offered_resources_full",
    ),
];

const FRAMEWORKS: Keys = &[
    ("", "frameworks completed_frameworks unregistered_frameworks"),
    ("frameworks[]", "id active hostname name tasks unreachable_tasks completed_tasks offer_constraints"),
];

const TASKS: Keys = &[
    ("", "tasks"),
    ("tasks[]", "id framework_id executor_id statuses state slave_id"),
    ("tasks[].statuses[]", "state container_status"),
    ("tasks[].statuses[].container_status.container_id", "value"),
];

const ROLES: Keys = &[
    ("", "roles"),
    ("roles[]", "name weight frameworks offered allocated reserved quota resources"),
    ("roles[].quota", "consumed guarantee limit role"),
];

const METRICS: Keys = &[(
    "",
    "master/tasks_staging master/tasks_starting master/tasks_running master/tasks_killing master/tasks_finished \
     master/tasks_killed master/tasks_failed master/tasks_lost master/tasks_unreachable",
)];

const AGENT_STATE: Keys = &[
    (
        "",
        "hostname version build_time start_time resources unreserved_resources unreserved_resources_allocated id pid \
         reserved_resources reserved_resources_allocated master_hostname frameworks completed_frameworks \
         resource_providers flags attributes capabilities",
    ),
    ("resources", SCALARS),
    ("unreserved_resources_allocated", SCALARS),
    ("frameworks[]", "id name user roles executors completed_executors checkpoint failover_timeout hostname"),
    (
        "frameworks[].executors[]",
        "id name source container directory resources role tasks queued_tasks completed_tasks",
    ),
    ("frameworks[].executors[].resources", SCALARS),
    ("frameworks[].executors[].tasks[]", "id name state role statuses resources slave_id framework_id"),
    ("frameworks[].completed_executors[]", "id name directory tasks queued_tasks completed_tasks"),
];

const STATISTICS: Keys = &[
    ("[]", "executor_id framework_id executor_name source statistics"),
    (
        "[].statistics",
        "cpus_user_time_secs cpus_system_time_secs cpus_limit mem_rss_bytes mem_limit_bytes timestamp",
    ),
];

const AGENT_METRICS: Keys = &[(
    "",
    "slave/tasks_staging slave/tasks_starting slave/tasks_running slave/tasks_killing slave/tasks_finished \
     slave/tasks_killed slave/tasks_failed slave/tasks_lost slave/registered slave/uptime_secs",
)];

const BROWSE: Keys = &[("[]", "path nlink size mtime mode uid gid")];

#[test]
fn v1_interfaces_find_every_key() {
    let cluster = Cluster::with(
        &["--hostname=localhost", "--cluster=demo"],
        &["--resources=cpus:8;mem:4096;disk:4096"],
    );
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut info = Scheduler::info("eng/web");
    info["principal"] = json!("ops");
    let mut scheduler = Scheduler::subscribe(&master, info);
    let offer = scheduler.offer();
    let tasks = [Scheduler::task(&offer, "stays", "sleep 1000"), Scheduler::task(&offer, "ends", "true")];
    assert_eq!(scheduler.launch(&offer, &tasks).status, 202);
    scheduler.reach("ends", "TASK_FINISHED");
    scheduler.reach("stays", "TASK_RUNNING");
    scheduler.fresh_offer();
    let sandbox = wait_for("everything that has keys to be there", || {
        let state = master.get("/master/state").json()?;
        let framework = &state["frameworks"][0];
        let state = agent.get("/slave(1)/state").json()?;
        let there = framework["offers"].get(0).is_some() && framework["completed_tasks"].get(0).is_some();
        let of_agent = &state["frameworks"][0];
        let there = there && of_agent["completed_executors"].get(0).is_some();
        let there = there && agent.get("/monitor/statistics").json()?.get(0).is_some();
        there.then(|| of_agent["executors"][0]["directory"].as_str().expect("a directory").to_string())
    });
    let browse = format!("/files/browse?path={sandbox}");
    let table: &[(bool, &str, Keys)] = &[
        (true, "/master/state", STATE),
        (true, "/master/state-summary", SUMMARY),
        (true, "/slaves", SLAVES),
        (true, "/master/frameworks/", FRAMEWORKS),
        (true, "/tasks?order=asc&limit=-1", TASKS),
        (true, "/tasks?task_id=stays", TASKS),
        (true, "/master/roles", ROLES),
        (true, "/metrics/snapshot", METRICS),
        (false, "/slave(1)/state", AGENT_STATE),
        (false, "/slave(1)/monitor/statistics", STATISTICS),
        (false, "/metrics/snapshot", AGENT_METRICS),
        (false, &browse, BROWSE),
    ];
    let missing: Vec<String> = table
        .iter()
        .flat_map(|(of_master, path, keys)| missing(if *of_master { &master } else { &agent }, path, keys))
        .collect();
    assert!(missing.is_empty(), "missing:\n{}", missing.join("\n"));
    let state = master.get("/state").json().expect("JSON");
    let pid = state["slaves"][0]["pid"].as_str().expect("a pid");
    assert_eq!(pid, format!("slave(1)@{}", cluster.agents[0].address), "the agent is found by its pid");
}

/// The keys that are not where they are read.
fn missing(http: &Http, path: &str, keys: Keys) -> Vec<String> {
    let document = http.get(path).json().expect("JSON");
    let of = |(place, names): &(&str, &'static str)| {
        let found = at(&document, place);
        let is_missing = |name: &&str| found.is_none_or(|found| found.get(*name).is_none());
        let names = names.split_whitespace().filter(is_missing);
        names.map(|name| format!("{path} {place}.{name}")).collect::<Vec<_>>()
    };
    keys.iter().flat_map(of).collect()
}

const DRAINED_STATE: Keys = &[
    ("", "external_log_file"),
    ("slaves[]", "drain_info estimated_drain_start_time_seconds"),
    ("slaves[].drain_info", "state config"),
    ("frameworks[].tasks[]", "health_check"),
    ("frameworks[].executors[]", "executor_id name framework_id command resources role type slave_id"),
];

const DRAINED_AGENT_STATE: Keys = &[
    ("", "external_log_file drain_config estimated_drain_start_time_seconds"),
    ("frameworks[].executors[]", "type role labels"),
];

const DISK_STATISTICS: Keys = &[("[].statistics", "disk_used_bytes disk_limit_bytes")];

const SCHEDULE: Keys = &[
    ("windows[]", "machine_ids unavailability"),
    ("windows[].machine_ids[]", "hostname ip"),
    ("windows[].unavailability.start", "nanoseconds"),
    ("windows[].unavailability.duration", "nanoseconds"),
];

/// The same for conditional keys: a log, checks, task groups, disk usage, draining agents, machines in maintenance.
#[test]
fn v1_interfaces_find_every_optional_key() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("log");
    std::fs::write(&log, "").expect("it can be written");
    let log = format!("--external_log_file={}", log.display());
    let agent_flags = [
        "--resources=cpus:8;mem:4096;disk:4096",
        "--isolation=posix/cpu,posix/mem,disk/du",
        "--container_disk_watch_interval=100ms",
        &log,
    ];
    let cluster = Cluster::with(&[&log], &agent_flags);
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut scheduler = Scheduler::subscribe(&master, Scheduler::info("eng/web"));
    let offer = scheduler.offer();
    // It ignores SIGTERM, so that the agent stays draining.
    let mut task = Scheduler::task(&offer, "stays", "trap '' TERM; while :; do sleep 0.1; done");
    task["kill_policy"] = json!({"grace_period": {"nanoseconds": 3_600_000_000_000_u64}});
    task["health_check"] = json!({"type": "COMMAND", "command": {"value": "true"}, "delay_seconds": 0.0,
        "interval_seconds": 0.1, "grace_period_seconds": 0.0});
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "pod"}, "framework_id": {"value": scheduler.framework_id},
        "labels": {"labels": [{"key": "k", "value": "v"}]},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let group = json!({"executor": executor, "task_group": {"tasks": [task]}});
    scheduler.accept(&offer, json!([{"type": "LAUNCH_GROUP", "launch_group": group}]));
    scheduler.reach("stays", "TASK_RUNNING");
    wait_for("the task to be healthy and its disk to be measured", || {
        let statuses = master.get("/tasks").json()?["tasks"][0]["statuses"].clone();
        let is_healthy = statuses.as_array()?.iter().any(|status| status["healthy"] == true);
        (is_healthy && missing(&agent, "/monitor/statistics", DISK_STATISTICS).is_empty()).then_some(())
    });
    let window = json!({"machine_ids": [{"hostname": "elsewhere", "ip": "10.1.1.1"}],
        "unavailability": {"start": {"nanoseconds": 1}, "duration": {"nanoseconds": 1}}});
    assert_eq!(master.post("/maintenance/schedule", &json!({"windows": [window]})).status, 200);
    let drain = json!({"agent_id": scheduler.agent_id, "max_grace_period": {"seconds": 3600}});
    let drain = master.post("/api/v1", &json!({"type": "DRAIN_AGENT", "drain_agent": drain}));
    assert_eq!(drain.status, 200, "{}", drain.text());
    wait_for("the agent to drain", || agent.get("/state").json()?.get("drain_config").map(|_| ()));
    let missing = [
        missing(&master, "/master/state", DRAINED_STATE),
        missing(&agent, "/slave(1)/state", DRAINED_AGENT_STATE),
        missing(&master, "/master/maintenance/schedule", SCHEDULE),
    ];
    assert!(missing.iter().all(Vec::is_empty), "{missing:#?}");
}

/// What is at a place: members by name, `[]` for the first element.
fn at<'d>(document: &'d Value, place: &str) -> Option<&'d Value> {
    place.split('.').filter(|part| !part.is_empty()).try_fold(document, |value, part| {
        let (name, is_list) = match part.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (part, false),
        };
        let value = if name.is_empty() { value } else { value.get(name)? };
        if is_list { value.get(0) } else { Some(value) }
    })
}
