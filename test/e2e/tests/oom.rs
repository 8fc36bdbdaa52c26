//! OOM kills: each terminates its container, and every task in it has the reason. Needs root and cgroups.

use serde_json::{Value, json};
use tepui_e2e::{Limited, Sizes, scalar};

/// A child is OOM-killed; the command continues.
const SURVIVOR: &str = "head -c 1G /dev/zero | tail > /dev/null; sleep 1000";
/// The same, and the command exits at once.
const QUICK: &str = "head -c 1G /dev/zero | tail > /dev/null; exit 0";

const PLAIN: Sizes = Sizes::of((0.1, 32.0), None, None);
const LIMITED: Sizes = Sizes::of((0.1, 32.0), None, Some(96.0));

/// The reason, the figures and the limitation are those of a memory limit.
fn assert_limited(status: &Value, figures: &str) {
    assert_eq!(status["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("Memory limit exceeded: ") && message.contains(figures), "{status}");
    assert!(message.contains(" Maximum Used: "), "{status}");
    assert_eq!(status["limitation"]["resources"][0]["name"], "mem", "{status}");
    assert!(status["limitation"]["resources"][0]["scalar"]["value"].as_f64() > Some(0.0), "{status}");
}

#[test]
fn oom_kill_of_a_child_fails_a_command_task() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    for (id, script) in [("survivor", SURVIVOR), ("quick", QUICK)] {
        bench.launch(id, script, LIMITED, |_| ());
        let status = bench.scheduler.reach(id, "TASK_FAILED");
        assert_limited(&status, "Requested: 64MB Limit: 128MB");
        assert!(status["container_status"]["executor_pid"].as_u64() > Some(0), "{status}");
    }
    bench.launch("other", "exit 3", PLAIN, |_| ());
    assert!(bench.scheduler.reach("other", "TASK_FAILED").get("reason").is_none());
}

/// The limit of a task with its own cgroups terminates that task; its executor survives and kills the rest of the group.
#[test]
fn oom_kill_in_a_group_with_own_cgroups_fails_one_task() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch_group("own", Some(false), &[("hog", SURVIVOR, LIMITED), ("good", "sleep 1000", PLAIN)]);
    let status = bench.scheduler.reach("hog", "TASK_FAILED");
    assert_limited(&status, "Requested: 32MB Limit: 96MB");
    let container = &status["container_status"];
    assert!(container["executor_pid"].as_u64() > Some(0), "{status}");
    assert!(container["network_infos"][0]["ip_addresses"][0]["ip_address"].is_string(), "{status}");
    assert!(container["container_id"]["parent"]["value"].is_string(), "{status}");
    let status = bench.scheduler.reach("good", "TASK_KILLED");
    assert_ne!(status["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{status}");
}

/// Tasks that share the memory of their executor terminate with it. Tasks that terminated before do not get the reason.
#[test]
fn oom_kill_in_a_group_with_shared_cgroups_fails_all_tasks() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch_group("shared", None, &[("early", "exit 3", PLAIN)]);
    let status = bench.scheduler.reach("early", "TASK_FAILED");
    assert!(status.get("reason").is_none(), "{status}");
    bench.launch_group("again", None, &[("hog", SURVIVOR, PLAIN), ("good", "sleep 1000", PLAIN)]);
    for id in ["hog", "good"] {
        let status = bench.scheduler.reach(id, "TASK_FAILED");
        assert_limited(&status, "Requested: 96MB Limit: 96MB");
        assert!(status["container_status"]["executor_pid"].as_u64() > Some(0), "{status}");
    }
}

#[test]
fn oom_kill_in_the_container_of_a_custom_executor_fails_its_tasks() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    let offer = bench.offer();
    let program = env!("CARGO_BIN_EXE_letters_executor");
    let hog = "head -c 1G /dev/zero | tail > /dev/null";
    let mut task = PLAIN.task(&offer, "letters", "");
    drop(task.as_object_mut().expect("a task").remove("command"));
    task["executor"] = json!({
        "type": "CUSTOM", "executor_id": {"value": "letters"},
        "framework_id": {"value": bench.scheduler.framework_id},
        "command": {"value": format!("(while [ ! -e go ]; do sleep 0.1; done; {hog}) & {program}")},
        "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)],
    });
    assert_eq!(bench.scheduler.launch(&offer, &[task]).status, 202);
    let container = bench.container("letters");
    // All its processes are in its sandbox; some are exiting.
    let is_told = |pid: &String| std::fs::write(format!("/proc/{pid}/cwd/go"), "").is_ok();
    assert!(bench.processes("memory", &container).iter().any(is_told));
    assert_limited(&bench.scheduler.reach("letters", "TASK_FAILED"), "Requested: 64MB Limit: 64MB");
}

/// Containers that operators launch, alone and below an executor.
#[test]
fn wait_container_returns_oom_kill() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch("t", "sleep 1000", Sizes::of((0.1, 512.0), None, None), |_| ());
    let parent = bench.container("t");
    let http = bench.cluster.agent_http();
    let own = json!({"type": "MESOS", "linux_info": {"share_cgroups": false}});
    for id in [json!({"value": "alone"}), json!({"value": "nested", "parent": parent})] {
        let launch = json!({
            "container_id": id, "command": {"value": SURVIVOR}, "container": own,
            "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)], "limits": {"mem": {"value": 64.0}}
        });
        let launched = http.post("/api/v1", &json!({"type": "LAUNCH_CONTAINER", "launch_container": launch}));
        assert_eq!(launched.status, 200, "{}", launched.text());
        let wait = json!({"type": "WAIT_CONTAINER", "wait_container": {"container_id": id}});
        let ended = http.post("/api/v1", &wait).json().expect("JSON");
        let ended = &ended["wait_container"];
        assert_eq!(ended["state"], "TASK_FAILED", "{ended}");
        assert_limited(ended, "Requested: 32MB Limit: 64MB");
    }
}
