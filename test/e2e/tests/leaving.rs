//! An agent that unregisters: its tasks are killed, the master removes it, its process exits.

use tepui_e2e::{Cluster, Scheduler, wait_for};

#[test]
fn sigusr1_unregisters_the_agent() {
    let mut cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "t", "sleep 1000")]);
    scheduler.reach("t", "TASK_RUNNING");
    cluster.agents[0].signal("USR1");
    let status = scheduler.reach("t", "TASK_LOST");
    assert_eq!(status["reason"], "REASON_AGENT_REMOVED", "{status}");
    let failure = scheduler.event("FAILURE", |event| event["type"] == "FAILURE").expect("the stream lives");
    assert_eq!(failure["failure"]["agent_id"], offer["agent_id"]);
    assert!(cluster.agents[0].wait().success());
    wait_for("the master to forget it", || {
        let agents = cluster.http().get("/slaves").json()?;
        agents["slaves"].as_array()?.is_empty().then_some(())
    });
}
