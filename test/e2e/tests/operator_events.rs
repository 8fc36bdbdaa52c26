//! The event stream of operators: the state first, then everything that happens, in both encodings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};
use tepui_e2e::{Cluster, Http, Scheduler, Stream};
use tepui_proto::mesos::v1::master::event::Type;
use tepui_proto::mesos::v1::master::response::GetState;
use tepui_proto::mesos::v1::{self as pb, master};
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
        Self::subscribe_with(http, accept, &[])
    }

    fn subscribe_with(http: &Http, accept: &str, headers: &[(&str, &str)]) -> Self {
        let headers = [&[("Accept", accept)], headers].concat();
        let stream = http.stream("/api/v1", &headers, &json!({"type": "SUBSCRIBE"}));
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
fn operator_events_agree_in_json_and_protobuf() {
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
fn subscriber_limit_disconnects_the_oldest() {
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

/// The state from the first snapshot and all events since.
#[derive(Debug, Default, PartialEq)]
struct Known {
    agents: BTreeSet<String>,
    frameworks: BTreeSet<String>,
    tasks: BTreeMap<String, pb::TaskState>,
}

impl Known {
    fn from_state(state: &GetState) -> Self {
        let tasks = state.get_tasks.tasks.iter().chain(&state.get_tasks.completed_tasks);
        let frameworks = state.get_frameworks.frameworks.iter();
        let agents = state.get_agents.agents.iter();
        Self {
            agents: agents.map(|agent| agent.agent_info.id.value.clone()).collect(),
            frameworks: frameworks.map(|one| one.framework_info.id.value.clone()).collect(),
            tasks: tasks.map(|task| (task.task_id.value.clone(), task.state)).collect(),
        }
    }

    /// Nothing may be added twice, nor changed or removed before it was added.
    fn learn(&mut self, event: &master::Event) {
        match event.r#type.expect("an event has a type") {
            Type::TASK_ADDED => {
                let task = &event.task_added.task;
                let known = self.tasks.insert(task.task_id.value.clone(), task.state);
                assert_eq!(known, None, "added twice: {}", task.task_id.value);
            }
            Type::TASK_UPDATED => {
                let updated = &event.task_updated;
                let known = self.tasks.insert(updated.status.task_id.value.clone(), updated.state);
                assert!(known.is_some(), "updated and never added: {updated:?}");
            }
            Type::AGENT_ADDED => {
                assert!(self.agents.insert(event.agent_added.agent.agent_info.id.value.clone()));
            }
            Type::AGENT_REMOVED => assert!(self.agents.remove(&event.agent_removed.agent_id.value)),
            Type::FRAMEWORK_ADDED => {
                let id = event.framework_added.framework.framework_info.id.value.clone();
                assert!(self.frameworks.insert(id.clone()), "added twice: {id}");
            }
            Type::FRAMEWORK_UPDATED => {
                let id = &event.framework_updated.framework.framework_info.id.value;
                assert!(self.frameworks.contains(id), "updated and never added: {id}");
            }
            Type::FRAMEWORK_REMOVED => {
                let id = &event.framework_removed.framework_info.id.value;
                assert!(self.frameworks.remove(id), "removed and never added: {id}");
            }
            Type::HEARTBEAT => (),
            Type::UNKNOWN | Type::SUBSCRIBED | Type::ERROR => {
                panic!("not in the middle of a stream: {event:?}")
            }
        }
    }
}

/// The last event: a framework of this name.
const LAST: &str = "last";

/// Subscribes until the last event; returns the resulting state and the number of events.
fn follow(http: &Http, accept: &str, subscribed: &mpsc::Sender<()>) -> (Known, usize) {
    let mut operator = Operator::subscribe(http, accept);
    let first = operator.next();
    subscribed.send(()).expect("the round waits for its followers");
    let mut known = Known::from_state(&first.subscribed.get_state);
    let mut received = known_uuids(&first.subscribed.get_state);
    operator.next();
    assert_eq!(operator.seen, ["SUBSCRIBED", "HEARTBEAT"]);
    loop {
        let event = operator.next();
        known.learn(&event);
        if let Some(uuid) = &event.task_updated.status.uuid {
            assert!(received.insert(uuid.clone()), "told twice: {event:?}");
        }
        if event.framework_added.framework.framework_info.name == LAST {
            return (known, operator.seen.len());
        }
    }
}

/// Of the updates that are in a state already.
fn known_uuids(state: &GetState) -> BTreeSet<Vec<u8>> {
    let tasks = state.get_tasks.tasks.iter().chain(&state.get_tasks.completed_tasks);
    tasks.flat_map(|task| &task.statuses).filter_map(|status| status.uuid.clone()).collect()
}

const ROUNDS: usize = 30;
const TASKS_A_ROUND: usize = 5;

/// Subscribers start during load; each ends with the same state as the snapshot.
#[test]
fn snapshot_and_later_events_add_up_to_the_next_snapshot() {
    let cluster =
        Cluster::with(&["--allocation_interval=20ms"], &["--resources=cpus:100;mem:10000;disk:100"]);
    let http = cluster.http();
    let mut scheduler = Scheduler::subscribe(&http, Scheduler::info("dev"));
    let subscribers: Vec<_> =
        (0..ROUNDS).flat_map(|round| a_busy_round(&http, &mut scheduler, round)).collect();
    let _last = Scheduler::subscribe(&http, json!({"user": "root", "name": LAST}));
    let subscribers: Vec<(Known, usize)> =
        subscribers.into_iter().map(|subscriber| subscriber.join().expect("a follower")).collect();
    let answer = http.post("/api/v1", &json!({"type": "GET_STATE"}));
    let answer: master::Response = json::from_slice(&answer.body).expect("an answer");
    let state = Known::from_state(&answer.get_state);
    assert_eq!(state.tasks.len(), ROUNDS * TASKS_A_ROUND);
    for (known, _) in &subscribers {
        assert_eq!(*known, state);
    }
    let received: BTreeSet<usize> = subscribers.iter().map(|(_, received)| *received).collect();
    assert!(received.len() > ROUNDS, "they did not come at different moments: {received:?}");
}

/// Tasks that terminate without a process, a short-lived framework, and new subscribers.
fn a_busy_round(
    http: &Http,
    scheduler: &mut Scheduler,
    round: usize,
) -> Vec<thread::JoinHandle<(Known, usize)>> {
    let (subscribed, subscriptions) = mpsc::channel();
    let come = |accept: &'static str| {
        let (http, subscribed) = (http.clone(), subscribed.clone());
        thread::spawn(move || follow(&http, accept, &subscribed))
    };
    let offer = large_offer(scheduler);
    let ids: Vec<String> = (0..TASKS_A_ROUND).map(|number| format!("{round}-{number}")).collect();
    let task = |id: &String| {
        let mut task = Scheduler::task(&offer, id, "true");
        task["command"]["user"] = json!("no-such-user-x");
        task
    };
    let tasks: Vec<Value> = ids.iter().map(task).collect();
    let mut subscribers = vec![come("application/json")];
    // The first one sees the whole round, the last one does not: they cannot subscribe at the same moment.
    subscriptions.recv().expect("a follower");
    scheduler.launch(&offer, &tasks);
    subscribers.push(come("application/x-protobuf"));
    let passing = Scheduler::subscribe(http, json!({"user": "root", "name": "passing"}));
    passing.call(json!({"type": "TEARDOWN"}));
    subscribers.push(come("application/json"));
    for id in &ids {
        scheduler.reach(id, "TASK_DROPPED");
    }
    // None may subscribe in the next round: each round has its own events.
    subscribers.iter().skip(1).for_each(|_| subscriptions.recv().expect("a follower"));
    subscribers
}

/// Resources of terminated tasks are offered in pieces: offers that are too small are declined.
fn large_offer(scheduler: &mut Scheduler) -> Value {
    loop {
        let offer = scheduler.offer();
        let resources = offer["resources"].as_array().expect("a list");
        let cpus = resources.iter().find(|one| one["name"] == "cpus");
        if cpus.is_some_and(|cpus| cpus["scalar"]["value"].as_f64() > Some(1.0)) {
            return offer;
        }
        let refusal = json!({"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.0}});
        scheduler.call(json!({"type": "DECLINE", "decline": refusal}));
    }
}

const CREDENTIALS: &str =
    r#"{"credentials":[{"principal":"ops","secret":"ops"},{"principal":"dev","secret":"dev"}]}"#;

/// `dev` may view frameworks of the user `red`, their tasks of the user `red`, and the role `dev`.
const ACLS: &str = r#"{"permissive": true,
    "view_frameworks": [{"principals":{"values":["dev"]},"users":{"values":["red"]}},
                        {"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "view_tasks": [{"principals":{"values":["dev"]},"users":{"values":["red"]}},
                   {"principals":{"values":["dev"]},"users":{"type":"NONE"}}],
    "view_roles": [{"principals":{"values":["dev"]},"roles":{"values":["dev"]}},
                   {"principals":{"values":["dev"]},"roles":{"type":"NONE"}}]}"#;

#[test]
fn subscribers_receive_only_authorized_events() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        format!("--{name}={}", path.display())
    };
    let flags =
        [file("credentials", CREDENTIALS), file("acls", ACLS), "--authenticate_http_readwrite".into()];
    let mut cluster = Cluster::without_agents(&flags.each_ref().map(String::as_str));
    let http = cluster.http();
    let mut subscribers =
        [("Basic b3BzOm9wcw==", "application/json"), ("Basic ZGV2OmRldg==", "application/x-protobuf")]
            .map(|(proof, accept)| Operator::subscribe_with(&http, accept, &[("Authorization", proof)]));
    subscribers.iter_mut().for_each(|one| drop([one.next(), one.next()]));
    cluster.add_agent(&["--resources=cpus:4;mem:512;cpus(dev):1;cpus(secret):1;disk:10"]);
    for user in ["blue", "red"] {
        let mut info = Scheduler::info("*");
        info["user"] = json!(user);
        info["name"] = json!(user);
        let mut scheduler = Scheduler::subscribe(&http, info);
        let offer = scheduler.offer();
        let ids = ["red", "blue"].map(|of| format!("{of}-of-{user}"));
        let tasks = ids.each_ref().map(|id| {
            let mut task = Scheduler::task(&offer, id, "true");
            task["command"]["user"] = json!(id.split('-').next());
            task
        });
        scheduler.launch(&offer, &tasks);
        ids.iter().for_each(|id| drop(scheduler.reach(id, "TASK_DROPPED")));
        scheduler.call(json!({"type": "TEARDOWN"}));
    }
    let [ops, dev] = &mut subscribers;
    let everything = events_until_removed(ops, "red");
    for user in ["blue", "red"] {
        let seen_of = |kind: &str, name: String| everything.contains(&(kind.to_string(), name));
        assert!(seen_of("FRAMEWORK_ADDED", user.into()) && seen_of("FRAMEWORK_REMOVED", user.into()));
        assert!(
            seen_of("TASK_ADDED", format!("blue-of-{user}"))
                && seen_of("TASK_UPDATED", format!("red-of-{user}"))
        );
    }
    assert!(everything.contains(&("AGENT_ADDED".into(), "dev secret".into())), "{everything:?}");
    let expected = [
        ("AGENT_ADDED", "dev"),
        ("FRAMEWORK_ADDED", "red"),
        ("TASK_ADDED", "red-of-red"),
        ("TASK_UPDATED", "red-of-red"),
        ("FRAMEWORK_REMOVED", "red"),
    ];
    let expected = expected.map(|(kind, name)| (kind.to_string(), name.to_string()));
    assert_eq!(events_until_removed(dev, "red"), expected);
}

/// The events of a subscriber until this framework is removed: kind and subject; for agents the reserved roles.
fn events_until_removed(subscriber: &mut Operator, framework: &str) -> Vec<(String, String)> {
    let mut received = Vec::new();
    loop {
        let event = subscriber.next();
        let subject = match event.r#type.expect("a type") {
            Type::FRAMEWORK_ADDED => event.framework_added.framework.framework_info.name.clone(),
            Type::FRAMEWORK_REMOVED => event.framework_removed.framework_info.name.clone(),
            Type::TASK_ADDED => event.task_added.task.task_id.value.clone(),
            Type::TASK_UPDATED => event.task_updated.status.task_id.value.clone(),
            Type::AGENT_ADDED => {
                let resources = event.agent_added.agent.total_resources.iter();
                let roles: BTreeSet<&str> = resources
                    .flat_map(|one| &one.reservations)
                    .filter_map(|one| one.role.as_deref())
                    .collect();
                roles.into_iter().collect::<Vec<_>>().join(" ")
            }
            _ => continue,
        };
        received.push((subscriber.seen.last().expect("it was seen").to_string(), subject));
        if received.last() == Some(&("FRAMEWORK_REMOVED".to_string(), framework.to_string())) {
            return received;
        }
    }
}
