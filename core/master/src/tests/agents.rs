//! Agents: admission, pings, partitions, coming back, leaving.

use expect_test::expect;

use super::script::domain;
use super::{check, check_with};
use crate::Config;

#[test]
fn an_agent_is_recorded_before_it_is_subscribed() {
    check(
        "
        operator subscribe
        agent A cpus:1
        agent B cpus:1
        ",
        expect![[r#"
            record initialize cluster m
            operator opened at 0 <- HEARTBEAT
            record admit agent A at A
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            record admit agent B at B
            operators <- AGENT_ADDED B
            B <- SUBSCRIBED B
        "#]],
    );
}

#[test]
fn a_silent_agent_becomes_unreachable() {
    check(
        "
        framework F role:web pa checkpoint
        framework G role:ops checkpoint
        agent A cpus:4 mem:1024
        settle
        F accept #0 refuse:100000 : launch t1 cpus:1
        after 1s
        G accept #1 refuse:100000 : launch t2 cpus:1
        after 14s
        A pong
        after 74s
        --
        after 16s
        F reconcile t1@A
        G reconcile t2@A
        F reconcile
        F kill t1@A
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            G <- OFFERS #1 of A (cpus:3; mem:1024)
            A <- LAUNCH t2 (cpus:1)
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            --
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            F <- HEARTBEAT
            G <- HEARTBEAT
            record mark unreachable agent A since 1000000105.000
            F <- UPDATE t1 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            G <- UPDATE t2 TASK_LOST REASON_AGENT_REMOVED "Agent is unreachable"
            A closed
            F <- FAILURE of A
            G <- FAILURE of A
            F <- UPDATE t1 TASK_UNREACHABLE REASON_RECONCILIATION "Reconciliation: Task is unreachable"
            G <- UPDATE t2 TASK_LOST REASON_RECONCILIATION "Reconciliation: Task is unreachable"
            F <- UPDATE t1 TASK_UNREACHABLE REASON_RECONCILIATION "Reconciliation: Task is unreachable"
        "#]],
    );
}

#[test]
fn pong_keeps_an_agent_reachable() {
    check(
        "
        agent A cpus:4
        after 70s
        A pong
        after 70s
        A pong
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            A <- PING
            A <- PING
            A <- PING
            A <- PING
            A <- PING
            A <- PING
            A <- PING
            A <- PING
            A <- PING
        "#]],
    );
}

#[test]
fn unreachable_agent_reregisters_with_its_tasks() {
    check(
        "
        framework F role:web pa checkpoint
        framework G role:ops checkpoint
        agent A cpus:4 mem:1024
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 ; launch t2 cpus:1
        after 1s
        F decline #1 refuse:100000
        after 1s
        G accept #2 refuse:100000 : launch t3 cpus:1
        A update t1 RUNNING
        A close
        --
        after 90s
        --
        A lost t2
        A back
        F reconcile
        F ack t1
        G reconcile
        after 10s
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            A <- LAUNCH t2 (cpus:1)
            G <- OFFERS #1 of A (cpus:2; mem:1024)
            G <- UPDATE t3 TASK_LOST REASON_INVALID_OFFERS "Task launched with invalid offers: Offer #2 is no longer valid"
            F <- UPDATE t1 TASK_RUNNING
            G <- RESCIND #1
            --
            F <- HEARTBEAT
            G <- HEARTBEAT
            F <- HEARTBEAT
            G <- HEARTBEAT
            F <- HEARTBEAT
            G <- HEARTBEAT
            F <- HEARTBEAT
            G <- HEARTBEAT
            F <- HEARTBEAT
            G <- HEARTBEAT
            F <- HEARTBEAT
            G <- HEARTBEAT
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE t1 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- UPDATE t2 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- FAILURE of A
            G <- FAILURE of A
            --
            record mark reachable agent A at A
            A <- SUBSCRIBED A
            F <- UPDATE t1 TASK_RUNNING REASON_AGENT_REREGISTERED "Agent reregistered"
            F <- UPDATE t2 TASK_GONE REASON_RECONCILIATION "Task is unknown to the agent"
            F <- UPDATE t1 TASK_RUNNING REASON_RECONCILIATION "Reconciliation: Latest task state"
            A <- ACKNOWLEDGE t1
            G <- OFFERS #2 of A (cpus:3; mem:1024)
        "#]],
    );
}

#[test]
fn reconnected_agent_is_reconciled() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:1024
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 ; launch t2 cpus:1
        after 1s
        A close
        F kill t1
        A lost t2
        A back
        A update t2 DROPPED of:F
        F ack t2
        A update t1 KILLED
        F ack t1
        after 1s
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            A <- LAUNCH t2 (cpus:1)
            F <- OFFERS #1 of A (cpus:2; mem:1024)
            F <- RESCIND #1
            A <- SUBSCRIBED A missing t2
            A <- KILL t1
            F <- UPDATE t2 TASK_DROPPED
            A <- ACKNOWLEDGE t2
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            F <- OFFERS #2 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn terminated_task_unknown_to_its_agent_is_terminated_once() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        A update t1 FINISHED
        A lost t1
        A back
        settle
        F ack t1
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A closed
            F <- UPDATE t1 TASK_FINISHED REASON_RECONCILIATION "Task is no longer known to the agent"
            A <- SUBSCRIBED A
            F <- OFFERS #1 of A (cpus:4; mem:1024)
            A <- ACKNOWLEDGE t1
        "#]],
    );
}

