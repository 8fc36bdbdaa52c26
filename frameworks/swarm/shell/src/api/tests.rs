//! The API over a socket, with engines of this process: what needs streams, several engines, or a client that leaves.

mod buildkit;
mod engine;
mod hostile;
mod kit;
mod standby;
mod versions;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::Reason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use self::kit::Kit;
use crate::body;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|it| it["Names"][0].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_negotiate_by_ping() {
    let kit = Kit::start(0).await;
    for method in ["GET", "HEAD"] {
        let response = kit.send(&format!("{method} /_ping"), "").await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["api-version"], "1.41");
        assert_eq!(response.headers()["ostype"], "linux");
        assert!(!response.headers().contains_key("builder-version"));
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(&body[..], if method == "GET" { &b"OK"[..] } else { b"" });
    }
    assert_eq!(kit.json("GET /version").await["ApiVersion"], "1.41");
    assert_eq!(kit.json("GET /v1.24/info").await["SystemStatus"][3], json!(["Offers", "0"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn container_lifecycle_calls_update_lists() {
    let kit = Kit::start(2).await;
    let id = kit.create("web").await;
    let list = kit.json("GET /containers/json?all=1").await;
    assert_eq!(
        (list[0]["State"].as_str(), list[0]["Labels"]["res-type"].as_str()),
        (Some("created"), Some("regular"))
    );
    let name = names(&list)[0].to_owned();
    assert!(name == "/node-0/web" || name == "/node-1/web", "{name}");
    assert_eq!(names(&kit.json("GET /containers/json").await), Vec::<&str>::new());
    for named in ["web", "/web", &id, &id[..12], &id[..5], name.trim_start_matches('/')] {
        let inspected = kit.json(&format!("GET /containers/{}/json", named.trim_start_matches('/'))).await;
        assert_eq!(inspected["Id"], id.as_str(), "{named}");
        assert_eq!(format!("/{}/web", inspected["Node"]["Name"].as_str().expect("a node")), name);
    }
    assert_eq!(kit.text("POST /containers/web/start", "").await.0, 204);
    // Right after the call, whatever the events say: the next reader waits for a newer list.
    assert_eq!(names(&kit.json("GET /containers/json").await), [name.as_str()]);
    assert_eq!(kit.text("POST /containers/web/rename?name=shop", "").await.0, 204);
    assert_eq!(kit.text("GET /containers/web/json", "").await.0, 404);
    assert_eq!(kit.text("POST /containers/shop/stop", "").await.0, 204);
    assert_eq!(names(&kit.json("GET /containers/json").await), Vec::<&str>::new());
    assert_eq!(kit.text("DELETE /containers/shop", "").await.0, 204);
    assert_eq!(names(&kit.json("GET /containers/json?all=1").await), Vec::<&str>::new());
    kit.wait(|view| view.containers.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_sends_response_headers_before_the_exit() {
    let kit = Kit::start(1).await;
    let id = kit.create("job").await;
    let mut response = kit.send(&format!("POST /containers/{id}/wait?condition=next-exit"), "").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(kit.text(&format!("POST /containers/{id}/start"), "").await.0, 204);
    kit.engines[0].exit(&id, 3);
    let body = response.body_mut().collect().await.expect("a body").to_bytes();
    assert_eq!(serde_json::from_slice::<Value>(&body).expect("JSON")["StatusCode"], 3);
    let list = kit.json("GET /containers/json?all=1").await;
    assert_eq!(list[0]["State"], "exited");
}

#[tokio::test(flavor = "multi_thread")]
async fn name_is_released_after_container_removal_at_the_engine() {
    let kit = Kit::start(1).await;
    for _ in 0..3 {
        let id = kit.create("once").await;
        let response = kit.send(&format!("POST /containers/{id}/wait?condition=removed"), "").await;
        kit.engines[0].remove(&id);
        assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "{\"StatusCode\":7}");
    }
    // Also if no call waited for it.
    let id = kit.create("once").await;
    kit.engines[0].remove(&id);
    kit.create("once").await;
    let (status, text) =
        kit.text("POST /containers/create?name=once", r#"{"Image":"x","HostConfig":{"Memory":1}}"#).await;
    assert_eq!(status, 409);
    assert!(text.contains("Conflict: The name once is already assigned"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attached_streams_support_half_close() {
    let kit = Kit::start(1).await;
    let id = kit.create("echo").await;
    let exec: Value =
        serde_json::from_str(&kit.text("POST /containers/echo/exec", "{}").await.1).expect("JSON");
    for (line, protocol) in [
        (format!("POST /containers/{id}/attach?stream=1&stdin=1&stdout=1"), "tcp"),
        (format!("GET /containers/{id}/attach/ws?stream=1&stdin=1&stdout=1"), "websocket"),
        (format!("POST /exec/{}/start", exec["Id"].as_str().expect("an id")), "tcp"),
    ] {
        let mut stream = kit.upgrade(&line, protocol, "{}").await;
        stream.write_all(b"hello ").await.expect("a write");
        let mut echo = [0; 6];
        stream.read_exact(&mut echo).await.expect("the echo");
        assert_eq!(&echo, b"HELLO ");
        stream.shutdown().await.expect("a shutdown");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.expect("the rest");
        assert_eq!(rest, b"bye", "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_id_unknown_to_the_manager_is_found_at_its_engine() {
    let kit = Kit::start(3).await;
    let id = kit.create("c1").await;
    assert_eq!(kit.json(&format!("GET /exec/exec-{id}/json")).await["ExitCode"], 0);
    assert_eq!(kit.text("GET /exec/exec-0/json", "").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn preempted_container_shows_its_reason() {
    let kit = Kit::start(1).await;
    let id = kit.create("cheap").await;
    let mut events =
        kit.send("GET /events?filters=%7B%22event%22%3A%5B%22die%22%2C%22preempted%22%5D%7D", "").await;
    assert_eq!(kit.text("POST /containers/cheap/start", "").await.0, 204);
    kit.engines[0].exit(&id, 137);
    kit.end(&id, TaskState::TASK_KILLED, Some(Reason::REASON_CONTAINER_PREEMPTED), "cpus were reclaimed")
        .await;
    let mut actions = Vec::new();
    while actions.len() < 2 {
        let frame = events.body_mut().frame().await.expect("more").expect("a frame");
        let event: Value = serde_json::from_slice(&frame.into_data().expect("data")).expect("JSON");
        assert_eq!(event["Actor"]["Attributes"]["node.name"], "node-0");
        if event["Action"] == "preempted" {
            assert_eq!(event["Actor"]["Attributes"]["reason"], "preempted: cpus were reclaimed");
        }
        actions.push(event["Action"].as_str().expect("an action").to_owned());
    }
    assert_eq!(actions, ["die", "preempted"]);
    let list = kit.json("GET /containers/json?all=1").await;
    assert_eq!(list[0]["Status"], "Exited (137) 1 second ago (preempted: cpus were reclaimed)");
    let inspected = kit.json("GET /containers/cheap/json").await;
    assert_eq!(inspected["State"]["Error"], "preempted: cpus were reclaimed");
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_client_cancels_its_pending_create() {
    let kit = Kit::start(1).await;
    let body = r#"{"Image":"busybox","HostConfig":{"Memory":20971520},"Env":["constraint:node==node-9"]}"#;
    let request = Request::post("/containers/create?name=late")
        .header("host", "docker")
        .body(body::full(body))
        .expect("a request");
    let mut sender = kit.connect().await;
    let waiting =
        tokio::spawn(async move { sender.send_request(request).await.map(|response| response.status()) });
    kit.wait(|view| view.pending == 1).await;
    waiting.abort();
    kit.wait(|view| view.pending == 0).await;
    // The name is free again.
    kit.create("late").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_loaded_and_pulled_on_every_engine() {
    let kit = Kit::start(3).await;
    let archive = vec![b'x'; 300_000];
    let (status, text) = kit.text("POST /images/load", archive.clone()).await;
    assert_eq!(status, 200);
    assert!(kit.engines.iter().all(|engine| engine.loaded() == archive), "each has all of it");
    assert!(text.contains(r#"{"id":"node-2","status":"Loading Image... : loaded"}"#), "{text}");
    let (_, text) = kit.text("POST /images/create?fromImage=busybox&tag=latest", "").await;
    assert!(text.contains(r#"{"id":"node-0","status":"Pulling busybox:latest... : downloaded"}"#), "{text}");
    assert!(
        text.ends_with(
            r#"{"error":"node-1: no such image","errorDetail":{"message":"node-1: no such image"}}"#
        ),
        "{text}"
    );
    let (_, text) =
        kit.text("POST /images/create?fromImage=busybox&tag=latest&constraint=node==node-2", "").await;
    assert!(!text.contains("node-0") && text.contains("node-2"), "{text}");
    assert_eq!(kit.json("GET /images/json").await.as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_input_is_rejected_in_the_error_format_of_the_engine() {
    let kit = Kit::start(1).await;
    kit.create("other").await;
    let huge = vec![b' '; crate::api::call::DOCUMENT_BYTES_MAX + 1];
    for (line, body, status, message) in [
        ("POST /containers/create", b"{".to_vec(), 400, "the body is not valid JSON"),
        ("POST /containers/create", b"[]".to_vec(), 400, "the body must be a JSON object"),
        ("POST /containers/create", huge, 413, "the body is larger than"),
        (
            "POST /containers/create?name=%2e%2e%2fx",
            br#"{"Image":"x","HostConfig":{"Memory":1}}"#.to_vec(),
            400,
            "Invalid container name",
        ),
        (
            "POST /containers/create?name=other",
            br#"{"Image":"x","HostConfig":{"Memory":1}}"#.to_vec(),
            409,
            "Conflict: The name other",
        ),
        (
            "POST /containers/create",
            br#"{"Image":"x"}"#.to_vec(),
            500,
            "resources constraints (-c and/or -m) are required by mesos",
        ),
        (
            "POST /containers/create",
            br#"{"Image":"x","HostConfig":{"Memory":1},"Env":["constraint:res-type!=re*"]}"#.to_vec(),
            400,
            "constraint res-type!=re* does not allow any resource type",
        ),
        ("GET /containers/nobody/json", Vec::new(), 404, "No such container: nobody"),
        ("GET /containers/%00/json", Vec::new(), 400, "the path must not"),
        ("GET /containers/json?filters=%7B", Vec::new(), 400, "parameter filters must be"),
        ("GET /events?since=tomorrow", Vec::new(), 400, "parameter since must be seconds"),
        ("POST /session", Vec::new(), 400, "BuildKit calls require the headers"),
        ("GET /services", Vec::new(), 501, "Not supported in clustering mode: services"),
        (
            "GET /v1.50/info",
            Vec::new(),
            400,
            "client version 1.50 is too new. Maximum supported API version is 1.41",
        ),
        ("GET /nothing", Vec::new(), 404, "page not found"),
        (
            "POST /containers/other/update",
            br#"{"Memory":104857600}"#.to_vec(),
            409,
            "Memory of 104857600 bytes is more than",
        ),
    ] {
        let (found, text) = kit.text(line, body).await;
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{line}: {text}"));
        let told = answer["message"].as_str().unwrap_or_default();
        assert_eq!(found, status, "{line}: {told}");
        assert!(told.starts_with(message), "{line}: {told}");
    }
    assert_eq!(kit.json("GET /containers/json?all=1").await.as_array().map(Vec::len), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_cost_no_request_to_an_idle_engine() {
    let kit = Kit::start(2).await;
    kit.create("c1").await;
    let requests = || -> Vec<usize> { kit.engines.iter().map(|engine| engine.requests().len()).collect() };
    // The event of the create may arrive later than its answer: then one list follows in one of the rounds.
    for _ in 0..5 {
        let before = requests();
        for _ in 0..20 {
            kit.json("GET /containers/json?all=1").await;
            kit.json("GET /info").await;
            kit.json("GET /images/json").await;
        }
        if requests() == before {
            return;
        }
    }
    panic!("every round of reads costs requests to engines: {:?}", requests());
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_prefix_is_rejected() {
    let kit = Kit::start(1).await;
    for number in 0..2 {
        kit.create(&format!("c{number}")).await;
    }
    let (status, text) = kit.text("GET /containers/000/json", "").await;
    assert_eq!(
        (status, text.as_str()),
        (400, r#"{"message":"Multiple IDs found with provided prefix: 000"}"#)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn network_of_all_engines_is_listed_once() {
    let kit = Kit::start(3).await;
    let names = async || -> Vec<String> {
        let list = kit.json("GET /networks").await;
        list.as_array().into_iter().flatten().filter_map(|it| Some(it["Name"].as_str()?.to_owned())).collect()
    };
    assert_eq!(kit.text("POST /networks/create", r#"{"Name":"app"}"#).await.0, 201);
    assert_eq!(kit.text("POST /networks/create", r#"{"Name":"node-2/lone"}"#).await.0, 201);
    assert_eq!(names().await, ["app", "node-2/lone"]);
    // Containers join it at their own engine, whatever engine's id of the network is named.
    let id = kit.create("web").await;
    let node =
        kit.json("GET /containers/web/json").await["Node"]["Name"].as_str().expect("a node").to_owned();
    for network in ["app", "node-0-0", "node-1-0"] {
        let line = format!("POST /networks/{network}/connect");
        assert_eq!(kit.text(&line, r#"{"Container":"web"}"#).await.0, 200, "{network}");
    }
    let connects = |engine: &engine::Engine| {
        engine.requests().iter().filter(|it| it.contains(&format!("{}-0/connect", engine.name))).count()
    };
    for engine in &kit.engines {
        assert_eq!(connects(engine), if engine.name == node { 3 } else { 0 }, "{}", engine.name);
    }
    let inspected = kit.json("GET /networks/app").await;
    assert_eq!((&inspected["Name"], inspected["Containers"].get(&id).is_some()), (&json!("app"), true));
    assert_eq!(kit.text("DELETE /networks/app", "").await.0, 204);
    assert_eq!(names().await, ["node-2/lone"]);
    // What is not on all engines is on none.
    let (status, text) = kit.text("POST /networks/create", r#"{"Name":"half","Driver":"broken"}"#).await;
    assert_eq!((status, text.as_str()), (500, r#"{"message":"node-1: no such driver"}"#));
    assert_eq!(names().await, ["node-2/lone"]);
    let (status, text) = kit.text("POST /networks/create", r#"{"Name":"half","Driver":"dying"}"#).await;
    assert_eq!(status, 500, "{text}");
    assert_eq!(names().await, ["node-2/lone"]);
}
