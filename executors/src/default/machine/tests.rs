//! The default executor step by step: inputs and effects.

use expect_test::{Expect, expect};
use tepui_client::shorthand::{capability, container_id, duration_info, shell, task_id};
use tepui_client::v1::environment::Variable;
use tepui_client::v1::task_status::Reason;
use tepui_client::v1::{
    CommandInfo, Environment, FrameworkInfo, HealthCheck, TaskResourceLimitation, health_check,
};

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
    let mut machine = DefaultMachine::new(Duration::from_secs(5));
    let (mut ids, mut story) = (0, String::new());
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
            story += &format!("  {}\n", effect_text(&effect));
        }
    }
    expected.assert_eq(&short(&story));
}

fn effect_text(effect: &Effect) -> String {
    match effect {
        Effect::Update(status) => status_text(status),
        Effect::Launch(task, container) => format!("launch {} in {}", task.task_id.value, container.value),
        Effect::Link(id, container) => format!("link {id} to {}", container.value),
        Effect::Wait(id, container) => format!("wait {id} in {}", container.value),
        Effect::Kill(container, signal) => format!("{signal} to {}", container.value),
        Effect::Probe(id, container, kind, _) => format!("probe {id} in {} {kind:?}", container.value),
        Effect::Exit(code) => format!("exit {code}"),
    }
}

/// Container ids are uuids of one repeated byte; the first such byte names them well enough.
fn short(story: &str) -> String {
    let mut text = story.to_owned();
    for id in 1..=99u8 {
        text = text.replace(&tepui_client::random::uuid_text(&[id; 16]), &format!("c{id}"));
    }
    text
}

fn subscribed(capabilities: &[capability::Type]) -> Step {
    let framework = FrameworkInfo {
        capabilities: capabilities.iter().map(|kind| capability(*kind)).collect(),
        ..Default::default()
    };
    OnEvent(Event::Subscribed(Subscribed {
        framework_info: framework.into(),
        container_id: container_id("root").into(),
        ..Default::default()
    }))
}

fn task(id: &str) -> TaskInfo {
    TaskInfo { task_id: task_id(id).into(), command: shell("work").into(), ..Default::default() }
}

fn group(tasks: &[TaskInfo]) -> Step {
    OnEvent(Event::LaunchGroup(tasks.to_vec()))
}

fn launched(id: &str) -> Step {
    Io(IoEvent::Launched(id.into(), Ok(())))
}

fn exited(id: &str, raw: i32) -> Step {
    let ended = WaitNestedContainer { exit_status: Some(raw), ..Default::default() };
    Io(IoEvent::Waited(id.into(), Waited::Ended(Box::new(ended))))
}

fn acknowledged(id: u8) -> Step {
    OnEvent(Event::Acknowledged { task_id: task_id("t"), uuid: vec![id; 16] })
}

fn kill_policy(seconds: u64) -> KillPolicy {
    KillPolicy { grace_period: duration_info(Duration::from_secs(seconds)).into(), ..Default::default() }
}

#[test]
fn group_with_successful_exits_is_task_finished() {
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[task("a"), task("b")])),
            (1, launched("a")),
            (1, launched("b")),
            (10, exited("a", 0)),
            (20, exited("b", 0)),
            (21, acknowledged(7)),
            (22, acknowledged(8)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
              update b TASK_STARTING in root.c3
              launch b in c3
            at 1 (next -)
              link a to c1
              update a TASK_RUNNING in root.c1
              wait a in c1
            at 1 (next -)
              link b to c3
              update b TASK_RUNNING in root.c3
              wait b in c3
            at 10 (next -)
              update a TASK_FINISHED in root.c1 'Command exited with status 0'
            at 20 (next 62s)
              update b TASK_FINISHED in root.c3 'Command exited with status 0'
            at 21 (next 62s)
            at 22 (next 62s)
              exit 0
        "#]],
    );
}

