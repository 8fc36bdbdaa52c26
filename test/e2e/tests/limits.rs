//! Limits of tasks, from the API to cgroup files and reasons of statuses. Needs root and cgroups.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Gate, Limited, Sizes, binary, limit_hits, wait_for};

const INF: f64 = f64::INFINITY;
const PLAIN: Sizes = Sizes::of((0.1, 32.0), None, None);
const BURSTING: Sizes = Sizes::of((0.1, 32.0), Some(0.5), Some(64.0));

/// The table of the design for tasks outside of groups, each cell read from the kernel; the command executor adds
/// 0.1 cpus and 32 megabytes.
#[test]
fn requests_and_limits_of_tasks_are_set_in_cgroups() {
    for cfs in [false, true] {
        let Some(mut bench) = Limited::start(if cfs { &["--cgroups_enable_cfs"] } else { &[] }) else {
            return;
        };
        // Without a limit on processors the flag decides.
        let request = |quota: i64| if cfs { quota } else { -1 };
        for (id, sizes, expected) in [
            ("plain", Sizes::of((0.1, 32.0), None, None), (204, request(20_000), 64, 64)),
            ("both", Sizes::of((0.2, 64.0), Some(0.5), Some(128.0)), (307, 60_000, 96, 160)),
            ("endless", Sizes::of((0.1, 32.0), Some(INF), Some(INF)), (204, -1, 64, -1)),
            ("cpus", Sizes::of((0.1, 32.0), Some(0.5), None), (204, 60_000, 64, 64)),
            ("mem", Sizes::of((1.0, 1024.0), None, Some(2048.0)), (1126, request(110_000), 1056, 2080)),
        ] {
            bench.launch(id, "sleep 1000", sizes, |_| ());
            let container = bench.container(id);
            assert_eq!(bench.values(&container), expected, "{id}, cfs {cfs}");
            bench.kill(id);
            wait_for("its cgroup to go", || (!bench.cgroup("memory", &container).exists()).then_some(()));
        }
        for share in [true, false] {
            let id = format!("share-{share}");
            bench.launch(&id, "true", Sizes::of((0.1, 32.0), None, None), |task| {
                task["container"] = json!({"type": "MESOS", "linux_info": {"share_cgroups": share}});
            });
            bench.scheduler.reach(&id, "TASK_ERROR");
        }
    }
}

