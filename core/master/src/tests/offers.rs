//! Offers: one event per framework and turn, rescinded when they end, none for suppressed roles.

use expect_test::expect;

use super::check;

#[test]
fn offers_of_all_agents_are_sent_in_one_event() {
    check(
        "
        agent A cpus:1 mem:64
        agent B cpus:2 mem:64
        framework F role:web
        settle
        F decline #0 #1 refuse:2
        after 1s
        --
        after 3s
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record admit agent B at B
            B <- SUBSCRIBED B
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64) #1 of B (cpus:2; mem:64)
            --
            F <- OFFERS #2 of A (cpus:1; mem:64) #3 of B (cpus:2; mem:64)
        "#]],
    );
}

#[test]
fn suppressed_framework_gets_offers_after_revive() {
    check(
        "
        agent A cpus:1 mem:64
        framework F role:web
        settle
        F suppress
        F decline #0 refuse:0
        after 10s
        --
        F suppress other
        F revive other
        after 4s
        --
        F revive
        settle
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            --
            --
            F <- OFFERS #1 of A (cpus:1; mem:64)
        "#]],
    );
}

#[test]
fn a_framework_can_start_suppressed() {
    check(
        "
        agent A cpus:1 mem:64
        framework F multi role:web role:ops suppress:web
        settle
        framework F multi role:web suppress:ops
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            F <- ERROR "Suppressed role 'ops' is not among the framework's roles"
            F closed
        "#]],
    );
}

#[test]
fn removed_role_rescinds_its_offers() {
    check(
        "
        agent A cpus:1 mem:64
        operator subscribe
        framework F multi role:web role:ops suppress:ops
        settle
        F roles ops
        after 1s
        F roles ops
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            operator opened at 0 <- HEARTBEAT
            operators <- FRAMEWORK_ADDED F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            F <- RESCIND #0
            operators <- FRAMEWORK_UPDATED F
            F <- 200
            F <- OFFERS #1 of A (cpus:1; mem:64)
            F <- 200
        "#]],
    );
}

#[test]
fn multi_role_frameworks_receive_the_role_of_an_offer() {
    check(
        "
        agent A cpus:1 mem:64
        framework F multi role:web
        settle
        F accept #0 : launch t1 cpus:1
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            A <- LAUNCH t1 (cpus:1)
        "#]],
    );
}

#[test]
fn ephemeral_ports_are_not_offered() {
    check(
        "
        agent A cpus:1 mem:64 ephemeral_ports:[1-10]
        framework F role:web
        settle
        F accept #0 : launch t1 cpus:1
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            A <- LAUNCH t1 (cpus:1)
        "#]],
    );
}

#[test]
fn idle_streams_receive_heartbeats() {
    check(
        "
        framework F role:web failover:100
        operator subscribe
        after 31s
        --
        F close
        after 31s
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            operator opened at 0 <- HEARTBEAT
            F <- HEARTBEAT
            operators <- HEARTBEAT
            F <- HEARTBEAT
            operators <- HEARTBEAT
            --
            operators <- HEARTBEAT
            operators <- HEARTBEAT
        "#]],
    );
}
