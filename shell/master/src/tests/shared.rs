//! Who asks for the same thing gets the same answer, made once; who asks for less gets an answer of their own.

use super::*;

async fn shared(master: &RunningMaster) -> u64 {
    let metrics: Value = serde_json::from_str(&get(master, "/metrics/snapshot").await.body).unwrap();
    metrics["master/http_cache_hits"].as_f64().unwrap() as u64
}

#[tokio::test]
async fn documents_without_a_query_are_rendered_once() {
    let master = start().await;
    for (path, once) in [
        ("/state", true),
        ("/state-summary", true),
        ("/slaves", true),
        ("/frameworks", true),
        ("/tasks", true),
        ("/roles", true),
        ("/slaves?slave_id=A", false),
        ("/frameworks?framework_id=F", false),
        ("/tasks?limit=5", false),
        ("/tasks?order=asc", false),
        ("/tasks?task_id=t", false),
    ] {
        let before = shared(&master).await;
        let (first, second) = (get(&master, path).await, get(&master, path).await);
        assert_eq!((first.status, &first.body), (200, &second.body), "{path}");
        assert_eq!(shared(&master).await - before, u64::from(once), "{path}");
    }
    master.stop().await.unwrap();
}
