//! UPDATE and ACKNOWLEDGE: the books run ahead of what is delivered.

use alloc::format;
use core::time::Duration;

use expect_test::expect;

use super::{check, check_with};
use crate::Config;

#[test]
fn latest_terminal_state_releases_resources() {
    check(
        "
        framework F role:web
        agent A cpus:1 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 mem:64
        A update t1 RUNNING latest:FINISHED
        after 1s
        F decline #1 refuse:1000
        F ack t1
        A update t1 FINISHED
        F ack t1
        F reconcile
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:1; mem:64)
            A <- LAUNCH t1 (cpus:1; mem:64)
            F <- UPDATE t1 TASK_RUNNING
            F <- OFFERS #1 of A (cpus:1; mem:64)
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

#[test]
fn operators_receive_every_status_after_the_latest_state() {
    check(
        "
        operator subscribe
        framework F role:web
        agent A cpus:1 mem:64
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 mem:64
        A update t1 RUNNING latest:FINISHED
        F ack t1
        A update t1 FINISHED
        ",
        expect![[r#"
            record initialize cluster m
            operator opened at 0 <- HEARTBEAT
            operators <- FRAMEWORK_ADDED F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:1; mem:64)
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1; mem:64)
            operators <- TASK_UPDATED t1 TASK_RUNNING, by now TASK_FINISHED
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            operators <- TASK_UPDATED t1 TASK_FINISHED
            F <- UPDATE t1 TASK_FINISHED
        "#]],
    );
}

#[test]
fn terminal_task_state_does_not_change() {
    check(
        "
        operator subscribe
        framework F role:web checkpoint
        agent A cpus:1 mem:64
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 mem:64
        A update t1 FAILED
        A update t1 RUNNING
        after 1s
        F reconcile
        ",
        expect![[r#"
            record initialize cluster m
            operator opened at 0 <- HEARTBEAT
            operators <- FRAMEWORK_ADDED F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:1; mem:64)
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1; mem:64)
            operators <- TASK_UPDATED t1 TASK_FAILED
            F <- UPDATE t1 TASK_FAILED
            operators <- TASK_UPDATED t1 TASK_RUNNING, by now TASK_FAILED
            F <- UPDATE t1 TASK_RUNNING
            F <- OFFERS #1 of A (cpus:1; mem:64)
            F <- UPDATE t1 TASK_RUNNING REASON_RECONCILIATION "Reconciliation: Latest task state"
        "#]],
    );
}

#[test]
fn task_id_is_reusable_after_acknowledged_termination() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 ; launch t1 cpus:1
        A update t1 FINISHED
        after 1s
        F accept #1 refuse:0 : launch t1 cpus:1
        F ack t1
        after 1s
        F accept #2 refuse:0 : launch t1 cpus:1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "Task has duplicate ID: t1"
            F <- UPDATE t1 TASK_FINISHED
            F <- OFFERS #1 of A (cpus:4; mem:64)
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "Task has duplicate ID: t1"
            A <- ACKNOWLEDGE t1
            F <- OFFERS #2 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
        "#]],
    );
}

#[test]
fn update_of_an_earlier_task_does_not_terminate_its_successor() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        A update t1 FINISHED
        F ack t1
        after 1s
        F accept #1 refuse:0 : launch t1 cpus:1
        A repeats t1
        A update t1 RUNNING
        F ack t1
        A update t1 FINISHED
        A deaf
        F ack t1
        after 1s
        F accept #2 refuse:0 : launch t1 cpus:1
        A close
        A back
        A repeats t1
        A update t1 DROPPED of:F
        F ack t1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #2 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            A <- SUBSCRIBED A missing t1
            A <- ACKNOWLEDGE t1
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_DROPPED
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

/// An answer to a ping shows that the acknowledgement arrived only if it was sent on the same link.
#[test]
fn termination_acknowledged_while_disconnected_is_resent() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        A update t1 FINISHED
        A deaf
        F ack t1
        A close
        A back
        A repeats t1
        after 15s
        A pong
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:64)
            F <- HEARTBEAT
            A <- PING
            A <- PING in order
        "#]],
    );
}

/// The repetition arrives after the task was completed, so the master cannot compare it with the last status.
#[test]
fn a_late_acknowledgement_of_an_earlier_update_does_not_replace_that_of_the_end() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:1000 : launch t1 cpus:1
        A update t1 RUNNING
        F ack t1
        A update t1 FINISHED
        A deaf
        F ack t1
        F repeats-ack t1
        after 1s
        F accept #1 refuse:1000 : launch t1 cpus:1
        A close
        A back
        A repeats t1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            A <- SUBSCRIBED A missing t1
            A <- ACKNOWLEDGE t1
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

