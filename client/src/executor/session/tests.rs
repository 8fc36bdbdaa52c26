//! What an executor session carries across lost links, and when it gives up.

use tepui_proto::mesos::v1::executor::event::{self, Type};
use tepui_proto::mesos::v1::{TaskID, TaskState};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const ZERO: Duration = Duration::ZERO;

fn session(checkpoint: bool) -> Session {
    let config = Config {
        framework_id: "F".into(),
        executor_id: "e".into(),
        checkpoint,
        recovery_timeout: SECOND * 10,
        backoff_max: SECOND * 2,
    };
    Session::new(config, ZERO)
}

fn subscribed(checkpoint: bool) -> Session {
    let mut session = session(checkpoint);
    session.subscribe(ZERO);
    session.receive(ZERO, event(Type::SUBSCRIBED));
    assert!(session.is_subscribed());
    session
}

fn event(kind: Type) -> WireEvent {
    let mut event = WireEvent { r#type: Some(kind), ..Default::default() };
    if kind == Type::SUBSCRIBED {
        event.subscribed = event::Subscribed::default().into();
    }
    event
}

fn task_id(id: &str) -> TaskID {
    TaskID { value: id.into(), ..Default::default() }
}

fn launch(id: &str) -> WireEvent {
    let task = TaskInfo { task_id: task_id(id).into(), ..Default::default() };
    WireEvent {
        launch: event::Launch { task: task.into(), ..Default::default() }.into(),
        ..event(Type::LAUNCH)
    }
}

fn acknowledged(id: &str, uuid: u8) -> WireEvent {
    let acknowledged =
        event::Acknowledged { task_id: task_id(id).into(), uuid: vec![uuid; 16], ..Default::default() };
    WireEvent { acknowledged: acknowledged.into(), ..event(Type::ACKNOWLEDGED) }
}

fn running(id: &str) -> TaskStatus {
    TaskStatus { task_id: task_id(id).into(), state: TaskState::TASK_RUNNING, ..Default::default() }
}

/// What a subscription would carry: ids of tasks, first bytes of the uuids of updates.
fn carried(session: &mut Session) -> (Vec<String>, Vec<u8>) {
    let call = session.subscribe(ZERO);
    let tasks = call.subscribe.unacknowledged_tasks.iter().map(|task| task.task_id.value.clone());
    let updates = call.subscribe.unacknowledged_updates.iter();
    let updates = updates.map(|update| update.status.uuid.as_ref().expect("every update has one")[0]);
    (tasks.collect(), updates.collect())
}

#[test]
fn updates_get_source_uuid_and_timestamp() {
    let mut session = subscribed(true);
    let call = session.update(running("t"), [1; 16], 5.5).expect("subscribed");
    assert_eq!((call.executor_id.value.as_str(), call.framework_id.value.as_str()), ("e", "F"));
    let status = &call.update.status;
    assert_eq!(status.source, Some(Source::SOURCE_EXECUTOR));
    assert_eq!(status.uuid.as_deref(), Some(&[1; 16][..]));
    assert_eq!(status.timestamp, Some(5.5));

    let own = TaskStatus { uuid: Some(vec![9; 16]), timestamp: Some(1.0), ..running("t") };
    let call = session.update(own, [2; 16], 6.0).expect("subscribed");
    assert_eq!(
        (call.update.status.uuid.as_deref(), call.update.status.timestamp),
        (Some(&[9; 16][..]), Some(1.0))
    );
}

#[test]
fn resubscription_carries_unacknowledged_tasks_and_updates() {
    let mut session = subscribed(true);
    session.receive(ZERO, launch("t1"));
    session.receive(ZERO, launch("t2"));
    session.update(running("t1"), [1; 16], 0.0);
    session.update(running("t1"), [2; 16], 0.0);
    assert_eq!(carried(&mut session.clone()), (vec!["t1".into(), "t2".into()], vec![1, 2]));

    session.receive(ZERO, acknowledged("t1", 1));
    assert_eq!(session.lost(SECOND, 0), Some(Event::Disconnected));
    assert_eq!(session.update(running("t2"), [3; 16], 0.0), None, "kept for the next subscription");
    assert_eq!(session.message(vec![1]), None);
    assert_eq!(carried(&mut session), (vec!["t2".into()], vec![2, 3]));

    session.receive(ZERO, event(Type::SUBSCRIBED));
    for (id, uuid) in [("t1", 2), ("t2", 3)] {
        session.receive(ZERO, acknowledged(id, uuid));
    }
    assert_eq!(carried(&mut session), (vec![], vec![]));
}

#[test]
fn executor_without_checkpointing_exits_when_its_agent_disconnects() {
    let mut session = subscribed(false);
    assert_eq!(session.lost(SECOND, 0), Some(Event::Shutdown));
    assert_eq!(session.state(), &State::Ended);
}

#[test]
fn checkpointed_executor_retries_until_the_recovery_timeout() {
    let mut session = subscribed(true);
    assert_eq!(session.lost(SECOND, u64::MAX), Some(Event::Disconnected));
    let mut attempts = 0;
    let end = loop {
        let now = session.deadline().expect("not ended");
        assert_eq!(session.due(now), Outcome::Subscribe);
        session.subscribe(now);
        attempts += 1;
        if let Some(event) = session.lost(now, u64::MAX) {
            break (event, now);
        }
    };
    assert_eq!(end, (Event::Shutdown, SECOND * 11), "{attempts} attempts");
    assert!(attempts > 9, "at least one in each second, half of what a restarted agent waits");
}

#[test]
fn first_subscription_is_retried_even_without_checkpointing() {
    let mut session = session(false);
    session.subscribe(ZERO);
    assert_eq!(session.lost(SECOND, 0), None);
    assert!(matches!(session.state(), State::Disconnected { .. }));
    session.subscribe(SECOND);
    assert_eq!(session.lost(SUBSCRIBE_FIRST_TIMEOUT, 0), Some(Event::Shutdown));
}

#[test]
fn rejected_subscriptions_are_retried_or_final() {
    for (status, subscribed_before, expected) in [
        (503, false, "Lost"),
        (404, false, "Lost"),
        (503, true, "Lost"),
        (403, true, "Lost"),
        (403, false, "Ended"),
        (400, false, "Ended"),
    ] {
        let mut session = if subscribed_before { subscribed(true) } else { session(true) };
        let outcome = format!("{:?}", session.refused(status, "why"));
        assert!(outcome.starts_with(expected), "{status}: {outcome}");
    }
}

#[test]
fn heartbeats_are_due_twice_an_hour() {
    let mut session = subscribed(true);
    assert_eq!(session.deadline(), Some(HEARTBEAT_INTERVAL));
    let Outcome::Send(call) = session.due(HEARTBEAT_INTERVAL) else { panic!("a heartbeat") };
    assert_eq!(call.r#type, Some(call::Type::HEARTBEAT));
    assert_eq!(call.executor_id.value, "e");
    assert_eq!(session.due(HEARTBEAT_INTERVAL), Outcome::Continue);
    assert_eq!(session.receive(ZERO, event(Type::HEARTBEAT)), None);
}

#[test]
fn updates_made_while_subscribing_are_sent_after_it() {
    let mut session = subscribed(true);
    session.lost(SECOND, 0);
    session.update(running("t"), [1; 16], 0.0);
    assert_eq!(carried(&mut session).1, [1]);
    assert_eq!(session.update(running("t"), [2; 16], 0.0), None);
    session.receive(SECOND, event(Type::SUBSCRIBED));
    let followed: Vec<_> = session.held_back().iter().map(|call| call.update.status.uuid.clone()).collect();
    assert_eq!(followed, [Some(vec![2; 16])]);
    assert!(session.held_back().is_empty(), "only once");
}
