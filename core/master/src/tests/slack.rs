//! Slack: reserved but idle resources are lent, marked as such, and returned to their owner.

use expect_test::expect;

use super::{check, check_with};
use crate::{Config, Counter};

#[test]
fn idle_reservations_are_lent_to_frameworks_with_revocable_resources() {
    check(
        "
        agent A cpus:1 cpus(web):4 mem(web):64
        framework F role:ads revocable
        ...
        framework G role:ops
        settle
        F shows
        F accept #1 : launch t1 cpus~:2 mem~:32
        ",
        expect![[r##"
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            F <- OFFERS #1 of A (cpus{REV: ALLOCATION_SLACK}:4; mem{REV: ALLOCATION_SLACK}:64)
            G <- OFFERS #0 of A (cpus:1)
            {"type":"OFFERS","offers":{"offers":[{"id":{"value":"#1"},"framework_id":{"value":"F"},"agent_id":{"value":"A"},"hostname":"A","url":{"scheme":"http","address":{"hostname":"A","ip":"A","port":5051},"path":"/slave(1)"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":4.0},"role":"*","revocable":{"type":"ALLOCATION_SLACK"}},{"name":"mem","type":"SCALAR","scalar":{"value":64.0},"role":"*","revocable":{"type":"ALLOCATION_SLACK"}}]}]}}
            A <- LAUNCH t1 (cpus{REV: ALLOCATION_SLACK}:2; mem{REV: ALLOCATION_SLACK}:32)
        "##]],
    );
}

#[test]
fn slack_cannot_be_reserved_made_into_volumes_or_mixed() {
    check(
        "
        agent A cpus:4 cpus(web):4 disk(web):64
        framework F role:ads revocable
        ...
        settle
        F accept #0 refuse:0 : reserve id:o1 cpus(ads)~:1 ; create id:o2 disk(ads)~@v:8 ; launch t1 cpus~:1 cpus:1
        ; launch t2 cpus~:1 exec:e ; launch t3 cpus~:5
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:4; cpus{REV: ALLOCATION_SLACK}:4; disk{REV: ALLOCATION_SLACK}:64)
            F <- UPDATE_OPERATION_STATUS o1 OPERATION_ERROR "Resource 'cpus(ads){REV: ALLOCATION_SLACK}:1' is invalid: Dynamically reserved resources cannot be revocable"
            F <- UPDATE_OPERATION_STATUS o2 OPERATION_ERROR "Resource 'disk(ads)[v:data]{REV: ALLOCATION_SLACK}:8' is invalid: Persistent volumes cannot be created from revocable resources"
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "Task mixes revocable and non-revocable resources: Cannot use both revocable and non-revocable 'cpus' at the same time"
            F <- UPDATE t2 TASK_ERROR REASON_TASK_INVALID "Task and its executor mix revocable and non-revocable resources: Cannot use both revocable and non-revocable 'cpus' at the same time"
            F <- UPDATE t3 TASK_ERROR REASON_TASK_INVALID "Total resources cpus{REV: ALLOCATION_SLACK}:5 required by task and its executor is more than available cpus:4; cpus{REV: ALLOCATION_SLACK}:4; disk{REV: ALLOCATION_SLACK}:64"
        "#]],
    );
}

#[test]
fn owner_reclaims_from_the_youngest_slack_offers_first() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus~:1
        framework W role:web
        after 2s
        W accept #1 : launch w1 cpus(web):4
        --
        A update t1 GONE preempted
        F ack t1
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus{REV: ALLOCATION_SLACK}:4)
            A <- LAUNCH t1 (cpus{REV: ALLOCATION_SLACK}:1)
            W <- SUBSCRIBED W
            W <- HEARTBEAT
            F <- OFFERS #2 of A (cpus{REV: ALLOCATION_SLACK}:3)
            W <- OFFERS #1 of A (cpus(web):4)
            A <- LAUNCH w1 (cpus(web):4)
            F <- RESCIND #2
            --
            F <- UPDATE t1 TASK_GONE REASON_CONTAINER_PREEMPTED
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

#[test]
fn slack_is_not_reclaimed_while_enough_is_idle() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        settle
        ...
        F accept #0 refuse:60 : launch t1 cpus~:2
        framework W role:web
        settle
        W accept #1 : launch w1 cpus(web):2
        after 2s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus{REV: ALLOCATION_SLACK}:2)
            W <- SUBSCRIBED W
            W <- HEARTBEAT
            W <- OFFERS #1 of A (cpus(web):4)
            A <- LAUNCH w1 (cpus(web):2)
        "#]],
    );
}

#[test]
fn unreserve_rescinds_slack_offers() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        ...
        framework W role:web
        settle
        W accept #0 : unreserve cpus(web):1
        ",
        expect![[r#"
            W <- SUBSCRIBED W
            W <- HEARTBEAT
            F <- OFFERS #1 of A (cpus{REV: ALLOCATION_SLACK}:4)
            W <- OFFERS #0 of A (cpus(web):4)
            A <- APPLY_OPERATION UNRESERVE
            F <- RESCIND #1
        "#]],
    );
}

#[test]
fn reduced_reservations_rescind_slack_offers() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        settle
        ...
        A resources cpus(web):3
        settle
        ",
        expect![[r#"
            F <- RESCIND #0
            F <- OFFERS #1 of A (cpus{REV: ALLOCATION_SLACK}:3)
        "#]],
    );
}

#[test]
fn a_new_master_recovers_loans_from_agents() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        settle
        ...
        F accept #0 : launch t1 cpus~:3
        A update t1 RUNNING
        --
        master restarts
        A back
        framework G role:ops revocable
        settle
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus{REV: ALLOCATION_SLACK}:3)
            F <- UPDATE t1 TASK_RUNNING
            --
            A <- SUBSCRIBED A
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            G <- OFFERS #1.0 of A (cpus{REV: ALLOCATION_SLACK}:1)
        "#]],
    );
}

