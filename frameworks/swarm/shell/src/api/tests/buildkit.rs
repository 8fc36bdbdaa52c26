//! BuildKit on one engine.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::kit::Kit;

#[tokio::test(flavor = "multi_thread")]
async fn buildkit_sessions_calls_and_builds_share_one_engine() {
    let kit = Kit::start(2).await;
    // The engine with the fewest containers, for the classic builder, is the other one.
    let create = r#"{"Image":"busybox","HostConfig":{"Memory":20971520},"Env":["constraint:node==node-0"]}"#;
    assert_eq!(kit.text("POST /containers/create", create).await.0, 201);
    for path in ["session", "grpc"] {
        let mut stream = kit.upgrade(&format!("POST /v1.40/{path}"), "h2c", "").await;
        stream.write_all(b"preface").await.expect("a write");
        let mut echo = [0; 7];
        stream.read_exact(&mut echo).await.expect("the echo");
        assert_eq!(&echo, b"PREFACE");
        let (status, text) = kit.text(&format!("POST /{path}"), "").await;
        assert_eq!(status, 400, "{text}");
        assert_eq!(kit.requests(0, path), [format!("POST /v1.40/{path}")]);
    }
    let build = "POST /build?version=2&session=s1&buildid=b1";
    assert_eq!(kit.text(build, "").await, (200, "{\"stream\":\"built\"}".to_owned()));
    assert_eq!(kit.text("POST /build/cancel?id=b1", "").await.0, 200);
    assert_eq!(kit.requests(0, "/build/cancel"), ["POST /v1.41/build/cancel?id=b1"]);
    let constrained = format!("{build}&buildargs=%7B%22constraint:node%22:%22=node-1%22%7D");
    assert_eq!(kit.text(&constrained, "").await.0, 200);
    assert_eq!(kit.requests(0, "/build").len(), 2);
    for path in ["session", "grpc", "/build", "cancel"] {
        assert!(kit.requests(1, path).is_empty(), "{path}");
    }
}
