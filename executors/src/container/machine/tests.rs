//! The container executor, step by step: what happens, and what it does about it.

use expect_test::{Expect, expect};
use tepui_client::shorthand::task_id;
use tepui_client::v1::executor::event::Subscribed;

use super::*;
use crate::testing::{at, status_text};

enum Step {
    OnEvent(Event),
    Io(IoEvent),
    Abandoned,
    Due,
}

use Step::{Abandoned, Due, Io, OnEvent};

/// Plays steps at the given tenths of seconds; each line is one effect, under the step that caused it.
fn check(steps: Vec<(u64, Step)>, expected: Expect) {
    let mut machine = ContainerMachine::new(Duration::from_secs(5));
    let (mut ids, mut story) = (0, String::new());
    at(Duration::ZERO, &mut ids, |moment| {
        machine.on_event(moment, Event::Subscribed(Subscribed::default()), &mut Vec::new());
    });
    for (tenths, step) in steps {
        let mut out = Vec::new();
        at(Duration::from_millis(tenths * 100), &mut ids, |moment| match step {
            OnEvent(event) => machine.on_event(moment, event, &mut out),
            Io(io_event) => machine.on_io_event(moment, io_event, &mut out),
            Abandoned => machine.abandoned(moment, &mut out),
            Due => machine.due(moment, &mut out),
        });
        let deadline = machine.deadline().map_or("-".into(), |at| format!("{at:?}"));
        story += &format!("at {tenths} (next {deadline})\n");
        for effect in out {
            story += &match effect {
                Effect::Update(status) => {
                    let data = status.data.as_deref().map(String::from_utf8_lossy);
                    let data = data.map(|data| format!(" {data}")).unwrap_or_default();
                    format!("  {}{data}\n", status_text(&status))
                }
                Effect::Create(task) => format!("  create {:?} of {}\n", task.name, task.image),
                Effect::Follow(id) => format!("  follow {id}\n"),
                Effect::Inspect(id) => format!("  inspect {id}\n"),
                Effect::Start(id) => format!("  start {id}\n"),
                Effect::Stop(id, grace) => format!("  stop {id} {grace:?}\n"),
                Effect::Remove(id) => format!("  remove {id}\n"),
                Effect::Exit(code) => format!("  exit {code}\n"),
            };
        }
    }
    expected.assert_eq(&story);
}

fn launch(start: bool) -> Step {
    launch_of(start, None)
}

fn launch_of(start: bool, adopt: Option<&str>) -> Step {
    let container = ContainerTask {
        socket: "/s".into(),
        name: "web".into(),
        image: "busybox".into(),
        document: serde_json::json!({}),
        start,
        label: "task=t".into(),
        adopt: adopt.map(str::to_owned),
        is_orphan: false,
    };
    let data = Some(serde_json::to_vec(&container).expect("plain data"));
    OnEvent(Event::Launch(TaskInfo { task_id: task_id("t").into(), data, ..Default::default() }))
}

fn created() -> Step {
    Io(IoEvent::Created(Ok(ContainerReport { id: "c1".into(), name: "web".into() })))
}

fn observed(observed: Observed) -> Step {
    Io(IoEvent::Observed(observed))
}

fn inspected(observed: Observed) -> Step {
    Io(IoEvent::Inspected(observed))
}

fn exited(code: i64) -> Observed {
    Observed::Exited { code, oom_killed: false, error: String::new() }
}

fn kill() -> Step {
    OnEvent(Event::Kill { task_id: task_id("t"), policy: None })
}

#[test]
fn image_that_cannot_be_pulled_is_named_in_the_last_update() {
    let cause =
        NotCreated::NoImage { image: "private/web".into(), message: "cannot pull the image: denied".into() };
    check(
        vec![(0, launch(false)), (1, Io(IoEvent::Created(Err(cause))))],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next 60.1s)
              update t TASK_FAILED 'cannot pull the image: denied' {"missing_image":"private/web"}
        "#]],
    );
}

