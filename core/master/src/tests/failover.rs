//! Failover of frameworks and masters.

use expect_test::expect;

use super::check;

#[test]
fn scheduler_failover_disconnects_the_former_scheduler() {
    check(
        "
        operator subscribe
        framework F role:web failover:60 checkpoint
        agent A cpus:4 mem:1024
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        after 1s
        F back
        F reconcile
        after 1s
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
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1)
            F <- OFFERS #1 of A (cpus:3; mem:1024)
            F <- ERROR "Framework failed over"
            F closed
            operators <- FRAMEWORK_UPDATED F
            A <- UPDATE_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- UPDATE t1 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- OFFERS #2 of A (cpus:3; mem:1024)
        "#]],
    );
}

#[test]
fn framework_is_removed_after_the_failover_timeout() {
    check(
        "
        operator subscribe
        framework F role:web failover:60 checkpoint
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 refuse:100000 : launch t1 cpus:1 exec:e
        F close
        after 59s
        --
        after 2s
        --
        F back
        A update t1 KILLED
        ",
        expect![[r#"
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1) with a new executor
            operators <- HEARTBEAT
            A <- PING
            operators <- HEARTBEAT
            A <- PING
            operators <- HEARTBEAT
            A <- PING
            --
            operators <- HEARTBEAT
            A <- PING
            record remove framework F
            operators <- TASK_UPDATED t1 TASK_KILLED
            A <- SHUTDOWN_FRAMEWORK F
            operators <- FRAMEWORK_REMOVED F
            --
            F <- ERROR "Framework has been removed"
            F closed
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}

#[test]
fn framework_without_failover_timeout_is_removed_on_disconnection() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 : launch t1 cpus:1
        F close
        A back
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1)
            record remove framework F
            A <- SHUTDOWN_FRAMEWORK F
            A closed
            A <- SUBSCRIBED A
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}

#[test]
fn framework_reregistered_within_the_failover_timeout_keeps_its_tasks() {
    check(
        "
        framework F role:web failover:60 checkpoint
        agent A cpus:4 mem:1024
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus:1
        F close
        A update t1 RUNNING
        after 59s
        --
        F back
        A update t1 RUNNING
        F ack t1
        after 14s
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            A <- PING
            A <- PING
            A <- PING
            --
            A <- UPDATE_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:3; mem:1024)
            A <- PING
        "#]],
    );
}

#[test]
fn teardown_shuts_down_executors_and_removes_the_framework() {
    check(
        "
        operator subscribe
        framework F role:web failover:60 checkpoint
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 refuse:0 : launch t1 cpus:1
        after 1s
        F teardown
        after 1s
        framework G role:ops
        after 1s
        operator teardown G
        operator teardown G
        ",
        expect![[r#"
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1)
            F <- OFFERS #1 of A (cpus:3; mem:1024)
            record remove framework F
            operators <- TASK_UPDATED t1 TASK_KILLED
            A <- SHUTDOWN_FRAMEWORK F
            F closed
            operators <- FRAMEWORK_REMOVED F
            operators <- FRAMEWORK_ADDED G
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            G <- OFFERS #2 of A (cpus:4; mem:1024)
            record remove framework G
            G closed
            operators <- FRAMEWORK_REMOVED G
            operator <- 200
            operator <- 400: No framework found with specified ID
        "#]],
    );
}

#[test]
fn change_of_the_framework_principal_is_rejected() {
    check(
        "
        framework F role:web principal:me failover:60
        framework F role:web principal:you
        framework F role:web principal:me user:other
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- ERROR "Changing framework's principal is not allowed."
            F closed
            F <- ERROR "Framework failed over"
            F closed
            F <- SUBSCRIBED F
            F <- HEARTBEAT
        "#]],
    );
}

#[test]
fn new_master_recovers_state_from_agents_and_frameworks() {
    check(
        "
        operator subscribe
        framework F role:web failover:60 checkpoint pa
        agent A cpus:4 mem:1024
        agent B cpus:4 mem:1024
        settle
        F accept #0 refuse:100000 : launch t1 cpus:1 exec:e
        A update t1 RUNNING
        F ack t1
        master restarts
        --
        operator subscribe
        A back
        settle
        F back
        F reconcile t1@A t2@A t3@B t4
        F reconcile
        F kill t1
        A pong
        --
        after 14s
        F reconcile t3@B t4
        B back
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
            record admit agent B at B
            operators <- AGENT_ADDED B
            B <- SUBSCRIBED B
            F <- OFFERS #0 of A (cpus:4; mem:1024) #1 of B (cpus:4; mem:1024)
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1) with a new executor
            operators <- TASK_UPDATED t1 TASK_RUNNING
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            --
            operator opened at 0 <- HEARTBEAT
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            operators <- FRAMEWORK_ADDED F
            operators <- TASK_ADDED t1
            operators <- FRAMEWORK_UPDATED F
            A <- UPDATE_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- UPDATE t1 TASK_RUNNING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- UPDATE t2 TASK_GONE REASON_RECONCILIATION "Reconciliation: Task is unknown to the agent"
            F <- UPDATE t1 TASK_RUNNING REASON_RECONCILIATION "Reconciliation: Latest task state"
            A <- KILL t1
            --
            F <- OFFERS #1.0 of A (cpus:2.5; mem:1024)
            operators <- AGENT_ADDED B
            B <- SUBSCRIBED B
        "#]],
    );
}

