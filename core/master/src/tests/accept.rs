//! ACCEPT: offers, launches, what is left.

use expect_test::expect;

use super::check;

#[test]
fn a_task_from_offer_to_acknowledged_end() {
    check(
        "
        agent A cpus:4 mem:1024
        framework F role:web
        settle
        F accept #0 : launch t1 cpus:1 mem:128
        A update t1 RUNNING
        F ack t1
        A update t1 FINISHED
        F ack t1
        after 10s
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
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