/// The table of the design for task groups, each cell read from cgroups: tasks with their own cgroups, and their executor,
/// which adds 0.1 cpus and 32 megabytes. It does not matter whether the task or its executor sets `share_cgroups`.
#[test]
fn requests_and_limits_of_groups_are_set_in_cgroups() {
    for (cfs, said_by_executor) in [(false, false), (true, true)] {
        let Some(mut bench) = Limited::start(if cfs { &["--cgroups_enable_cfs"] } else { &[] }) else {
            return;
        };
        let request = |quota: i64| if cfs { quota } else { -1 };
        let plain = (PLAIN, (102, request(10_000), 32, 32));
        let bursting = (BURSTING, (102, 50_000, 32, 64));
        let endless = (Sizes::of((0.1, 32.0), Some(INF), Some(INF)), (102, -1, 32, -1));
        let only_cpus = (Sizes::of((0.1, 32.0), Some(0.5), None), (102, 50_000, 32, 32));
        let only_mem = (Sizes::of((0.1, 32.0), None, Some(64.0)), (102, request(10_000), 32, 64));
        for (name, first, second, of_executor) in [
            ("neither", plain, plain, (307, request(30_000), 96, 96)),
            // A request counts as a limit in the sum, also where the task itself has no limit.
            ("one", plain, bursting, (307, 70_000, 96, 128)),
            ("both", bursting, bursting, (307, 110_000, 96, 160)),
            ("endless", bursting, endless, (307, -1, 96, -1)),
            ("each", only_cpus, only_mem, (307, 70_000, 96, 128)),
        ] {
            let ids = [1, 2].map(|number| format!("{name}-{number}"));
            let tasks = [(&*ids[0], "sleep 1000", first.0), (&*ids[1], "sleep 1000", second.0)];
            match said_by_executor {
                false => bench.launch_group(name, Some(false), &tasks),
                true => bench.launch_group_with(name, None, &tasks, |executor| {
                    executor["container"] = json!({"type": "MESOS", "linux_info": {"share_cgroups": false}});
                }),
            }
            let nested = ids.each_ref().map(|id| bench.container(id));
            let executor = nested[0]["parent"].clone();
            let found = nested.each_ref().map(|id| bench.values(id));
            assert_eq!(found, [first.1, second.1], "{name}, cfs {cfs}");
            assert_eq!(bench.values(&executor), of_executor, "{name}, cfs {cfs}");
            let bursts = |(_, (_, _, soft, hard)): (Sizes, (i64, i64, i64, i64))| hard < 0 || hard > soft;
            let wanted = [false, bursts(first), bursts(second)].map(Some);
            let scored = || [&executor, &nested[0], &nested[1]].map(|id| goes_first(&bench, id));
            wait_for("their scores", || (scored() == wanted).then_some(()));
            bench.kill(&ids[0]);
            bench.scheduler.reach(&ids[1], "TASK_KILLED");
            wait_for("its cgroup to go", || (!bench.cgroup("memory", &executor).exists()).then_some(()));
        }
        shared_groups(&mut bench, request(30_000));
        // An executor with one kind of isolation cannot have the other.
        for (executor, share, kind) in [("one", None, true), ("shared", Some(false), false)] {
            let id = format!("again-{executor}");
            bench.launch_group(executor, share, &[(&id, "true", PLAIN)]);
            let status = bench.scheduler.reach(&id, "TASK_ERROR");
            let reason = format!(
                "Task '{id}' has 'container.linux_info.share_cgroups' {kind}, but under executor '{executor}' it is {} \
                 for all tasks: use that, or another executor id",
                !kind
            );
            assert_eq!(status["message"], json!(reason));
        }
    }
}

/// Tasks with shared cgroups, explicitly or by default: only requests count, and limits are rejected.
fn shared_groups(bench: &mut Limited, quota: i64) {
    for (executor, share) in [("shared", Some(true)), ("silent", None)] {
        let ids = [1, 2].map(|number| format!("{executor}-{number}"));
        let tasks = [(&*ids[0], "sleep 1000", PLAIN), (&*ids[1], "sleep 1000", PLAIN)];
        bench.launch_group(executor, share, &tasks);
        let nested = ids.each_ref().map(|id| bench.container(id));
        assert!(nested.iter().all(|id| !bench.has_own_limits(id)));
        assert_eq!(bench.values(&nested[0]["parent"]), (307, quota, 96, 96));
        bench.kill(&ids[0]);
        bench.scheduler.reach(&ids[1], "TASK_KILLED");

        let (executor, id) = (format!("limited-{executor}"), format!("limited-{executor}"));
        bench.launch_group(&executor, share, &[(&id, "true", BURSTING)]);
        let status = bench.scheduler.reach(&id, "TASK_ERROR");
        assert_eq!(status["reason"], "REASON_TASK_GROUP_INVALID");
    }
}

/// Whether the first process of a container has a raised OOM score. A task is RUNNING before its command has entered its
/// cgroup.
fn goes_first(bench: &Limited, id: &Value) -> Option<bool> {
    let first = bench.processes("memory", id).into_iter().next()?;
    let score = std::fs::read_to_string(format!("/proc/{first}/oom_score_adj")).ok()?;
    Some(score.trim().parse::<i32>().expect("a number") > 900)
}

/// The limits of an executor follow its tasks.
#[test]
fn executor_cgroup_is_the_sum_of_its_tasks() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch_group("e", Some(false), &[("first", "sleep 1000", BURSTING)]);
    let executor = bench.container("first")["parent"].clone();
    assert_eq!(bench.values(&executor), (204, 60_000, 64, 96));
    for (id, sizes, with) in [
        ("second", BURSTING, (307, 110_000, 96, 160)),
        ("third", PLAIN, (307, 70_000, 96, 128)),
        ("fourth", Sizes::of((0.1, 32.0), Some(INF), Some(INF)), (307, -1, 96, -1)),
    ] {
        bench.launch_group("e", Some(false), &[(id, "sleep 1000", sizes)]);
        bench.container(id);
        assert_eq!(bench.values(&executor), with, "{id}");
        bench.kill(id);
        wait_for("what was before", || (bench.values(&executor) == (204, 60_000, 64, 96)).then_some(()));
    }
}

