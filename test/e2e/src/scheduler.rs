//! A scheduler on raw JSON: tests see the wire format.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Cluster, Http, Response, Stream, patience, wait_for};

/// A subscribed framework. A thread reads events; tests acknowledge updates themselves or by `update`.
pub struct Scheduler {
    http: Http,
    /// The value of the Authorization header.
    proof: Option<String>,
    stream_id: String,
    pub framework_id: String,
    /// The agent of the last offer.
    pub agent_id: Value,
    pub subscribed: Value,
    events: Receiver<Option<Value>>,
    kept: VecDeque<Value>,
    /// The updates that were acknowledged.
    acknowledged: RefCell<Vec<Value>>,
}

/// The outcome of a poll.
#[derive(Debug)]
pub enum Polled {
    Event(Value),
    Nothing,
    Ended,
}

impl Scheduler {
    /// Subscribes with this framework_info and waits for SUBSCRIBED.
    pub fn subscribe(http: &Http, framework_info: Value) -> Self {
        wait_for("SUBSCRIBED", || Self::try_subscribe(http, &framework_info, None))
    }

    /// The same with an Authorization header.
    pub fn subscribe_as(http: &Http, framework_info: Value, proof: &str) -> Self {
        wait_for("SUBSCRIBED", || Self::try_subscribe(http, &framework_info, Some(proof)))
    }

    /// Subscribes; `None` if the master does not accept it.
    fn try_subscribe(http: &Http, framework_info: &Value, proof: Option<&str>) -> Option<Self> {
        let mut call = json!({"type": "SUBSCRIBE", "subscribe": {"framework_info": framework_info}});
        if let Some(id) = framework_info.get("id") {
            call["framework_id"] = id.clone();
        }
        let mut headers = vec![("Accept", "application/json")];
        headers.extend(proof.map(|proof| ("Authorization", proof)));
        let mut stream = http.try_stream("/api/v1/scheduler", &headers, &call)?;
        if stream.status == 503 {
            return None;
        }
        assert_eq!(stream.status, 200);
        let stream_id = stream.header("mesos-stream-id").expect("a stream has an id").to_string();
        let subscribed = stream.next_event()?;
        assert_eq!(subscribed["type"], "SUBSCRIBED", "{subscribed}");
        let framework_id =
            subscribed["subscribed"]["framework_id"]["value"].as_str().expect("an id").to_string();
        Some(Self {
            http: http.clone(),
            proof: proof.map(str::to_string),
            stream_id,
            framework_id,
            agent_id: Value::Null,
            subscribed,
            events: read_in_background(stream),
            kept: VecDeque::new(),
            acknowledged: RefCell::default(),
        })
    }

    /// A framework_info that is partition aware and in role `role`.
    pub fn info(role: &str) -> Value {
        json!({
            "user": user(), "name": "e2e", "roles": [role], "failover_timeout": 3600.0, "checkpoint": true,
            "capabilities": [{"type": "MULTI_ROLE"}, {"type": "PARTITION_AWARE"}, {"type": "TASK_KILLING_STATE"},
                             {"type": "RESERVATION_REFINEMENT"}]
        })
    }

    /// Sends a call with the framework's id and stream filled in.
    pub fn call(&self, mut call: Value) -> Response {
        if call.get("framework_id").is_none() {
            call["framework_id"] = json!({"value": self.framework_id});
        }
        let mut headers =
            vec![("Content-Type", "application/json"), ("Mesos-Stream-Id", self.stream_id.as_str())];
        headers.extend(self.proof.as_deref().map(|proof| ("Authorization", proof)));
        self.http.send("POST", "/api/v1/scheduler", &headers, call.to_string().as_bytes())
    }

