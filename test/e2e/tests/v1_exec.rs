//! `mesos task exec` of the v1 command line: exactly its requests, in its order, against a real agent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, Stream, patience};

const FOREVER: &str = "while :; do sleep 0.1; done";

/// What the command line finds out before it speaks to the agent.
struct Exec {
    agent: Http,
    container: Value,
}

impl Exec {
    /// The task by its id, its agent by the `pid`, and an id for the new container below the task's.
    fn find(master: &Http, task: &str, value: &str) -> Self {
        let tasks = master.get(&format!("/tasks?task_id={task}")).json().expect("JSON");
        let task = &tasks["tasks"][0];
        assert_eq!(task["state"], "TASK_RUNNING");
        let agents = master.get("/slaves").json().expect("JSON");
        let agents = agents["slaves"].as_array().expect("a list").clone();
        let agent = agents.iter().find(|agent| agent["id"] == task["slave_id"]).expect("the task's agent");
        let address = agent["pid"].as_str().and_then(|pid| pid.split('@').nth(1)).expect("an address");
        let parent = task["statuses"][0]["container_status"]["container_id"].clone();
        assert!(parent["value"].is_string(), "{task}");
        Self { agent: Http::new(address), container: json!({"parent": parent, "value": value}) }
    }

    fn launch(&self, command: &[&str], tty: bool) -> Stream {
        let mut session = json!({
            "container_id": self.container,
            "command": {"value": command[0], "arguments": command, "shell": false}
        });
        if tty {
            session["container"] = json!({"type": "MESOS", "tty_info": {}});
        }
        let call = json!({
            "type": "LAUNCH_NESTED_CONTAINER_SESSION", "launch_nested_container_session": session
        });
        let headers = [("Accept", "application/recordio"), ("Message-Accept", "application/json")];
        let output = self.agent.stream("/api/v1", &headers, &call);
        assert_eq!(output.status, 200);
        output
    }