/// The agent of the earlier one has not heard that its end was acknowledged.
#[test]
fn new_master_keeps_the_running_task_of_a_reused_id() {
    for (first, second) in [("A", "B"), ("B", "A")] {
        check(
            &alloc::format!(
                "
                framework F role:web failover:60 checkpoint
                agent A cpus:4 mem:64
                agent B cpus:4 mem:64
                settle
                F accept #0 refuse:100 : launch t1 cpus:1
                A update t1 FINISHED
                A deaf
                F ack t1
                F accept #1 refuse:100 : launch t1 cpus:1
                B update t1 RUNNING
                master restarts
                --
                {first} back
                {second} back
                F back
                A repeats t1
                B repeats t1
                "
            ),
            match first {
                "A" => expect![[r#"
                    record initialize cluster m
                    F <- SUBSCRIBED F
                    F <- HEARTBEAT
                    record admit agent A at A
                    A <- SUBSCRIBED A
                    record admit agent B at B
                    B <- SUBSCRIBED B
                    F <- OFFERS #0 of A (cpus:4; mem:64) #1 of B (cpus:4; mem:64)
                    A <- LAUNCH t1 (cpus:1)
                    F <- UPDATE t1 TASK_FINISHED
                    A <- ACKNOWLEDGE t1
                    B <- LAUNCH t1 (cpus:1)
                    F <- UPDATE t1 TASK_RUNNING
                    --
                    A <- SUBSCRIBED A
                    B <- SUBSCRIBED B
                    B <- UPDATE_FRAMEWORK F
                    F <- SUBSCRIBED F
                    F <- HEARTBEAT
                    A <- ACKNOWLEDGE t1
                    F <- UPDATE t1 TASK_RUNNING
                "#]],
                _ => expect![[r#"
                    record initialize cluster m
                    F <- SUBSCRIBED F
                    F <- HEARTBEAT
                    record admit agent A at A
                    A <- SUBSCRIBED A
                    record admit agent B at B
                    B <- SUBSCRIBED B
                    F <- OFFERS #0 of A (cpus:4; mem:64) #1 of B (cpus:4; mem:64)
                    A <- LAUNCH t1 (cpus:1)
                    F <- UPDATE t1 TASK_FINISHED
                    A <- ACKNOWLEDGE t1
                    B <- LAUNCH t1 (cpus:1)
                    F <- UPDATE t1 TASK_RUNNING
                    --
                    B <- SUBSCRIBED B
                    A <- SUBSCRIBED A
                    B <- UPDATE_FRAMEWORK F
                    F <- SUBSCRIBED F
                    F <- HEARTBEAT
                    A <- ACKNOWLEDGE t1
                    F <- UPDATE t1 TASK_RUNNING
                "#]],
            },
        );
    }
}

/// It is unknown which of the two updates its framework has received: both are sent.
#[test]
fn a_new_master_reports_both_terminations_of_a_reused_task_id() {
    check(
        "
        framework F role:web failover:60 checkpoint
        agent A cpus:4 mem:64
        agent B cpus:4 mem:64
        ...
        settle
        F accept #0 refuse:100 : launch t1 cpus:1
        A update t1 FINISHED
        A deaf
        F ack t1
        F accept #1 refuse:100 : launch t1 cpus:1
        B update t1 RUNNING latest:FAILED
        master restarts
        --
        A back
        B back
        F back
        A repeats t1
        B repeats t1
        F ack t1
        B update t1 FAILED
        F ack t1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:64) #1 of B (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            B <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_RUNNING
            --
            A <- SUBSCRIBED A
            B <- SUBSCRIBED B
            A <- UPDATE_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- UPDATE t1 TASK_FINISHED
            F <- UPDATE t1 TASK_RUNNING
            B <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FAILED
            B <- ACKNOWLEDGE t1
        "#]],
    );
}

#[test]
fn agents_missing_at_a_new_master_are_marked_unreachable() {
    check(
        "
        framework F role:web failover:6000 checkpoint pa
        agent A cpus:4 mem:1024
        ...
        settle
        master restarts
        --
        F back
        after 14s
        F reconcile t1@A t1
        skip 600s
        F reconcile t1@A t1
        A back
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            --
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record mark unreachable agent A since 1000000600.000
            F <- FAILURE of A
            F <- UPDATE t1 TASK_UNREACHABLE REASON_RECONCILIATION "Reconciliation: Task is unreachable"
            F <- UPDATE t1 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
            record mark reachable agent A at A
            A <- SUBSCRIBED A
        "#]],
    );
}

#[test]
fn framework_id_unknown_to_the_master_is_kept() {
    check(
        "
        framework F role:web id:mine
        agent A cpus:1
        settle
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:1)
        "#]],
    );
}

#[test]
fn removed_framework_is_shut_down_on_reregistering_agents() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 : launch t1 cpus:1
        A close
        F teardown
        A back
        after 1s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1)
            record remove framework F
            F closed
            A <- SUBSCRIBED A
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}

