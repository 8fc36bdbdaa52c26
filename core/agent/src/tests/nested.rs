//! Containers launched by calls: below an executor's, or alone.

use expect_test::expect;

use super::driver::replay_after;

const BEGINNING: &str = "start\nrecovered\ngo\ngroup e1 a,b\ne1 launched 7\ne1 subscribe\n";

fn run(transcript: expect_test::Expect) {
    replay_after(BEGINNING, transcript);
}

#[test]
fn nested_container_lifecycle() {
    run(expect![[r#"
        > call launch C1.a needs=cpus:1
          = container C1.a
          container launch C1.a cpus:1
        > call launch C1.a
          conn 3 <- 202
        > container C1.a launched 5
          conn 2 <- 200
        > call wait C1.a
        > call remove C1.a
          conn 5 <- 500: Container C1.a is still running
        > call kill C1.a signal=15
          container signal C1.a 15
          conn 6 <- 200
        > container C1.a exited 0
          = container C1.a ended
          conn 4 <- 200 WAIT_NESTED_CONTAINER
        > call wait C1.a
          conn 7 <- 200 WAIT_NESTED_CONTAINER
        > call kill C1.a
          conn 8 <- 404: Container 'C1.a' cannot be found (or is already killed)
        > call launch C1.a
          conn 9 <- 202
        > call launch C1.a.x
          conn 10 <- 400: Container C1.a has already terminated
        > call remove C1.a
          = container C1.a removed
          container remove C1.a
        > done /w/slaves/S0/frameworks/F/executors/e1/runs/C1/containers/a
          conn 11 <- 200
        > call wait C1.a
          conn 12 <- 404: Container C1.a cannot be found
        > call remove C1.a
          conn 13 <- 200
    "#]]);
}

#[test]
fn unknown_and_invalid_container_ids_are_rejected() {
    run(expect![[r#"
        > call wait nope
          conn 2 <- 404: Container nope cannot be found
        > call kill nope
          conn 3 <- 404: Container 'nope' cannot be found (or is already killed)
        > call launch nope.a
          conn 4 <- 404: Container nope cannot be found
        > call launch-nested nope
          conn 5 <- 400: Failed to validate agent::Call: Expecting 'launch_nested_container.container_id.parent'
              to be present
        > call launch C1.a..
          conn 6 <- 400: Failed to validate agent::Call: 'container_id.value' '' is invalid:
              ID must not be empty
        > call wait x/y
          conn 7 <- 400: Failed to validate agent::Call: 'container_id.value' 'x/y' is invalid:
              ID contains the invalid character '/'
        > call remove nope.a
          conn 8 <- 500: Container nope.a cannot be removed: its top container is not known
        > call remove C1
          conn 9 <- 500: Container C1 is still running
        > call kill C1.a signal=99
          conn 10 <- 400: Failed to validate agent::Call: 99 is not a signal
        > call attach C1.a
          conn 11 <- 501: ATTACH_CONTAINER_OUTPUT is not implemented
    "#]]);
}

#[test]
fn closed_connection_destroys_the_session() {
    run(expect![[r#"
        > call session C1.a
          container launch C1.a
        > container C1.a launched 5
          conn 2 <- 200
        > hang up 2
          container destroy C1.a
        > container C1.a exited 9
        > call wait C1.a
          conn 3 <- 200 WAIT_NESTED_CONTAINER
        > call session C1.b
          container launch C1.b
        > hang up 4
          container destroy C1.b
        > container C1.b failed destroyed
        > call session C1.c
          container launch C1.c
        > container C1.c launched 6
          conn 5 <- 200
        > container C1.c exited 0
        > hang up 5
        > call session C1.c
          conn 6 <- 400: Container C1.c has already terminated
        > call session top
          conn 7 <- 400: Failed to validate agent::Call: Expecting 'launch_nested_container_session.container_id.parent'
              to be present
        > call remove C1.c
          container remove C1.c
    "#]]);
}

#[test]
fn a_session_is_unknown_after_a_restart() {
    run(expect![[r#"
        > call session C1.a
        > container C1.a launched 5
        > call launch C1.a.x
        > container C1.a.x launched 6
        ...
        > crash
        > start
          container recover C1
    "#]]);
}

#[test]
fn terminated_sessions_are_limited() {
    let mut beginning = std::string::String::from(BEGINNING);
    for number in 0..101 {
        beginning += &std::format!("call session C1.s{number}\ncontainer C1.s{number} launched 5\n");
        beginning += &std::format!("container C1.s{number} exited 0\n");
    }
    replay_after(
        &beginning,
        expect![[r#"
            > call wait C1.s0
              conn 103 <- 404: Container C1.s0 cannot be found
            > call wait C1.s1
              conn 104 <- 200 WAIT_NESTED_CONTAINER
        "#]],
    );
}

#[test]
fn failed_nested_launch_is_removed() {
    run(expect![[r#"
        > call launch C1.a
          = container C1.a
          container launch C1.a
        > container C1.a failed no such program
          conn 2 <- 400: no such program
          = container C1.a removed
        > call wait C1.a
          conn 3 <- 404: Container C1.a cannot be found
    "#]]);
}

#[test]
fn nested_containers_of_a_failed_launch_are_removed_after_a_crash() {
    run(expect![[r#"
        > call launch C1.a
        > call launch C1.a.x
        > container C1.a failed no such program
        ...
        > restart
          = discarded container/C1.a.x
          container recover C1
    "#]]);
}

#[test]
fn disconnected_clients_get_no_response() {
    run(expect![[r#"
        > call launch C1.a
        ...
        > hang up 2
        > container C1.a launched 5
        > call wait C1.a
        > hang up 3
        > call wait C1.a
        > container C1.a exited 256
          = container C1.a ended
          conn 4 <- 200 WAIT_NESTED_CONTAINER
    "#]]);
}

#[test]
fn executor_exit_destroys_its_nested_containers() {
    run(expect![[r#"
        > call launch C1.a
        ...
        > container C1.a launched 5
          conn 2 <- 200
        > call wait C1.a
        > call wait C1
        > e1 exited 9
          conn 1 closes
          conn 3 <- 404: Container C1.a cannot be found
          = container C1.a removed
          conn 4 <- 200 WAIT_NESTED_CONTAINER
          = update a#0 TASK_FAILED
          master <- UPDATE a TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = update b#0 TASK_FAILED
          master <- UPDATE b TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
        > call wait C1.a
          conn 5 <- 404: Container C1.a cannot be found
    "#]]);
}

#[test]
fn nested_containers_survive_an_agent_restart() {
    run(expect![[r#"
        > call launch C1.a
        ...
        > container C1.a launched 5
          conn 2 <- 200
        > call launch C1.b
          = container C1.b
          container launch C1.b
        > container C1.b launched 6
          conn 3 <- 200
        > container C1.b exited 0
          = container C1.b ended
        > restart
          container recover C1 C1.a
        > call wait C1.a
          conn 4 <- 503: Agent has not finished recovery
        > recovered
        > e1 subscribe tasks=a,b
          conn 5 <- 200, open
          conn 5 <- SUBSCRIBED e1
          container update C1 cpus:2.5;mem:160
          = boot id boot-1
        > call wait C1.a
        > call launch C1.b
          conn 7 <- 202
        > call wait C1.b
          conn 8 <- 200 WAIT_NESTED_CONTAINER
        > container C1.a exited 9
          = container C1.a ended
          conn 6 <- 200 WAIT_NESTED_CONTAINER
    "#]]);
}

/// An executor whose agent was killed before it answered repeats its call, and waits for the container.
#[test]
fn repeated_launch_of_an_exited_container_is_accepted_after_a_restart() {
    run(expect![[r#"
        > call launch C1.a
        > call launch C1.b
        > restart
        > recovered C1.a
        > e1 subscribe tasks=a,b
        ...
        > call launch C1.a
          conn 5 <- 202
        > call wait C1.a
          conn 6 <- 200 WAIT_NESTED_CONTAINER
        > call launch C1.b
          conn 7 <- 202
    "#]]);
}

#[test]
fn standalone_container_is_launched_and_waited_for() {
    run(expect![[r#"
        > call launch alone needs=cpus:0.1
          = container alone
          container launch C2 cpus:0.1
        > container alone launched 9
          conn 2 <- 200
        > call wait alone
        > container alone exited 0
          conn 3 <- 200 WAIT_NESTED_CONTAINER
          = container C2 removed
          = path /w/containers/C2 unused
        > call wait alone
          conn 4 <- 404: Container C2 cannot be found
    "#]]);
}

#[test]
fn unregister_kills_standalone_containers() {
    run(expect![[r#"
        > call launch alone
        > container alone launched 9
        > call launch other
        ...
        > unregister
          master <- UNREGISTER
          container destroy C2
          container destroy C3
          = framework F terminating
          = executor e1 terminating delivered
          conn 1 <- SHUTDOWN
        > call launch third
          conn 4 <- 503: Agent is terminating
        > e1 exited 0
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 0
          = task a and updates #0..0 removed
          = task b and updates #0..0 removed
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
        > container alone exited 9
          = container C2 removed
          = path /w/containers/C2 unused
        > container other failed destroyed
          conn 3 <- 400: destroyed
          = container C3 removed
          = path /w/slaves/S0 unused
          = discarded agent resources drain history/00000000000000000001 history/00000000000000000002
              history/00000000000000000003 history/00000000000000000004
          exit: all frameworks removed
    "#]]);
}
