//! What is lent, as operators count it.

use super::obstacles::link_up_with;
use super::*;

#[tokio::test]
async fn slack_metrics_distinguish_total_from_offered() {
    let master = start().await;
    let _agent = link_up_with(&master, "cpus:1;mem:64;cpus(web):4;mem(web):96").await;
    let borrower =
        SUBSCRIBE.replace(r#""capabilities":["#, r#""capabilities":[{"type":"REVOCABLE_RESOURCES"},"#);
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", &borrower).await;
    let offers: Value = serde_json::from_str(&events.event("OFFERS").await).unwrap();
    let agent = offers["offers"]["offers"][0]["agent_id"]["value"].as_str().unwrap();
    let metrics = get(&master, "/metrics/snapshot").await.body;
    let metrics: Value = serde_json::from_str(&metrics).unwrap();
    let agent = format!("agents/{agent}/");
    for (whose, what) in [
        ("", "total"),
        ("", "offered"),
        (&agent, "total"),
        (&agent, "offered"),
        ("roles/web/", "total"),
        ("roles/dev/", "offered"),
    ] {
        for (name, amount) in [("cpus", 4.0), ("mem", 96.0)] {
            let key = format!("allocator/slack/{whose}{name}/{what}");
            assert_eq!(metrics[&key], amount, "{key}");
        }
    }
    assert_eq!(metrics.get("allocator/slack/cpus/allocated"), None, "nobody uses any");
    for (key, amount) in [("cpus", 4.0), ("mem", 96.0), ("disk", 0.0), ("gpus", 0.0)] {
        assert_eq!(metrics[&format!("master/{key}_revocable_total")], amount, "{key}");
        assert_eq!(metrics[&format!("master/{key}_revocable_used")], 0.0, "{key}");
        assert_eq!(metrics[&format!("master/{key}_revocable_percent")], 0.0, "{key}");
    }
    for path in ["/state", "/state-summary", "/slaves"] {
        let document: Value = serde_json::from_str(&get(&master, path).await.body).unwrap();
        let agent = &document["slaves"][0];
        for key in ["resources", "unreserved_resources", "offered_resources"] {
            assert_eq!(agent[key]["cpus_revocable"], 4.0, "{path} {key}: {agent}");
            assert_eq!(agent[key]["mem_revocable"], 96.0, "{path} {key}: {agent}");
        }
        assert_eq!(agent["resources"]["cpus"], 5.0, "{path}: {agent}");
    }
    let text = get(&master, "/metrics").await.body;
    for line in [
        r#"tepui_allocator_slack_total{resource="mem"} 96"#,
        r#"tepui_allocator_slack_role_offered{role="dev",resource="cpus"} 4"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    master.stop().await.unwrap();
}