#[test]
fn cli_sets_and_shows_limits() {
    let Some(bench) = Limited::start(&[]) else { return };
    bench.scheduler.call(json!({"type": "TEARDOWN"})); // It holds all resources.
    let master = format!("--master={}", bench.cluster.master.address);
    let tepui = |arguments: &[&str]| {
        Command::new(binary()).args(arguments).arg(&master).output().expect("tepui starts")
    };
    let mut running = Command::new(binary())
        .args(["run", &master, "--name=burst", "--cpus=0.1", "--cpus-limit=2", "--mem=32", "--mem-limit=inf"])
        .args(["--", "sleep", "1000"])
        .spawn()
        .expect("tepui starts");
    // Request, limits and use, side by side.
    let row = wait_for("the task to run and to use something", || {
        let list = String::from_utf8_lossy(&tepui(&["tasks", "--state=running"]).stdout).into_owned();
        let row = list.lines().find(|line| line.contains("burst"))?.to_owned();
        let used = row.split_once("mem:inf")?.1.split_whitespace().next()?;
        used.starts_with(|first: char| first.is_ascii_digit()).then_some(row)
    });
    let words: Vec<&str> = row.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "cpus:2").unwrap_or_else(|| panic!("{row}"));
    assert_eq!(words[at - 2..at], ["0.1", "32M"], "{row}");
    // Without an answer of a busy agent only the usage is missing.
    let detail = wait_for("the task with its usage", || {
        let detail = String::from_utf8_lossy(&tepui(&["task", "burst"]).stdout).into_owned();
        detail.contains("usage").then_some(detail)
    });
    assert!(detail.contains("cpus:0.1 mem:32M") && detail.contains("cpus:2 mem:Infinity"), "{detail}");
    running.kill().expect("it runs");
    running.wait().expect("it was started here");
    let refused = tepui(&["run", "--mem=64", "--mem-limit=32", "--", "true"]);
    assert!(!refused.status.success(), "{refused:?}");
}

/// Request, limit and usage of an executor's container and of a task's own.
#[test]
fn resource_statistics_are_reported() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.comes_first();
    // Exceeds its quota for a while, then sleeps to leave cpu time for others.
    let burn = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1000";
    bench.launch("busy", burn, Sizes::of((0.1, 32.0), Some(0.1), Some(INF)), |_| ());
    bench.container("busy");
    let sizes = Sizes::of((0.1, 32.0), Some(0.5), Some(64.0));
    bench.launch_group("own", Some(false), &[("nested", burn, sizes)]);
    let nested = bench.container("nested");
    let http = bench.cluster.agent_http();
    let busy = wait_for("a throttled task", || {
        let all = http.get("/monitor/statistics").json()?;
        let of = |one: &Value| (one["executor_id"] == "busy").then(|| one["statistics"].clone());
        let busy = all.as_array()?.iter().find_map(of)?;
        (busy["cpus_nr_throttled"].as_u64()? > 0 && busy["cpus_throttled_time_secs"].as_f64()? > 0.0)
            .then_some(busy)
    });
    const MB: u64 = 1024 * 1024;
    assert_eq!(
        (&busy["cpus_soft_limit"], &busy["mem_soft_limit_bytes"]),
        (&json!(0.2), &json!(64 * MB)),
        "{busy}"
    );
    assert!((busy["cpus_limit"].as_f64().expect("a number") - 0.2).abs() < 1e-9, "{busy}");
    assert!(busy["mem_limit_bytes"].as_u64() > Some(256 * MB), "endless is all there is: {busy}");
    for key in
        ["processes", "threads", "mem_total_bytes", "mem_anon_bytes", "mem_rss_bytes", "cpus_nr_periods"]
    {
        assert!(busy[key].as_u64() > Some(0), "{key}: {busy}");
    }
    for key in [
        "mem_file_bytes",
        "mem_cache_bytes",
        "mem_mapped_file_bytes",
        "mem_swap_bytes",
        "mem_unevictable_bytes",
    ] {
        assert!(busy[key].is_u64(), "{key}: {busy}");
    }
    let call = json!({"type": "GET_CONTAINERS", "get_containers": {"show_nested": true}});
    let all = http.post("/api/v1", &call).json().expect("an answer")["get_containers"]["containers"].clone();
    let is_nested = |one: &&Value| one["container_status"]["container_id"] == nested;
    let found = all.as_array().expect("a list").iter().find(is_nested).expect("the task's own container");
    let own = &found["resource_statistics"];
    assert_eq!(
        (&own["mem_soft_limit_bytes"], &own["mem_limit_bytes"]),
        (&json!(32 * MB), &json!(64 * MB)),
        "{own}"
    );
    assert!(own["cpus_user_time_secs"].as_f64() > Some(0.0), "{own}");
}

