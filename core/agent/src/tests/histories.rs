//! What is over is still shown after a restart, as much of it as before.

use std::format;
use std::string::String;

use expect_test::{Expect, expect};

use super::driver::World;
use crate::state::{Executor, Framework};

const BEGIN: &str = "start\nrecovered\ngo\n";

/// Everything that is over, live frameworks with `+`.
fn completed(world: &World) -> String {
    let state = world.agent.as_ref().expect("an agent").state();
    let executor = |executor: &Executor| {
        let tasks = executor.completed_tasks.iter().chain(executor.tasks.values());
        let tasks: String = tasks.map(|task| format!(" {} {:?}", task.id, task.task.state)).collect();
        format!("    {}{tasks}\n", executor.id)
    };
    let framework = |mark: &str, framework: &Framework| {
        let live = framework.executors.values().map(|one| format!("  +{}", executor(one)));
        let done = framework.completed_executors.iter().map(|one| executor(one));
        format!("{mark}{}\n{}{}", framework.id, live.collect::<String>(), done.collect::<String>())
    };
    let live = state.frameworks.values().map(|one| framework("+", one));
    live.chain(state.completed_frameworks.iter().map(|one| framework("", one))).collect()
}

/// What is shown is the same after a restart.
fn check(script: &str, expected: Expect) -> World {
    let world = World::default().run(&format!("{BEGIN}{script}"));
    expected.assert_eq(&completed(&world));
    let world = world.run("restart\nrecovered");
    expected.assert_eq(&completed(&world));
    world
}

/// A command task from its launch to the end of its executor.
fn task(id: &str, options: &str) -> String {
    format!(
        "launch {id} {options}\n{id} launched 7\n{id} subscribe\n{id} update {id} RUNNING\nack {id}\n\
         {id} update {id} FINISHED\nack {id}\n{id} exited 0\n"
    )
}

fn history(world: &World) -> usize {
    world.store.keys().filter(|key| key.starts_with("history/")).count()
}

#[test]
fn history_includes_completed_frameworks() {
    let script = task("t1", "") + &task("t2", "");
    let world = check(
        &script,
        expect![[r#"
            F
                t1 t1 TASK_FINISHED
                t2 t2 TASK_FINISHED
        "#]],
    );
    assert_eq!(history(&world), 5);
    let shown = &world.agent.as_ref().expect("an agent").state().completed_frameworks;
    let executor = shown.iter().next().and_then(|framework| framework.completed_executors.iter().next());
    assert!(
        executor.expect("an executor").sandbox.starts_with("/w/slaves/S0/frameworks/F/executors/t1/runs/")
    );
}

#[test]
fn history_includes_completed_tasks_of_running_executors() {
    check(
        "
        launch a executor=e1
        e1 launched 7
        e1 subscribe
        e1 update a FINISHED
        ack a
        launch b executor=e1 old
        ",
        expect![[r#"
            +F
              +    e1 a TASK_FINISHED b TASK_STAGING
        "#]],
    );
}

/// Updates of tasks that terminate with their framework are not sent; the tasks are shown all the same.
#[test]
fn history_includes_frameworks_that_were_shut_down() {
    check(
        "
        launch a executor=e1
        e1 launched 7
        e1 subscribe
        e1 update a RUNNING
        shutdown framework F
        e1 exited 0
        ",
        expect![[r#"
            F
                e1 a TASK_RUNNING
        "#]],
    );
}

#[test]
fn history_excludes_frameworks_without_checkpointing() {
    let world = World::default().run(&format!("{BEGIN}{}", task("t1", "framework=G")));
    assert_eq!(history(&world), 0);
    assert_eq!(completed(&world.run("restart\nrecovered")), "");
}

/// A framework that returns is not completed any more, and has its completed tasks.
#[test]
fn history_of_a_returning_framework_is_restored() {
    let script = task("t1", "") + "launch t2\n";
    let world = check(
        &script,
        expect![[r#"
            +F
              +    t2 t2 TASK_STAGING
                t1 t1 TASK_FINISHED
        "#]],
    );
    assert_eq!(history(&world), 2, "the task and its executor");
}

/// What is not shown any more is not kept, and another flag counts from the next start on.
#[test]
fn history_is_limited_by_flags() {
    let mut world = World::default();
    world.config.max_completed_executors_per_framework = 3;
    let tasks: String = (0..5).map(|number| task(&format!("t{number}"), "")).collect();
    let mut world = world.run(&format!("{BEGIN}{tasks}"));
    assert_eq!(history(&world), 7, "three tasks, their executors, the framework");
    world.config.max_completed_executors_per_framework = 1;
    let world = world.run("restart\nrecovered");
    expect![[r#"
        F
            t4 t4 TASK_FINISHED
    "#]]
    .assert_eq(&completed(&world));
    assert_eq!(history(&world), 3);
}

/// An agent that ends for good leaves no history to the next.
#[test]
fn unregistered_agent_removes_its_history() {
    let world = World::default().run(&format!("{BEGIN}{}unregister", task("t1", "")));
    assert_eq!(history(&world), 0);
}
