//! Reserved but idle resources are lent to a real task, and taken back before the owner's task starts.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Scheduler};

const AGENT: &str = "--resources=cpus(ads):2;cpus:0;mem(ads):256;mem:256;disk:64;ports:[31000-31001]";

fn borrower() -> Value {
    let mut info = Scheduler::info("dev");
    info["capabilities"].as_array_mut().expect("a list").push(json!({"type": "REVOCABLE_RESOURCES"}));
    info
}

/// So much of an offered resource, as it was offered.
fn part(offer: &Value, name: &str, is_wanted: impl Fn(&Value) -> bool, amount: f64) -> Value {
    let mut all = offer["resources"].as_array().into_iter().flatten();
    let found = all.find(|one| one["name"] == name && is_wanted(one));
    let mut found = found.unwrap_or_else(|| panic!("no {name} in {offer}")).clone();
    found["scalar"]["value"] = json!(amount);
    found
}

fn is_lent(resource: &Value) -> bool {
    resource["revocable"]["type"] == "ALLOCATION_SLACK"
}

fn is_reserved(resource: &Value) -> bool {
    resource["reservations"][0]["role"] == "ads"
}

fn is_plain(resource: &Value) -> bool {
    !is_lent(resource) && !is_reserved(resource)
}

#[test]
fn owner_reclaims_lent_resources() {
    let cluster = Cluster::with(&[], &[AGENT]);
    let (ready, gone) = (cluster.folder().join("ready"), cluster.folder().join("gone"));
    let mut borrower = Scheduler::subscribe(&cluster.http(), borrower());
    let offer = borrower.fresh_offer();
    let command = format!(
        "trap 'sleep 1; touch {}; exit 0' TERM; touch {}; while :; do sleep 0.1; done",
        gone.display(),
        ready.display()
    );
    let mut task = Scheduler::task(&offer, "borrowed", &command);
    let mut lent = part(&offer, "cpus", is_lent, 2.0);
    lent["revocable"] = json!({}); // As a scheduler of v1 writes it.
    task["resources"] = json!([lent, part(&offer, "mem", is_plain, 32.0)]);
    borrower.launch(&offer, &[task]);
    borrower.reach("borrowed", "TASK_RUNNING");
    tepui_e2e::wait_for("the borrower to be ready", || ready.exists().then_some(()));
    for (http, prefix) in [(cluster.http(), "master"), (cluster.agent_http(), "slave")] {
        let metrics = http.get("/metrics/snapshot").json().expect("metrics");
        let cpus =
            ["total", "used", "percent"].map(|part| &metrics[format!("{prefix}/cpus_revocable_{part}")]);
        assert_eq!(cpus, [&json!(2.0), &json!(2.0), &json!(1.0)], "{prefix}");
    }
    for path in ["/state", "/state-summary", "/slaves"] {
        let agent = &cluster.http().get(path).json().expect("a document")["slaves"][0];
        let cpus = ["resources", "used_resources"].map(|of| &agent[of]["cpus_revocable"]);
        assert_eq!(cpus, [&json!(2.0), &json!(2.0)], "{path}: {agent}");
    }

    let mut owner = Scheduler::subscribe(&cluster.http(), Scheduler::info("ads"));
    let offer = owner.fresh_offer();
    let mut task = Scheduler::task(&offer, "owned", &format!("test -e {}", gone.display()));
    task["resources"] =
        json!([part(&offer, "cpus", is_reserved, 2.0), part(&offer, "mem", is_reserved, 32.0)]);
    owner.launch(&offer, &[task]);
    let waiting = owner.reach("owned", "TASK_STAGING");
    let message = waiting["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("Waiting for lent resources: 1 executor preempted"), "{waiting}");
    // Its command succeeds only if the borrower has terminated.
    owner.reach("owned", "TASK_FINISHED");

    let status = borrower.reach("borrowed", "TASK_GONE");
    assert_eq!(status["reason"], "REASON_CONTAINER_PREEMPTED", "{status}");
    assert_eq!(status["source"], "SOURCE_AGENT", "{status}");
    assert!(status["message"].as_str().is_some_and(|message| message.contains("'ads'")), "{status}");
    let metrics = cluster.agent_http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(
        (&metrics["slave/slack_evictions"], &metrics["slave/slack_take_backs"]),
        (&json!(1.0), &json!(1.0))
    );
    assert!(metrics["slave/slack_take_back_secs_max"].as_f64().is_some_and(|secs| secs > 0.0), "{metrics}");
    let metrics = cluster.http().get("/metrics/snapshot").json().expect("metrics");
    assert_eq!(
        (&metrics["master/slack_evictions"], &metrics["allocator/slack/take_back_ms/count"]),
        (&json!(1.0), &json!(1.0))
    );
    assert!(metrics["allocator/slack/take_back_ms/p50"].as_f64().is_some_and(|ms| ms > 0.0), "{metrics}");
}
