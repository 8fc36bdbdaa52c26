//! `--container_logger=logrotate`: output files that are exchanged when large, as the agent or the task chose.

use std::path::PathBuf;

use serde_json::json;
use tepui_e2e::{Cluster, Scheduler, scalar, wait_for};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";

fn sandbox(cluster: &Cluster, scheduler: &Scheduler, task: &str) -> PathBuf {
    let agents = cluster.agents[0].work_dir.join("slaves");
    let id = scheduler.agent_id["value"].as_str().expect("an id");
    let executors = agents.join(id).join("frameworks").join(&scheduler.framework_id).join("executors");
    executors.join(task).join("runs/latest")
}

/// Every number that was written, or the part of them that these files hold; the files are none too large.
fn numbers(sandbox: &std::path::Path, kept: usize, bytes_max: u64) -> Vec<u32> {
    let older = (1..=kept).rev().map(|number| sandbox.join(format!("stdout.{number}")));
    let files: Vec<PathBuf> = older.chain([sandbox.join("stdout")]).collect();
    let too_old = sandbox.join(format!("stdout.{}", kept + 1));
    assert!(!too_old.exists(), "{} is one too many", too_old.display());
    let text = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        assert!(text.len() as u64 <= bytes_max, "{} has {} bytes", path.display(), text.len());
        text
    };
    let all = files.iter().map(text).collect::<String>();
    // The oldest may begin in the middle of a number.
    let whole = if kept == 2 { all.split_once('\n').expect("lines").1 } else { &all };
    whole.lines().map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn rotated_output_loses_no_byte() {
    let flags = [
        RESOURCES,
        "--container_logger=org_apache_mesos_LogrotateContainerLogger",
        "--max_stdout_size=16KB",
        "--logrotate_stdout_options=rotate 2",
    ];
    let cluster = Cluster::with(&[], &flags);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let script = "seq 1 9999; echo done >&2";
    let plain = Scheduler::task(&offer, "plain", script);
    let mut own = Scheduler::task(&offer, "own", script);
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    own["command"]["environment"] = json!({"variables": [
        variable("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "8KB"),
        variable("CONTAINER_LOGGER_LOGROTATE_STDOUT_OPTIONS", "rotate 20"),
    ]});
    let mut wrong = Scheduler::task(&offer, "wrong", script);
    wrong["command"]["environment"] =
        json!({"variables": [variable("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "large")]});
    scheduler.launch(&offer, &[plain, own, wrong]);
    for task in ["plain", "own"] {
        scheduler.reach(task, "TASK_FINISHED");
        // The last output may reach the file after the terminal update.
        let stdout = sandbox(&cluster, &scheduler, task).join("stdout");
        wait_for("the last number", || {
            std::fs::read_to_string(&stdout).ok().filter(|text| text.ends_with("9999\n"))
        });
    }
    let failed = scheduler.reach("wrong", "TASK_FAILED");
    let message = failed["message"].as_str().expect("a message");
    assert!(message.contains("CONTAINER_LOGGER_MAX_STDOUT_SIZE is not a size: 'large'"), "{message}");

    let kept = numbers(&sandbox(&cluster, &scheduler, "plain"), 2, 16 * 1024);
    assert!(kept.len() > 5000 && kept.windows(2).all(|two| two[0] + 1 == two[1]), "{} numbers", kept.len());
    assert_eq!(kept.last(), Some(&9999));
    // 48,889 bytes are six files of eight kilobytes.
    let all = numbers(&sandbox(&cluster, &scheduler, "own"), 5, 8 * 1024);
    assert_eq!(all, (1..=9999).collect::<Vec<u32>>());
    let stderr = sandbox(&cluster, &scheduler, "own").join("stderr");
    wait_for("the other output", || std::fs::read_to_string(&stderr).ok().filter(|text| text == "done\n"));
}

/// The logger of a group task is its own choice, and files are rotated by the container's supervisor: the agent may crash
/// at any moment.
#[test]
fn agent_crash_loses_no_output() {
    let flags = [RESOURCES, "--container_logger=logrotate", "--executor_reregistration_timeout=15secs"];
    let mut cluster = Cluster::with(&[], &flags);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    // Some hundred numbers at a time, so that it takes a while.
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; \
                  [ $((i % 200)) != 0 ] || sleep 0.02; done";
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let task = |id: &str| {
        let mut task = Scheduler::task(&offer, id, script);
        task["command"]["environment"] = json!({"variables": [
            variable("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "4KB"),
            variable("CONTAINER_LOGGER_LOGROTATE_STDOUT_OPTIONS", "rotate 100"),
        ]});
        task
    };
    let executor = json!({
        "type": "DEFAULT", "executor_id": {"value": "group"}, "framework_id": {"value": scheduler.framework_id},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0), scalar("disk", 1.0)]
    });
    let group = json!({"executor": executor, "task_group": {"tasks": [task("nested")]}});
    scheduler.accept(
        &offer,
        json!([
            {"type": "LAUNCH", "launch": {"task_infos": [task("single")]}},
            {"type": "LAUNCH_GROUP", "launch_group": group}
        ]),
    );
    for task in ["single", "nested"] {
        scheduler.reach(task, "TASK_RUNNING"); // Acknowledged before the crash, otherwise it would be resent.
    }
    let places = [("single", ""), ("group", "tasks/nested")];
    let places = places.map(|(executor, below)| sandbox(&cluster, &scheduler, executor).join(below));
    for place in &places {
        wait_for("a file to be exchanged", || place.join("stdout.2").exists().then_some(()));
    }
    for _ in 0..3 {
        cluster.agents[0].kill();
        cluster.agents[0].restart();
    }
    for task in ["single", "nested"] {
        scheduler.reach(task, "TASK_FINISHED");
    }
    // 108,894 bytes are 27 files of four kilobytes.
    for place in &places {
        wait_for("the last number", || {
            std::fs::read_to_string(place.join("stdout")).ok().filter(|text| text.ends_with("20000\n"))
        });
        assert_eq!(numbers(place, 26, 4 * 1024), (1..=20_000).collect::<Vec<u32>>(), "{}", place.display());
    }
}
