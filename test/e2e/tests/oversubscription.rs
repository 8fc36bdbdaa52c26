//! Oversubscription with real processes: revocable resources are offered, used, counted and reclaimed.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler, scalar, wait_for};
use tepui_facilities::{Facility, available};

const AGENT: [&str; 3] = [
    "--resources=cpus:2;mem:1024;disk:1024",
    "--resource_estimator=fixed",
    "--fixed_estimator_resources=cpus:4",
];

fn revocable_framework() -> Value {
    let mut info = Scheduler::info("dev");
    info["capabilities"].as_array_mut().expect("a list").push(json!({"type": "REVOCABLE_RESOURCES"}));
    info
}

/// The amount of cpus of one kind in an offer.
fn cpus(offer: &Value, revocable: bool) -> f64 {
    let all = offer["resources"].as_array().into_iter().flatten();
    let wanted = all.filter(|one| one["name"] == "cpus" && one.get("revocable").is_some() == revocable);
    wanted.filter_map(|one| one["scalar"]["value"].as_f64()).sum()
}

fn revocable_task(offer: &Value, id: &str) -> Value {
    let mut task = Scheduler::task(offer, id, "sleep 1000");
    let mut cpus = scalar("cpus", 3.0);
    cpus["revocable"] = json!({"type": "USAGE_SLACK"});
    task["resources"] = json!([cpus, scalar("mem", 32.0)]);
    task
}

#[test]
fn fixed_estimator_offers_revocable_resources() {
    let cluster = Cluster::with(&[], &AGENT);
    let mut plain = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = plain.fresh_offer();
    assert_eq!((cpus(&offer, false), cpus(&offer, true)), (2.0, 0.0), "{offer}");
    assert_eq!(plain.call(json!({"type": "TEARDOWN"})).status, 202);

    let mut scheduler = Scheduler::subscribe(&cluster.http(), revocable_framework());
    let offer = scheduler.fresh_offer();
    assert_eq!((cpus(&offer, false), cpus(&offer, true)), (2.0, 4.0), "{offer}");
    scheduler.launch(&offer, &[revocable_task(&offer, "t")]);
    scheduler.reach("t", "TASK_RUNNING");
    let offer = scheduler.fresh_offer();
    assert_eq!((cpus(&offer, false), cpus(&offer, true)), (2.0, 1.0), "{offer}");
    for (http, prefix) in [(cluster.http(), "master"), (cluster.agent_http(), "slave")] {
        let metrics = http.get("/metrics/snapshot").json().expect("metrics");
        let cpus =
            ["total", "used", "percent"].map(|part| &metrics[format!("{prefix}/cpus_revocable_{part}")]);
        assert_eq!(cpus, [&json!(4.0), &json!(3.0), &json!(0.75)], "{prefix}");
    }
    for path in ["/state", "/state-summary", "/slaves"] {
        let agent = &cluster.http().get(path).json().expect("a document")["slaves"][0];
        let cpus = ["resources", "used_resources"].map(|of| &agent[of]["cpus_revocable"]);
        assert_eq!(cpus, [&json!(4.0), &json!(3.0)], "{path}: {agent}");
    }
}

#[test]
fn usage_slack_measured_in_proc_is_offered_as_revocable() {
    usage_slack_is_offered("--isolation=posix/cpu,posix/mem");
}

#[test]
fn usage_slack_measured_by_cgroups_is_offered_as_revocable() {
    if available(&[Facility::Cgroups]) {
        usage_slack_is_offered("--isolation=cgroups/cpu,cgroups/mem");
    }
}

fn usage_slack_is_offered(isolation: &str) {
    let flags = [
        "--resources=cpus:2;mem:1024;disk:1024",
        "--resource_estimator=usage",
        "--usage_estimator_watch=2secs",
        "--oversubscribed_resources_interval=1secs",
        isolation,
    ];
    let cluster = Cluster::with(&[], &flags);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), revocable_framework());
    let offer = scheduler.fresh_offer();
    assert_eq!((cpus(&offer, false), cpus(&offer, true)), (2.0, 0.0), "{offer}");
    let mut idle = Scheduler::task(&offer, "idle", "sleep 1000");
    idle["resources"] = json!([scalar("cpus", 1.9), scalar("mem", 64.0)]);
    scheduler.launch(&offer, &[idle]);
    scheduler.reach("idle", "TASK_RUNNING");
    // It sleeps, but its start is not forgotten at once.
    let found = std::iter::repeat_with(|| cpus(&scheduler.offer(), true)).find(|cpus| *cpus > 0.0);
    assert!(found.is_some_and(|cpus| (0.1..=2.0).contains(&cpus)), "{found:?}");
    let metrics = cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert!(metrics["slave/cpus_revocable_total"].as_f64().is_some_and(|cpus| cpus >= 0.1), "{metrics}");
}

#[test]
fn load_qos_controller_kills_revocable_tasks() {
    // Every load and every pressure is above these.
    ended_by(&["--qos_controller=load", "--load_threshold_5min=-1"]);
    // Not every kernel has PSI.
    if std::path::Path::new("/proc/pressure/cpu").exists() {
        ended_by(&["--qos_controller=pressure", "--pressure_threshold_cpu=-1"]);
    }
}

fn ended_by(controller: &[&str]) {
    let flags = [&AGENT[..], controller].concat();
    let cluster = Cluster::with(&[], &flags);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), revocable_framework());
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[revocable_task(&offer, "t"), Scheduler::task(&offer, "safe", "sleep 1000")]);
    scheduler.reach("safe", "TASK_RUNNING");
    let status = scheduler.reach("t", "TASK_GONE");
    assert_eq!(status["reason"], "REASON_CONTAINER_PREEMPTED", "{status}");
    // It may have been preempted before it ran.
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Container preempted by QoS correction"), "{status}");
    wait_for("the end of it to be counted", || {
        let metrics = cluster.agent_http().get("/metrics/snapshot").json()?;
        (metrics["slave/executors_preempted"] == 1.0 && metrics["slave/tasks_running"] == 1.0).then_some(())
    });
}
