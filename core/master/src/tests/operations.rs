//! Operations: reservations and volumes, made at once and reported later.

use expect_test::expect;

use super::check;

#[test]
fn reserve_create_and_launch_work_in_one_accept() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 disk(web):50
        ; create disk(web)@v1:50 ; launch t1 cpus(web):1 disk(web)@v1:50 mem:64
        after 1s
        A update t1 RUNNING
        A operation FINISHED
        A operation FINISHED
        F ack t1
        A update t1 FINISHED
        F ack t1
        after 1s
        F accept #1 #2 : destroy disk(web)@v1:50 ; unreserve cpus(web):2 disk(web):50
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION CREATE
            A <- LAUNCH t1 (cpus(web):1; mem:64; disk(web)[v1:data]:50)
            F <- OFFERS #1 of A (cpus:2; cpus(web):1; mem:960; disk:50)
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE_OPERATION
            A <- ACKNOWLEDGE_OPERATION
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #2 of A (cpus(web):1; mem:64; disk(web)[v1:data]:50)
            A <- APPLY_OPERATION DESTROY
            A <- APPLY_OPERATION UNRESERVE
        "#]],
    );
}

#[test]
fn operation_feedback_is_sent_until_acknowledged() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine
        settle
        ...
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1
        F reconcile-operations
        A operation FINISHED
        F reconcile-operations r1 r2@A r3@nobody r4
        A operation FINISHED
        F ack-operation r1
        F reconcile-operations r1@A
        F reconcile-operations
        ",
        expect![[r#"
            A <- APPLY_OPERATION RESERVE
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_PENDING
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            F <- UPDATE_OPERATION_STATUS r2 OPERATION_UNKNOWN
            F <- UPDATE_OPERATION_STATUS r3 OPERATION_UNKNOWN
            F <- UPDATE_OPERATION_STATUS r4 OPERATION_UNKNOWN
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            A <- ACKNOWLEDGE_OPERATION
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_UNKNOWN
        "#]],
    );
}

#[test]
fn operation_feedback_requires_the_agent_capability() {
    check(
        "
        agent A cpus:4 mem:1024 no-feedback
        framework F role:web refine
        ...
        settle
        F accept #0 : reserve cpus(web):2 id:r1 ; launch t1 cpus:1 id:l1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_ERROR "The agent does not support operation feedback, so 'id' must not be set"
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "'id' is not supported for launches"
        "#]],
    );
}

#[test]
fn operation_without_its_resources_is_rejected() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine
        settle
        ...
        F accept #0 : reserve cpus(web):9 id:r1 ; unreserve cpus(web):1 id:r2
        ; reserve cpus(web):9 ; launch t1 cpus:1
        ",
        expect![[r#"
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_ERROR "cpus:4; mem:1024; disk:100 does not contain cpus:9"
            F <- UPDATE_OPERATION_STATUS r2 OPERATION_ERROR "cpus:4; mem:1024; disk:100 does not contain cpus(web):1"
            A <- LAUNCH t1 (cpus:1)
        "#]],
    );
}

#[test]
fn volumes_are_grown_and_shrunk() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine
        settle
        ...
        F accept #0 refuse:0 : reserve disk(web):60 ; create disk(web)@v1:50
        ; grow disk(web)@v1:50 disk(web):10 id:g ; launch t1 disk(web)@v1:60 cpus:1
        after 1s
        F accept #1 refuse:0 : shrink disk(web)@v1:60 20 id:s
        after 1s
        ",
        expect![[r#"
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION CREATE
            A <- APPLY_OPERATION GROW_VOLUME
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "Total resources cpus:1; disk(web)[v1:data]:60 required by task and its executor is more than available cpus:4; mem:1024; disk:40"
            F <- OFFERS #1 of A (cpus:4; mem:1024; disk:40; disk(web)[v1:data]:60)
            A <- APPLY_OPERATION SHRINK_VOLUME
            F <- OFFERS #2 of A (cpus:4; mem:1024; disk:40; disk(web):20; disk(web)[v1:data]:40)
        "#]],
    );
}

#[test]
fn pending_operations_of_an_unreachable_agent_are_reported() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine checkpoint
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1
        A close
        A back
        A close
        skip 100s
        F reconcile-operations r1@A
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- APPLY_OPERATION RESERVE
            A <- SUBSCRIBED A missing 1 operations
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_UNREACHABLE
            F <- FAILURE of A
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_UNREACHABLE
        "#]],
    );
}

