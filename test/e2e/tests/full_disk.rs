//! A full disk affects only operations that need space: agents and masters answer, kill tasks, reject operations that need
//! space, lose nothing, and recover when there is space.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Disk, Http, Polled, Scheduler, still_works, wait_for};

const RESOURCES: &str = "--resources=cpus:8;mem:4096;disk:4096;ports:[31000-32000]";
/// For disks of some megabytes.
const RESERVE: &str = "--disk_reserve=256KB";
const PRESSURE: &str = "--disk_pressure_available=2MB";

/// Fills the disk, again and again.
const FILL: &str = "while true; do cat /dev/zero >> filler; sleep 0.1; done 2> /dev/null";

fn agent_entry(cluster: &Cluster) -> Option<Value> {
    Some(cluster.http().get("/slaves").json()?["slaves"][0].clone())
}

fn metric(http: &Http, name: &str) -> f64 {
    http.get("/metrics/snapshot").json().expect("metrics")[name].as_f64().unwrap_or(-1.0)
}

/// Waits for the update of a task in this state without acknowledging it.
fn unacknowledged(scheduler: &mut Scheduler, task: &str, state: &str) {
    let is_it = |event: &Value| {
        let status = &event["update"]["status"];
        event["type"] == "UPDATE" && status["task_id"]["value"] == task && status["state"] == state
    };
    scheduler.event("an update", is_it).expect("the stream goes on");
}

#[test]
fn agent_recovers_from_a_disk_filled_by_a_task() {
    let mut cluster = Cluster::without_agents(&["--agent_ping_timeout=1secs", "--max_agent_ping_timeouts=2"]);
    let Some(disk) = Disk::mount(cluster.folder(), 32) else { return };
    cluster.add_agent_at(disk.path(), &[RESOURCES, RESERVE, PRESSURE]);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "filler", FILL)]);
    scheduler.reach("filler", "TASK_RUNNING");

    // Visible to operators on both programs, with the reason for missing offers.
    wait_for("the disk to be full", || (disk.available() == 0).then_some(()));
    let full = Instant::now();
    let entry =
        wait_for("disk pressure", || agent_entry(&cluster).filter(|it| it["disk_pressure"].is_object()));
    eprintln!("disk full to disk pressure at the master: {:?}", full.elapsed());
    assert_eq!(entry["active"], true, "{entry}");
    let agent = cluster.agent_http();
    assert!(agent.get("/state").json().expect("a state")["disk_pressure"].is_object());
    assert_eq!(metric(&agent, "slave/disk_pressure"), 1.0);
    assert_eq!(metric(&cluster.http(), "master/slaves_disk_pressure"), 1.0);
    let explained = cluster.http().get(&format!("/explain/framework/{}", scheduler.framework_id)).text();
    assert!(explained.contains("1 under disk pressure"), "{explained}");

    // It answers pings: an agent that stops doing so later is found to be unreachable, and this one is not.
    cluster.add_agent(&[RESOURCES]);
    cluster.agents[1].signal("STOP");
    let unreachable = || metric(&cluster.http(), "master/slaves_unreachable");
    wait_for("the silent agent to be unreachable", || (unreachable() == 1.0).then_some(()));
    assert_eq!(metric(&cluster.http(), "master/slaves_connected"), 1.0);
    assert!(!cluster.agents[0].log().contains("disconnected from master"));
    drop(cluster.agents.pop());
    let alone = json!({"container_id": {"value": "alone"}, "command": {"value": "true"}});
    let launch = agent.post("/api/v1", &json!({"type": "LAUNCH_CONTAINER", "launch_container": alone}));
    assert_eq!(launch.status, 507, "{}", launch.text());
    assert!(launch.text().contains("disk pressure"), "{}", launch.text());

    // The filler is killed; the record is durable before the update, although the disk is full.
    let killed = Instant::now();
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "filler"}}}));
    scheduler.reach("filler", "TASK_KILLING");
    unacknowledged(&mut scheduler, "filler", "TASK_KILLED");
    eprintln!("KILL to TASK_KILLED on a full disk: {:?}", killed.elapsed());
    cluster.agents[0].kill();
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    scheduler.update("filler", "TASK_KILLED");

    // After the acknowledgement its sandbox is removed, which ends the pressure. A master that marked the agent unreachable
    // reports first, and the agent's update follows.
    wait_for("room", || {
        while let Polled::Event(event) = scheduler.poll(Duration::ZERO) {
            scheduler.acknowledge(&event["update"]["status"]);
        }
        agent_entry(&cluster).filter(|it| it["disk_pressure"].is_null())
    });
    assert_eq!(metric(&cluster.agent_http(), "slave/disk_reserve_used_bytes"), 0.0);
    scheduler.call(json!({"type": "TEARDOWN"}));
    still_works(&mut cluster, "with-room-again");
}

