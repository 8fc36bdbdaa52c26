//! Evictions for memory: the chosen container, and no other.

use expect_test::{Expect, expect};

use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::{Reason, Source};

use super::driver::{World, replay, replay_after, replay_ready};

/// Two commands, and a group of two in containers of their own.
fn run(transcript: Expect) {
    let beginning = "
        eviction 100 10
        start
        recovered
        go
        launch a
        a launched 7
        launch b
        b launched 8
        group e1 x,y
        e1 launched 9
        e1 subscribe
        call launch C3.x needs=cpus:1
        container C3.x launched 10
    ";
    replay_after(beginning, transcript);
}

#[test]
fn evictions_are_sequential() {
    run(expect![[r#"
        > memory 100 9.9 C1:200/64 C2:300/64
        > memory 99 0 C1:200/64 C2:300/64 C3:64/64
          container evict C2 'Memory request exceeded while the machine was short of memory (available:
              99MB, pressure: 0%): Requested: 64MB Limit: Infinity Used: 300MB'
        > memory 50 0 C1:200/64 C2:300/64 C3:64/64
        > container C2 exited 9
          = update b#0 TASK_FAILED
          master <- UPDATE b TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor b terminated
        > memory 50 0 C1:200/64 C2:300/64 C3:64/64
        > memory 200 0 C1:200/64 C3:64/64
        > memory 200 10 C1:200/64 C3:64/64
          container evict C1 'Memory request exceeded while the machine was short of memory (available:
              200MB, pressure: 10%): Requested: 64MB Limit: Infinity Used: 200MB'
    "#]]);
}

#[test]
fn tasks_within_their_request_or_terminating_are_not_evicted() {
    run(expect![[r#"
        > memory 0 100
        > memory 0 100 C1:64/64 C2:1/64
        > memory 0 100 stranger:500/1
        > shutdown executor b
          = executor b terminating
        > memory 0 100 C1:64/64 C2:500/64
    "#]]);
}

#[test]
fn nested_container_above_its_request_is_evicted_first() {
    run(expect![[r#"
        > memory 0 0 C3:200/96 C3.x:190/32
          container evict C3.x 'Memory request exceeded while the machine was short of memory
              (available: 0MB, pressure: 0%): Requested: 32MB Limit: Infinity Used: 190MB'
        > container C3.x exited 9
          = container C3.x ended
        > memory 0 0 C3:200/96
        > memory 0 0 C3:200/96
          container evict C3 'Memory request exceeded while the machine was short of memory (available:
              0MB, pressure: 0%): Requested: 96MB Limit: Infinity Used: 200MB'
        > e1 exited 9
          conn 1 closes
          = container C3.x removed
          = update x#0 TASK_FAILED
          master <- UPDATE x TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = update y#0 TASK_FAILED
          master <- UPDATE y TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
    "#]]);
}

#[test]
fn eviction_is_off_by_default() {
    replay_ready(expect![[r#"
        > launch a
        > a launched 7
        ...
        > memory 0 100 C1:500/64
    "#]]);
}

#[test]
fn eviction_reported_by_the_executor_keeps_the_agent_source() {
    let world = World::default().run(
        "
        eviction 100 10
        start
        recovered
        go
        launch a
        a launched 7
        a subscribe
        memory 99 0 C1:200/64
        a update a FAILED
        ",
    );
    let last = world.statuses.last().expect("an end");
    let exceeded = Some(Reason::REASON_MEMORY_REQUEST_EXCEEDED);
    let told = (last.state, last.source, last.reason);
    assert_eq!(told, (TaskState::TASK_FAILED, Some(Source::SOURCE_AGENT), exceeded));
    assert!(last.message.as_deref().is_some_and(|message| message.contains("Used: 200MB")), "{last:?}");
    assert_eq!(last.limitation.resources.len(), 1);
}

/// The container with the largest sandbox is evicted, and no other until the sandbox is removed and measured again.
#[test]
fn task_with_the_largest_sandbox_is_evicted_under_disk_pressure() {
    replay(expect![[r#"
        > eviction disk 100
        > start
        > recovered
        > go
        > launch a
        > a launched 7
        > a subscribe
        > launch b
        > b launched 8
        > b subscribe
        ...
        > sandboxes 100 C1:10 C2:20
        > sandboxes 99 C1:10 C2:20
          container evict C2 'Evicted because its sandbox was the largest while the agent was
              short of disk (available: 99MB): Used: 20MB'
        > sandboxes 1 C1:10 C2:20
        > b exited 9
          conn 2 closes
          = update b#0 TASK_FAILED
          master <- UPDATE b TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor b terminated delivered
        > sandboxes 1 C1:10
        > sandboxes 1 C1:10
        > ack b
          = task b and updates #0..1 removed
          = executor b removed
          = path /w/slaves/S0/frameworks/F/executors/b/runs/C2 unused
          = path /w/slaves/S0/frameworks/F/executors/b unused
        > sandboxes 1 C1:10
          container remove path /w/slaves/S0/frameworks/F/executors/b
          = path /w/slaves/S0/frameworks/F/executors/b/runs/C2 forgotten
        > done /w/slaves/S0/frameworks/F/executors/b
          = path /w/slaves/S0/frameworks/F/executors/b forgotten
        > sandboxes 1 C1:10
        > sandboxes 101 C1:10
        > sandboxes 99 C1:10
          container evict C1 'Evicted because its sandbox was the largest while the agent was
              short of disk (available: 99MB): Used: 10MB'
    "#]]);
}

/// A framework that does not acknowledge keeps the sandbox: after a while another container is evicted.
#[test]
fn a_sandbox_that_is_not_removed_in_time_does_not_stop_evictions() {
    replay(expect![[r#"
        > eviction disk 100
        > start
        > recovered
        > go
        > launch a
        > a launched 7
        > a subscribe
        > launch b
        > b launched 8
        > b subscribe
        > sandboxes 99 C1:10 C2:20
        > b exited 9
        > sandboxes 1 C1:10
        ...
        > sandboxes 1 C1:10
        > wait 31s
          master <- UPDATE b TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          master <- UPDATE b TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
        > sandboxes 1 C1:10
          container evict C1 'Evicted because its sandbox was the largest while the agent was
              short of disk (available: 1MB): Used: 10MB'
    "#]]);
}
