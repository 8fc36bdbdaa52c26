//! The command executor step by step: inputs and effects.

use std::os::unix::process::ExitStatusExt;

use expect_test::{Expect, expect};
use tepui_client::shorthand::{capability, duration_info, shell, task_id};
use tepui_client::v1::executor::event::Subscribed;
use tepui_client::v1::{CheckInfo, FrameworkInfo, HealthCheck, KillPolicy, check_info, health_check};

use super::*;
use crate::testing::{at, status_text};

enum Step {
    OnEvent(Event),
    Io(IoEvent),
    Abandoned,
    Due,
}

use Step::{Abandoned, Due, Io, OnEvent};

/// Plays steps at the given tenths of seconds; each line is one effect, below the step that caused it.
fn check(steps: Vec<(u64, Step)>, expected: Expect) {
    let mut machine = CommandMachine::new("command", Duration::from_secs(5), None);
    let (mut ids, mut story) = (0, String::new());
    let OnEvent(subscribed) = subscribed(&[]) else { panic!("an event") };
    at(Duration::ZERO, &mut ids, |moment| machine.on_event(moment, subscribed, &mut Vec::new()));
    for (tenths, step) in steps {
        let mut out = Vec::new();
        at(Duration::from_millis(tenths * 100), &mut ids, |moment| match step {
            OnEvent(event) => machine.on_event(moment, event, &mut out),
            Io(io_event) => machine.on_io_event(moment, io_event, &mut out),
            Abandoned => machine.abandoned(moment, &mut out),
            Due => machine.due(moment, &mut out),
        });
        let deadline = machine.deadline().map_or("-".into(), |at| format!("{:?}", at));
        story += &format!("at {tenths} (next {deadline})\n");
        for effect in out {
            story += &match effect {
                Effect::Update(status) => format!("  {}\n", status_text(&status)),
                Effect::Spawn(task) => {
                    format!("  spawn {}\n", task.command.value.as_deref().unwrap_or_default())
                }
                Effect::Signal(signal) => format!("  {signal}\n"),
                Effect::Probe(kind, _) => format!("  probe {kind:?}\n"),
                Effect::Exit(code) => format!("  exit {code}\n"),
            };
        }
    }
    expected.assert_eq(&story);
}

fn subscribed(capabilities: &[capability::Type]) -> Step {
    let framework = FrameworkInfo {
        capabilities: capabilities.iter().map(|kind| capability(*kind)).collect(),
        ..Default::default()
    };
    OnEvent(Event::Subscribed(Subscribed { framework_info: framework.into(), ..Default::default() }))
}

fn task() -> TaskInfo {
    TaskInfo { task_id: task_id("t").into(), command: shell("work").into(), ..Default::default() }
}

fn launch(task: TaskInfo) -> Step {
    OnEvent(Event::Launch(task))
}

fn spawned() -> Step {
    Io(IoEvent::Spawned(Ok(Started::default())))
}

fn exited(raw: i32) -> Step {
    Io(IoEvent::Ended(Ok(ExitStatus::from_raw(raw).into())))
}

fn kill(grace: Option<u64>) -> Step {
    let policy = grace.map(|seconds| KillPolicy {
        grace_period: duration_info(Duration::from_secs(seconds)).into(),
        ..Default::default()
    });
    OnEvent(Event::Kill { task_id: task_id("t"), policy })
}

fn acknowledged(id: u8) -> Step {
    OnEvent(Event::Acknowledged { task_id: task_id("t"), uuid: vec![id; 16] })
}