/// While the master cannot write records, a ping overtakes the acknowledgement; only the answer to the in-order one counts.
#[test]
fn an_acknowledged_termination_is_kept_until_the_in_order_ping_is_answered() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:3600 : launch t1 cpus:1
        A update t1 FINISHED
        F ack t1
        after 15s
        A pong
        after 15s
        A pong
        A close
        A back
        --
        after 15s
        A pong
        A pong
        after 15s
        A pong
        A close
        A back
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:64)
            F <- HEARTBEAT
            A <- PING
            A <- PING in order
            F <- HEARTBEAT
            A <- PING
            F <- RESCIND #1
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
            --
            F <- OFFERS #2 of A (cpus:4; mem:64)
            F <- HEARTBEAT
            A <- PING
            A <- PING in order
            F <- HEARTBEAT
            A <- PING
            F <- RESCIND #2
            A <- SUBSCRIBED A
        "#]],
    );
}

/// Its agent became unreachable before the acknowledgement arrived; the framework may have used the id again since.
#[test]
fn an_acknowledged_termination_outlives_the_unreachability_of_its_agent() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        settle
        F accept #0 refuse:1000 : launch t1 cpus:1
        A update t1 FAILED
        A deaf
        F ack t1
        ...
        A close
        skip 600s
        A back
        A repeats t1
        ",
        expect![[r#"
            record mark unreachable agent A since 1000000090.000
            F <- FAILURE of A
            record mark reachable agent A at A
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

/// A new master does not know that the end was acknowledged, but that the id was used again.
#[test]
fn update_of_an_earlier_task_is_not_forwarded_while_its_successor_is_unreachable() {
    let config = Config { agent_reregister_timeout: Duration::from_secs(30), ..Config::default() };
    let start = "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:64
        agent B cpus:4 mem:64
        settle
        F accept #0 refuse:1000 : launch t1 cpus:1
        A update t1 FAILED
        A deaf
        F ack t1
        A close
        F accept #1 refuse:1000 : launch t1 cpus:1
        B update t1 RUNNING
        master restarts
        F back
        B back
        ";
    check_with(
        config.clone(),
        &format!(
            "{start}
        A back
        B close
        skip 30s
        ...
        A repeats t1
        "
        ),
        expect![[r#"
            A <- ACKNOWLEDGE t1
        "#]],
    );
    check_with(
        config,
        &format!(
            "{start}
        B close
        skip 30s
        ...
        A back
        A repeats t1
        "
        ),
        expect![[r#"
            record mark reachable agent A at A
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

/// The agent removes the task when it receives the acknowledgement, and would answer a later kill with TASK_DROPPED,
/// for a live task elsewhere under that id.
#[test]
fn a_terminated_task_with_a_reused_id_is_not_killed() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        agent B cpus:4 mem:64
        settle
        F accept #0 refuse:1000 : launch t1 cpus:1
        A update t1 FAILED
        A deaf
        F ack t1
        F accept #1 refuse:1000 : launch t1 cpus:1
        B update t1 RUNNING
        ...
        A close
        A back
        ",
        expect![[r#"
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

/// An agent may have removed a task that it dropped, so its termination is reported at once; then its update is
/// acknowledged all the same.
#[test]
fn dropped_update_does_not_terminate_the_next_task_of_its_id() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        A update t1 DROPPED
        A lost t1
        A close
        A back
        F ack t1
        after 1s
        F accept #1 refuse:0 : launch t1 cpus:1
        A repeats t1
        A update t1 RUNNING
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_DROPPED
            F <- UPDATE t1 TASK_DROPPED REASON_RECONCILIATION "Task is no longer known to the agent"
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_RUNNING
        "#]],
    );
}

#[test]
fn acknowledgement_during_agent_disconnection_is_ignored() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        A update t1 RUNNING
        A close
        F ack t1
        A back
        A update t1 RUNNING
        F ack t1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_RUNNING
            A <- SUBSCRIBED A
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

#[test]
fn framework_unknown_to_the_master_is_shut_down_on_its_agents() {
    let config = Config { max_completed_frameworks: 0, ..Config::default() };
    check_with(
        config,
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:1024
        ...
        settle
        F accept #0 : launch t1 cpus:1
        F teardown
        A update t1 RUNNING
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            record remove framework F
            A <- SHUTDOWN_FRAMEWORK F
            F closed
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}