/// Cpu time, memory and processes are reported with either isolator alone.
#[test]
fn statistics_are_complete_with_one_isolator_alone() {
    for (isolation, counts_memory) in [("--isolation=cgroups/mem", true), ("--isolation=cgroups/cpu", false)]
    {
        let Some(mut bench) = Limited::start(&[isolation]) else { return };
        let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; sleep 1000";
        bench.launch("t", burn, PLAIN, |_| ());
        bench.container("t");
        let http = bench.cluster.agent_http();
        for path in ["/containers", "/monitor/statistics"] {
            let found = wait_for("time to be used", || {
                let found = http.get(path).json()?[0]["statistics"].clone();
                (found["cpus_user_time_secs"].as_f64()? > 0.0).then_some(found)
            });
            assert!(found["mem_rss_bytes"].as_u64() > Some(100_000), "{isolation} {path}: {found}");
            assert!(found["processes"].as_u64() > Some(0), "{isolation} {path}: {found}");
            assert_eq!(
                found["mem_total_bytes"].as_u64() > Some(0),
                counts_memory,
                "{isolation} {path}: {found}"
            );
            assert_eq!(found["cpus_nr_periods"].is_u64(), !counts_memory, "{isolation} {path}: {found}");
        }
    }
}

/// Every document and call that shows tasks, of master and agent, shows their limits.
#[test]
fn limits_are_in_every_operator_answer() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch("t", "sleep 1000", Sizes::of((0.1, 32.0), Some(0.5), Some(INF)), |_| ());
    bench.container("t");
    let (master, agent) = (bench.cluster.http(), bench.cluster.agent_http());
    let classic = json!({"cpus": 0.5, "mem": "Infinity"});
    let plain = json!({"cpus": {"value": 0.5}, "mem": {"value": "Infinity"}});
    for (name, shown) in [
        ("master /state", master.get("/state").json()),
        ("master /tasks", master.get("/tasks").json()),
        ("master /frameworks", master.get("/frameworks").json()),
        ("agent /state", agent.get("/state").json()),
    ] {
        let shown = shown.expect("JSON");
        assert_eq!(limits_in(&shown), Some(&classic), "{name}: {shown}");
    }
    for (name, http, call) in [
        ("master", &master, "GET_TASKS"),
        ("master", &master, "GET_STATE"),
        ("agent", &agent, "GET_TASKS"),
        ("agent", &agent, "GET_STATE"),
    ] {
        let shown = http.post("/api/v1", &json!({"type": call})).json().expect("JSON");
        assert_eq!(limits_in(&shown), Some(&plain), "{name} {call}: {shown}");
    }
    let headers = [("Accept", "application/json")];
    let mut events = master.stream("/api/v1", &headers, &json!({"type": "SUBSCRIBE"}));
    let shown = events.next_event().expect("SUBSCRIBED");
    assert_eq!(limits_in(&shown), Some(&plain), "SUBSCRIBED: {shown}");
    bench.launch("u", "sleep 1000", Sizes::of((0.1, 32.0), Some(0.5), Some(INF)), |_| ());
    let added = std::iter::from_fn(|| events.next_event()).find(|event| event["type"] == "TASK_ADDED");
    let added = added.expect("the stream lives");
    assert_eq!(limits_in(&added), Some(&plain), "{added}");
}