    /// The next event that satisfies `accept`; earlier ones are kept for later calls. A repeated update is acknowledged
    /// again: its first acknowledgement may have been lost with an agent. `None` at the end of the stream.
    pub fn event(&mut self, name: &str, accept: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(at) = self.kept.iter().position(&accept) {
            return self.kept.remove(at);
        }
        let deadline = Instant::now() + patience();
        loop {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Some(event)) if self.is_repeated(&event) => self.acknowledge(&event["update"]["status"]),
                Ok(Some(event)) if accept(&event) => return Some(event),
                Ok(Some(event)) => self.kept.push_back(event),
                Ok(None) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    let kept: Vec<String> = self.kept.iter().map(Value::to_string).collect();
                    panic!("waited {:?} for {name}; kept:\n{}", patience(), kept.join("\n"))
                }
            }
        }
    }

    fn is_repeated(&self, event: &Value) -> bool {
        let uuid = event["update"]["status"].get("uuid");
        uuid.is_some_and(|uuid| self.acknowledged.borrow().contains(uuid))
    }

    /// The next event, if it arrives within `patience`.
    pub fn poll(&mut self, patience: Duration) -> Polled {
        if let Some(event) = self.kept.pop_front() {
            return Polled::Event(event);
        }
        match self.events.recv_timeout(patience) {
            Ok(Some(event)) => Polled::Event(event),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Polled::Ended,
            Err(RecvTimeoutError::Timeout) => Polled::Nothing,
        }
    }

    /// The next offer.
    pub fn offer(&mut self) -> Value {
        let event = self.event("an offer", |event| event["type"] == "OFFERS").expect("the stream lives");
        let offer = event["offers"]["offers"][0].clone();
        self.agent_id = offer["agent_id"].clone();
        offer
    }

    /// An offer that was not taken back: the newest after everything was revived.
    pub fn fresh_offer(&mut self) -> Value {
        self.call(json!({"type": "REVIVE"}));
        self.offer()
    }

    pub fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// A recorded body with the ids of this run.
    pub fn with_own_ids(&self, body: &str) -> String {
        let Ok(mut call) = serde_json::from_str::<Value>(body) else { return body.to_string() };
        replace_ids(&mut call, &self.framework_id, self.agent_id["value"].as_str().unwrap_or_default());
        call.to_string()
    }

    /// The next update of this task in this state, acknowledged if required.
    pub fn update(&mut self, task: &str, state: &str) -> Value {
        let event = self
            .event(&format!("{task} {state}"), |event| {
                event["type"] == "UPDATE"
                    && event["update"]["status"]["task_id"]["value"] == task
                    && event["update"]["status"]["state"] == state
            })
            .expect("the stream lives");
        let status = event["update"]["status"].clone();
        self.acknowledge(&status);
        status
    }

    /// Acknowledges the updates of this task up to one in this state, which is returned.
    pub fn reach(&mut self, task: &str, state: &str) -> Value {
        self.advance(task, state, |status| status["state"] == state)
    }

    /// Acknowledges the updates of this task up to its last, which is returned.
    pub fn end(&mut self, task: &str) -> Value {
        self.advance(task, "its end", is_final)
    }

    fn advance(&mut self, task: &str, to: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self
                .event(&format!("{task} {to}"), |event| {
                    event["type"] == "UPDATE" && event["update"]["status"]["task_id"]["value"] == task
                })
                .expect("the stream lives");
            let status = event["update"]["status"].clone();
            self.acknowledge(&status);
            if is_there(&status) {
                return status;
            }
            assert!(!is_final(&status), "waited for {task} {to}: {status}");
        }
    }

    /// Acknowledges an update if required.
    pub fn acknowledge(&self, status: &Value) {
        if let Some(uuid) = status.get("uuid") {
            let acknowledge =
                json!({"agent_id": status["agent_id"], "task_id": status["task_id"], "uuid": uuid});
            self.call(json!({"type": "ACKNOWLEDGE", "acknowledge": acknowledge}));
            self.acknowledged.borrow_mut().push(uuid.clone());
        }
    }

    /// Launches tasks on an offer.
    pub fn launch(&self, offer: &Value, tasks: &[Value]) -> Response {
        self.accept(offer, json!([{"type": "LAUNCH", "launch": {"task_infos": tasks}}]))
    }

    pub fn accept(&self, offer: &Value, operations: Value) -> Response {
        let accept =
            json!({"offer_ids": [offer["id"]], "operations": operations, "filters": {"refuse_seconds": 0.0}});
        self.call(json!({"type": "ACCEPT", "accept": accept}))
    }

    /// A command task on the offer's agent.
    pub fn task(offer: &Value, id: &str, command: &str) -> Value {
        json!({
            "name": id, "task_id": {"value": id}, "agent_id": offer["agent_id"],
            "command": {"value": command}, "resources": [scalar("cpus", 0.1), scalar("mem", 32.0)]
        })
    }
}

/// Reads a stream to its end, marked by a final `None`.
fn read_in_background(mut stream: Stream) -> Receiver<Option<Value>> {
    let (sender, events) = channel();
    std::thread::spawn(move || {
        loop {
            let event = stream.next_event();
            let ended = event.is_none();
            if sender.send(event).is_err() || ended {
                return;
            }
        }
    });
    events
}

/// Whether no other state follows.
fn is_final(status: &Value) -> bool {
    ["TASK_FINISHED", "TASK_FAILED", "TASK_KILLED", "TASK_ERROR"].iter().any(|name| status["state"] == *name)
}

/// Both programs answer and still run tasks.
pub fn still_works(cluster: &mut Cluster, id: &str) {
    let mut scheduler = Scheduler::subscribe(&cluster.http(), Scheduler::info("witness"));
    let offer = scheduler.fresh_offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, id, "true")]);
    scheduler.reach(id, "TASK_FINISHED");
    scheduler.call(json!({"type": "TEARDOWN"}));
    assert!(cluster.master.is_running() && cluster.agents.iter_mut().all(|agent| agent.is_running()));
}

pub fn scalar(name: &str, value: f64) -> Value {
    json!({"name": name, "type": "SCALAR", "scalar": {"value": value}})
}

/// Ids of masters have a common form: a UUID and a suffix.
fn replace_ids(value: &mut Value, framework_id: &str, agent_id: &str) {
    match value {
        Value::String(text) if text.len() == 41 && text.ends_with("-0000") => {
            *text = framework_id.to_string()
        }
        Value::String(text) if text.len() == 39 && text.ends_with("-S0") => *text = agent_id.to_string(),
        Value::Array(values) => {
            values.iter_mut().for_each(|value| replace_ids(value, framework_id, agent_id))
        }
        Value::Object(values) => {
            values.values_mut().for_each(|value| replace_ids(value, framework_id, agent_id))
        }
        _ => {}
    }
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "root".to_string())
}
