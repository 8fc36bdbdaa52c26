//! A whole master over real sockets, with a scheduler and an agent played by the test.

mod explained;
mod help;
mod lent;
mod obstacles;
mod pipelined;
mod shared;
mod writes;

use std::net::SocketAddr;

use serde_json::Value;
use tepui_core_master::{Config, Limits};
use tepui_proto::json;
use tepui_proto::mesos::v1 as pb;
use tepui_proto::mesos::v1::master;
use tepui_proto::tepui::agent::v1 as link;
use tepui_proto::{recordio, wire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{Options, ProcessOptions, RunningMaster, run};

async fn start() -> RunningMaster {
    let flags = vec![("cluster".to_owned(), "demo".to_owned())];
    let browsers = tepui_http::BrowserPolicy::new(&[], true).unwrap();
    let cluster = Some("demo".to_owned());
    let options = Options {
        process: ProcessOptions { flags, browsers, ..ProcessOptions::on_port(0) },
        cluster,
        ..Options::default()
    };
    run(options).await.unwrap()
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// One request on a connection of its own.
async fn ask(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

async fn get(master: &RunningMaster, path: &str) -> Answer {
    ask(master.address(), "GET", path, "", "").await
}

async fn post(master: &RunningMaster, path: &str, headers: &str, body: &str) -> Answer {
    let headers = format!("Content-Type: application/json\r\n{headers}");
    ask(master.address(), "POST", path, &headers, body).await
}

/// A connection whose answer is a stream of records in chunks.
struct Stream {
    socket: TcpStream,
    buffer: Vec<u8>,
    head: String,
    decoder: recordio::Decoder,
}

impl Stream {
    async fn open(master: &RunningMaster, request: &[u8]) -> Self {
        let mut socket = TcpStream::connect(master.address()).await.unwrap();
        socket.write_all(request).await.unwrap();
        Self { socket, buffer: Vec::new(), head: String::new(), decoder: recordio::Decoder::new(1 << 20) }
    }

    async fn subscribe(master: &RunningMaster, path: &str, body: &str) -> Self {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Self::open(master, request.as_bytes()).await
    }

    async fn fill(&mut self) {
        let mut chunk = vec![0; 65_536];
        let count = self.socket.read(&mut chunk).await.unwrap();
        assert!(count > 0, "closed: {} {}", self.head, String::from_utf8_lossy(&self.buffer));
        self.buffer.extend_from_slice(&chunk[..count]);
    }

    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..end + 2).collect();
                return String::from_utf8_lossy(&line[..end]).into_owned();
            }
            self.fill().await;
        }
    }

    async fn record(&mut self) -> Vec<u8> {
        while self.head.is_empty() || !self.head.ends_with("\n\n") {
            let line = self.line().await;
            self.head.push_str(&line.to_lowercase());
            self.head.push('\n');
        }
        loop {
            if let Some(record) = self.decoder.next() {
                return record.unwrap();
            }
            if self.head.starts_with("http/1.1 101 ") {
                // A link: no chunks.
                while self.buffer.is_empty() {
                    self.fill().await;
                }
                self.decoder.push(&std::mem::take(&mut self.buffer));
                continue;
            }
            let length = usize::from_str_radix(&self.line().await, 16).unwrap();
            while self.buffer.len() < length + 2 {
                self.fill().await;
            }
            let chunk: Vec<u8> = self.buffer.drain(..length + 2).collect();
            self.decoder.push(&chunk[..length]);
        }
    }

    /// The next record as JSON text that contains `kind`; others are passed over.
    async fn event(&mut self, kind: &str) -> String {
        loop {
            let text = String::from_utf8(self.record().await).unwrap();
            if text.starts_with(&format!("{{\"type\":\"{kind}\"")) {
                return text;
            }
        }
    }

    fn header(&self, name: &str) -> Option<String> {
        let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.map(str::to_owned)
    }
}

const SUBSCRIBE: &str = r#"{"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"u","name":"f","roles":["dev"],"failover_timeout":60,
       "capabilities":[{"type":"MULTI_ROLE"}]}}}"#;

