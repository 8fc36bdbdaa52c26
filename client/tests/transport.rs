//! The transports against a small server of our own: what goes over the wire, and what happens when it breaks.

mod server;

use server::{Answer, Asked, Server};
use tepui_client::executor::{self, Environment};
use tepui_client::scheduler::{self, Event, Options};
use tepui_client::v1::{self, FrameworkInfo, TaskState, TaskStatus};
use tepui_client::{Credential, Fault, Format, operator, shorthand};
use tepui_proto::json;

const SUBSCRIBED: &str =
    r#"{"type":"SUBSCRIBED","subscribed":{"framework_id":{"value":"F"},"heartbeat_interval_seconds":15}}"#;
const OFFERS: &str = r#"{"type":"OFFERS","offers":{"offers":[]}}"#;

fn framework() -> FrameworkInfo {
    FrameworkInfo { name: "test".into(), user: "nobody".into(), ..Default::default() }
}

fn options(format: Format) -> Options {
    Options {
        format,
        credential: Some(Credential::Basic { principal: "p".into(), secret: "s".into() }),
        backoff_max: std::time::Duration::from_millis(1),
        ..Default::default()
    }
}

fn call(asked: &Asked) -> v1::scheduler::Call {
    asked.message()
}

#[tokio::test]
async fn a_framework_subscribes_calls_and_is_torn_down() {
    for format in [Format::Json, Format::Protobuf] {
        let mut server = Server::start(format).await;
        let mut scheduler =
            scheduler::connect_with(&server.address(), framework(), options(format)).expect("an address");
        assert!(matches!(
            scheduler.kill(shorthand::task_id("t"), None, None).await,
            Err(Fault::NotSubscribed)
        ));

        let subscribe = server.asked().await;
        assert_eq!(subscribe.path, "/api/v1/scheduler");
        assert_eq!(subscribe.header("authorization"), Some("Basic cDpz"));
        assert_eq!(subscribe.header("mesos-stream-id"), None);
        assert_eq!(call(&subscribe).subscribe.framework_info.name, "test");
        let stream = subscribe.stream::<v1::scheduler::Event>(&[("mesos-stream-id", "s-1")]);
        stream.send(SUBSCRIBED);
        stream.send(r#"{"type":"HEARTBEAT"}"#);
        stream.send(OFFERS);
        assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
        assert!(matches!(scheduler.next_event().await, Some(Event::Offers(_))), "heartbeats are not told");
        assert_eq!(scheduler.framework_id().map(|id| id.value).as_deref(), Some("F"));

        let caller = scheduler.caller();
        let declined = tokio::spawn(async move { caller.decline([shorthand::offer_id("O")], None).await });
        let decline = server.asked().await;
        assert_eq!(decline.header("mesos-stream-id"), Some("s-1"));
        assert_eq!(call(&decline).framework_id.value, "F");
        assert_eq!(call(&decline).decline.offer_ids[0].value, "O");
        decline.answer(Answer::status(202));
        declined.await.expect("not cancelled").expect("accepted");

        let caller = scheduler.caller();
        let revived = tokio::spawn(async move { caller.revive(vec![]).await });
        server.asked().await.answer(Answer::status(400).with_body("no"));
        let refused = revived.await.expect("not cancelled").expect_err("refused");
        assert_eq!(refused.to_string(), "400: no");

        let caller = scheduler.caller();
        let torn_down = tokio::spawn(async move { caller.teardown().await });
        server.asked().await.answer(Answer::status(202));
        torn_down.await.expect("not cancelled").expect("accepted");
        assert_eq!(scheduler.next_event().await, None);
    }
}

#[tokio::test]
async fn lost_stream_is_resubscribed_with_the_framework_id() {
    let mut server = Server::start(Format::Protobuf).await;
    let mut scheduler = scheduler::connect_with(&server.address(), framework(), options(Format::Protobuf))
        .expect("an address");
    let stream = server.asked().await.stream::<v1::scheduler::Event>(&[]);
    stream.send(SUBSCRIBED);
    assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
    drop(stream);
    assert_eq!(scheduler.next_event().await, Some(Event::Disconnected));

    let refused = server.asked().await;
    assert_eq!(call(&refused).framework_id.value, "F");
    refused.answer(Answer::status(503).with_body("not recovered"));
    let stream = server.asked().await.stream::<v1::scheduler::Event>(&[]);
    stream.send(SUBSCRIBED);
    assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
    stream.send(r#"{"type":"ERROR","error":{"message":"Framework failed over"}}"#);
    assert_eq!(scheduler.next_event().await, Some(Event::Error("Framework failed over".into())));
    assert_eq!(scheduler.next_event().await, None);
    assert!(matches!(scheduler.revive(vec![]).await, Err(Fault::Ended)));
}

#[tokio::test]
async fn calls_are_sent_while_the_event_queue_is_full() {
    let mut server = Server::start(Format::Protobuf).await;
    let mut scheduler = scheduler::connect_with(&server.address(), framework(), options(Format::Protobuf))
        .expect("an address");
    let stream = server.asked().await.stream::<v1::scheduler::Event>(&[]);
    stream.send(SUBSCRIBED);
    assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
    (0..scheduler::EVENTS_QUEUE_MAX + 10).for_each(|_| stream.send(OFFERS));

    let count = 2 * scheduler::CALLS_QUEUE_MAX;
    let caller = scheduler.caller();
    let calling = tokio::spawn(async move {
        for _ in 0..count {
            caller.revive(vec![]).await.expect("accepted");
        }
    });
    for _ in 0..count {
        server.asked().await.answer(Answer::status(202));
    }
    calling.await.expect("not cancelled");
    assert!(matches!(scheduler.next_event().await, Some(Event::Offers(_))));
}

#[tokio::test]
async fn scheduler_follows_redirects_to_the_leader() {
    let mut standby = Server::start(Format::Json).await;
    let mut leader = Server::start(Format::Json).await;
    let gone = server::unused_address().await;
    let masters = format!("{gone},{}", standby.address());
    let mut scheduler =
        scheduler::connect_with(&masters, framework(), options(Format::Json)).expect("addresses");
    let location = format!("//{}/master/api/v1/scheduler", leader.address());
    standby.asked().await.answer(Answer::status(307).with_header("location", &location));
    let subscribe = leader.asked().await;
    assert_eq!(subscribe.path, "/master/api/v1/scheduler");
    subscribe.stream::<v1::scheduler::Event>(&[]).send(SUBSCRIBED);
    assert!(matches!(scheduler.next_event().await, Some(Event::Subscribed(_))));
}

fn environment(server: &Server) -> Environment {
    let pid = format!("slave(1)@{}", server.address());
    Environment::from_vars(|name| {
        let value = match name {
            "MESOS_SLAVE_PID" => &pid,
            "MESOS_FRAMEWORK_ID" => "F",
            "MESOS_EXECUTOR_ID" => "e",
            "MESOS_SANDBOX" => "/sandbox",
            "MESOS_CHECKPOINT" => "1",
            "MESOS_RECOVERY_TIMEOUT" => "1mins",
            "MESOS_SUBSCRIPTION_BACKOFF_MAX" => "1ms",
            "MESOS_EXECUTOR_AUTHENTICATION_TOKEN" => "token",
            _ => return None,
        };
        Some(value.to_owned())
    })
    .expect("complete")
}

/// A SUBSCRIBED event for executors, whose required content is too long to write as text.
fn executor_subscribed() -> String {
    let subscribed = r#"{"executor_info":{"executor_id":{"value":"e"}},
        "framework_info":{"user":"u","name":"n"},"agent_info":{"hostname":"h"}}"#;
    format!(r#"{{"type":"SUBSCRIBED","subscribed":{subscribed}}}"#)
}

fn running(task: &str) -> TaskStatus {
    TaskStatus {
        task_id: shorthand::task_id(task).into(),
        state: TaskState::TASK_RUNNING,
        ..Default::default()
    }
}

#[tokio::test]
async fn updates_survive_a_restart_of_the_agent() {
    let mut server = Server::start(Format::Protobuf).await;
    let mut executor = executor::connect(&environment(&server), Format::Protobuf);
    let subscribe = server.asked().await;
    assert_eq!(subscribe.path, "/slave(1)/api/v1/executor");
    assert_eq!(subscribe.header("authorization"), Some("Bearer token"));
    let stream = subscribe.stream::<v1::executor::Event>(&[]);
    stream.send(&executor_subscribed());
    let launch = r#"{"type":"LAUNCH","launch":{"task":{"name":"t","task_id":{"value":"t"},"agent_id":{"value":"A"}}}}"#;
    stream.send(launch);
    assert!(matches!(executor.next_event().await, Some(executor::Event::Subscribed(_))));
    assert!(matches!(executor.next_event().await, Some(executor::Event::Launch(_))));

    executor.update(running("t")).await.expect("queued");
    let update = server.asked().await;
    let sent: v1::executor::Call = update.message();
    update.answer(Answer::status(503));
    drop(stream);
    assert_eq!(executor.next_event().await, Some(executor::Event::Disconnected));

    let subscribe = server.asked().await;
    let call: v1::executor::Call = subscribe.message();
    assert_eq!(call.subscribe.unacknowledged_tasks[0].task_id.value, "t");
    assert_eq!(call.subscribe.unacknowledged_updates[0].status.uuid, sent.update.status.uuid);
    let stream = subscribe.stream::<v1::executor::Event>(&[]);
    stream.send(&executor_subscribed());
    assert!(matches!(executor.next_event().await, Some(executor::Event::Subscribed(_))));

    executor.update(running("t")).await.expect("queued");
    let update = server.asked().await;
    let sent: v1::executor::Call = update.message();
    update.answer(Answer::status(202));
    let uuid = sent.update.status.uuid.clone().expect("every update has one");
    let acknowledged = v1::executor::Event {
        r#type: Some(v1::executor::event::Type::ACKNOWLEDGED),
        acknowledged: v1::executor::event::Acknowledged {
            task_id: shorthand::task_id("t").into(),
            uuid: uuid.clone(),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    };
    stream.send(&String::from_utf8(json::to_vec(&acknowledged)).expect("JSON is text"));
    let heard = executor.next_event().await;
    assert_eq!(heard, Some(executor::Event::Acknowledged { task_id: shorthand::task_id("t"), uuid }));
}

#[tokio::test]
async fn messages_are_sent_while_the_event_queue_is_full() {
    let mut server = Server::start(Format::Protobuf).await;
    let mut executor = executor::connect(&environment(&server), Format::Protobuf);
    let stream = server.asked().await.stream::<v1::executor::Event>(&[]);
    stream.send(&executor_subscribed());
    assert!(matches!(executor.next_event().await, Some(executor::Event::Subscribed(_))));
    let message = r#"{"type":"MESSAGE","message":{"data":"aGk="}}"#;
    (0..executor::EVENTS_QUEUE_MAX + 10).for_each(|_| stream.send(message));

    let count = 3 * executor::REPORTS_QUEUE_MAX;
    let reporter = executor.reporter();
    let reporting = tokio::spawn(async move {
        for _ in 0..count {
            reporter.message(b"hi".to_vec()).await.expect("queued");
        }
    });
    for _ in 0..count {
        server.asked().await.answer(Answer::status(202));
    }
    reporting.await.expect("not cancelled");
    assert!(matches!(executor.next_event().await, Some(executor::Event::Message(_))));
}

#[tokio::test]
async fn rejected_executor_gets_an_error_and_terminates() {
    let mut server = Server::start(Format::Json).await;
    let mut executor = executor::connect(&environment(&server), Format::Json);
    server.asked().await.answer(Answer::status(400).with_body("Executor cannot be found"));
    let heard = executor.next_event().await;
    let why = "the agent rejected the request: 400 Executor cannot be found";
    assert_eq!(heard, Some(executor::Event::Error(why.into())));
    assert_eq!(executor.next_event().await, None);
}

#[tokio::test]
async fn operator_client_reads_calls_and_tails_files() {
    let mut server = Server::start(Format::Protobuf).await;
    let client = operator::Client::new(&server.address()).expect("an address");

    let asking = client.clone();
    let state = tokio::spawn(async move { asking.get("/state").await });
    let asked = server.asked().await;
    assert_eq!(asked.path, "/state");
    asked.answer(Answer::status(200).with_body(r#"{"cluster":"c"}"#));
    assert_eq!(state.await.expect("not cancelled").expect("JSON")["cluster"], "c");

    let asking = client.clone();
    let call = v1::master::Call { r#type: Some(v1::master::call::Type::GET_HEALTH), ..Default::default() };
    let expected = call.clone();
    let health = tokio::spawn(async move { asking.master(&call).await });
    let asked = server.asked().await;
    assert_eq!(asked.message::<v1::master::Call>(), expected);
    asked.answer_message::<v1::master::Response>(r#"{"type":"GET_HEALTH","get_health":{"healthy":true}}"#);
    assert!(health.await.expect("not cancelled").expect("a response").get_health.healthy);

    let asking = client.clone();
    let tail = tokio::spawn(async move {
        let mut tail = asking.follow("/sandbox/stdout", 3);
        (tail.next().await, tail.offset())
    });
    let asked = server.asked().await;
    assert_eq!(asked.path, "/files/read?path=/sandbox/stdout&offset=3");
    asked.answer(Answer::status(404));
    server.asked().await.answer(Answer::status(200).with_body(r#"{"offset":3,"data":""}"#));
    server.asked().await.answer(Answer::status(200).with_body(r#"{"offset":3,"data":"hello"}"#));
    let (data, offset) = tail.await.expect("not cancelled");
    assert_eq!((data.expect("data"), offset), (b"hello".to_vec(), 8));
}