    /// A request with a body of records, one per chunk; returns its status.
    fn attach(&self, steps: &[Value]) -> u16 {
        let mut stream = TcpStream::connect(self.agent.address()).expect("the agent listens");
        stream.set_read_timeout(Some(patience())).expect("a socket takes options");
        let head = format!(
            "POST /api/v1 HTTP/1.1\r\nHost: {}\r\nContent-Type: application/recordio\r\n\
             Message-Content-Type: application/json\r\nAccept: application/json\r\nConnection: close\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            self.agent.address()
        );
        stream.write_all(head.as_bytes()).expect("the agent reads");
        let first = json!({"type": "CONTAINER_ID", "container_id": self.container});
        for step in std::iter::once(&first).chain(steps) {
            let call = json!({"type": "ATTACH_CONTAINER_INPUT", "attach_container_input": step}).to_string();
            let record = format!("{}\n{call}", call.len());
            stream
                .write_all(format!("{:x}\r\n{record}\r\n", record.len()).as_bytes())
                .expect("the agent reads");
        }
        stream.write_all(b"0\r\n\r\n").expect("the agent reads");
        let mut line = String::new();
        let mut answer = BufReader::new(stream);
        answer.read_line(&mut line).expect("the agent answers");
        answer.read_to_end(&mut Vec::new()).expect("the agent ends its answer");
        line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// As wait(2) has it.
    fn exit_status(&self) -> Value {
        let call = json!({"type": "WAIT_CONTAINER", "wait_container": {"container_id": self.container}});
        let answer = self.agent.post("/api/v1", &call);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json().expect("JSON")["wait_container"]["exit_status"].clone()
    }
}

fn stdin(bytes: &[u8]) -> Value {
    let data = json!({"type": "STDIN", "data": STANDARD.encode(bytes)});
    json!({"type": "PROCESS_IO", "process_io": {"type": "DATA", "data": data}})
}

fn control(control: Value) -> Value {
    json!({"type": "PROCESS_IO", "process_io": {"type": "CONTROL", "control": control}})
}

fn heartbeat() -> Value {
    let interval = json!({"nanoseconds": 30_000_000_000_i64});
    control(json!({"type": "HEARTBEAT", "heartbeat": {"interval": interval}}))
}

/// The content of DATA records of one kind until the end of the stream; empty ones are rejected, as by v1's command line.
fn written(mut output: Stream, kind: &str) -> String {
    let mut bytes = Vec::new();
    while let Some(record) = output.next_event() {
        if record["type"] == "DATA" {
            let data = record["data"]["data"].as_str().filter(|data| !data.is_empty()).expect("some data");
            if record["data"]["type"] == kind {
                bytes.extend(STANDARD.decode(data).expect("base64"));
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn with_a_task() -> (Cluster, Scheduler) {
    let cluster = Cluster::start();
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("dev"));
    let offer = scheduler.offer();
    assert_eq!(scheduler.launch(&offer, &[Scheduler::task(&offer, "web", FOREVER)]).status, 202);
    scheduler.reach("web", "TASK_RUNNING");
    (cluster, scheduler)
}

#[test]
fn exec_output_is_streamed_and_its_exit_is_waited_for() {
    let (cluster, _scheduler) = with_a_task();
    let exec = Exec::find(&cluster.http(), "web", "one");
    let output = exec.launch(&["sh", "-c", "echo out; echo err >&2; exit 3"], false);
    assert_eq!(written(output, "STDOUT"), "out\n");
    assert_eq!(exec.exit_status(), 3 << 8);
}

#[test]
fn input_is_echoed_after_a_probe_connection() {
    let (cluster, _scheduler) = with_a_task();
    let exec = Exec::find(&cluster.http(), "web", "two");
    let output = exec.launch(&["cat"], false);
    // The command line tries the connection once before it commits itself.
    assert_eq!(exec.attach(&[]), 200);
    assert_eq!(exec.attach(&[heartbeat(), stdin(b"hello\n"), stdin(b"again\n"), stdin(b"")]), 200);
    assert_eq!(written(output, "STDOUT"), "hello\nagain\n");
    assert_eq!(exec.exit_status(), 0);
}

#[test]
fn terminal_has_the_requested_size() {
    let (cluster, _scheduler) = with_a_task();
    let exec = Exec::find(&cluster.http(), "web", "three");
    let output = exec.launch(&["sh", "-c", "read line; stty size"], true);
    assert_eq!(exec.attach(&[]), 200);
    let size = json!({"window_size": {"rows": 33, "columns": 77}});
    let steps = [heartbeat(), control(json!({"type": "TTY_INFO", "tty_info": size})), stdin(b"go\n")];
    assert_eq!(exec.attach(&steps), 200);
    let seen = written(output, "STDOUT");
    assert!(seen.contains("33 77"), "{seen:?}");
}

/// Invalid input and a second input connection are rejected.
#[test]
fn invalid_input_is_rejected() {
    let (cluster, _scheduler) = with_a_task();
    let exec = Exec::find(&cluster.http(), "web", "four");
    let _output = exec.launch(&["cat"], false);
    let size = json!({"window_size": {"rows": 33, "columns": 77}});
    let resize = control(json!({"type": "TTY_INFO", "tty_info": size}));
    assert_eq!(exec.attach(&[resize]), 400, "it has no terminal");
    let data = json!({"type": "STDOUT", "data": ""});
    let stdout = json!({"type": "PROCESS_IO", "process_io": {"type": "DATA", "data": data}});
    assert_eq!(exec.attach(&[stdout]), 400);
    let unknown = Exec { container: json!({"value": "nobody"}), agent: exec.agent.clone() };
    assert_eq!(unknown.attach(&[]), 404);
    let task = Exec { container: exec.container["parent"].clone(), agent: exec.agent.clone() };
    assert_eq!(task.attach(&[]), 500, "nobody can type into a task without a terminal");
}