#[test]
fn slack_can_be_disabled_and_roles_can_opt_out() {
    let off = Config { allocation_slack: false, ..Config::default() };
    let script = "
        agent A cpus(web):4 cpus(ops):1
        framework F role:ads revocable
        settle
        ";
    check_with(
        off,
        script,
        expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        F <- SUBSCRIBED F
        F <- HEARTBEAT
    "#]],
    );
    let opt_out = Config { allocation_slack_opt_out: std::vec!["web".into()], ..Config::default() };
    check_with(
        opt_out,
        script,
        expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        F <- SUBSCRIBED F
        F <- HEARTBEAT
        F <- OFFERS #0 of A (cpus{REV: ALLOCATION_SLACK}:1)
    "#]],
    );
}

#[test]
fn evictions_are_counted() {
    let mut script = super::Script::new(Config::default());
    script.play(
        "
        agent A cpus(web):4 cpus:1
        framework F role:ads revocable
        settle
        F accept #0 : launch t1 cpus~:3 ; launch t2 cpus:1
        A update t1 LOST preempted
        A update t2 LOST preempted
        ",
    );
    assert_eq!(script.state().counters.get(Counter::SlackEvictions), 1);
}

#[test]
fn revocable_without_a_type_uses_all_offered_kinds() {
    check(
        "
        agent A cpus:1 mem:64 cpus(web):4 mem^:32
        framework F role:ads revocable
        ...
        settle
        F accept #0 : launch t1 cpus?:2 mem?:32 ; launch t2 cpus?:3
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:1; cpus{REV: ALLOCATION_SLACK}:4; mem:64; mem{REV: USAGE_SLACK}:32)
            A <- LAUNCH t1 (cpus{REV: ALLOCATION_SLACK}:2; mem{REV: USAGE_SLACK}:32)
            F <- UPDATE t2 TASK_ERROR REASON_TASK_INVALID "Total resources cpus{REV: ALLOCATION_SLACK}:3 required by task and its executor is more than available cpus:1; cpus{REV: ALLOCATION_SLACK}:2; mem:64"
        "#]],
    );
}

#[test]
fn revocable_without_a_type_uses_the_remaining_kinds() {
    check(
        "
        agent A cpus:1 cpus(web):4 cpus^:3 mem(web):64 mem^:32 ports(web):[1-9] cpus?:1
        framework F role:ads revocable
        ...
        settle
        F accept #0 refuse:0 : launch t1 cpus?:2 mem?:16 ; launch t2 cpus?:3 mem?:32 ports?:[3-4] ; launch t3 cpus?:4
        ; launch t4 cpus^:1 cpus?:1 ; launch t5 cpus?:3 mem?:1 ; launch t6 ports?:[1-9]
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:1; cpus{REV}:1; cpus{REV: USAGE_SLACK}:3; cpus{REV: ALLOCATION_SLACK}:4; mem{REV: USAGE_SLACK}:32; mem{REV: ALLOCATION_SLACK}:64; ports{REV: ALLOCATION_SLACK}:[1-9])
            A <- LAUNCH t1 (cpus{REV}:1; cpus{REV: USAGE_SLACK}:1; mem{REV: USAGE_SLACK}:16)
            A <- LAUNCH t2 (cpus{REV: USAGE_SLACK}:2; cpus{REV: ALLOCATION_SLACK}:1; mem{REV: USAGE_SLACK}:16; mem{REV: ALLOCATION_SLACK}:16; ports{REV: ALLOCATION_SLACK}:[3-4])
            F <- UPDATE t3 TASK_ERROR REASON_TASK_INVALID "Total resources cpus{REV: ALLOCATION_SLACK}:4 required by task and its executor is more than available cpus:1; cpus{REV: ALLOCATION_SLACK}:3; mem{REV: ALLOCATION_SLACK}:48; ports{REV: ALLOCATION_SLACK}:[1-2, 5-9]"
            F <- UPDATE t4 TASK_ERROR REASON_TASK_INVALID "Total resources cpus{REV: USAGE_SLACK}:1; cpus{REV: ALLOCATION_SLACK}:1 required by task and its executor is more than available cpus:1; cpus{REV: ALLOCATION_SLACK}:3; mem{REV: ALLOCATION_SLACK}:48; ports{REV: ALLOCATION_SLACK}:[1-2, 5-9]"
            A <- LAUNCH t5 (cpus{REV: ALLOCATION_SLACK}:3; mem{REV: ALLOCATION_SLACK}:1)
            F <- UPDATE t6 TASK_ERROR REASON_TASK_INVALID "Total resources ports{REV: ALLOCATION_SLACK}:[1-9] required by task and its executor is more than available cpus:1; mem{REV: ALLOCATION_SLACK}:47; ports{REV: ALLOCATION_SLACK}:[1-2, 5-9]"
        "#]],
    );
}

