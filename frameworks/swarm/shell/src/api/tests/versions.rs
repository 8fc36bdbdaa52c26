//! Engines that reject the versions of clients.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kit::Kit;

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_sent_in_the_oldest_version_of_a_newer_engine() {
    let kit = Kit::with_oldest(1, "1.44").await;
    kit.create("web").await;
    for version in ["", "/v1.24", "/v1.41"] {
        assert_eq!(kit.text(&format!("POST {version}/containers/web/start"), "").await.0, 204, "{version}");
        assert_eq!(kit.json(&format!("GET {version}/containers/web/json")).await["Name"], "/web");
    }
    let list = kit.json("GET /containers/json").await;
    assert_eq!(list[0]["Names"][0], "/node-0/web");
    let mut stream = kit.upgrade("POST /v1.41/containers/web/attach?stream=1", "tcp", "").await;
    stream.shutdown().await.expect("a shutdown");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("the rest");
    assert_eq!(rest, b"bye");
    // Clients of 1.41 mean all volumes.
    for query in ["", "?filters=%7B%22label%22:%5B%22a%22%5D%7D", "?filters=%7B"] {
        assert_eq!(kit.text(&format!("POST /v1.41/volumes/prune{query}"), "").await.0, 200, "{query}");
    }
    assert_eq!(
        kit.requests(0, "/volumes/prune"),
        [
            "POST /v1.44/volumes/prune?filters=%7B%22all%22%3A%7B%22true%22%3Atrue%7D%7D",
            "POST /v1.44/volumes/prune?filters=%7B%22all%22%3A%5B%22true%22%5D%2C%22label%22%3A%5B%22a%22%5D%7D",
            "POST /v1.44/volumes/prune?filters=%7B",
        ]
    );
    let all = kit.engines[0].requests();
    let older: Vec<&String> =
        all.iter().filter(|line| !line.contains(" /v1.44/") && *line != "GET /version").collect();
    assert!(older.is_empty(), "{older:?}");
}
