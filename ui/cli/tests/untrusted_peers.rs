//! The command line against untrusted peers: a fake master with the answers of a test, names with control characters, and
//! servers that are not a master.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Everything that a terminal would act on: an escape sequence, its 8-bit form, a line break, a turn of direction.
const HARM: &str = "x\u{1b}[2J\u{9b}31m\r\n\u{202e}y\u{7}";

#[test]
fn control_characters_in_names_are_escaped() {
    let master = FakeMaster::start(|path| Some((200, hostile(path))));
    let commands: &[&[&str]] = &[
        &["tasks", "--all"],
        &["tasks", "--all", "--json"],
        &["tasks", "--framework=nobody"],
        &["agents"],
        &["agents", "--json"],
        &["agent", "S0"],
        &["agent", "S1"],
        &["frameworks", "--all"],
        &["framework", "0000"],
        &["framework", "--json", "0000"],
        &["framework", "0001"],
        &["roles"],
        &["offers"],
        &["executors"],
        &["metrics"],
        &["metrics", "nothing"],
        &["logs", "nothing"],
        &["files", "x"],
    ];
    for command in commands {
        let output = master.tepui(command);
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8(output_text).expect("UTF-8");
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!output_text.contains(harmful), "{command:?} printed {output_text:?}");
        assert!(!output_text.is_empty() && !output_text.contains("panicked"), "{command:?}: {output_text}");
    }
    let json = master.tepui(&["tasks", "--all", "--json"]);
    let tasks: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(tasks[0]["name"], HARM, "JSON says the same in other words");
}

/// An answer full of bad names, in the shape of the endpoint.
fn hostile(path: &str) -> Value {
    let id = |tail: &str| format!("1b2ac9de-da1d-4633-95a3-9f4a9a6a0764-{tail}");
    let amounts = json!({"cpus": 1.0, "mem": 64.0, HARM: 2.0, "ports": HARM});
    let offer = json!({"id": HARM, "framework_id": id("0000"), "slave_id": HARM, "resources": amounts,
        "allocation_info": {"role": HARM}});
    let executor = json!({"executor_id": HARM, "name": HARM, "type": HARM, "framework_id": id("0000"),
        "slave_id": HARM, "role": HARM, "resources": amounts});
    let task = json!({"id": HARM, "name": HARM, "state": HARM, "role": HARM, "slave_id": id("S0"), "resources": amounts,
        "framework_id": id("0000"), "executor_id": HARM, "statuses": [{"state": HARM, "timestamp": 1.0}]});
    let framework = json!({"id": id("0000"), "name": HARM, "user": HARM, "principal": HARM, "hostname": HARM,
        "webui_url": HARM, "roles": [HARM], "capabilities": [HARM], "labels": [{"key": HARM, "value": HARM}],
        "offer_constraints": {HARM: HARM}, "used_resources": amounts, "offered_resources": amounts,
        "tasks": [task], "completed_tasks": [task], "offers": [offer], "executors": [executor]});
    let agent = json!({"id": id("S0"), "hostname": HARM, "active": true, "pid": HARM, "version": HARM,
        "attributes": {HARM: HARM}, "domain": {"fault_domain": {"region": {"name": HARM}}}, "capabilities": [HARM],
        "drain_info": {"state": HARM}, "resources": amounts, "used_resources": amounts, "offered_resources": amounts,
        "unreserved_resources": amounts, "reserved_resources": {HARM: amounts}});
    let role =
        json!({"name": HARM, "weight": 1.0, "frameworks": [HARM], "allocated": amounts, "offered": amounts});
    match path.split('?').next().unwrap_or_default() {
        "/tasks" => json!({"tasks": [task]}),
        "/slaves" => json!({"slaves": [agent], "recovered_slaves": []}),
        "/frameworks" => json!({"frameworks": [framework], "completed_frameworks": []}),
        "/roles" => json!({"roles": [role]}),
        "/metrics/snapshot" => json!({HARM: 1.0}),
        _ => json!({}),
    }
}

#[test]
fn malformed_answers_are_reported() {
    let odd = [
        json!(null),
        json!([]),
        json!("text"),
        json!({"tasks": {}, "slaves": [1], "frameworks": [[]], "roles": null}),
    ];
    for answer in odd {
        let master = FakeMaster::start(move |_| Some((200, answer.clone())));
        for command in ["tasks", "agents", "frameworks", "roles", "offers", "executors", "metrics", "summary"]
        {
            let output = master.tepui(&[command]);
            let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(matches!(output.status.code(), Some(0 | 1)), "{command}: {output_text}");
            assert!(!output_text.contains("panicked"), "{command}: {output_text}");
        }
    }
}

#[test]
fn errors_suggest_the_next_step() {
    let table: [(fn(&str) -> Option<(u16, Value)>, &str); 5] = [
        (|_| Some((404, Value::Null)), "is probably not a master"),
        (|_| Some((503, Value::Null)), "retry in a few seconds"),
        (|_| Some((403, json!("principal 'x' may not"))), "rejected the request"),
        (|_| Some((200, json!("<html>"))), "no tasks"),
        (|_| None, "--master=HOST:PORT or TEPUI_MASTER"),
    ];
    for (answer, hint) in table {
        let output = FakeMaster::start(answer).tepui(&["tasks"]);
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output_text.contains(hint), "should hint at {hint}:\n{output_text}");
    }
}

#[test]
fn summary_command_prints_one_line() {
    let metrics = json!({"master/uptime_secs": 60.0, "master/slaves_active": 2.0, "master/tasks_running": 5.0,
        "master/cpus_used": 1.0, "master/cpus_total": 4.0});
    let master = FakeMaster::start(move |path| (path == "/metrics/snapshot").then(|| (200, metrics.clone())));
    let output_text = String::from_utf8(master.tepui(&["summary"]).stdout).expect("UTF-8");
    let rest = output_text.strip_prefix(&master.address).expect("it begins with the address");
    assert_eq!(rest, " | up 1m | agents 2 active | frameworks 0 active | tasks 5 running | cpus 1/4 25%\n");
}

/// A master with scripted answers to GET; `None` closes the connection. Lives as long as the test's process.
struct FakeMaster {
    address: String,
}

impl FakeMaster {
    fn start(answer: impl Fn(&str) -> Option<(u16, Value)> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client may close the connection early.
                let _ = respond(stream, &answer);
            }
        });
        Self { address }
    }

    fn tepui(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tepui"));
        command.args(arguments).env("TEPUI_MASTER", &self.address);
        command.output().expect("the binary starts")
    }
}

fn respond(mut stream: TcpStream, answer: &impl Fn(&str) -> Option<(u16, Value)>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let path = request.split_whitespace().nth(1).unwrap_or_default().to_string();
    let mut header = String::from("-");
    while !header.trim().is_empty() {
        header.clear();
        reader.read_line(&mut header)?;
    }
    let Some((status, body)) = answer(&path) else { return Ok(()) };
    let body = body.to_string();
    write!(stream, "HTTP/1.1 {status} -\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}
