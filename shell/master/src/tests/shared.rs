//! Readers that request the same thing of the same version share one answer.

use super::*;

async fn shared(master: &RunningMaster) -> u64 {
    let metrics: Value = serde_json::from_str(&get(master, "/metrics/snapshot").await.body).unwrap();
    metrics["master/http_cache_hits"].as_f64().unwrap() as u64
}

#[tokio::test]
async fn the_same_request_is_rendered_once() {
    let master = start().await;
    for path in [
        "/state",
        "/state-summary",
        "/slaves",
        "/frameworks",
        "/tasks",
        "/roles",
        "/slaves?slave_id=A",
        "/frameworks?framework_id=F",
        "/tasks?limit=5",
        "/tasks?order=asc",
        "/tasks?task_id=t",
        "/registrar(1)/registry",
    ] {
        let (first, second, shared) = ask_twice(&master, path).await;
        assert_eq!((first.status, &first.body), (200, &second.body), "{path}");
        assert!(shared > 0, "{path}");
    }
    master.stop().await.unwrap();
}

/// Two answers of one version, and how many were shared meanwhile. A master that has just started may publish a version in
/// between: then both are requested again.
async fn ask_twice(master: &RunningMaster, path: &str) -> (Answer, Answer, u64) {
    loop {
        let before = shared(master).await;
        let (first, second) = (get(master, path).await, get(master, path).await);
        let tag =
            |answer: &Answer| answer.head.lines().find(|line| line.starts_with("etag:")).map(str::to_owned);
        if tag(&first) == tag(&second) {
            return (first, second, shared(master).await - before);
        }
    }
}
