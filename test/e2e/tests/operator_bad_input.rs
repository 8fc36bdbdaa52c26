//! Invalid operator requests: each gets its status and a message that names the error, and special characters in names
//! break neither documents nor terminals.

use std::process::Command;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, binary, wait_for};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/x-protobuf";
const FORM: &str = "application/x-www-form-urlencoded";

/// Method, path, content type, body; status and text of the answer.
type Case = (&'static str, &'static str, &'static str, &'static str, u16, &'static str);

const MASTER: &[Case] = &[
    ("GET", "/nope", "", "", 404, "404 Not Found."),
    ("GET", "/state.json", "", "", 404, "404 Not Found."),
    ("GET", "/master/../state", "", "", 404, "404 Not Found."),
    ("GET", "/%2e%2e/etc/passwd", "", "", 404, "404 Not Found."),
    ("GET", "/%ff%fe", "", "", 400, "not UTF-8"),
    ("GET", "/redirect/x", "", "", 404, "404 Not Found."),
    ("GET", "/metrics/x", "", "", 404, "404 Not Found."),
    ("GET", "/metrics/snapshot?timeout=soon", "", "", 400, "timeout 'soon'"),
    ("GET", "/metrics/snapshot?timeout=-1secs", "", "", 400, "timeout '-1secs'"),
    ("GET", "/state?jsonp=", "", "", 400, "'jsonp'"),
    ("GET", "/state?jsonp=%3Cscript%3Ealert(1)", "", "", 400, "'jsonp'"),
    ("GET", "/version?jsonp=a;b", "", "", 400, "'jsonp'"),
    ("GET", "/metrics/snapshot?jsonp=a%0ab", "", "", 400, "'jsonp'"),
    ("GET", "/files/browse", "", "", 400, "path=value"),
    ("GET", "/files/read?path=", "", "", 400, "path=value"),
    ("GET", "/files/download?path=/etc/passwd", "", "", 404, ""),
    ("GET", "/files/read?path=/master/log/../../etc/passwd&offset=0", "", "", 404, ""),
    ("GET", "/logging/toggle?level=1", "", "", 400, "duration=value"),
    ("GET", "/logging/toggle?duration=1secs", "", "", 400, "level=value"),
    ("GET", "/logging/toggle?level=x&duration=1secs", "", "", 400, "'x'"),
    ("GET", "/logging/toggle?level=-1&duration=1secs", "", "", 400, "level '-1'"),
    ("GET", "/logging/toggle?level=1&duration=soon", "", "", 400, "duration 'soon'"),
    ("GET", "/state?jsonp=a&jsonp=b;", "", "", 400, "'jsonp'"),
    ("GET", "/slaves?slave_id=%zz&slave_id=%", "", "", 200, r#""slaves":[]"#),
    ("GET", "/tasks?limit=99999999999999999999&offset=-99999999999999999999", "", "", 200, r#"{"tasks":"#),
    ("GET", "/tasks?task_id=%ff%00%1b%5b31m", "", "", 200, r#"{"tasks":[]}"#),
    ("GET", "/frameworks?framework_id=%3Cb%3E", "", "", 200, r#""frameworks":[]"#),
    ("GET", "/files/read?path=/master/log&offset=0", "", "", 404, ""),
    ("GET", "/logging/toggle?level=1&duration=-1secs", "", "", 400, "duration '-1secs'"),
    ("GET", "/logging/toggle?level=99999999999&duration=1secs", "", "", 400, "'99999999999'"),
    ("GET", "/teardown", "", "", 405, "'POST'"),
    ("PATCH", "/teardown", "", "", 405, "but received 'PATCH'"),
    ("GET", "/api/v1", "", "", 405, "but received 'GET'"),
    ("PUT", "/api/v1", JSON, "{", 405, "but received 'PUT'"),
    ("FROB", "/api/v1", "", "", 405, "but received 'FROB'"),
    ("DELETE", "/api/v1", "", "", 405, "'POST'"),
    ("POST", "/teardown", FORM, "", 400, "'frameworkId'"),
    ("POST", "/teardown", "application/x-www-form-urlencoded; charset=utf-8", "", 400, "'frameworkId'"),
    ("POST", "/teardown", FORM, "frameworkId=%00%1b", 400, "No framework found"),
    ("POST", "/teardown", "", "frameworkId=x", 415, "'Content-Type' of application/x-www-form-urlencoded"),
    (
        "POST",
        "/teardown",
        "text/plain",
        "frameworkId=x",
        415,
        "'Content-Type' of application/x-www-form-urlencoded",
    ),
    (
        "POST",
        "/reserve",
        "multipart/form-data",
        "slaveId=x",
        415,
        "'Content-Type' of application/x-www-form-urlencoded",
    ),
    ("POST", "/api/v1", "", "{}", 400, "'Content-Type'"),
    ("POST", "/api/v1", "text/json", "{}", 415, "'Content-Type'"),
    ("POST", "/api/v1", JSON, "", 400, "Failed to parse body into JSON"),
    ("POST", "/api/v1", JSON, "{} x", 400, "Failed to parse body into JSON"),
    ("POST", "/api/v1", JSON, "[]", 400, "Expecting a JSON object"),
    ("POST", "/api/v1", JSON, "\"GET_STATE\"", 400, "Expecting a JSON object"),
    ("POST", "/api/v1", JSON, r#"{"type":7}"#, 400, "type"),
    ("POST", "/api/v1", JSON, r#"{"type":"get_state"}"#, 400, "'type'"),
    ("POST", "/api/v1", JSON, r#"{"type":"UNKNOWN"}"#, 501, "501 Not Implemented."),
    ("POST", "/api/v1", JSON, r#"{"type":null}"#, 400, "Expecting 'type' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_STATE","type":"NOPE"}"#, 400, "Expecting 'type' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_STATE" "x":1}"#, 400, "Failed to parse body into JSON"),
    ("POST", "/api/v1", JSON, "\u{0}", 400, "Failed to parse body into JSON"),
    ("POST", "/api/v1", JSON, "{\"type\":\"GET_\u{7}\"}", 400, ""),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_\ud800"}"#, 400, ""),
    ("POST", "/api/v1", PROTOBUF, "", 400, "Expecting 'type' to be present"),
    ("POST", "/api/v1", PROTOBUF, "\u{8}\u{1}\u{7f}", 400, "Failed to parse body into Call protobuf"),
    ("POST", "/api/v1", PROTOBUF, "\u{8}\u{7f}", 400, "Expecting 'type' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES"}"#, 400, "Expecting 'list_files' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"READ_FILE"}"#, 400, "Expecting 'read_file' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"SET_LOGGING_LEVEL"}"#, 400, "Expecting 'set_logging_level'"),
    ("POST", "/api/v1", JSON, r#"{"type":"TEARDOWN"}"#, 400, "Expecting 'teardown' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"MARK_AGENT_GONE"}"#, 400, "Expecting 'mark_agent_gone' to be"),
    ("POST", "/api/v1", JSON, r#"{"type":"UPDATE_QUOTA"}"#, 400, "Expecting 'update_quota' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"UPDATE_WEIGHTS"}"#, 400, "Expecting 'update_weights' to be"),
    ("POST", "/api/v1", JSON, r#"{"type":"DRAIN_AGENT"}"#, 400, "Expecting 'drain_agent' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_METRICS"}"#, 400, "'get_metrics'"),
    ("POST", "/api/v1", JSON, r#"{"type":"READ_FILE","read_file":{"path":"/x"}}"#, 400, "read_file.offset"),
    ("POST", "/api/v1", JSON, r#"{"type":"READ_FILE","read_file":{"path":"/x","offset":0}}"#, 404, ""),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES","list_files":{}}"#, 400, "list_files.path"),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"SET_LOGGING_LEVEL","set_logging_level":{"level":1}}"#,
        400,
        "set_logging_level.duration",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"SET_LOGGING_LEVEL","set_logging_level":{"level":1,"duration":{"nanoseconds":-1}}}"#,
        400,
        "duration",
    ),
    ("POST", "/api/v1", JSON, r#"{"type":"TEARDOWN","teardown":{}}"#, 400, "teardown.framework_id"),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"TEARDOWN","teardown":{"framework_id":{"value":"../x"}}}"#,
        400,
        "No framework found",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"MARK_AGENT_GONE","mark_agent_gone":{"agent_id":{"value":""}}}"#,
        404,
        "Agent '' not found",
    ),
];

const AGENT: &[Case] = &[
    ("GET", "/nope", "", "", 404, "404 Not Found."),
    ("GET", "/slave(1)/../state", "", "", 404, "404 Not Found."),
    ("GET", "/slave(2)/state", "", "", 404, "404 Not Found."),
    ("GET", "/state?jsonp=a(b)", "", "", 400, "'jsonp'"),
    ("GET", "/containers?executor_id=x", "", "", 400, "framework_id"),
    ("GET", "/containers?container_id=x&framework_id=y", "", "", 400, "container_id"),
    ("GET", "/metrics/snapshot?timeout=soon", "", "", 400, "timeout 'soon'"),
    ("GET", "/files/browse", "", "", 400, "path=value"),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=x", "", "", 400, "offset"),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=-2", "", "", 400, "offset provided: -2"),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=0&length=-2", "", "", 400, "length provided: -2"),
    ("GET", "/files/read?path=SANDBOX&offset=0", "", "", 400, "directory"),
    ("GET", "/files/download?path=SANDBOX", "", "", 400, "directory"),
    (
        "GET",
        "/files/read?path=SANDBOX/../../../../../../../../../../../../../../../etc/passwd&offset=0",
        "",
        "",
        400,
        "inaccessible",
    ),
    ("GET", "/files/browse?path=SANDBOX/..", "", "", 400, "inaccessible"),
    ("GET", "/files/read?path=SANDBOX/%2e%2e/x&offset=0", "", "", 404, ""),
    ("GET", "/files/read?path=SANDBOX/out&offset=0", "", "", 400, "inaccessible"),
    ("GET", "/files/download?path=SANDBOX/out", "", "", 400, "inaccessible"),
    ("GET", "/files/browse?path=SANDBOX/up", "", "", 400, "inaccessible"),
    ("GET", "/files/browse?path=/etc", "", "", 404, ""),
    ("GET", "/files/read?path=SANDBOX/%00&offset=0", "", "", 404, ""),
    ("GET", "/files/read", "", "", 400, "Expecting 'path=value' in query.\n"),
    ("GET", "/files/download", "", "", 400, "Expecting 'path=value' in query.\n"),
    ("GET", "/files/browse?path=", "", "", 400, "Expecting 'path=value' in query.\n"),
    ("GET", "/files/browse?path=SANDBOX/nope", "", "", 404, ""),
    ("GET", "/files/browse?path=SANDBOX/stdout/x", "", "", 404, ""),
    ("GET", "/files/download?path=SANDBOX/nope", "", "", 404, ""),
    ("GET", "/files/read?path=SANDBOX/nope&offset=0", "", "", 404, ""),
    ("GET", "/files/read?path=SANDBOX&offset=-1", "", "", 400, "Cannot read a directory.\n"),
    ("GET", "/files/download?path=SANDBOX/", "", "", 400, "Cannot download a directory.\n"),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=1.5", "", "", 400, "Failed to parse offset: "),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=", "", "", 400, "Failed to parse offset: "),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=99999999999999999999", "", "", 400, "parse offset: "),
    ("GET", "/files/read?path=SANDBOX/stdout&offset=0&length=x", "", "", 400, "Failed to parse length: "),
    ("GET", "/files/read?path=SANDBOX/pipe&offset=0", "", "", 400, "inaccessible"),
    ("GET", "/files/read?path=SANDBOX/loop&offset=0", "", "", 500, "Failed to read: "),
    ("GET", "/files/browse?path=SANDBOX/out&jsonp=cb", "", "", 400, "inaccessible"),
    ("GET", "/files/debug?jsonp=a+b", "", "", 400, "'jsonp'"),
    ("GET", "/files/nope", "", "", 404, "404 Not Found."),
    ("GET", "/containers?framework_id=a&executor_id=b&container_id=c", "", "", 400, "container_id"),
    ("GET", "/containers?framework_id=%3Cb%3E", "", "", 200, "[]"),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES"}"#, 400, "Expecting 'list_files' to be present"),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES","list_files":{}}"#, 400, "list_files.path"),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES","list_files":{"path":""}}"#, 404, ""),
    ("POST", "/api/v1", JSON, r#"{"type":"LIST_FILES","list_files":{"path":"SANDBOX/nope"}}"#, 404, ""),
    ("POST", "/api/v1", JSON, r#"{"type":"READ_FILE"}"#, 400, "Expecting 'read_file' to be present"),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX"}}"#,
        400,
        "read_file.offset",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX","offset":0}}"#,
        400,
        "Cannot read a directory.\n",
    ),
    ("POST", "/api/v1", JSON, r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/x","offset":0}}"#, 404, ""),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/stdout","offset":-1}}"#,
        400,
        "read_file.offset: -1 is out of range",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/stdout","offset":0,"length":-1}}"#,
        400,
        "read_file.length: -1 is out of range",
    ),
    ("POST", "/api/v1", JSON, r#"{"type":"UNKNOWN"}"#, 501, "501 Not Implemented."),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"MARK_RESOURCE_PROVIDER_GONE"}"#,
        400,
        "'mark_resource_provider_gone'",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"MARK_RESOURCE_PROVIDER_GONE","mark_resource_provider_gone":{"resource_provider_id":{"value":"x"}}}"#,
        501,
        "MARK_RESOURCE_PROVIDER_GONE",
    ),
    ("POST", "/api/v1", JSON, r#"{"type":"SET_LOGGING_LEVEL"}"#, 400, "Expecting 'set_logging_level'"),
    ("PUT", "/api/v1", "", "", 405, "'POST'"),
    ("GET", "/api/v1", "", "", 405, "but received 'GET'"),
    ("POST", "/api/v1", "application/recordio", "", 400, "'Message-Content-Type'"),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_METRICS"}"#, 400, "'get_metrics'"),
    ("POST", "/api/v1", JSON, r#"{"type":"GET_CONTAINERS","get_containers":[]}"#, 400, "get_containers"),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"LIST_FILES","list_files":{"path":"SANDBOX/up"}}"#,
        400,
        "inaccessible",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/out","offset":0}}"#,
        400,
        "inaccessible",
    ),
    (
        "POST",
        "/api/v1",
        JSON,
        r#"{"type":"READ_FILE","read_file":{"path":"SANDBOX/stdout","offset":"x"}}"#,
        400,
        "read_file.offset",
    ),
];

#[test]
fn malformed_operator_requests_are_rejected_with_the_reason() {
    let mut cluster = Cluster::with(&["--jsonp"], &["--jsonp"]);
    let (master, agent) = (cluster.http(), cluster.agent_http());
    let mut scheduler = Scheduler::subscribe(&master, Scheduler::info("dev"));
    let offer = scheduler.offer();
    let links = "ln -s /etc/passwd out; ln -s .. up; ln -s loop loop; mkfifo pipe; echo ready; sleep 1000";
    scheduler.launch(&offer, &[Scheduler::task(&offer, "links", links)]);
    scheduler.reach("links", "TASK_RUNNING");
    let sandbox = wait_for("the links to be there", || {
        let state = agent.get("/state").json()?;
        let directory = state["frameworks"][0]["executors"][0]["directory"].as_str()?.to_string();
        let printed = agent.get(&format!("/files/read?path={directory}/stdout&offset=0")).json()?;
        (printed["data"] == "ready\n").then_some(directory)
    });
    let mut wrong = check(&master, MASTER, &sandbox);
    wrong.extend(check(&agent, AGENT, &sandbox));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cluster.master.is_running() && cluster.agents[0].is_running());
}

/// What was answered differently.
fn check(http: &Http, cases: &[Case], sandbox: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (method, path, content_type, body, status, expected) in cases {
        let headers = [("Content-Type", *content_type)];
        let headers = if content_type.is_empty() { &[][..] } else { &headers[..] };
        let (path, body) = (path.replace("SANDBOX", sandbox), body.replace("SANDBOX", sandbox));
        let answer = http.send(method, &path, headers, body.as_bytes());
        if answer.status != *status || !answer.text().contains(expected) {
            let (got, text) = (answer.status, answer.text());
            wrong.push(format!("{method} {path} {body}: {got} {text:.200} instead of {status} {expected}"));
        }
        if answer.status == 405 && answer.header("allow").is_none() {
            wrong.push(format!("{method} {path}: no Allow"));
        }
    }
    wrong
}

/// Ranges of a file: in bytes, not characters, at most sixteen pages.
#[test]
fn file_ranges_are_read_by_endpoint_and_call() {
    let cluster = Cluster::with(&["--jsonp"], &["--jsonp"]);
    let agent = cluster.agent_http();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    let command =
        r"printf 'a\377b\n' > bytes; head -c 100000 /dev/zero | tr '\0' x > large; : > empty; sleep 1000";
    scheduler.launch(&offer, &[Scheduler::task(&offer, "files", command)]);
    scheduler.reach("files", "TASK_RUNNING");
    let sandbox = wait_for("the files to be there", || {
        let state = agent.get("/state").json()?;
        let directory = state["frameworks"][0]["executors"][0]["directory"].as_str()?.to_string();
        (agent.get(&format!("/files/read?path={directory}/empty")).status == 200).then_some(directory)
    });
    // File and query; data and offset.
    for (query, data, offset) in [
        ("bytes", "", 4),
        ("bytes&offset=-1", "", 4),
        ("bytes&offset=-1&length=2", "", 4),
        ("bytes&offset=0", "a?b\n", 0),
        ("bytes&offset=0&length=0", "", 0),
        ("bytes&offset=2&length=1", "b", 2),
        ("bytes&offset=3&length=99999999999", "\n", 3),
        ("bytes&offset=4", "", 4),
        ("bytes&offset=9223372036854775807", "", i64::MAX),
        ("bytes&offset=0&offset=2", "b\n", 2),
        ("empty&offset=0", "", 0),
        ("large&offset=1", &"x".repeat(65536), 1),
        ("large&offset=99999&length=-1", "x", 99999),
    ] {
        let path = format!("/files/read?path={sandbox}/{query}");
        assert_eq!(agent.get(&path).json(), Some(json!({"data": data, "offset": offset})), "{query}");
        let script = agent.get(&format!("{path}&jsonp=cb"));
        assert_eq!(script.header("content-type"), Some("text/javascript"), "{query}");
        assert!(script.text().starts_with("cb({") && script.text().ends_with("})"), "{query}");
    }
    let read = |fields: Value| {
        let call = json!({"type": "READ_FILE", "read_file": fields});
        let answer = agent.post("/api/v1", &call);
        assert_eq!(answer.status, 200, "{call}: {}", answer.text());
        answer.json().expect("JSON")["read_file"].clone()
    };
    for (offset, length, data, size) in [
        (json!(0), json!(null), "Yf9iCg==", 4),
        (json!(1), json!(1), "/w==", 4),
        (json!(0), json!(0), "", 4),
        (json!(4), json!(1), "", 4),
        (json!(u64::MAX), json!(1), "", 4),
        (json!("2"), json!(u64::MAX), "Ygo=", 4),
    ] {
        let parameters = json!({"path": format!("{sandbox}/bytes"), "offset": offset, "length": length});
        assert_eq!(read(parameters.clone()), json!({"size": size, "data": data}), "{parameters}");
    }
    let large = read(json!({"path": format!("{sandbox}/large"), "offset": 7}));
    assert_eq!((&large["size"], large["data"].as_str().map(str::len)), (&json!(100_000), Some(87_384)));
    let list = json!({"type": "LIST_FILES", "list_files": {"path": format!("{sandbox}/bytes")}});
    assert_eq!(agent.post("/api/v1", &list).json().expect("JSON")["list_files"], json!({}));
    let list = json!({"type": "LIST_FILES", "list_files": {"path": format!("{sandbox}/")}});
    let listed = agent.post("/api/v1", &list).json().expect("JSON")["list_files"]["file_infos"].clone();
    let sizes: Vec<_> = listed.as_array().into_iter().flatten().map(|one| one["size"].as_u64()).collect();
    assert_eq!(sizes, [4, 0, 100_000, 0, 0].map(Some), "bytes, empty, large, stderr, stdout: {listed}");
    let raw = agent.get(&format!("/files/download?path={sandbox}/bytes"));
    assert_eq!(raw.body, b"a\xffb\n");
    assert_eq!(raw.header("content-disposition"), Some("attachment; filename=bytes"));
    assert_eq!(raw.header("content-type"), Some("application/octet-stream"));
}

/// Everything that a terminal or a page could take for more than text.
const WILD: &str = "</script><b>\u{1b}[31m\u{7}\r\n\u{202e}\"'\\`{}\u{9b}2J";

#[test]
fn special_characters_in_names_are_escaped() {
    let cluster = Cluster::with(&["--jsonp"], &["--jsonp"]);
    let http = cluster.http();
    let mut info = Scheduler::info("dev");
    info["name"] = json!(WILD);
    info["labels"] = json!({"labels": [{"key": WILD, "value": WILD}]});
    let mut scheduler = Scheduler::subscribe(&http, info);
    let offer = scheduler.offer();
    // Control characters and slashes may not stand in ids, everything else may.
    let mut refused = Scheduler::task(&offer, "\u{1b}[31m", "sleep 1000");
    refused["name"] = json!(WILD);
    let odd_file = r#"touch "$(printf 'odd\033[31m\r')"; sleep 1000"#;
    let mut task = Scheduler::task(&offer, "<b>'\"`\u{9b}2J", odd_file);
    task["name"] = json!(WILD);
    scheduler.launch(&offer, &[refused, task]);
    scheduler.update("\u{1b}[31m", "TASK_ERROR");
    scheduler.reach("<b>'\"`\u{9b}2J", "TASK_RUNNING");
    scheduler.fresh_offer();
    for path in ["/state", "/state-summary", "/frameworks", "/tasks", "/metrics/snapshot"] {
        let document = http.get(path).json().unwrap_or_else(|| panic!("{path} is no JSON"));
        assert!(path == "/metrics/snapshot" || texts(&document).contains(&WILD.to_string()), "{path}");
        let script = http.get(&format!("{path}?jsonp=cb")).text();
        let inside = script.strip_prefix("cb(").and_then(|text| text.strip_suffix(')')).expect("a call");
        assert!(serde_json::from_str::<Value>(inside).is_ok(), "{path}");
        assert!(!script.contains(|c: char| c.is_ascii_control()), "{path}");
    }
    assert!(!http.get("/metrics").text().contains('\u{1b}'));
    let commands: &[&[&str]] = &[
        &["tasks", "--all"],
        &["frameworks"],
        &["task", "<b>"],
        &["framework", "0000"],
        &["metrics"],
        &["roles"],
        &["agents"],
        &["agent", "S0"],
        &["offers"],
        &["executors"],
        &["summary"],
        &["files", "<b>"],
        &["explain", "0000"],
        &["tasks", "--json"],
        // These fail with suggestions.
        &["task", "<b>x"],
        &["framework", WILD],
        &["logs", "<b>", "odx"],
    ];
    for arguments in commands {
        let output = Command::new(binary())
            .args(*arguments)
            .env("TEPUI_MASTER", &cluster.master.address)
            .output()
            .expect("the binary starts");
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() || printed.contains("no "), "{arguments:?}: {printed}");
        let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!printed.contains(bad), "{arguments:?}: {printed:?}");
    }
}

/// Every text in a document.
fn texts(document: &Value) -> Vec<String> {
    match document {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
