//! Size limits of the master's state: oversized input is rejected with the field and the limit.

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Response, Scheduler, wait_for};

fn labels(bytes: usize) -> Value {
    json!({"labels": [{"key": "k", "value": "x".repeat(bytes)}]})
}

fn subscribe(http: &Http, info: &Value) -> Response {
    let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info}});
    http.post("/api/v1/scheduler", &call)
}

#[test]
fn oversized_framework_is_rejected_naming_the_field() {
    let cluster = Cluster::without_agents(&["--max_framework_info_size=4KB", "--max_frameworks=1"]);
    let http = cluster.http();
    let info = |bytes: usize| {
        let mut info = Scheduler::info("dev");
        info["labels"] = labels(bytes);
        info
    };
    let refused = subscribe(&http, &info(5000));
    let (status, text) = (refused.status, refused.text());
    assert_eq!(status, 400, "{text}");
    let end = "more than the limit of 4096; its field 'labels' takes 5009 (--max_framework_info_size)";
    assert!(text.contains("'framework_info' takes ") && text.ends_with(end), "{text}");

    let scheduler = Scheduler::subscribe(&http, info(3000));
    let mut updated = info(5000);
    updated["id"] = json!({"value": scheduler.framework_id});
    let refused =
        scheduler.call(json!({"type": "UPDATE_FRAMEWORK", "update_framework": {"framework_info": updated}}));
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().ends_with(end), "{}", refused.text());

    let call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": info(1)}});
    let mut second = http.stream("/api/v1/scheduler", &[("Accept", "application/json")], &call);
    let event = second.next_event().expect("an event");
    let message = event["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(message, "The limit of 1 frameworks (--max_frameworks) is reached", "{event}");
}

#[test]
fn oversized_task_is_task_error_naming_the_field() {
    let cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    for (field, value) in [
        ("labels", labels(5 << 20)),
        ("data", json!("QUFB".repeat(2 << 20))),
        ("discovery", json!({"visibility": "CLUSTER", "name": "x".repeat(5 << 20)})),
        ("name", json!("x".repeat(5 << 20))),
    ] {
        let offer = scheduler.fresh_offer();
        let id = format!("large-{field}");
        let mut task = Scheduler::task(&offer, &id, "true");
        task[field] = value;
        assert_eq!(scheduler.launch(&offer, &[task]).status, 202);
        let status = scheduler.update(&id, "TASK_ERROR");
        let message = status["message"].as_str().unwrap_or_default();
        let expected = format!("more than the limit of 4194304; its field '{field}' takes ");
        assert!(message.contains(&expected) && message.ends_with("(--max_task_info_size)"), "{message}");
    }
    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "large-enough", "true");
    task["labels"] = labels(2 << 20);
    scheduler.launch(&offer, &[task]);
    scheduler.reach("large-enough", "TASK_FINISHED");
}

#[test]
fn tasks_per_framework_are_limited() {
    let flags = ["--max_task_info_size=64KB", "--max_task_bytes_per_framework=200KB"];
    let cluster = Cluster::with(&flags, &["--resources=cpus:8;mem:4096;disk:4096"]);
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.fresh_offer();
    let task = |id: &str, command: &str| {
        let mut task = Scheduler::task(&offer, id, command);
        task["labels"] = labels(60_000);
        task
    };
    let forever = "while :; do sleep 0.1; done";
    let tasks: Vec<Value> = ["t1", "t2", "t3", "t4"].iter().map(|id| task(id, forever)).collect();
    scheduler.launch(&offer, &tasks);
    let message = scheduler.update("t4", "TASK_ERROR")["message"].to_string();
    assert!(message.contains("the limit of 204800 (--max_task_bytes_per_framework)"), "{message}");
    scheduler.reach("t3", "TASK_RUNNING");
    for id in ["t1", "t2", "t3"] {
        scheduler.call(json!({"type": "KILL", "kill": {"task_id": {"value": id}}}));
        let status = scheduler.reach(id, "TASK_KILLED");
        scheduler.acknowledge(&status);
    }
    // Their memory is released; only some of the completed ones are kept.
    let offer = scheduler.fresh_offer();
    let mut task = Scheduler::task(&offer, "t5", "true");
    task["labels"] = labels(60_000);
    scheduler.launch(&offer, &[task]);
    let status = scheduler.reach("t5", "TASK_FINISHED");
    scheduler.acknowledge(&status);
    wait_for("the oldest to be forgotten", || {
        let frameworks = cluster.http().get("/frameworks").json()?;
        let completed = frameworks["frameworks"][0]["completed_tasks"].as_array()?.clone();
        let ids: Vec<&str> = completed.iter().filter_map(|task| task["id"].as_str()).collect();
        (ids.contains(&"t5") && ids.len() == 3).then_some(())
    });
}

#[test]
fn oversized_operations_and_agents_are_rejected() {
    let mut cluster = Cluster::without_agents(&["--max_operation_size=4KB", "--max_agent_info_size=8KB"]);
    cluster.add_agent(&["--resources=cpus:8;mem:4096;disk:4096"]);
    let agents = cluster.http().get("/slaves").json().expect("JSON");
    let reserve = json!({"type": "RESERVE_RESOURCES", "reserve_resources": {
        "agent_id": {"value": agents["slaves"][0]["id"]},
        "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0},
            "reservations": [{"type": "DYNAMIC", "role": "dev", "labels": labels(5000)}]}]}});
    let refused = cluster.http().post("/api/v1", &reserve);
    let text = refused.text();
    assert_eq!(refused.status, 400, "{text}");
    assert!(
        text.contains("its field 'reserve' takes ") && text.ends_with("(--max_operation_size)"),
        "{text}"
    );

    let (address, work_dir) = (cluster.master.address.clone(), cluster.folder().join("large"));
    let attributes = format!("--attributes=rack:{}", "x".repeat(9000));
    cluster.add_agent_of(&address, &work_dir, &["--resources=cpus:1;mem:64", &attributes]);
    wait_for("the refusal", || {
        let log = cluster.master.log();
        let refused =
            log.contains("The description of the agent takes ") && log.contains("'agent_info' takes ");
        (refused && log.contains("(--max_agent_info_size)")).then_some(())
    });
    assert_eq!(
        cluster.http().get("/slaves").json().expect("JSON")["slaves"].as_array().map(Vec::len),
        Some(1)
    );
}