#[test]
fn failed_task_kills_its_group_with_their_kill_policies() {
    let patient = TaskInfo { kill_policy: kill_policy(9).into(), ..task("b") };
    check(
        vec![
            (0, subscribed(&[capability::Type::TASK_KILLING_STATE])),
            (0, group(&[task("a"), patient, task("c")])),
            (0, group(&[task("other")])),
            (1, launched("a")),
            (1, launched("b")),
            (1, launched("other")),
            (10, exited("a", 1 << 8)),
            (11, launched("c")),
            (12, exited("c", 15)),
            (100, Due),
            (101, exited("b", 9)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
              update b TASK_STARTING in root.c3
              launch b in c3
              update c TASK_STARTING in root.c5
              launch c in c5
            at 0 (next -)
              update other TASK_STARTING in root.c7
              launch other in c7
            at 1 (next -)
              link a to c1
              update a TASK_RUNNING in root.c1
              wait a in c1
            at 1 (next -)
              link b to c3
              update b TASK_RUNNING in root.c3
              wait b in c3
            at 1 (next -)
              link other to c7
              update other TASK_RUNNING in root.c7
              wait other in c7
            at 10 (next 4s)
              update a TASK_FAILED in root.c1 'Command exited with status 1'
              update b TASK_KILLING in root.c3
              SIGTERM to c3
              update c TASK_KILLING in root.c5
            at 11 (next 4s)
              link c to c5
              SIGTERM to c5
              wait c in c5
            at 12 (next 10s)
              update c TASK_KILLED in root.c5 'Command terminated with signal Terminated'
            at 100 (next -)
              SIGKILL to c3
            at 101 (next -)
              update b TASK_KILLED in root.c3 'Command terminated with signal Killed'
        "#]],
    );
}

#[test]
fn failed_launch_fails_the_group() {
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[task("a"), task("b")])),
            (1, Io(IoEvent::Launched("a".into(), Err("no such image".into())))),
            (2, Io(IoEvent::Launched("b".into(), Ok(())))),
            (3, Io(IoEvent::Waited("b".into(), Waited::Unknown))),
            (4, acknowledged(5)),
            (5, acknowledged(6)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
              update b TASK_STARTING in root.c3
              launch b in c3
            at 1 (next 3.1s)
              update a TASK_FAILED in root.c1 'no such image'
            at 2 (next 3.1s)
              link b to c3
              SIGTERM to c3
              wait b in c3
            at 3 (next 60.3s)
              update b TASK_KILLED in root.c3 'Unable to retrieve command's termination information'
            at 4 (next 60.3s)
            at 5 (next 60.3s)
              exit 0
        "#]],
    );
}

#[test]
fn wait_result_supplies_state_and_reason() {
    let ended = WaitNestedContainer {
        exit_status: Some(9),
        state: Some(TaskState::TASK_FAILED),
        reason: Some(Reason::REASON_CONTAINER_LIMITATION_MEMORY),
        limitation: TaskResourceLimitation::default().into(),
        message: Some("too much".into()),
        ..Default::default()
    };
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[task("a")])),
            (1, launched("a")),
            (2, Io(IoEvent::Waited("a".into(), Waited::Ended(Box::new(ended))))),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
            at 1 (next -)
              link a to c1
              update a TASK_RUNNING in root.c1
              wait a in c1
            at 2 (next 60.2s)
              update a TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY in root.c1 'Command terminated with signal Killed: too much'
        "#]],
    );
}