#[test]
fn frameworks_without_refinement_get_the_old_reservation_format() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 ; launch t1 cpus(web):1
        after 1s
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- APPLY_OPERATION RESERVE
            A <- LAUNCH t1 (cpus(web):1)
            F <- OFFERS #1 of A (cpus:2; cpus(web):1; mem:1024; disk:100)
        "#]],
    );
}

#[test]
fn agent_resources_reported_before_an_operation_are_adjusted() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine checkpoint
        settle
        ...
        F accept #0 refuse:0 : reserve cpus(web):2 disk(web):50 ; create disk(web)@v1:50
        A resources cpus:4 mem:2048 disk:100
        after 1s
        A operation FINISHED
        A operation FINISHED
        A resources cpus:2 cpus(web):2 mem:2048 disk:50 disk(web)@v1:50
        after 1s
        ",
        expect![[r#"
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION CREATE
            F <- OFFERS #1 of A (cpus:2; cpus(web):2; mem:2048; disk:50; disk(web)[v1:data]:50)
            A <- ACKNOWLEDGE_OPERATION
            A <- ACKNOWLEDGE_OPERATION
        "#]],
    );
}

#[test]
fn operation_unknown_to_the_agent_is_dropped() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web refine checkpoint
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1 ; launch t1 cpus(web):1
        A lost t1
        A close
        A back
        settle
        A update t1 DROPPED of:F
        A operation DROPPED
        A resources cpus:4 mem:1024
        after 1s
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- APPLY_OPERATION RESERVE
            A <- LAUNCH t1 (cpus(web):1)
            A <- SUBSCRIBED A missing t1 missing 1 operations
            F <- OFFERS #1 of A (cpus:2; cpus(web):1; mem:1024)
            F <- UPDATE t1 TASK_DROPPED
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_DROPPED
            F <- RESCIND #1
            F <- OFFERS #2 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn failed_operation_releases_its_resources() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web refine checkpoint
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1
        A operation FAILED
        A resources cpus:4 mem:1024
        F ack-operation r1
        after 1s
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- APPLY_OPERATION RESERVE
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FAILED
            A <- ACKNOWLEDGE_OPERATION
            F <- OFFERS #1 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn operations_of_a_removed_framework_are_acknowledged_by_the_master() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine checkpoint
        settle
        ...
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1 ; reserve cpus(web):1 id:r2
        A operation FINISHED
        F teardown
        A operation FINISHED
        ",
        expect![[r#"
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION RESERVE
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            record remove framework F
            A <- ACKNOWLEDGE_OPERATION
            F closed
            A <- ACKNOWLEDGE_OPERATION
        "#]],
    );
}

#[test]
fn new_master_recovers_operations_from_the_agent() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web refine checkpoint failover:100
        ...
        settle
        F accept #0 refuse:0 : reserve cpus(web):2 id:r1 ; reserve cpus(web):1 id:r2
        A operation FINISHED
        A keeps
        master restarts
        --
        A back
        F back
        F reconcile-operations
        F reconcile-operations r1 r2
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION RESERVE
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            --
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            F <- UPDATE_OPERATION_STATUS r2 OPERATION_PENDING
            F <- UPDATE_OPERATION_STATUS r1 OPERATION_FINISHED
            F <- UPDATE_OPERATION_STATUS r2 OPERATION_PENDING
        "#]],
    );
}

/// A shared volume is in offers of several frameworks at once.
#[test]
fn destroy_rescinds_other_offers_of_a_shared_volume() {
    check(
        "
        agent A cpus:4 mem:1024 disk:100
        framework F role:web shares
        ...
        settle
        F accept #0 refuse:1000 : reserve disk(web):50 ; create disk(web)@shared1:50 ; launch t1 cpus:1 mem:64
        framework G role:web shares
        after 2s
        --
        A update t1 FINISHED
        G suppress
        after 2s
        --
        F accept #2 : destroy disk(web)@shared1:50
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; mem:1024; disk:100)
            A <- APPLY_OPERATION RESERVE
            A <- APPLY_OPERATION CREATE
            A <- LAUNCH t1 (cpus:1; mem:64)
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            G <- OFFERS #1 of A (cpus:3; mem:960; disk:50; disk(web)[shared1:data]<SHARED>:50<1>)
            --
            F <- UPDATE t1 TASK_FINISHED
            F <- OFFERS #2 of A (cpus:1; mem:64; disk(web)[shared1:data]<SHARED>:50<1>)
            --
            G <- RESCIND #1
            A <- APPLY_OPERATION DESTROY
        "#]],
    );
}