#[test]
fn container_is_reported_before_start_and_task_follows_exit_code() {
    check(
        vec![
            (0, launch(false)),
            (1, created()),
            (1, observed(Observed::Created)),
            (20, observed(Observed::Running)),
            (30, observed(exited(3))),
            (35, Due),
            (36, inspected(exited(3))),
            (37, OnEvent(Event::Acknowledged { task_id: task_id("t"), uuid: vec![3; 16] })),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 1 (next -)
            at 20 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
            at 30 (next 3.5s)
            at 35 (next -)
              inspect c1
            at 36 (next 63.6s)
              update t TASK_FAILED REASON_COMMAND_EXECUTOR_FAILED 'Container exited with status 3' {"id":"c1","name":"web"}
            at 37 (next -)
              exit 0
        "#]],
    );
}

#[test]
fn restarted_container_keeps_its_task() {
    check(
        vec![
            (0, launch(true)),
            (1, created()),
            (2, observed(Observed::Running)),
            (30, observed(exited(137))),
            (32, observed(Observed::Running)),
            (50, observed(exited(1))),
            (55, Due),
            (55, inspected(Observed::Restarting)),
            (70, observed(Observed::Running)),
            (80, observed(Observed::OutOfMemory)),
            (80, observed(exited(137))),
            (81, observed(Observed::Missing)),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
              start c1
            at 2 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
            at 30 (next 3.5s)
            at 32 (next -)
            at 50 (next 5.5s)
            at 55 (next -)
              inspect c1
            at 55 (next -)
            at 70 (next -)
            at 80 (next -)
            at 80 (next 8.5s)
            at 81 (next 68.1s)
              update t TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY 'Container exited with status 137: Memory limit exceeded' {"id":"c1","name":"web"}
        "#]],
    );
}

#[test]
fn kill_stops_a_running_container_and_removes_a_pending_one() {
    let exit = || OnEvent(Event::Acknowledged { task_id: task_id("t"), uuid: vec![1; 16] });
    check(
        vec![(0, launch(false)), (1, kill()), (2, created()), (3, observed(Observed::Missing)), (4, exit())],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
            at 2 (next -)
              remove c1
            at 3 (next 60.3s)
              update t TASK_KILLED 'Container was removed' {"id":"c1","name":"web"}
            at 4 (next -)
              exit 0
        "#]],
    );
    check(
        vec![(0, launch(false)), (1, created()), (2, kill()), (3, inspected(Observed::Created))],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 2 (next -)
              inspect c1
            at 3 (next 60.3s)
              update t TASK_KILLED 'Container was not started' {"id":"c1","name":"web"}
        "#]],
    );
    check(
        vec![
            (0, launch(false)),
            (1, created()),
            (2, observed(Observed::Running)),
            (3, OnEvent(Event::Shutdown)),
            (4, observed(exited(143))),
            (4, Due),
            (4, inspected(exited(143))),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 2 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
            at 3 (next -)
              stop c1 3s
            at 4 (next 400ms)
            at 4 (next -)
              inspect c1
            at 4 (next 60.4s)
              update t TASK_KILLED 'Container exited with status 143' {"id":"c1","name":"web"}
        "#]],
    );
}

/// The event of its start is on its way when the kill arrives.
#[test]
fn kill_stops_a_container_that_was_just_started() {
    let steps = |first: Step, second: Step| {
        vec![
            (0, launch(false)),
            (1, created()),
            (2, kill()),
            (3, first),
            (4, second),
            (5, observed(exited(143))),
            (5, Due),
            (5, inspected(exited(143))),
        ]
    };
    check(
        steps(inspected(Observed::Running), observed(Observed::Running)),
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 2 (next -)
              inspect c1
            at 3 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
              stop c1 10s
            at 4 (next -)
            at 5 (next 500ms)
            at 5 (next -)
              inspect c1
            at 5 (next 60.5s)
              update t TASK_KILLED 'Container exited with status 143' {"id":"c1","name":"web"}
        "#]],
    );
    check(
        steps(observed(Observed::Running), inspected(Observed::Running)),
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 2 (next -)
              inspect c1
            at 3 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
              stop c1 10s
            at 4 (next -)
            at 5 (next 500ms)
            at 5 (next -)
              inspect c1
            at 5 (next 60.5s)
              update t TASK_KILLED 'Container exited with status 143' {"id":"c1","name":"web"}
        "#]],
    );
}

#[test]
fn outdated_inspection_does_not_hide_the_exit_of_a_killed_container() {
    check(
        vec![
            (0, launch(false)),
            (1, created()),
            (2, kill()),
            (3, observed(Observed::Running)),
            (4, observed(exited(143))),
            (4, inspected(Observed::Running)),
            (4, Due),
            (5, inspected(exited(143))),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 2 (next -)
              inspect c1
            at 3 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
              stop c1 10s
            at 4 (next 400ms)
            at 4 (next 400ms)
            at 4 (next -)
              inspect c1
            at 5 (next 60.5s)
              update t TASK_KILLED 'Container exited with status 143' {"id":"c1","name":"web"}
        "#]],
    );
}

#[test]
fn failures_name_the_cause() {
    check(
        vec![
            (0, launch(false)),
            (1, Io(IoEvent::Created(Err(NotCreated::Failed("cannot create the container: no".into()))))),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next 60.1s)
              update t TASK_FAILED 'cannot create the container: no'
        "#]],
    );
    let wrong = TaskInfo { task_id: task_id("t").into(), data: Some(b"{}".to_vec()), ..Default::default() };
    check(
        vec![(0, OnEvent(Event::Launch(wrong))), (1, Abandoned)],
        expect![[r#"
        at 0 (next 60s)
          update t TASK_FAILED 'the data of the task is no container: missing field `socket` at line 1 column 2'
        at 1 (next -)
          exit 1
    "#]],
    );
}

#[test]
fn executor_without_a_task_exits() {
    check(
        vec![
            (10, OnEvent(Event::Disconnected)),
            (700, OnEvent(Event::Subscribed(Subscribed::default()))),
            (1290, Due),
            (1300, Due),
        ],
        expect![[r#"
            at 10 (next -)
            at 700 (next 130s)
            at 1290 (next 130s)
            at 1300 (next -)
              exit 1
        "#]],
    );
}

#[test]
fn killed_adoption_keeps_the_container() {
    check(
        vec![
            (0, launch_of(false, Some("c1"))),
            (1, kill()),
            (2, created()),
            (3, observed(Observed::Created)),
        ],
        expect![[r#"
            at 0 (next -)
              create "web" of busybox
            at 1 (next -)
            at 2 (next -)
              follow c1
            at 3 (next 60.3s)
              update t TASK_KILLED 'Container was not started' {"id":"c1","name":"web"}
        "#]],
    );
}

#[test]
fn sigterm_stops_the_container_without_a_connection() {
    check(
        vec![
            (1, launch(true)),
            (2, created()),
            (3, observed(Observed::Running)),
            (4, OnEvent(Event::Disconnected)),
            (5, Io(IoEvent::Terminate)),
            (6, Io(IoEvent::Terminate)),
            (7, observed(Observed::Exited { code: 137, oom_killed: false, error: String::new() })),
            (7, Due),
        ],
        expect![[r#"
            at 1 (next -)
              create "web" of busybox
            at 2 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
              start c1
            at 3 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
            at 4 (next -)
            at 5 (next -)
              stop c1 3s
            at 6 (next -)
            at 7 (next 700ms)
            at 7 (next -)
              inspect c1
        "#]],
    );
}

#[test]
fn shutdown_shortens_the_grace_period_of_a_kill() {
    check(
        vec![
            (1, launch(true)),
            (2, created()),
            (3, observed(Observed::Running)),
            (4, kill()),
            (5, kill()),
            (6, OnEvent(Event::Shutdown)),
            (7, Io(IoEvent::Terminate)),
            (8, kill()),
        ],
        expect![[r#"
            at 1 (next -)
              create "web" of busybox
            at 2 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
              start c1
            at 3 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
            at 4 (next -)
              stop c1 10s
            at 5 (next -)
            at 6 (next -)
              stop c1 3s
            at 7 (next -)
            at 8 (next -)
        "#]],
    );
}

#[test]
fn grace_period_of_a_shutdown_before_the_creation_applies_to_an_adopted_container() {
    check(
        vec![
            (1, launch_of(false, Some("c1"))),
            (2, OnEvent(Event::Shutdown)),
            (3, created()),
            (4, observed(Observed::Running)),
        ],
        expect![[r#"
            at 1 (next -)
              create "web" of busybox
            at 2 (next -)
            at 3 (next -)
              follow c1
            at 4 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
              stop c1 3s
        "#]],
    );
}

#[test]
fn shutdown_of_a_killed_container_that_is_not_known_to_run_inspects_it_again() {
    check(
        vec![
            (1, launch(false)),
            (2, created()),
            (3, kill()),
            (4, OnEvent(Event::Shutdown)),
            (5, observed(Observed::Running)),
        ],
        expect![[r#"
            at 1 (next -)
              create "web" of busybox
            at 2 (next -)
              update t TASK_STARTING {"id":"c1","name":"web"}
              follow c1
            at 3 (next -)
              inspect c1
            at 4 (next -)
              inspect c1
            at 5 (next -)
              update t TASK_RUNNING {"id":"c1","name":"web"}
              stop c1 3s
        "#]],
    );
}