#[test]
fn shutdown_caps_kill_policies() {
    let patient = TaskInfo { kill_policy: kill_policy(60).into(), ..task("b") };
    let hasty = TaskInfo { kill_policy: kill_policy(1).into(), ..task("a") };
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[hasty, patient])),
            (1, launched("a")),
            (1, launched("b")),
            (10, OnEvent(Event::Shutdown)),
            (11, group(&[task("late")])),
            (20, Due),
            (21, exited("a", 9)),
            (40, Due),
            (41, exited("b", 9)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
              update b TASK_STARTING in root.c3
              launch b in c3
            at 1 (next -)
              link a to c1
              update a TASK_RUNNING in root.c1
              wait a in c1
            at 1 (next -)
              link b to c3
              update b TASK_RUNNING in root.c3
              wait b in c3
            at 10 (next 2s)
              SIGTERM to c1
              SIGTERM to c3
            at 11 (next 2s)
              update late TASK_LOST 'Executor is shutting down or has no container'
            at 20 (next 4s)
              SIGKILL to c1
            at 21 (next 4s)
              update a TASK_KILLED in root.c1 'Command terminated with signal Killed'
            at 40 (next -)
              SIGKILL to c3
            at 41 (next 64.1s)
              update b TASK_KILLED in root.c3 'Command terminated with signal Killed'
        "#]],
    );
    check(
        vec![(0, subscribed(&[])), (0, OnEvent(Event::Shutdown))],
        expect![[r#"
        at 0 (next -)
        at 0 (next -)
          exit 0
    "#]],
    );
    check(
        vec![(0, Abandoned)],
        expect![[r#"
        at 0 (next -)
          exit 1
    "#]],
    );
}

#[test]
fn unhealthy_and_timed_out_tasks_are_killed() {
    let health_check = HealthCheck {
        r#type: Some(health_check::Type::COMMAND),
        command: shell("ping").into(),
        delay_seconds: Some(1.0),
        grace_period_seconds: Some(0.0),
        consecutive_failures: Some(1),
        ..Default::default()
    };
    let limit = duration_info(Duration::from_secs(3));
    let sick = TaskInfo { health_check: health_check.into(), ..task("sick") };
    let slow = TaskInfo { max_completion_time: limit.into(), ..task("slow") };
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[sick])),
            (0, group(&[slow])),
            (5, launched("sick")),
            (5, launched("slow")),
            (15, Due),
            (16, Io(IoEvent::Probed("sick".into(), CheckKind::Health, Outcome::Exited(1)))),
            (17, exited("sick", 15)),
            (30, Due),
            (30, Due),
            (31, exited("slow", 9)),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update sick TASK_STARTING in root.c1
              launch sick in c1
            at 0 (next 3s)
              update slow TASK_STARTING in root.c3
              launch slow in c3
            at 5 (next 1.5s)
              link sick to c1
              update sick TASK_RUNNING in root.c1
              wait sick in c1
            at 5 (next 1.5s)
              link slow to c3
              update slow TASK_RUNNING in root.c3
              wait slow in c3
            at 15 (next 3s)
              probe sick in c1 Health
            at 16 (next 3s)
              update sick TASK_RUNNING REASON_TASK_HEALTH_CHECK_STATUS_UPDATED healthy=false in root.c1
              SIGTERM to c1
            at 17 (next 3s)
              update sick TASK_KILLED healthy=false in root.c1 'Command terminated with signal Terminated'
            at 30 (next 3s)
              SIGTERM to c3
            at 30 (next -)
              SIGKILL to c3
            at 31 (next 63.1s)
              update slow TASK_FAILED REASON_MAX_COMPLETION_TIME_REACHED in root.c3 'Command terminated with signal Killed'
        "#]],
    );
}

#[test]
fn last_updates_wait_for_agent_restart() {
    check(
        vec![
            (0, subscribed(&[])),
            (0, group(&[task("a")])),
            (1, launched("a")),
            (2, OnEvent(Event::Disconnected)),
            (3, exited("a", 0)),
            (9000, Due),
            (9001, subscribed(&[])),
            (9601, Due),
        ],
        expect![[r#"
            at 0 (next -)
            at 0 (next -)
              update a TASK_STARTING in root.c1
              launch a in c1
            at 1 (next -)
              link a to c1
              update a TASK_RUNNING in root.c1
              wait a in c1
            at 2 (next -)
            at 3 (next -)
              update a TASK_FINISHED in root.c1 'Command exited with status 0'
            at 9000 (next -)
            at 9001 (next 960.1s)
            at 9601 (next 960.1s)
              exit 1
        "#]],
    );
}

#[test]
fn checks_run_in_the_environment_of_their_task() {
    let command = |variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| Variable {
            name: (*name).into(),
            value: Some((*value).into()),
            ..Default::default()
        });
        let environment = Environment { variables: variables.collect(), ..Default::default() };
        CommandInfo { environment: environment.into(), ..shell("x") }
    };
    let task = TaskInfo { command: command(&[("A", "task"), ("B", "task")]).into(), ..task("a") };
    let probe = Probe { target: Target::Command(command(&[("B", "check")])), timeout: None };
    let expected = Target::Command(command(&[("A", "task"), ("B", "check")]));
    assert_eq!(in_environment(&task, probe).target, expected);
}
