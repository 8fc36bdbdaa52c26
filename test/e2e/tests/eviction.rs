//! Memory pressure: the task farthest above its request is evicted before an OOM kill. A small parent cgroup of all
//! containers stands for the machine.

use std::process::Command;

use serde_json::json;
use tepui_e2e::{Limited, Sizes, binary, by_version, limit_hits, wait_for};

const INF: Option<f64> = Some(f64::INFINITY);

/// Allocates memory and holds it.
fn hold(megabytes: u32) -> String {
    format!("head -c {megabytes}M /dev/zero | tail | sleep 1000")
}

#[test]
fn task_farthest_above_its_request_is_evicted_before_an_oom_kill() {
    // Nothing but memory has to be counted.
    let flags = ["--isolation=cgroups/mem", "--eviction_memory_available=200MB"];
    let Some(mut bench) = Limited::start(&flags) else { return };
    let machine = bench.root("memory");
    std::fs::write(machine.join(by_version("memory.limit_in_bytes", "memory.max")), "512M")
        .expect("a machine of 512 megabytes");
    // The first uses much and is within its request, the second is hardly over its own. When the machine becomes short of
    // memory, the third has taken so much that it is farther over its own, however slowly it takes it.
    bench.launch("within", &hold(120), Sizes::of((0.1, 256.0), None, INF), |_| ());
    bench.launch("hardly", &hold(60), Sizes::of((0.1, 32.0), None, INF), |_| ());
    let others = [bench.container("within"), bench.container("hardly")];
    wait_for("memory to be taken", || {
        let taken =
            std::fs::read_to_string(machine.join(by_version("memory.usage_in_bytes", "memory.current")))
                .ok()?;
        (taken.trim().parse::<u64>().ok()? > 180 << 20).then_some(())
    });
    bench.launch("far", &hold(150), Sizes::of((0.1, 32.0), None, Some(1024.0)), |_| ());
    let status = bench.scheduler.reach("far", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("Memory request exceeded while the machine was short of memory"),
        "{message}"
    );
    assert!(message.contains("Requested: 64MB Limit: 1056MB Used: "), "{message}");
    assert_eq!(status["limitation"]["resources"][0]["name"], "mem", "{status}");
    let metrics = bench.cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(
        (&metrics["slave/memory_evictions"], &metrics["slave/tasks_running"]),
        (&json!(1.0), &json!(2.0))
    );
    assert!(others.iter().all(|id| bench.cgroup("memory", id).exists()));
    assert_eq!(limit_hits(&machine), Some(0), "the kernel never came to its limit");
}

/// With a pressure threshold that is always reached, tasks above their request are evicted, one with its own cgroups alone.
#[test]
fn pressure_evicts_the_nested_container_above_its_request() {
    let Some(mut bench) = Limited::start(&["--eviction_pressure=0"]) else { return };
    let sizes = Sizes::of((0.1, 32.0), None, INF);
    bench.launch_group("own", Some(false), &[("over", &hold(64), sizes), ("within", "sleep 1000", sizes)]);
    let status = bench.scheduler.reach("over", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{status}");
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|printed| printed.contains("Requested: 32MB Limit: Infinity Used: ")),
        "{status}"
    );
    // The group is killed with it, for another reason.
    let status = bench.scheduler.reach("within", "TASK_KILLED");
    assert_ne!(status["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{status}");
}

/// Without eviction the kernel chooses, and the framework receives the same reason.
#[test]
fn kernel_oom_kills_the_task_above_its_request() {
    let Some(mut bench) = Limited::start(&[]) else { return };
    let machine = bench.root("memory");
    std::fs::write(machine.join(by_version("memory.limit_in_bytes", "memory.max")), "384M")
        .expect("a machine of 384 megabytes");
    bench.launch("within", &hold(100), Sizes::of((0.1, 200.0), None, INF), |_| ());
    let within = bench.container("within");
    let hog = "head -c 1G /dev/zero | tail > /dev/null";
    bench.launch("over", hog, Sizes::of((0.1, 32.0), None, Some(1024.0)), |_| ());
    let status = bench.scheduler.reach("over", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("Memory request exceeded while the machine ran out of memory"), "{message}");
    assert!(message.contains("Requested: 64MB Limit: 1056MB Maximum Used: "), "{message}");
    assert!(bench.cgroup("memory", &within).exists());
    let metrics = bench.cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(metrics["slave/tasks_running"], 1.0, "who kept within its request runs on");
}

/// Eviction that could never happen is an error at the start of the agent.
#[test]
fn eviction_without_memory_accounting_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let agent = Command::new(binary())
        .args([
            "agent",
            "--master=127.0.0.1:1",
            "--ip=127.0.0.1",
            "--port=0",
            "--isolation=posix/cpu,posix/mem",
        ])
        .arg(format!("--work_dir={}", dir.path().join("work").display()))
        .arg(format!("--runtime_dir={}", dir.path().join("run").display()))
        .arg("--eviction_memory_available=100MB")
        .output()
        .expect("tepui starts");
    let printed = String::from_utf8_lossy(&agent.stderr);
    assert!(!agent.status.success() && printed.contains("add cgroups/mem to --isolation"), "{printed}");
}
