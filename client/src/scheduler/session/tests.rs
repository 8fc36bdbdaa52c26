//! What a scheduler session subscribes with, waits for, and takes as its end.

use tepui_proto::mesos::v1::scheduler::event::{self, Type};
use tepui_proto::mesos::v1::{AgentID, TaskID, TaskStatus};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn framework() -> FrameworkInfo {
    FrameworkInfo {
        user: "root".into(),
        name: "test".into(),
        roles: vec!["a".into(), "b".into()],
        ..Default::default()
    }
}

fn id(value: &str) -> FrameworkID {
    FrameworkID { value: value.into(), ..Default::default() }
}

fn subscribed_event(framework: &str, heartbeat: f64) -> WireEvent {
    WireEvent {
        r#type: Some(Type::SUBSCRIBED),
        subscribed: event::Subscribed {
            framework_id: id(framework).into(),
            heartbeat_interval_seconds: Some(heartbeat),
            ..Default::default()
        }
        .into(),
        ..Default::default()
    }
}

fn error_event(message: &str) -> WireEvent {
    WireEvent {
        r#type: Some(Type::ERROR),
        error: event::Error { message: message.into(), ..Default::default() }.into(),
        ..Default::default()
    }
}

fn heartbeat_event() -> WireEvent {
    WireEvent { r#type: Some(Type::HEARTBEAT), ..Default::default() }
}

/// A session that subscribed at second 0 as `F` on stream `s`, with a heartbeat each second.
fn subscribed() -> Session {
    let mut session = Session::new(framework());
    session.subscribe(Duration::ZERO);
    session.opened(Some("s".into()));
    assert!(matches!(
        session.receive(Duration::ZERO, subscribed_event("F", 1.0)),
        Some(Event::Subscribed(_))
    ));
    session
}

#[test]
fn the_first_subscription_has_no_id_and_later_ones_do() {
    let mut session = Session::new(framework());
    let first = session.subscribe(Duration::ZERO);
    assert_eq!(first.r#type, Some(call::Type::SUBSCRIBE));
    assert!(first.framework_id.is_unset());
    assert!(first.subscribe.framework_info.id.is_unset());

    let mut session = subscribed();
    assert_eq!(session.link(), Some(&Link { framework_id: id("F"), stream_id: Some("s".into()) }));
    assert_eq!(session.lost(SECOND, 0), Some(Event::Disconnected));
    let again = session.subscribe(SECOND * 2);
    assert_eq!(again.framework_id.value, "F");
    assert_eq!(again.subscribe.framework_info.id.value, "F");
}

#[test]
fn calls_carry_the_framework_id() {
    let session = subscribed();
    let link = session.link().expect("subscribed");
    let status = TaskStatus {
        task_id: TaskID { value: "t".into(), ..Default::default() }.into(),
        agent_id: AgentID { value: "a".into(), ..Default::default() }.into(),
        uuid: Some(vec![7; 16]),
        ..Default::default()
    };
    let call = link.stamp(calls::acknowledge(&status).expect("it has a uuid"));
    assert_eq!(call.framework_id.value, "F");
    assert_eq!(call.acknowledge.uuid, [7; 16]);
    assert_eq!(calls::acknowledge(&TaskStatus { uuid: None, ..status }), None);

    let update = link.stamp(calls::update_framework(framework(), vec![], None));
    assert_eq!(update.update_framework.framework_info.id.value, "F");
}

#[test]
fn every_event_extends_the_heartbeat_deadline() {
    let mut session = subscribed();
    let patience = SECOND * HEARTBEATS_MISSED_MAX;
    assert_eq!(session.deadline(), Some(patience));
    assert_eq!(session.receive(SECOND, heartbeat_event()), None, "heartbeats are not told");
    assert_eq!(session.deadline(), Some(SECOND + patience));
    assert!(!session.is_silent(patience));
    assert!(session.is_silent(SECOND + patience));
}

#[test]
fn stream_without_subscribed_event_times_out() {
    let mut session = Session::new(framework());
    session.subscribe(SECOND);
    assert!(session.is_silent(SECOND + SUBSCRIBE_TIMEOUT));
    assert_eq!(session.lost(SECOND, 0), None, "it was never subscribed");
}

#[test]
fn attempts_back_off_until_one_succeeds() {
    let mut session = Session::new(framework()).with_backoff_max(SECOND);
    let mut waits = Vec::new();
    for _ in 0..4 {
        session.subscribe(Duration::ZERO);
        session.lost(Duration::ZERO, u64::MAX);
        waits.extend(session.deadline());
    }
    assert_eq!(waits, [BACKOFF_FIRST, BACKOFF_FIRST * 2, BACKOFF_FIRST * 4, SECOND]);
    session.subscribe(Duration::ZERO);
    session.receive(Duration::ZERO, subscribed_event("F", 15.0));
    session.lost(Duration::ZERO, u64::MAX);
    assert_eq!(session.deadline(), Some(BACKOFF_FIRST));
}

#[test]
fn client_errors_except_404_are_final() {
    for (status, is_final) in [
        (503, false),
        (500, false),
        (307, false),
        (404, false),
        (400, true),
        (401, true),
        (403, true),
        (415, true),
    ] {
        let mut session = Session::new(framework());
        session.subscribe(Duration::ZERO);
        let outcome = session.refused(status, "no");
        assert_eq!(matches!(outcome, Outcome::Ended(Event::Error(_))), is_final, "{status}");
        assert_eq!(*session.state() == State::Ended, is_final, "{status}");
    }
}

#[test]
fn error_event_terminates_the_session() {
    let mut session = subscribed();
    let heard = session.receive(SECOND, error_event("Framework failed over"));
    assert_eq!(heard, Some(Event::Error("Framework failed over".into())));
    assert_eq!(session.lost(SECOND, 0), None);
    assert_eq!((session.state(), session.deadline()), (&State::Ended, None));
}

#[test]
fn resubscription_keeps_suppressed_roles_and_framework_info() {
    let mut session = subscribed();
    let resubscribed = |session: &mut Session| {
        let call = session.subscribe(Duration::ZERO);
        (call.subscribe.framework_info.name.clone(), call.subscribe.suppressed_roles.clone())
    };
    session.apply_accepted(&calls::suppress(vec!["b".into()]));
    assert_eq!(resubscribed(&mut session), ("test".into(), vec!["b".into()]));
    session.apply_accepted(&calls::suppress(vec![]));
    assert_eq!(resubscribed(&mut session).1, ["a", "b"]);
    session.apply_accepted(&calls::revive(vec!["a".into()]));
    assert_eq!(resubscribed(&mut session).1, ["b"]);
    session.apply_accepted(&calls::revive(vec![]));
    assert!(resubscribed(&mut session).1.is_empty());

    let renamed = FrameworkInfo { name: "renamed".into(), ..session.framework().clone() };
    session.apply_accepted(&calls::update_framework(renamed, vec!["a".into()], None));
    assert_eq!(resubscribed(&mut session), ("renamed".into(), vec!["a".into()]));

    session.apply_accepted(&calls::teardown());
    assert_eq!(session.state(), &State::Ended);
}
