//! Timing and meaning of checks, as tables.

use tepui_client::shorthand::shell;
use tepui_client::v1::health_check::{HTTPCheckInfo, TCPCheckInfo};

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn health(check: HealthCheck) -> Checks {
    Checks::new(Duration::ZERO, &TaskInfo { health_check: check.into(), ..Default::default() })
}

fn command_health() -> HealthCheck {
    HealthCheck {
        r#type: Some(health_check::Type::COMMAND),
        command: shell("true").into(),
        ..Default::default()
    }
}

#[test]
fn absent_fields_have_v1_defaults() {
    let mut checks = health(command_health());
    assert_eq!(checks.deadline(), Some(at(15)));
    assert!(checks.due(at(14)).is_empty());
    let expected = Probe { target: Target::Command(shell("true")), timeout: Some(at(20)) };
    assert_eq!(checks.due(at(15)), [(CheckKind::Health, expected)]);
    assert_eq!(checks.deadline(), None, "one attempt at a time");
    assert_eq!(checks.take(at(17), CheckKind::Health, Outcome::Exited(0)), Some(Report::Healthy));
    assert_eq!(checks.deadline(), Some(at(27)), "from the end of one attempt to the start of the next");
}

#[test]
fn consecutive_failures_after_the_grace_period_are_unhealthy() {
    let (good, bad) = (Outcome::Exited(0), Outcome::Exited(1));
    let unhealthy = |kill| Some(Report::Unhealthy { kill });
    // (failures allowed, [(second, outcome, report)])
    let table: [(Option<u32>, Vec<(u64, Outcome, Option<Report>)>); 4] = [
        (
            None,
            vec![
                (5, bad.clone(), None), // in the grace period
                (10, bad.clone(), None),
                (11, bad.clone(), unhealthy(false)),
                (12, bad.clone(), unhealthy(false)),
                (13, bad.clone(), unhealthy(true)),
            ],
        ),
        (
            None,
            vec![
                (5, good.clone(), Some(Report::Healthy)),
                (6, good.clone(), None),            // nothing new
                (7, bad.clone(), unhealthy(false)), // the grace period ended with the first success
                (8, Outcome::Skipped, None),
                (9, good.clone(), Some(Report::Healthy)),
                (10, bad.clone(), unhealthy(false)), // counted from one again
                (11, Outcome::Failed("timed out".into()), unhealthy(false)),
                (12, bad.clone(), unhealthy(true)),
            ],
        ),
        (Some(0), vec![(11, bad.clone(), unhealthy(true))]),
        (Some(1), vec![(11, bad, unhealthy(true))]),
    ];
    for (consecutive_failures, steps) in table {
        let mut checks = health(HealthCheck { consecutive_failures, ..command_health() });
        for (second, outcome, report) in steps {
            assert_eq!(checks.take(at(second), CheckKind::Health, outcome), report, "at {second}");
        }
    }
}

#[test]
fn http_statuses_200_to_399_are_healthy() {
    for (outcome, healthy) in [
        (Outcome::Status(200), true),
        (Outcome::Status(399), true),
        (Outcome::Status(400), false),
        (Outcome::Status(199), false),
        (Outcome::Connected(true), true),
        (Outcome::Connected(false), false),
        (Outcome::Exited(2), false),
    ] {
        let mut checks = health(command_health());
        let report = checks.take(at(11), CheckKind::Health, outcome.clone());
        assert_eq!(report == Some(Report::Healthy), healthy, "{outcome:?}");
    }
}

#[test]
fn targets_follow_the_check_kind() {
    let http = HTTPCheckInfo {
        scheme: Some("https".into()),
        protocol: Some(Protocol::IPv6),
        port: 8443,
        path: Some("/up".into()),
        ..Default::default()
    };
    let tcp = TCPCheckInfo { port: 80, ..Default::default() };
    let table = [
        (
            HealthCheck {
                r#type: Some(health_check::Type::HTTP),
                http: http.clone().into(),
                ..Default::default()
            },
            Some(Target::Http { https: true, ipv6: true, port: 8443, path: "/up".into() }),
        ),
        (
            HealthCheck { r#type: Some(health_check::Type::TCP), tcp: tcp.into(), ..Default::default() },
            Some(Target::Tcp { ipv6: false, port: 80 }),
        ),
        (HealthCheck { command: shell("x").into(), ..Default::default() }, Some(Target::Command(shell("x")))),
        (
            HealthCheck { r#type: Some(health_check::Type::TCP), http: http.into(), ..Default::default() },
            None,
        ),
        (HealthCheck::default(), None),
    ];
    for (check, target) in table {
        assert_eq!(health_target(&check), target);
    }
}

#[test]
fn checks_report_changes_only() {
    let http = check_info::Http { port: 80, ..Default::default() };
    let check = CheckInfo { r#type: Some(check_info::Type::HTTP), http: http.into(), ..Default::default() };
    let mut checks = Checks::new(Duration::ZERO, &TaskInfo { check: check.into(), ..Default::default() });
    let status = |checks: &Checks| {
        let status = checks.status().expect("it has a check");
        assert_eq!(status.r#type, Some(check_info::Type::HTTP));
        status.http.as_option().expect("always there").status_code
    };
    assert_eq!(status(&checks), None);
    for (outcome, report, code) in [
        (Outcome::Failed("refused".into()), None, None), // empty before, empty now
        (Outcome::Status(500), Some(Report::Changed), Some(500)),
        (Outcome::Status(500), None, Some(500)),
        (Outcome::Skipped, None, Some(500)),
        (Outcome::Failed("timed out".into()), Some(Report::Changed), None),
        (Outcome::Status(200), Some(Report::Changed), Some(200)),
    ] {
        assert_eq!(checks.take(at(1), CheckKind::Check, outcome.clone()), report, "{outcome:?}");
        assert_eq!(status(&checks), code, "{outcome:?}");
    }
}

#[test]
fn pause_discards_pending_attempts_and_outcomes() {
    let mut checks =
        health(HealthCheck { delay_seconds: Some(0.0), timeout_seconds: Some(0.0), ..command_health() });
    assert_eq!(checks.due(at(0))[0].1.timeout, None, "zero means as long as it takes");
    checks.pause();
    assert_eq!(checks.take(at(20), CheckKind::Health, Outcome::Exited(1)), None);
    assert!(checks.due(at(100)).is_empty());
    assert_eq!(checks.deadline(), None);
    checks.resume();
    assert_eq!(checks.deadline(), Some(at(30)));
    checks.stop();
    assert_eq!(checks.deadline(), None);
    assert_eq!(checks.take(at(31), CheckKind::Health, Outcome::Exited(1)), None);
}