#[test]
fn largest_sandbox_is_evicted_under_disk_pressure() {
    let mut cluster = Cluster::without_agents(&[]);
    let Some(disk) = Disk::mount(cluster.folder(), 64) else { return };
    cluster.add_agent_at(disk.path(), &[RESOURCES, RESERVE, PRESSURE, "--eviction_disk_available=24MB"]);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let holds = |megabytes: u32| format!("head -c {megabytes}M /dev/zero > held; sleep 1000");
    let tasks = [("small", 4), ("large", 40)];
    let tasks = tasks.map(|(id, megabytes)| Scheduler::task(&offer, id, &holds(megabytes)));
    scheduler.launch(&offer, &tasks);
    scheduler.reach("small", "TASK_RUNNING");
    wait_for("the disk to be short", || (disk.available() < 24 << 20).then_some(()));
    let short = Instant::now();
    let status = scheduler.reach("large", "TASK_FAILED");
    eprintln!("disk short to TASK_FAILED of the evicted task: {:?}", short.elapsed());
    assert_eq!(status["reason"], "REASON_CONTAINER_LIMITATION_DISK", "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("its sandbox was the largest") && message.contains("Used: 4"), "{message}");
    assert_eq!(status["limitation"]["resources"][0]["name"], "disk", "{status}");
    wait_for("its sandbox to be removed", || (disk.available() > 24 << 20).then_some(()));
    let agent = cluster.agent_http();
    assert_eq!((metric(&agent, "slave/disk_evictions"), metric(&agent, "slave/tasks_running")), (1.0, 1.0));
}

fn put_weight(http: &Http, weight: u32) -> tepui_e2e::Response {
    let list = json!([{"role": "dev", "weight": weight}]).to_string();
    http.send("PUT", "/weights", &[], list.as_bytes())
}

fn weight(http: &Http) -> f64 {
    http.get("/weights").json().expect("weights")[0]["weight"].as_f64().unwrap_or(1.0)
}

#[test]
fn master_with_a_full_disk_rejects_changes_only() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let Some(disk) = Disk::mount(folder.path(), 16) else { return };
    let mut cluster = Cluster::with_master_at(disk.path(), &[RESERVE, PRESSURE]);
    cluster.add_agent(&[RESOURCES]);
    let mut info = Scheduler::info("dev");
    info["failover_timeout"] = json!(3600);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info.clone());
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "sleeper", "sleep 1000")]);
    scheduler.reach("sleeper", "TASK_RUNNING");
    assert_eq!(put_weight(&cluster.http(), 2).status, 200);
    let filler = disk.fill();

    let rejected =
        wait_for("a rejection", || Some(put_weight(&cluster.http(), 3)).filter(|it| it.status != 200));
    assert_eq!(rejected.status, 507, "{}", rejected.text());
    assert!(rejected.text().contains("disk pressure") && rejected.text().contains("nothing was changed"));
    let kept = weight(&cluster.http());
    assert_eq!(metric(&cluster.http(), "registrar/disk_pressure"), 1.0);

    // A known framework subscribes again and gets its heartbeat; its task is killed and acknowledged.
    info["id"] = json!({"value": scheduler.framework_id});
    drop(scheduler);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), info);
    scheduler.event("a heartbeat", |event| event["type"] == "HEARTBEAT").expect("the stream goes on");
    scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": "sleeper"}}}));
    scheduler.reach("sleeper", "TASK_KILLED");
    // A known agent reregisters; a new one has to wait.
    cluster.agents[0].kill();
    cluster.agents[0].restart();
    cluster.wait_for_agents(1);
    let master = cluster.master.address.clone();
    let work_dir = cluster.folder().join("new");
    cluster.add_agent_of(&master, &work_dir, &[RESOURCES]);
    wait_for("the new agent to be turned away", || cluster.agents[1].log().contains("507").then_some(()));

    // After a crash on the full disk all acknowledged state is recovered.
    cluster.master.kill();
    cluster.master.restart();
    cluster.wait_for_agents(1);
    assert_eq!(weight(&cluster.http()), kept);
    std::fs::remove_file(&filler).expect("the file can be removed");
    wait_for("room", || (put_weight(&cluster.http(), 4).status == 200).then_some(()));
    assert_eq!(weight(&cluster.http()), 4.0);
    cluster.wait_for_agents(2);
    still_works(&mut cluster, "with-room-again");
}
