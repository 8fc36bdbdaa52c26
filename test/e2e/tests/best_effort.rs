//! Best-effort tasks: lowest share, evicted first.

use serde_json::Value;
use tepui_e2e::{Limited, Sizes, by_version, wait_for};

const NOTHING: Sizes = Sizes::of((0.0, 0.0), None, None);
const SWITCH: &str = "--best_effort_tasks";

/// The OOM score of the first process of a container.
fn score(bench: &Limited, id: &Value) -> String {
    wait_for("its score", || {
        let first = bench.processes("memory", id).into_iter().next()?;
        let score = std::fs::read_to_string(format!("/proc/{first}/oom_score_adj")).ok()?;
        Some(score.trim().to_owned()).filter(|score| score != "0")
    })
}

#[test]
fn best_effort_task_has_minimal_shares_and_maximal_oom_score() {
    let Some(mut bench) = Limited::with(&[SWITCH], &[SWITCH, "--cgroups_enable_cfs"]) else { return };
    let least = by_version(2, 10); // The smallest weight of v2, in shares.
    bench.launch("none", "sleep 1000", NOTHING, |_| ());
    let id = bench.container("none");
    assert_eq!(bench.values(&id), (least, -1, 0, -1), "shares, quota, request, limit");
    assert_eq!(score(&bench, &id), "1000");

    bench.launch("bound", "sleep 1000", Sizes::of((0.0, 0.0), Some(0.5), Some(64.0)), |_| ());
    let id = bench.container("bound");
    assert_eq!(bench.values(&id), (least, 50_000, 0, 64));

    bench.launch("half", "sleep 1000", Sizes::of((0.5, 0.0), None, None), |_| ());
    let id = bench.container("half");
    assert_eq!(bench.values(&id), (614, 60_000, 0, -1), "its cpus are a request like any other");

    let plain = Sizes::of((0.1, 32.0), None, None);
    bench.launch_group(
        "own",
        Some(false),
        &[("g-none", "sleep 1000", NOTHING), ("g-plain", "sleep 1000", plain)],
    );
    let (none, plain) = (bench.container("g-none"), bench.container("g-plain"));
    assert_eq!(bench.values(&none), (least, -1, 0, -1));
    assert_eq!(bench.values(&plain), (102, 10_000, 32, 32));
    assert_eq!(bench.values(&none["parent"]), (204, -1, 64, -1));
    assert_eq!(score(&bench, &none), "1000");
    let metrics = bench.cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(metrics["slave/tasks_running"], 5.0);
    bench.kill("none");
}

#[test]
fn best_effort_requires_the_flag_on_master_and_agent() {
    let Some(mut bench) = Limited::start(&[SWITCH]) else { return };
    bench.launch("none", "true", NOTHING, |_| ());
    let status = bench.scheduler.reach("none", "TASK_ERROR");
    assert_eq!(status["message"], "Task uses no resources", "{status}");

    let Some(mut bench) = Limited::with(&[SWITCH], &[]) else { return };
    bench.launch("none", "true", NOTHING, |_| ());
    let status = bench.scheduler.reach("none", "TASK_DROPPED");
    assert_eq!(
        status["message"], "A task without resources needs an agent with --best_effort_tasks",
        "{status}"
    );
}

/// It uses as much as others, but without a request.
#[test]
fn best_effort_task_is_evicted_first() {
    let Some(mut bench) = Limited::with(&[SWITCH], &[SWITCH, "--eviction_pressure=0"]) else { return };
    bench.launch("asked", "sleep 1000", Sizes::of((0.1, 256.0), None, None), |_| ());
    bench.container("asked");
    bench.launch("none", "sleep 1000", NOTHING, |_| ());
    let status = bench.scheduler.reach("none", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_MEMORY_REQUEST_EXCEEDED", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("Requested: 0MB Limit: Infinity"), "{message}");
    let metrics = bench.cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(metrics["slave/tasks_running"], 1.0);
}
