//! KILL, RECONCILE, MESSAGE, SHUTDOWN: what is forwarded and what the master answers itself.

use expect_test::expect;

use super::check;

#[test]
fn a_kill_is_forwarded_and_repeated_until_the_task_terminates() {
    check(
        "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        ...
        F kill t1
        F kill t1@A
        F kill t1@B
        A close
        A back
        A update t1 KILLED
        A close
        A back
        A update t1 KILLED
        F ack t1
        F kill t1
        ",
        expect![[r#"
            A <- KILL t1
            A <- KILL t1
            A <- SUBSCRIBED A
            A <- KILL t1
            F <- UPDATE t1 TASK_KILLED
            A <- SUBSCRIBED A
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
        "#]],
    );
}

#[test]
fn reconciliation_reports_the_state_of_each_task() {
    check(
        "
        framework F role:web pa checkpoint
        framework G role:ops
        agent A cpus:4 mem:1024
        ...
        settle
        F accept #0 : launch t1 cpus:1
        F reconcile t1 t1@A never@A never2
        G reconcile t1@A t1
        F reconcile
        A update t1 RUNNING latest:FINISHED
        F reconcile
        F ack t1
        A update t1 FINISHED
        F reconcile
        F ack t1
        F reconcile
        F reconcile t1@A
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- UPDATE t1 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- UPDATE never TASK_GONE REASON_RECONCILIATION "Reconciliation: Task is unknown to the agent"
            F <- UPDATE never2 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
            G <- UPDATE t1 TASK_LOST REASON_RECONCILIATION "Reconciliation: Task is unknown to the agent"
            G <- UPDATE t1 TASK_LOST REASON_RECONCILIATION "Reconciliation: Task is unknown"
            F <- UPDATE t1 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- UPDATE t1 TASK_RUNNING
            F <- UPDATE t1 TASK_RUNNING REASON_RECONCILIATION "Reconciliation: Latest task state"
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            F <- UPDATE t1 TASK_FINISHED REASON_RECONCILIATION "Reconciliation: Latest task state"
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_GONE REASON_RECONCILIATION "Reconciliation: Task is unknown to the agent"
        "#]],
    );
}

#[test]
fn messages_are_forwarded_between_scheduler_and_executor() {
    check(
        "
        framework F role:web pa checkpoint
        agent A cpus:4 mem:1024
        ...
        settle
        F accept #0 : launch t1 cpus:1 exec:e
        F says e A
        A says F e
        F shutdown e A
        F says e nobody
        A close
        F says e A
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1) with a new executor
            A <- MESSAGE to e
            F <- MESSAGE from e
            A <- SHUTDOWN_EXECUTOR e
        "#]],
    );
}

#[test]
fn an_update_of_an_unknown_task_is_delivered() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:1024
        ...
        A update t9 FINISHED of:F
        F ack t9
        ",
        expect![[r#"
            F <- UPDATE t9 TASK_FINISHED
            A <- ACKNOWLEDGE t9
        "#]],
    );
}