#[tokio::test]
async fn small_endpoints_have_status_and_body() {
    let master = start().await;
    for (path, status, body) in [
        ("/health", 200, ""),
        ("/master/health", 200, ""),
        ("/nope", 404, "404 Not Found."),
        ("/master/nope", 404, "404 Not Found."),
        ("/files/browse?path=/", 404, ""),
        ("/files/read", 400, "Expecting 'path=value' in query.\n"),
        ("/redirect/x", 404, "404 Not Found."),
        ("/flags", 200, r#"{"flags":{"cluster":"demo"}}"#),
        ("/flags?jsonp=cb", 200, r#"cb({"flags":{"cluster":"demo"}})"#),
        ("/tasks", 200, r#"{"tasks":[]}"#),
        ("/slaves", 200, r#"{"slaves":[],"recovered_slaves":[]}"#),
        ("/frameworks/", 200, r#"{"frameworks":[],"completed_frameworks":[],"unregistered_frameworks":[]}"#),
        ("/api/v1", 405, "405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'."),
        (
            "/api/v1/scheduler",
            405,
            "405 Method Not Allowed. Expecting one of { 'POST' }, but received 'GET'.",
        ),
    ] {
        let answer = get(&master, path).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{path}");
    }
    let redirect = get(&master, "/redirect").await;
    assert_eq!(redirect.status, 307);
    assert!(redirect.head.contains(&format!("location: //localhost:{}", master.address().port())));
    let page = get(&master, "/").await;
    assert!(page.head.contains("content-security-policy: default-src 'none'"), "{}", page.head);
    let state = get(&master, "/state").await;
    assert!(state.body.contains(r#""activated_slaves":0.0"#) && state.body.contains(r#""cluster":"demo""#));
    let program = std::env::current_exe().unwrap().metadata().unwrap().modified().unwrap();
    let built = program.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    for document in [&state, &get(&master, "/version").await] {
        assert!(document.body.contains(&format!(r#""build_time":{built}.0"#)), "{}", document.body);
    }
    master.stop().await.unwrap();
}

#[tokio::test]
async fn operator_reads_are_answered_and_invalid_calls_rejected() {
    let master = start().await;
    for (body, status, text) in [
        (r#"{"type":"GET_HEALTH"}"#, 200, r#"{"type":"GET_HEALTH","get_health":{"healthy":true}}"#),
        (
            r#"{"type":"GET_LOGGING_LEVEL"}"#,
            200,
            r#"{"type":"GET_LOGGING_LEVEL","get_logging_level":{"level":0}}"#,
        ),
        (
            r#"{"type":"GET_TASKS"}"#,
            200,
            r#"{"type":"GET_TASKS","get_tasks":{"tasks":[],"unreachable_tasks":[],"completed_tasks":[]}}"#,
        ),
        (
            r#"{"type":"GET_AGENTS"}"#,
            200,
            r#"{"type":"GET_AGENTS","get_agents":{"agents":[],"recovered_agents":[]}}"#,
        ),
        ("{", 400, "Failed to parse body into JSON: syntax error at line 1 near: "),
        ("{}", 400, "Failed to validate master::Call: Expecting 'type' to be present"),
        (r#"{"type":"NOPE"}"#, 400, "Failed to validate master::Call: Expecting 'type' to be present"),
        (r#"{"type":"UNKNOWN"}"#, 501, "501 Not Implemented."),
        (
            r#"{"type":"LIST_FILES"}"#,
            400,
            "Failed to validate master::Call: Expecting 'list_files' to be present",
        ),
        (r#"{"type":"GET_ROLES"}"#, 200, r#"{"type":"GET_ROLES","get_roles":{}}"#),
        (r#"{"type":"GET_QUOTA"}"#, 200, r#"{"type":"GET_QUOTA","get_quota":{"status":{}}}"#),
    ] {
        let answer = post(&master, "/api/v1", "", body).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, text), "{body}");
    }
    let refused = post(&master, "/api/v1", "Accept: text/html\r\n", r#"{"type":"GET_HEALTH"}"#).await;
    assert_eq!(refused.status, 406);
    let answer = post(&master, "/api/v1", "", r#"{"type":"GET_MASTER"}"#).await;
    let answer: master::Response = json::from_slice(answer.body.as_bytes()).unwrap();
    assert_eq!(answer.get_master.master_info.ip, 16_777_343);
    master.stop().await.unwrap();
}

#[tokio::test]
async fn scheduler_calls_require_the_stream_id() {
    let master = start().await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let subscribed = events.event("SUBSCRIBED").await;
    assert!(subscribed.contains(r#""heartbeat_interval_seconds":15.0"#), "{subscribed}");
    assert_eq!(events.header("content-type").as_deref(), Some("application/json"));
    let stream_id = events.header("mesos-stream-id").unwrap();
    let id = subscribed.split(r#""framework_id":{"value":""#).nth(1).unwrap().split('"').next().unwrap();
    let call = format!(r#"{{"type":"SUPPRESS","framework_id":{{"value":"{id}"}}}}"#);
    let header = format!("Mesos-Stream-Id: {stream_id}\r\n");
    assert_eq!(post(&master, "/api/v1/scheduler", &header, &call).await.status, 202);
    assert_eq!(post(&master, "/api/v1/scheduler", "", &call).await.status, 400);
    assert_eq!(post(&master, "/api/v1/scheduler", "Mesos-Stream-Id: x\r\n", &call).await.status, 400);
    let state = get(&master, "/master/frameworks").await;
    assert!(state.body.contains(id) && state.body.contains(r#""connected":true"#), "{}", state.body);
    // The master detects that the scheduler disconnected.
    drop(events);
    while get(&master, "/frameworks").await.body.contains(r#""connected":true"#) {
        tokio::task::yield_now().await;
    }
    master.stop().await.unwrap();
}

fn record(call: &link::Call) -> Vec<u8> {
    recordio::encode(&wire::encode(call))
}

fn agent_subscribe() -> link::Call {
    let scalar = |name: &str, value: f64| pb::Resource {
        name: name.to_owned(),
        r#type: pb::value::Type::SCALAR,
        scalar: pb::value::Scalar { value, ..Default::default() }.into(),
        ..Default::default()
    };
    agent_with(vec![scalar("cpus", 4.0), scalar("mem", 1024.0)])
}

fn agent_with(resources: Vec<pb::Resource>) -> link::Call {
    use pb::agent_info::capability::Type;
    let agent_info = pb::AgentInfo {
        hostname: "a1".to_owned(),
        port: Some(5051),
        resources: resources.clone(),
        ..Default::default()
    };
    let subscribe = link::call::Subscribe {
        agent_info: agent_info.into(),
        version: "1.12.0".to_owned(),
        pid: "slave(1)@127.0.0.1:5051".to_owned(),
        total_resources: resources,
        capabilities: [
            Type::MULTI_ROLE,
            Type::HIERARCHICAL_ROLE,
            Type::RESERVATION_REFINEMENT,
            Type::AGENT_DRAINING,
        ]
        .map(|kind| pb::agent_info::Capability { r#type: Some(kind), ..Default::default() })
        .into(),
        ..Default::default()
    };
    link::Call {
        r#type: Some(link::call::Type::SUBSCRIBE),
        subscribe: subscribe.into(),
        ..Default::default()
    }
}

const LINK_HEAD: &str = "POST /api/v1/agent HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n\
                         Connection: upgrade\r\nUpgrade: tepui.agent.v1\r\n";

async fn link_up(master: &RunningMaster) -> Stream {
    link_up_as(master, &agent_subscribe()).await
}

async fn link_up_as(master: &RunningMaster, subscribe: &link::Call) -> Stream {
    let body = record(subscribe);
    let head = format!("{LINK_HEAD}Content-Length: {}\r\n\r\n", body.len());
    let mut agent = Stream::open(master, &[head.as_bytes(), &body].concat()).await;
    let event: link::Event = wire::decode(&agent.record().await, 1 << 20).unwrap();
    assert_eq!(event.r#type, Some(link::event::Type::SUBSCRIBED));
    agent
}

#[tokio::test]
async fn registered_agent_is_offered_and_in_the_state() {
    let master = start().await;
    let mut operator = Stream::subscribe(&master, "/api/v1", r#"{"type":"SUBSCRIBE"}"#).await;
    let first = operator.event("SUBSCRIBED").await;
    assert!(first.contains(r#""get_state":{"get_tasks":{"tasks":[],"#), "{first}");
    let agent = link_up(&master).await;
    assert!(operator.event("AGENT_ADDED").await.contains("a1"));
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let offers = events.event("OFFERS").await;
    assert!(offers.contains(r#""hostname":"a1""#), "{offers}");
    assert!(operator.event("FRAMEWORK_ADDED").await.contains(r#""name":"f""#));
    let state = get(&master, "/state").await.body;
    for part in [
        r#""activated_slaves":1.0"#,
        r#""pid":"slave(1)@127.0.0.1:5051""#,
        r#""offered_resources":{"cpus":4.0,"gpus":0.0,"mem":1024.0,"disk":0.0}"#,
        r#""resources":{"cpus":4.0,"gpus":0.0,"mem":1024.0,"disk":0.0}"#,
    ] {
        assert!(state.contains(part), "{part} in {state}");
    }
    // A broken link is noticed; the agent stays known and is no longer active.
    drop(agent);
    while !get(&master, "/state").await.body.contains(r#""activated_slaves":0.0"#) {
        tokio::task::yield_now().await;
    }
    master.stop().await.unwrap();
}

#[tokio::test]
async fn explain_endpoint_has_shares_and_reasons() {
    let master = start().await;
    let _agent = link_up(&master).await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let subscribed = events.event("SUBSCRIBED").await;
    events.event("OFFERS").await;
    let id = subscribed.split(r#""framework_id":{"value":""#).nth(1).unwrap().split('"').next().unwrap();
    for prefix in ["", "/master"] {
        let answer = get(&master, &format!("{prefix}/explain/framework/{id}")).await;
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer["agents"]["registered"], 1, "{answer}");
        let client_report = &answer["roles"][0];
        assert_eq!(
            (&client_report["role"], &client_report["place"], &client_report["share"]),
            (&"dev".into(), &1.into(), &1.0.into())
        );
        let reason = &client_report["reasons"][0];
        assert_eq!((&reason["reason"], &reason["agents"]), (&"OFFERED".into(), &1.into()));
        assert!(reason["text"].as_str().unwrap().starts_with("1 agent: offered to it already"), "{reason}");
        let answer = get(&master, &format!("{prefix}/explain/role/dev")).await;
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((&answer["weight"], &answer["held"]["cpus"]), (&1.0.into(), &4.0.into()));
        assert_eq!(answer["frameworks"][0]["framework_id"], id);
    }
    for (path, status) in [("/explain/framework/x", 404), ("/explain/role/x/y", 404), ("/explain/role", 404)]
    {
        assert_eq!(get(&master, path).await.status, status, "{path}");
    }
    assert_eq!(post(&master, "/explain/role/dev", "", "{}").await.status, 405);
    master.stop().await.unwrap();
}

#[tokio::test]
async fn explanation_hides_unauthorized_frameworks() {
    let acls = br#"{"view_roles":[{"principals":{"type":"ANY"},"roles":{"values":["dev"]}},
                                  {"principals":{"type":"ANY"},"roles":{"type":"NONE"}}],
                    "view_frameworks":[{"principals":{"type":"ANY"},"users":{"values":["u"]}},
                                       {"principals":{"type":"ANY"},"users":{"type":"NONE"}}]}"#;
    let mut options = Options { process: ProcessOptions::on_port(0), ..Options::default() };
    options.config.authorizer = crate::Authorizer::new(Some(crate::parse_acls(acls).unwrap()));
    let master = run(options).await.unwrap();
    let id_of = |subscribed: &str| -> String {
        let rest = subscribed.split(r#""framework_id":{"value":""#).nth(1).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    // Both are in the same role; the one that is not seen holds everything.
    let unseen = SUBSCRIBE.replace(r#""user":"u""#, r#""user":"other""#);
    let mut unseen = Stream::subscribe(&master, "/api/v1/scheduler", &unseen).await;
    let unseen_id = id_of(&unseen.event("SUBSCRIBED").await);
    let _agent = link_up(&master).await;
    unseen.event("OFFERS").await;
    let mut seen = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let seen_id = id_of(&seen.event("SUBSCRIBED").await);

    let answer = get(&master, &format!("/explain/framework/{seen_id}")).await.body;
    assert!(answer.contains("held in an outstanding offer by another framework for"), "{answer}");
    assert!(!answer.contains(&unseen_id), "{answer}");
    let answer = get(&master, "/explain/role/dev").await.body;
    assert!(answer.contains(&seen_id) && !answer.contains(&unseen_id), "{answer}");
    assert_eq!(get(&master, &format!("/explain/framework/{unseen_id}")).await.status, 404);
    assert_eq!(get(&master, "/explain/role/web").await.status, 403);
    master.stop().await.unwrap();
}

/// The names in a JSON object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn update(framework: &str, agent: &str) -> link::Call {
    let id = |value: &str| value.to_owned();
    let status = pb::TaskStatus {
        task_id: pb::TaskID { value: id("t1"), ..Default::default() }.into(),
        state: pb::TaskState::TASK_RUNNING,
        agent_id: pb::AgentID { value: id(agent), ..Default::default() }.into(),
        timestamp: Some(1.5),
        uuid: Some(vec![7; 16]),
        message: Some(id("not for this document")),
        ..Default::default()
    };
    let update = link::call::Update {
        framework_id: pb::FrameworkID { value: id(framework), ..Default::default() }.into(),
        status: status.into(),
        latest_state: pb::TaskState::TASK_RUNNING,
        ..Default::default()
    };
    link::Call { r#type: Some(link::call::Type::UPDATE), update: update.into(), ..Default::default() }
}

#[tokio::test]
async fn launched_task_is_in_every_document() {
    let master = start().await;
    let mut agent = link_up(&master).await;
    let mut events = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    let subscribed: Value = serde_json::from_str(&events.event("SUBSCRIBED").await).unwrap();
    let framework = subscribed["subscribed"]["framework_id"]["value"].as_str().unwrap();
    let offers: Value = serde_json::from_str(&events.event("OFFERS").await).unwrap();
    let offer = &offers["offers"]["offers"][0];
    let agent_id = offer["agent_id"]["value"].as_str().unwrap();
    let accept = serde_json::json!({"type": "ACCEPT", "framework_id": {"value": framework}, "accept": {
        "offer_ids": [offer["id"]],
        "operations": [{"type": "LAUNCH", "launch": {"task_infos": [{
            "name": "one", "task_id": {"value": "t1"}, "agent_id": {"value": agent_id}, "command": {"value": "true"},
            "labels": {"labels": [{"key": "a", "value": "b"}]},
            "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}],
        }]}}],
    }});
    let header = format!("Mesos-Stream-Id: {}\r\n", events.header("mesos-stream-id").unwrap());
    let answer = post(&master, "/api/v1/scheduler", &header, &accept.to_string()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    loop {
        let event: link::Event = wire::decode(&agent.record().await, 1 << 20).unwrap();
        if event.r#type == Some(link::event::Type::LAUNCH) {
            assert_eq!(event.launch.task.task_id.value, "t1");
            break;
        }
    }
    agent.socket.write_all(&record(&update(framework, agent_id))).await.unwrap();
    assert!(events.event("UPDATE").await.contains("TASK_RUNNING"));

    let get = async |path| serde_json::from_str::<Value>(&get(&master, path).await.body).unwrap();
    let tasks = get("/tasks?task_id=t1").await;
    assert_eq!(
        keys(&tasks["tasks"][0]),
        [
            "executor_id",
            "framework_id",
            "id",
            "labels",
            "name",
            "resources",
            "role",
            "slave_id",
            "state",
            "statuses"
        ]
    );
    assert_eq!(
        tasks["tasks"][0]["statuses"],
        serde_json::json!([{"state": "TASK_RUNNING", "timestamp": 1.5}])
    );
    assert_eq!(get("/tasks?task_id=other").await["tasks"], serde_json::json!([]));
    let state = get("/master/state").await;
    assert_eq!(state["frameworks"][0]["tasks"], tasks["tasks"]);
    assert_eq!(state["slaves"][0]["used_resources"]["cpus"], 1.0);
    assert_eq!(
        keys(&state["frameworks"][0]),
        [
            "active",
            "capabilities",
            "checkpoint",
            "completed_tasks",
            "connected",
            "executors",
            "failover_timeout",
            "hostname",
            "id",
            "name",
            "offer_constraints",
            "offered_resources",
            "offers",
            "recovered",
            "registered_time",
            "resources",
            "roles",
            "tasks",
            "unreachable_tasks",
            "unregistered_time",
            "used_resources",
            "user",
            "webui_url"
        ]
    );
    let frameworks = get("/frameworks?framework_id=nope").await;
    assert_eq!(frameworks["frameworks"], serde_json::json!([]));
    let agents = get(&format!("/slaves?slave_id={agent_id}")).await;
    assert_eq!(
        agents["slaves"][0]["used_resources_full"],
        serde_json::json!([{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0}, "role": "*",
            "allocation_info": {"role": "dev"}}])
    );
    let shown = post(&master, "/api/v1", "", r#"{"type":"GET_STATE"}"#).await;
    let shown: Value = serde_json::from_str(&shown.body).unwrap();
    assert_eq!(shown["get_state"]["get_tasks"]["tasks"][0]["task_id"]["value"], "t1");
    assert_eq!(shown["get_state"]["get_frameworks"]["completed_frameworks"], serde_json::json!([]));
    master.stop().await.unwrap();
}

#[tokio::test]
async fn garbage_closes_only_its_agent_link() {
    let master = start().await;
    for garbage in [&b"xyz"[..], b"2\n\xff\xff", b""] {
        let mut agent = link_up(&master).await;
        agent.socket.write_all(garbage).await.unwrap();
        if garbage.is_empty() {
            agent.socket.shutdown().await.unwrap();
        }
        let mut rest = Vec::new();
        // Reset or closed, both will do.
        let _ = agent.socket.read_to_end(&mut rest).await;
    }
    assert_eq!(get(&master, "/health").await.status, 200);
    for (headers, status, text) in [
        ("Content-Type: application/json\r\n", 415, "application/x-protobuf"),
        ("Content-Type: application/x-protobuf\r\n", 400, "Expecting 'Upgrade' of tepui.agent.v1"),
        ("Content-Type: application/x-protobuf\r\nUpgrade: tepui.agent.v1\r\n", 400, "begin with its length"),
    ] {
        let answer = ask(master.address(), "POST", "/api/v1/agent", headers, "xyz").await;
        assert_eq!(answer.status, status, "{headers}");
        assert!(answer.body.contains(text), "{}", answer.body);
    }
    master.stop().await.unwrap();
}

#[tokio::test]
async fn registry_survives_restart_and_rejects_a_second_master() {
    let dir = tempfile::TempDir::new().unwrap();
    let registry = crate::RegistryAt::WorkDir(dir.path().join("work"));
    let options = Options { process: ProcessOptions::on_port(0), registry, ..Options::default() };
    let master = run(options.clone()).await.unwrap();
    let agent = link_up(&master).await;
    let second = run(options.clone()).await.unwrap_err();
    assert!(format!("{second:?}").contains("Locked"), "{second:?}");
    master.stop().await.unwrap();
    drop(agent);
    let master = run(options).await.unwrap();
    let agents = get(&master, "/slaves").await.body;
    assert!(agents.contains(r#""recovered_slaves":[{"id""#), "{agents}");
    master.stop().await.unwrap();
}

/// A framework with more events than a subscriber may leave unread.
fn loud_framework() -> String {
    SUBSCRIBE.replace(r#""name":"f""#, &format!(r#""name":"f","hostname":"{}""#, "h".repeat(2 << 20)))
}

#[tokio::test]
async fn only_a_stalled_subscriber_is_dropped_with_the_reason() {
    let streams = tepui_http::StreamLimits {
        subscriber_queue_bytes_max: 1 << 20,
        subscriber_over_limit_max: std::time::Duration::ZERO,
        ..Default::default()
    };
    let limits = Limits { framework_info: 16 << 20, ..Limits::default() };
    let config = Config { limits, ..Config::default() };
    let master = run(Options {
        process: ProcessOptions { streams, ..ProcessOptions::on_port(0) },
        config,
        ..Options::default()
    })
    .await
    .unwrap();
    let subscribe = r#"{"type":"SUBSCRIBE"}"#;
    let mut stalled = Stream::subscribe(&master, "/api/v1", subscribe).await;
    let mut reading = Stream::subscribe(&master, "/api/v1", subscribe).await;
    reading.decoder = recordio::Decoder::new(16 << 20);
    stalled.event("SUBSCRIBED").await;
    reading.event("SUBSCRIBED").await;
    let metrics = async || get(&master, "/metrics/snapshot").await.body;
    let subscribers = |count: u32| format!(r#""master/operator_event_stream_subscribers":{count}.0"#);
    assert!(metrics().await.contains(&subscribers(2)));
    let mut heard = 0;
    // What is on its way to the one that does not read is in the kernel's hands; then in ours, up to the limit.
    while metrics().await.contains(&subscribers(2)) {
        let scheduler = Stream::subscribe(&master, "/api/v1/scheduler", &loud_framework()).await;
        reading.event("FRAMEWORK_ADDED").await;
        drop(scheduler);
        heard += 1;
        assert!(heard < 100, "it is never cut off");
    }
    assert!(metrics().await.contains(&subscribers(1)));
    let scheduler = Stream::subscribe(&master, "/api/v1/scheduler", SUBSCRIBE).await;
    reading.event("FRAMEWORK_ADDED").await;
    drop(scheduler);
    stalled.decoder = recordio::Decoder::new(16 << 20);
    let last = stalled.event("ERROR").await;
    assert!(last.contains("subscriber dropped: ") && last.contains("subscribe again"), "{last}");
    master.stop().await.unwrap();
}
