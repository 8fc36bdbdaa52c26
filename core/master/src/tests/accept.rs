//! ACCEPT: launches in order against what the offers hold, and what is left goes back.

use expect_test::expect;

use super::check;

#[test]
fn task_lifecycle_from_offer_to_acknowledged_termination() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        ...
        settle
        F accept #0 : launch t1 cpus:1 mem:128
        A update t1 RUNNING
        F ack t1
        A update t1 FINISHED
        F ack t1
        after 10s
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1; mem:128)
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn operations_run_in_order_and_failures_do_not_stop_later_ones() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        ...
        F accept #0 refuse:0 : launch t1 cpus:3 mem:128 ; launch t2 cpus:3 mem:128
        ; launch t3 cpus:1 mem:128 ; launch t3 cpus:0.1 mem:1
        after 1s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:3; mem:128)
            F <- UPDATE t2 TASK_ERROR REASON_TASK_INVALID "Total resources cpus:3; mem:128 required by task and its executor is more than available cpus:1; mem:896"
            A <- LAUNCH t3 (cpus:1; mem:128)
            F <- UPDATE t3 TASK_ERROR REASON_TASK_INVALID "Task has duplicate ID: t3"
            F <- OFFERS #1 of A (mem:768)
        "#]],
    );
}

#[test]
fn remaining_resources_are_declined_with_the_filter() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        ...
        F accept #0 refuse:30 : launch t1 cpus:1 mem:128
        after 29s
        --
        after 2s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1; mem:128)
            F <- HEARTBEAT
            A <- PING
            --
            F <- HEARTBEAT
            A <- PING
            F <- OFFERS #1 of A (cpus:3; mem:896)
        "#]],
    );
}

#[test]
fn accept_without_operations_declines_the_offer() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        ...
        F accept #0 refuse:10 :
        after 9s
        --
        after 2s
        ",
        expect![[r#"
            --
            F <- OFFERS #1 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn launch_with_invalid_offers_is_rejected() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web pa
        framework G role:ops
        ...
        settle
        F accept #9 : launch t1 cpus:1
        G accept #9 : launch t1 cpus:1
        F accept : launch t1 cpus:1
        F accept #0 #0 : launch t2 cpus:1 ; reserve cpus(web):1 id:r1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            F <- UPDATE t1 TASK_DROPPED REASON_INVALID_OFFERS "Task launched with invalid offers: Offer #9 is no longer valid"
            G <- UPDATE t1 TASK_LOST REASON_INVALID_OFFERS "Task launched with invalid offers: Offer #9 is no longer valid"
            F <- UPDATE t1 TASK_DROPPED REASON_INVALID_OFFERS "Task launched with invalid offers: No offers specified"
            F <- UPDATE t2 TASK_DROPPED REASON_INVALID_OFFERS "Task launched with invalid offers: Duplicate offer #0 in offer list"
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_ERROR "Operation attempted with invalid offers: Duplicate offer #0 in offer list"
        "#]],
    );
}

#[test]
fn offer_of_another_framework_cannot_be_used() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web pa
        ...
        settle
        framework G role:ops
        G accept #0 : launch t1 cpus:1
        G decline #0
        F accept #0 : launch t2 cpus:1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            G <- UPDATE t1 TASK_LOST REASON_INVALID_OFFERS "Task launched with invalid offers: Offer #0 belongs to another framework"
            A <- LAUNCH t2 (cpus:1)
        "#]],
    );
}

#[test]
fn offers_of_one_agent_can_be_combined() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        ...
        F accept #0 refuse:0 : launch t1 cpus:3 mem:512
        A update t1 RUNNING
        F ack t1
        after 1s
        A update t1 FINISHED
        F ack t1
        after 1s
        F accept #1 #2 : launch t2 cpus:4 mem:1024
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:3; mem:512)
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- OFFERS #1 of A (cpus:1; mem:512)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #2 of A (cpus:3; mem:512)
            A <- LAUNCH t2 (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn offers_of_different_agents_cannot_be_combined() {
    check(
        "
        agent A cpus:4 mem:1024
        agent B cpus:4 mem:1024
        framework F role:web
        ...
        settle
        F accept #0 #1 : launch t1 cpus:1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024) #1 of B (cpus:4; mem:1024)
            F <- UPDATE t1 TASK_LOST REASON_INVALID_OFFERS "Task launched with invalid offers: Offers of several agents: A and B"
        "#]],
    );
}

#[test]
fn executor_resources_are_allocated_once_until_it_exits() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        ...
        F accept #0 refuse:0 : launch t1 cpus:1 mem:1 exec:e ; launch t2 cpus:1 mem:1 exec:e
        after 1s
        A update t1 FINISHED
        F ack t1
        A update t2 FINISHED
        F ack t2
        after 1s
        A exited F e
        A exited F e
        after 1s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1; mem:1) with a new executor
            A <- LAUNCH t2 (cpus:1; mem:1) with its executor
            F <- OFFERS #1 of A (cpus:1.5; mem:1022)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- UPDATE t2 TASK_FINISHED
            A <- ACKNOWLEDGE t2
            F <- OFFERS #2 of A (cpus:2; mem:2)
            F <- FAILURE of A e 0
            F <- OFFERS #3 of A (cpus:0.5)
        "#]],
    );
}

#[test]
fn task_group_launch_is_atomic() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web
        ...
        settle
        F accept #0 refuse:0 : group e g1 g2 cpus:1 mem:32 fw:m-0000
        after 1s
        F accept #1 : group e2 g3 g4 cpus:1 mem:32 fw:m-0000
        F reconcile
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- LAUNCH_GROUP g1 g2 with a new executor
            F <- OFFERS #1 of A (cpus:1.9; mem:928; disk:68)
            F <- UPDATE g3 TASK_ERROR REASON_TASK_GROUP_INVALID "Total resources cpus:2.1; mem:96; disk:32 required by task group and its executor are more than available cpus:1.9; mem:928; disk:68"
            F <- UPDATE g4 TASK_ERROR REASON_TASK_GROUP_INVALID "Total resources cpus:2.1; mem:96; disk:32 required by task group and its executor are more than available cpus:1.9; mem:928; disk:68"
            F <- UPDATE g1 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
            F <- UPDATE g2 TASK_STAGING REASON_RECONCILIATION "Reconciliation: Latest task state"
        "#]],
    );
}