/// The first limits of a task anywhere in a document.
fn limits_in(shown: &Value) -> Option<&Value> {
    match shown {
        Value::Object(fields) => {
            let is_task = fields.contains_key("state") && fields.contains_key("resources");
            let own = fields.get("limits").filter(|_| is_task);
            own.or_else(|| fields.values().find_map(limits_in))
        }
        Value::Array(all) => all.iter().find_map(limits_in),
        _ => None,
    }
}

/// Invalid keys, and values beyond any machine.
#[test]
fn invalid_limits_are_rejected_and_huge_ones_are_unlimited() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch("huge", "sleep 1000", Sizes::of((0.1, 32.0), Some(1e308), Some(1e308)), |_| ());
    let container = bench.container("huge");
    assert_eq!(bench.values(&container), (204, -1, 64, -1), "more than there can be is all there is");
    for (id, key, value, reason) in [
        (
            "disk",
            "disk",
            json!(1),
            "Only cpus and mem may be included in a task's resource limits, not 'disk'",
        ),
        (
            "upper",
            "CPUS",
            json!(1),
            "Only cpus and mem may be included in a task's resource limits, not 'CPUS'",
        ),
        ("empty", "", json!(1), "Only cpus and mem may be included in a task's resource limits, not ''"),
        (
            "path",
            "../../mem",
            json!(1),
            "Only cpus and mem may be included in a task's resource limits, not '../../mem'",
        ),
        (
            "less",
            "mem",
            json!(31),
            "The memory limit must be greater than or equal to the memory request: 'limits.mem' is 31, the request 32",
        ),
        (
            "minus",
            "cpus",
            json!(-0.5),
            "The cpu limit must be greater than or equal to the cpu request: 'limits.cpus' is -0.5, the request 0.1",
        ),
        (
            "none",
            "mem",
            json!("-Infinity"),
            "The memory limit 'limits.mem' must be a number or Infinity, not -inf",
        ),
    ] {
        bench.launch(id, "true", Sizes::of((0.1, 32.0), None, None), |task| {
            task["limits"] = json!({key: {"value": value}});
        });
        let status = bench.scheduler.reach(id, "TASK_ERROR");
        assert_eq!((&status["message"], &status["reason"]), (&json!(reason), &json!("REASON_TASK_INVALID")));
    }
}

/// A fork bomb is limited to its container and killed completely.
#[test]
fn a_fork_bomb_stays_in_its_container() {
    let flags = ["--isolation=cgroups/cpu,cgroups/mem,cgroups/pids", "--executor_kill_margin=1secs"];
    let Some(mut bench) = Limited::start(&flags) else { return };
    // Its executor shares its memory: RUNNING is reported before the memory is exhausted.
    let mut gate = Gate::new(bench.cluster.folder(), "gate");
    bench.launch(
        "bomb",
        &format!("{}; bomb() {{ bomb | bomb & }}; bomb; wait; sleep 1000", gate.pass()),
        Sizes::of((0.1, 64.0), Some(0.2), None),
        |task| task["kill_policy"] = json!({"grace_period": {"nanoseconds": 1_000_000_000}}),
    );
    let container = bench.container("bomb");
    gate.open();
    let memory = bench.cgroup("memory", &container);
    // Its memory limit stops it first; the agent is not affected.
    wait_for("its limit to stop it", || (!memory.exists() || limit_hits(&memory)? > 0).then_some(()));
    bench.launch("other", "true", Sizes::of((0.1, 32.0), None, None), |_| ());
    bench.scheduler.reach("other", "TASK_FINISHED");
    // Its executor is in the same cgroups and may be starved: then the agent destroys the container, unless an OOM kill
    // already did.
    bench.ask_to_kill("bomb");
    let end = bench.scheduler.end("bomb");
    let by_kernel = end["reason"] == "REASON_CONTAINER_LIMITATION_MEMORY";
    assert!(end["state"] == "TASK_KILLED" || by_kernel, "{end}");
    wait_for("nothing of it to be left", || (!memory.exists()).then_some(()));
}