#[test]
fn exit_status_0_is_task_finished() {
    check(
        vec![
            (0, subscribed(&[])),
            (0, launch(task())),
            (0, spawned()),
            (1, acknowledged(1)),
            (20, exited(0)),
            (21, acknowledged(2)),
            (22, acknowledged(3)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 1 (next -)
            at 20 (next 62s)
              update t TASK_FINISHED 'Command exited with status 0'
            at 21 (next 62s)
            at 22 (next -)
              exit 0
        "#]],
    );
}

#[test]
fn failed_task_exits_without_acknowledgement() {
    check(
        vec![(0, launch(task())), (0, spawned()), (10, exited(3 << 8)), (600, Due), (610, Due)],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next 61s)
              update t TASK_FAILED 'Command exited with status 3'
            at 600 (next 61s)
            at 610 (next -)
              exit 1
        "#]],
    );
}

/// The OOM killer took a part of the task: it failed, whatever its exit status, unless it was being killed.
#[test]
fn oom_kill_fails_a_task_regardless_of_exit_status() {
    let limited = || {
        let limited = Limited { reason: Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY), limitation: None };
        let (exit, message) = (ExitStatus::from_raw(0), String::from("out of memory"));
        Io(IoEvent::Ended(Ok(Ended { exit, message, limited: Some(limited) })))
    };
    check(
        vec![(0, launch(task())), (0, spawned()), (10, limited())],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next 61s)
              update t TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY 'out of memory'
        "#]],
    );
    check(
        vec![(0, launch(task())), (0, spawned()), (5, kill(None)), (10, limited())],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 5 (next 3.5s)
              SIGTERM
            at 10 (next 61s)
              update t TASK_KILLED 'out of memory'
        "#]],
    );
}

#[test]
fn spawn_failure_is_task_failed() {
    check(
        vec![(0, launch(task())), (0, Io(IoEvent::Spawned(Err("no memory".into())))), (1, acknowledged(2))],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next 60s)
              update t TASK_FAILED 'no memory'
            at 1 (next -)
              exit 0
        "#]],
    );
}

