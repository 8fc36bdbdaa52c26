//! Limits of task groups by labels of their executors, compared with cgroup files.

use serde_json::{Value, json};
use tepui_e2e::{Limited, Sizes};

const SWITCH: &str = "--task_group_limits";
const PLAIN: Sizes = Sizes::of((0.1, 32.0), None, None);

fn limits(cpus: &str, mem: &str) -> Value {
    json!({"labels": [
        {"key": "tepui.limits.cpus", "value": cpus}, {"key": "tepui.limits.mem", "value": mem}
    ]})
}

#[test]
fn tasks_share_the_limit_of_their_group() {
    let Some(mut bench) = Limited::with(&[SWITCH], &[SWITCH]) else { return };
    // Without cgroups of their own, and without limits of their own.
    let two = [("s1", "sleep 1000", PLAIN), ("s2", "sleep 1000", PLAIN)];
    bench.launch_group_with("shared", None, &two, |executor| executor["labels"] = limits("2", "256"));
    let id = bench.container("s1");
    assert!(!bench.has_own_limits(&id));
    assert_eq!(bench.values(&id["parent"]), (307, 200_000, 96, 256));

    // "Constrain A and B, but allow C to use as much as is available", within the group.
    let free = Sizes::of((0.1, 32.0), Some(f64::INFINITY), Some(f64::INFINITY));
    let bound = Sizes::of((0.1, 32.0), Some(0.5), Some(64.0));
    let two = [("o1", "sleep 1000", bound), ("o2", "sleep 1000", free)];
    bench.launch_group_with("own", Some(false), &two, |executor| executor["labels"] = limits("2", "256"));
    let (first, second) = (bench.container("o1"), bench.container("o2"));
    assert_eq!(bench.values(&first), (102, 50_000, 32, 64));
    assert_eq!(bench.values(&second), (102, -1, 32, -1));
    assert_eq!(bench.values(&first["parent"]), (307, 200_000, 96, 256));
}

/// A task that exceeds the limit of its group is killed.
#[test]
fn group_above_its_limit_is_reported() {
    let Some(mut bench) = Limited::with(&[SWITCH], &[SWITCH]) else { return };
    let free = Sizes::of((0.1, 32.0), None, Some(f64::INFINITY));
    let hog = [("hog", "head -c 1G /dev/zero | tail > /dev/null", free)];
    bench.launch_group_with("own", Some(false), &hog, |executor| executor["labels"] = limits("4", "128"));
    let status = bench.scheduler.reach("hog", "TASK_FAILED");
    assert_eq!(status["reason"], "REASON_CONTAINER_LIMITATION_MEMORY", "{status}");
    assert!(status["message"].as_str().is_some_and(|printed| printed.contains("Limit: 128MB")), "{status}");
}

#[test]
fn invalid_group_limits_are_rejected() {
    let Some(mut bench) = Limited::with(&[SWITCH], &[SWITCH]) else { return };
    let wide = Sizes::of((0.1, 32.0), Some(4.0), None);
    for (number, (sizes, labels, reason)) in [
        (
            PLAIN,
            limits("much", "256"),
            "The label 'tepui.limits.cpus' must be a positive number or Infinity, not 'much'",
        ),
        (PLAIN, limits("2", "63"), "The mem limit 63 of the task group is less than its request of 64"),
        (
            wide,
            limits("2", "256"),
            "The cpus limit of task 't2' is greater than the cpus limit 2 of its task group",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("t{number}");
        bench.launch_group_with("e", Some(false), &[(&id, "true", sizes)], |executor| {
            executor["labels"] = labels
        });
        let status = bench.scheduler.reach(&id, "TASK_ERROR");
        assert_eq!(
            (&status["message"], &status["reason"]),
            (&json!(reason), &json!("REASON_TASK_GROUP_INVALID"))
        );
    }

    // Without the flag the labels have no effect.
    let Some(mut bench) = Limited::start(&[]) else { return };
    bench.launch_group_with("e", None, &[("t", "sleep 1000", PLAIN)], |executor| {
        executor["labels"] = limits("much", "63");
    });
    let id = bench.container("t");
    assert_eq!(bench.values(&id["parent"]), (204, -1, 64, 64));
}