/// By live tasks, and by terminal ones of executors that an agent still has.
#[test]
fn a_new_master_recovers_share_cgroups() {
    check(
        "
        agent A cpus:8 mem:1024 disk:1000
        framework F role:web failover:1000 checkpoint
        ...
        settle
        F accept #0 refuse:0 : group e1 a cpus:1 mem:32 share:false fw:m-0000 ; group e2 b cpus:1 mem:32 fw:m-0000 ; group e3 c cpus:1 mem:32 executor-share:false fw:m-0000
        A update a FINISHED
        A completed a
        F ack a
        after 1s
        F accept #1 refuse:0 : group e1 a2 cpus:1 mem:32 fw:m-0000 ; group e2 b2 cpus:1 mem:32 share:false fw:m-0000
        master restarts
        A back
        F back
        settle
        --
        after 1s
        F accept #m1-O0 refuse:0 : group e1 a3 cpus:1 mem:32 fw:m-0000 ; group e2 b3 cpus:1 mem:32 share:false fw:m-0000 ; group e3 c3 cpus:1 mem:32 share:true executor-share:false fw:m-0000
        after 1s
        F accept #m1-O1 refuse:0 : group e1 a4 cpus:1 mem:32 share:false fw:m-0000
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:8; mem:1024; disk:1000)
            A <- LAUNCH_GROUP a with a new executor
            A <- LAUNCH_GROUP b with a new executor
            A <- LAUNCH_GROUP c with a new executor
            F <- UPDATE a TASK_FINISHED
            A <- ACKNOWLEDGE a
            F <- OFFERS #1 of A (cpus:5.7; mem:864; disk:904)
            F <- UPDATE a2 TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'a2' has 'container.linux_info.share_cgroups' true, but under executor 'e1' it is false for all tasks: use that, or another executor id"
            F <- UPDATE b2 TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'b2' has 'container.linux_info.share_cgroups' false, but under executor 'e2' it is true for all tasks: use that, or another executor id"
            A <- SUBSCRIBED A
            A <- UPDATE_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #1.0 of A (cpus:5.7; mem:864; disk:904)
            --
            F <- UPDATE a3 TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'a3' has 'container.linux_info.share_cgroups' true, but under executor 'e1' it is false for all tasks: use that, or another executor id"
            F <- UPDATE b3 TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'b3' has 'container.linux_info.share_cgroups' false, but under executor 'e2' it is true for all tasks: use that, or another executor id"
            F <- UPDATE c3 TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'c3' has 'container.linux_info.share_cgroups' true, but under executor 'e3' it is false for all tasks: use that, or another executor id"
            F <- OFFERS #1.1 of A (cpus:5.7; mem:864; disk:904)
            A <- LAUNCH_GROUP a4 with its executor
        "#]],
    );
}

/// Agents keep it for frameworks without tasks there, whichever of them registers first.
#[test]
fn agents_report_share_cgroups_to_a_new_master() {
    check(
        "
        agent A cpus:8 mem:1024 disk:1000
        framework F role:web failover:1000 checkpoint
        settle
        A remembers F own false
        A remembers F shared true
        ...
        master restarts
        A back
        F back
        settle
        F accept #m1-O0 refuse:0 : group own a cpus:1 mem:32 fw:m-0000 ; group shared b cpus:1 mem:32 share:false fw:m-0000
        master restarts
        F back
        A back
        settle
        F accept #m11-O0 refuse:0 : group own a cpus:1 mem:32 fw:m-0000 ; group shared b cpus:1 mem:32 fw:m-0000
        ",
        expect![[r#"
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #1.0 of A (cpus:8; mem:1024; disk:1000)
            F <- UPDATE a TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'a' has 'container.linux_info.share_cgroups' true, but under executor 'own' it is false for all tasks: use that, or another executor id"
            F <- UPDATE b TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'b' has 'container.linux_info.share_cgroups' false, but under executor 'shared' it is true for all tasks: use that, or another executor id"
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            A <- SUBSCRIBED A
            F <- OFFERS m11-O0 of A (cpus:8; mem:1024; disk:1000)
            F <- UPDATE a TASK_ERROR REASON_TASK_GROUP_INVALID "Task 'a' has 'container.linux_info.share_cgroups' true, but under executor 'own' it is false for all tasks: use that, or another executor id"
            A <- LAUNCH_GROUP b with a new executor
        "#]],
    );
}