#[test]
fn task_groups_without_kinds_use_all_kinds() {
    check(
        "
        agent A cpus(web):4 cpus^:3 mem(web):128 mem^:64 disk(web):64
        framework F role:ads revocable
        ...
        settle
        F accept #0 refuse:0 : group e t1 t2 cpus?:1.5 mem?:32 executor:revocable fw:m-0000
        after 2s
        F accept #1 refuse:0 : group e t3 cpus?:1 mem?:16 executor:revocable fw:m-0000
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus{REV: USAGE_SLACK}:3; cpus{REV: ALLOCATION_SLACK}:4; mem{REV: USAGE_SLACK}:64; mem{REV: ALLOCATION_SLACK}:128; disk{REV: ALLOCATION_SLACK}:64)
            A <- LAUNCH_GROUP t1 t2 with a new executor
            F <- OFFERS #1 of A (cpus{REV: ALLOCATION_SLACK}:3.9; mem{REV: ALLOCATION_SLACK}:96; disk{REV: ALLOCATION_SLACK}:32)
            A <- LAUNCH_GROUP t3 with its executor
        "#]],
    );
}

#[test]
fn a_new_estimate_rescinds_offers_of_the_old_one() {
    check(
        "
        agent A cpus:2 mem:64
        framework F role:ads revocable
        framework G role:ops
        ...
        settle
        A resources cpus:2 mem:64 cpus^:1
        settle
        A resources cpus:2 mem:64 cpus^:2
        settle
        A resources cpus:3 mem:64 cpus^:2
        ",
        expect![[r#"
            F <- OFFERS #0 of A (cpus:2; mem:64)
            F <- OFFERS #1 of A (cpus{REV: USAGE_SLACK}:1)
            F <- RESCIND #1
            F <- OFFERS #2 of A (cpus{REV: USAGE_SLACK}:2)
            F <- RESCIND #0
            F <- RESCIND #2
        "#]],
    );
}

#[test]
fn the_time_to_reclaim_slack_is_reported() {
    check(
        "
        agent A cpus(web):4
        framework F role:ads revocable
        settle
        F accept #0 refuse:60 : launch t1 cpus~:3
        framework W role:web
        settle
        ...
        W accept #1 refuse:60 : launch w1 cpus(web):2
        settle
        after 3s
        A update t1 GONE preempted
        settle
        ",
        expect![[r#"
            A <- LAUNCH w1 (cpus(web):2)
            F <- UPDATE t1 TASK_GONE REASON_CONTAINER_PREEMPTED
            slack of A reclaimed after 3s
            F <- OFFERS #2 of A (cpus{REV: ALLOCATION_SLACK}:2)
        "#]],
    );
}

#[test]
fn a_group_cannot_mix_slack_with_resources_of_its_executor() {
    check(
        "
        agent A cpus:4 mem:256 disk:64 cpus(web):4
        framework F role:ads revocable
        settle
        ...
        F accept #0 refuse:0 : group e g1 g2 cpus~:1 mem:32 fw:m-0000
        ",
        expect![[r#"
            F <- UPDATE g1 TASK_ERROR REASON_TASK_GROUP_INVALID "Task and its executor mix revocable and non-revocable resources: Cannot use both revocable and non-revocable 'cpus' at the same time"
            F <- UPDATE g2 TASK_ERROR REASON_TASK_GROUP_INVALID "Task and its executor mix revocable and non-revocable resources: Cannot use both revocable and non-revocable 'cpus' at the same time"
        "#]],
    );
}