#[test]
fn kill_escalates_and_grace_period_only_shrinks() {
    check(
        vec![
            (0, subscribed(&[capability::Type::TASK_KILLING_STATE])),
            (0, launch(task())),
            (0, spawned()),
            (10, kill(None)),
            (15, kill(Some(60))), // longer: no effect
            (20, kill(Some(2))),  // counted from the first kill
            (29, Due),
            (30, Due),
            (31, exited(9)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next 4s)
              update t TASK_KILLING
              SIGTERM
            at 15 (next 4s)
            at 20 (next 3s)
            at 29 (next 3s)
            at 30 (next -)
              SIGKILL
            at 31 (next 63.1s)
              update t TASK_KILLED 'Command terminated with signal Killed'
        "#]],
    );
}

#[test]
fn killed_task_uses_its_kill_policy_and_ignores_exit_code() {
    let policy =
        KillPolicy { grace_period: duration_info(Duration::from_secs(7)).into(), ..Default::default() };
    let other = OnEvent(Event::Kill { task_id: task_id("other"), policy: None });
    check(
        vec![
            (0, launch(TaskInfo { kill_policy: policy.into(), ..task() })),
            (0, spawned()),
            (5, other),
            (10, kill(None)),
            (11, exited(0)),
        ],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 5 (next -)
            at 10 (next 8s)
              SIGTERM
            at 11 (next 61.1s)
              update t TASK_KILLED 'Command exited with status 0'
        "#]],
    );
}

#[test]
fn max_completion_time_fails_the_task() {
    let limit = duration_info(Duration::from_secs(2));
    check(
        vec![
            (0, subscribed(&[capability::Type::TASK_KILLING_STATE])),
            (0, launch(TaskInfo { max_completion_time: limit.into(), ..task() })),
            (0, spawned()),
            (20, Due),
            (20, Due),
            (21, exited(9)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next 2s)
              update t TASK_STARTING
              spawn work
            at 0 (next 2s)
              update t TASK_RUNNING
            at 20 (next 2s)
              SIGTERM
            at 20 (next -)
              SIGKILL
            at 21 (next 62.1s)
              update t TASK_FAILED REASON_MAX_COMPLETION_TIME_REACHED 'Command terminated with signal Killed'
        "#]],
    );
}

#[test]
fn unhealthy_tasks_are_killed() {
    let health_check = HealthCheck {
        r#type: Some(health_check::Type::COMMAND),
        command: shell("ping").into(),
        delay_seconds: Some(0.0),
        grace_period_seconds: Some(0.0),
        consecutive_failures: Some(2),
        ..Default::default()
    };
    let probed = |code| Io(IoEvent::Probed(CheckKind::Health, Outcome::Exited(code)));
    check(
        vec![
            (0, launch(TaskInfo { health_check: health_check.into(), ..task() })),
            (0, spawned()),
            (0, Due),
            (1, probed(0)),
            (101, Due),
            (102, probed(1)),
            (202, Due),
            (203, probed(1)),
            (204, probed(0)), // too late
            (205, exited(15)),
        ],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next 0ns)
              update t TASK_RUNNING
            at 0 (next -)
              probe Health
            at 1 (next 10.1s)
              update t TASK_RUNNING REASON_TASK_HEALTH_CHECK_STATUS_UPDATED healthy=true
            at 101 (next -)
              probe Health
            at 102 (next 20.2s)
              update t TASK_RUNNING REASON_TASK_HEALTH_CHECK_STATUS_UPDATED healthy=false
            at 202 (next -)
              probe Health
            at 203 (next 23.3s)
              update t TASK_RUNNING REASON_TASK_HEALTH_CHECK_STATUS_UPDATED healthy=false
              SIGTERM
            at 204 (next 23.3s)
            at 205 (next 80.5s)
              update t TASK_KILLED healthy=false 'Command terminated with signal Terminated'
        "#]],
    );
}

#[test]
fn checks_are_in_every_update() {
    let http = check_info::Http { port: 80, ..Default::default() };
    let check_info =
        CheckInfo { r#type: Some(check_info::Type::HTTP), http: http.into(), ..Default::default() };
    let probed = |status| Io(IoEvent::Probed(CheckKind::Check, Outcome::Status(status)));
    check(
        vec![
            (0, launch(TaskInfo { check: check_info.into(), ..task() })),
            (0, spawned()),
            (150, Due),
            (151, probed(200)),
            (200, OnEvent(Event::Disconnected)),
            (300, Due),
            (301, subscribed(&[])),
            (301, Due),
            (302, exited(0)),
        ],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING check=(None, None, None)
              spawn work
            at 0 (next 15s)
              update t TASK_RUNNING check=(None, None, None)
            at 150 (next -)
              probe Check
            at 151 (next 25.1s)
              update t TASK_RUNNING REASON_TASK_CHECK_STATUS_UPDATED check=(None, Some(200), None)
            at 200 (next -)
            at 300 (next -)
            at 301 (next 25.1s)
            at 301 (next -)
              probe Check
            at 302 (next 90.2s)
              update t TASK_FINISHED check=(None, Some(200), None) 'Command exited with status 0'
        "#]],
    );
}

#[test]
fn shutdown_kills_the_task_within_the_grace_period() {
    check(
        vec![(0, OnEvent(Event::Shutdown))],
        expect![[r#"
        at 0 (next -)
          exit 0
    "#]],
    );
    check(
        vec![
            (0, launch(task())),
            (0, spawned()),
            (10, OnEvent(Event::Shutdown)),
            (11, exited(15)),
            (12, acknowledged(3)),
        ],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next 4s)
              SIGTERM
            at 11 (next 61.1s)
              update t TASK_KILLED 'Command terminated with signal Terminated'
            at 12 (next -)
              exit 0
        "#]],
    );
}

#[test]
fn lost_agent_terminates_task_and_executor() {
    check(
        vec![(0, launch(task())), (0, spawned()), (10, Abandoned), (11, exited(15))],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next 4s)
              SIGTERM
            at 11 (next -)
              exit 1
        "#]],
    );
}

#[test]
fn second_task_is_rejected() {
    let second = TaskInfo { task_id: task_id("second").into(), ..task() };
    check(
        vec![(0, launch(task())), (0, launch(second)), (0, OnEvent(Event::LaunchGroup(vec![])))],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update second TASK_FAILED 'Attempted to run multiple tasks using a "command" executor'
            at 0 (next 3s)
              SIGTERM
        "#]],
    );
}

#[test]
fn last_update_waits_for_agent_restart() {
    check(
        vec![
            (0, launch(task())),
            (0, spawned()),
            (10, OnEvent(Event::Disconnected)),
            (20, exited(0)),
            (9000, Due),
            (9001, subscribed(&[])),
            (9002, acknowledged(3)),
        ],
        expect![[r#"
            at 0 (next -)
              update t TASK_STARTING
              spawn work
            at 0 (next -)
              update t TASK_RUNNING
            at 10 (next -)
            at 20 (next -)
              update t TASK_FINISHED 'Command exited with status 0'
            at 9000 (next -)
            at 9001 (next 960.1s)
            at 9002 (next -)
              exit 0
        "#]],
    );
}
