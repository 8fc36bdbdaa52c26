//! The event stream of operators: the state first, then everything that happens, in both encodings.

use std::collections::BTreeSet;

use serde_json::json;
use tepui_e2e::{Cluster, Http, Scheduler, Stream};
use tepui_proto::mesos::v1::master;
use tepui_proto::{Enumeration, Wire, json, wire};

/// The largest event.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A subscribed operator.
struct Operator {
    stream: Stream,
    in_json: bool,
    seen: Vec<&'static str>,
}

impl Operator {
    fn subscribe(http: &Http, accept: &str) -> Self {
        let stream = http.stream("/api/v1", &[("Accept", accept)], &json!({"type": "SUBSCRIBE"}));
        assert_eq!((stream.status, stream.header("content-type")), (200, Some(accept)));
        assert!(stream.header("mesos-stream-id").is_none(), "an operator's stream needs no id");
        Self { stream, in_json: accept == "application/json", seen: Vec::new() }
    }

    fn next(&mut self) -> master::Event {
        let record = self.stream.next_record().expect("the stream lives");
        let event: master::Event = self.decode(&record);
        self.seen.push(event.r#type.expect("an event has a type").proto_name());
        event
    }

    /// The next event of this type; others are passed over.
    fn until(&mut self, kind: &str) -> master::Event {
        loop {
            let event = self.next();
            if self.seen.last() == Some(&kind) {
                return event;
            }
        }
    }

    fn decode<M: Wire>(&self, record: &[u8]) -> M {
        match self.in_json {
            true => json::from_slice(record).expect("an event in JSON"),
            false => wire::decode(record, EVENT_BYTES_MAX).expect("an event in protobuf"),
        }
    }
}

#[test]
fn operators_hear_of_everything_in_both_encodings() {
    let mut cluster = Cluster::with(&["--hostname=localhost"], &["--resources=cpus:4;mem:1024;disk:100"]);
    let http = cluster.http();
    let accepts = ["application/json", "application/x-protobuf"];
    let mut operators = accepts.map(|accept| Operator::subscribe(&http, accept));
    for operator in &mut operators {
        let first = operator.next();
        assert_eq!(first.subscribed.heartbeat_interval_seconds, Some(15.0));
        assert_eq!(first.subscribed.get_state.get_agents.agents.len(), 1);
        operator.next();
        assert_eq!(operator.seen, ["SUBSCRIBED", "HEARTBEAT"]);
    }

    let info = Scheduler::info("dev");
    let mut scheduler = Scheduler::subscribe(&http, info.clone());
    let offer = scheduler.offer();
    scheduler.launch(&offer, &[Scheduler::task(&offer, "one", "sleep 1000")]);
    scheduler.reach("one", "TASK_RUNNING");
    let mut again = info;
    again["id"] = json!({"value": scheduler.framework_id});
    let scheduler = Scheduler::subscribe(&http, again);
    cluster.add_agent(&["--resources=cpus:1;mem:64"]);
    let second = agent_ids(&http).into_iter().find(|id| id.ends_with("-S1")).expect("a second agent");
    let gone = json!({"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": second}}});
    assert_eq!(http.post("/api/v1", &gone).status, 200);
    scheduler.call(json!({"type": "TEARDOWN"}));

    for operator in &mut operators {
        let added = operator.until("FRAMEWORK_ADDED").framework_added;
        assert_eq!(added.framework.framework_info.name, "e2e");
        assert_eq!(operator.until("TASK_ADDED").task_added.task.task_id.value, "one");
        let updated = operator.until("TASK_UPDATED").task_updated;
        assert_eq!(updated.status.task_id.value, "one");
        operator.until("FRAMEWORK_UPDATED");
        assert_eq!(operator.until("AGENT_ADDED").agent_added.agent.agent_info.id.value, second);
        assert_eq!(operator.until("AGENT_REMOVED").agent_removed.agent_id.value, second);
        let removed = operator.until("FRAMEWORK_REMOVED").framework_removed;
        assert_eq!(removed.framework_info.id.value, scheduler.framework_id);
    }
    let [json, protobuf] = operators.map(|operator| operator.seen);
    let without_heartbeats = |seen: Vec<&'static str>| -> Vec<&str> {
        seen.into_iter().filter(|kind| *kind != "HEARTBEAT").collect()
    };
    assert_eq!(
        without_heartbeats(json),
        without_heartbeats(protobuf),
        "both hear the same in the same order"
    );
}

#[test]
fn one_more_than_allowed_ends_the_oldest() {
    let cluster = Cluster::without_agents(&["--max_operator_event_stream_subscribers=2"]);
    let http = cluster.http();
    let mut oldest = Operator::subscribe(&http, "application/json");
    let mut others = [(); 2].map(|()| Operator::subscribe(&http, "application/json"));
    oldest.next();
    while let Some(record) = oldest.stream.next_record() {
        assert_eq!(oldest.decode::<master::Event>(&record).r#type, Some(master::event::Type::HEARTBEAT));
    }
    others.iter_mut().for_each(|one| drop(one.next()));
    let metrics = http.get("/metrics/snapshot").json().expect("JSON");
    assert_eq!(metrics["master/operator_event_stream_subscribers"], 2.0);
}

fn agent_ids(http: &Http) -> BTreeSet<String> {
    let agents = http.get("/slaves").json().expect("JSON");
    let agents = agents["slaves"].as_array().expect("a list");
    agents.iter().map(|agent| agent["id"].as_str().expect("an id").to_string()).collect()
}