#[test]
fn a_new_link_replaces_the_old_one() {
    check(
        "
        framework F role:web checkpoint
        agent A cpus:4 mem:1024
        settle
        ...
        A back
        after 1s
        ",
        expect![[r#"
            A closed
            F <- RESCIND #0
            A <- SUBSCRIBED A
            F <- OFFERS #1 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn disconnected_agent_loses_tasks_without_checkpointing() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 refuse:0 : launch t1 cpus:1 exec:e
        A update t1 RUNNING
        F ack t1
        A close
        A back
        after 1s
        A update t1 KILLED
        F ack t1
        A exited F e
        after 1s
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1) with a new executor
            F <- UPDATE t1 TASK_RUNNING
            A <- ACKNOWLEDGE t1
            F <- UPDATE t1 TASK_LOST REASON_AGENT_DISCONNECTED "Agent disconnected and the framework does not checkpoint"
            A <- SUBSCRIBED A
            A <- KILL t1
            F <- OFFERS #1 of A (cpus:2.5; mem:1024)
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            F <- FAILURE of A e 0
            F <- OFFERS #2 of A (cpus:1.5)
        "#]],
    );
}

#[test]
fn agent_missing_the_reregister_timeout_is_unreachable() {
    check(
        "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        A close
        after 89s
        --
        after 2s
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            A <- LAUNCH t1 (cpus:1)
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            --
            F <- HEARTBEAT
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE t1 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- FAILURE of A
        "#]],
    );
}

#[test]
fn gone_agent_cannot_reregister() {
    check(
        "
        operator subscribe
        framework F role:web checkpoint pa
        framework G role:ops checkpoint
        agent A cpus:4 mem:1024
        settle
        F accept #0 refuse:100000 : launch t1 cpus:1
        after 1s
        G accept #1 refuse:100000 : launch t2 cpus:1
        operator gone A
        A back
        F reconcile t1@A
        operator gone A
        operator gone nobody
        ",
        expect![[r#"
            record initialize cluster m
            operator opened at 0 <- HEARTBEAT
            operators <- FRAMEWORK_ADDED F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            operators <- FRAMEWORK_ADDED G
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            record admit agent A at A
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:4; mem:1024)
            operators <- TASK_ADDED t1
            A <- LAUNCH t1 (cpus:1)
            G <- OFFERS #1 of A (cpus:3; mem:1024)
            operators <- TASK_ADDED t2
            A <- LAUNCH t2 (cpus:1)
            record mark gone agent A since 1000000001.000
            F <- UPDATE t1 TASK_GONE_BY_OPERATOR REASON_AGENT_REMOVED_BY_OPERATOR "Agent was marked gone by an operator"
            operators <- TASK_UPDATED t1 TASK_GONE_BY_OPERATOR
            G <- UPDATE t2 TASK_LOST REASON_AGENT_REMOVED "Agent was marked gone by an operator"
            operators <- TASK_UPDATED t2 TASK_LOST
            A <- SHUTDOWN "Agent was marked gone by an operator"
            A closed
            operators <- AGENT_REMOVED A
            F <- FAILURE of A
            G <- FAILURE of A
            operator <- 200
            A <- SHUTDOWN "Agent was marked gone by an operator"
            A closed
            F <- UPDATE t1 TASK_GONE_BY_OPERATOR REASON_RECONCILIATION "Reconciliation: Task is gone"
            operator <- 200
            operator <- 404: Agent 'nobody' not found
        "#]],
    );
}

#[test]
fn gone_after_unreachable_terminates_unreachable_tasks() {
    check(
        "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:1024
        settle
        ...
        F accept #0 refuse:100000 : launch t1 cpus:1
        A close
        after 100s
        --
        operator gone A
        F reconcile t1@A
        A back
        ",
        expect![[r#"
            A <- LAUNCH t1 (cpus:1)
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            F <- HEARTBEAT
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE t1 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- FAILURE of A
            --
            record mark gone agent A since 1000000100.000
            F <- UPDATE t1 TASK_GONE_BY_OPERATOR REASON_AGENT_REMOVED_BY_OPERATOR "Agent was marked gone by an operator"
            F <- FAILURE of A
            operator <- 200
            F <- UPDATE t1 TASK_GONE_BY_OPERATOR REASON_RECONCILIATION "Reconciliation: Task is gone"
            A <- SHUTDOWN "Agent was marked gone by an operator"
            A closed
        "#]],
    );
}

#[test]
fn unregistered_agent_is_removed_with_its_tasks() {
    check(
        "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        ...
        A leave
        F reconcile t1@A
        ",
        expect![[r#"
            record remove agent A
            F <- UPDATE t1 TASK_LOST REASON_AGENT_REMOVED "Agent was removed"
            A closed
            F <- FAILURE of A
            F <- UPDATE t1 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
        "#]],
    );
}

#[test]
fn agent_without_checkpoint_registers_as_a_new_agent() {
    check(
        "
        framework F role:web checkpoint pa
        agent A cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        ...
        agent A cpus:4 mem:1024
        after 1s
        ",
        expect![[r#"
            record remove agent A
            F <- UPDATE t1 TASK_LOST REASON_AGENT_REMOVED "Agent was removed"
            A closed
            F <- FAILURE of A
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #1 of A (cpus:4; mem:1024)
        "#]],
    );
}

#[test]
fn repeated_registration_keeps_the_agent_id() {
    check(
        "
        agent A cpus:4 mem:1024
        agent A cpus:4 mem:1024
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            A closed
            A <- SUBSCRIBED A
        "#]],
    );
}

#[test]
fn agent_with_a_changed_address_is_rejected() {
    check(
        "
        agent A cpus:4 mem:1024 host:h1
        A moves host:h2
        A back
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent h1 at h1
            A <- SUBSCRIBED A
            A <- SHUTDOWN "Agent came back with another address or hostname"
            A closed
        "#]],
    );
}

#[test]
fn changed_agent_resources_rescind_offers() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:1024
        settle
        ...
        A resources cpus:2 mem:512
        after 1s
        A resources cpus:2 mem:512
        ",
        expect![[r#"
            F <- RESCIND #0
            F <- OFFERS #1 of A (cpus:2; mem:512)
        "#]],
    );
}

#[test]
fn agent_domain_requires_a_master_domain() {
    let mut config = Config::default();
    let script = "
        agent A cpus:1 zone:z
        agent B cpus:1
        ";
    check_with(
        config.clone(),
        script,
        expect![[r#"
        record initialize cluster m
        A <- 400: The agent has a fault domain, and the master has none
        record admit agent B at B
        B <- SUBSCRIBED B
    "#]],
    );
    config.master_info.domain = domain("m").into();
    config.require_agent_domain = true;
    check_with(
        config,
        script,
        expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        B <- 400: The agent has no fault domain, and must have one
    "#]],
    );
}
