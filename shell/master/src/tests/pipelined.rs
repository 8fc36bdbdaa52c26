//! Calls of a scheduler that do not wait for each other's answers.

use super::*;

fn call(stream_id: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /api/v1/scheduler HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Mesos-Stream-Id: {stream_id}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Each call is answered as if it came alone, in the order of the calls, and has its effect in that order.
#[tokio::test]
async fn pipelined_scheduler_calls_are_answered_in_order() {
    let master = start().await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let subscribed: Value = serde_json::from_str(&events.event("SUBSCRIBED").await).unwrap();
    let id = subscribed["subscribed"]["framework_id"]["value"].as_str().unwrap();
    let stream = events.header("mesos-stream-id").unwrap();
    let of = |rest: &str| format!(r#"{{"framework_id":{{"value":"{id}"}},{rest}}}"#);
    let task = |task: &str| {
        of(&format!(r#""type":"RECONCILE","reconcile":{{"tasks":[{{"task_id":{{"value":"{task}"}}}}]}}"#))
    };
    let text = [
        call(&stream, &task("a")),
        call("other", &task("b")),
        call(&stream, "{"),
        call(&stream, SUBSCRIBE),
        call(&stream, &task("c")),
        call(&stream, &of(r#""type":"TEARDOWN""#)),
        call(&stream, &task("d")),
    ];
    let mut socket = TcpStream::connect(master.address()).await.unwrap();
    socket.write_all(text.concat().as_bytes()).await.unwrap();
    let (mut answers, mut chunk) = (String::new(), [0; 4096]);
    while answers.matches("HTTP/1.1 ").count() < text.len() || !answers.ends_with("Framework cannot be found")
    {
        let count = socket.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed after {answers}");
        answers.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
    }
    let answers = answers.split("HTTP/1.1 ").skip(1).map(|answer| {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        format!("{} {}", &head[..3], body.split([':', '\'']).next().unwrap())
    });
    let expected = [
        "202 ",
        "400 The stream ID ",
        "400 Failed to parse body into JSON",
        "400 Subscribe calls should not include the ",
        "202 ",
        "202 ",
        "400 Framework cannot be found",
    ];
    assert_eq!(answers.collect::<Vec<_>>(), expected);
    for task in ["a", "c"] {
        let update: Value = serde_json::from_str(&events.event("UPDATE").await).unwrap();
        assert_eq!(update["update"]["status"]["task_id"]["value"], task);
    }
    master.stop().await.unwrap();
}
