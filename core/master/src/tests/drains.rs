//! Agents that operators take out of use: drained, deactivated, used again.

use alloc::format;

use expect_test::expect;

use super::check;

const DRAIN: &str = r#"call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@A"},"max_grace_period":{"seconds":30}}}"#;
const DRAIN_AWAY: &str =
    r#"call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@A"},"mark_gone":true}}"#;
const DEACTIVATE: &str = r#"call {"type":"DEACTIVATE_AGENT","deactivate_agent":{"agent_id":{"value":"@A"}}}"#;
const REACTIVATE: &str = r#"call {"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":{"value":"@A"}}}"#;

#[test]
fn agent_drains_until_the_last_termination_is_acknowledged() {
    check(
        &format!(
            "agent A cpus:4
             framework F role:web
             settle
             F accept #0 : launch t1 cpus:1
             {DRAIN}
             A shows
             {REACTIVATE}
             after 2s
             A update t1 KILLED
             settle
             F ack t1
             settle
             --
             {REACTIVATE}
             {REACTIVATE}
             after 1s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            A <- LAUNCH t1 (cpus:1)
            record drain agent A
            A <- DRAIN
            operator <- 200
            {"type":"DRAIN","drain":{"config":{"max_grace_period":{"nanoseconds":30000000000},"mark_gone":false}}}
            operator <- 400: Agent is still in the DRAINING state
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            record mark drained agent A
            --
            record reactivate agent A
            operator <- 200
            operator <- 400: Agent is not deactivated
            F <- OFFERS #1 of A (cpus:4)
        "#]],
    );
}

#[test]
fn a_drained_agent_is_marked_gone_if_requested() {
    check(
        &format!(
            "agent A cpus:4
             framework F role:web
             settle
             F accept #0 : launch t1 cpus:1
             {DRAIN_AWAY}
             A update t1 KILLED
             F ack t1
             settle
             A back"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            A <- LAUNCH t1 (cpus:1)
            record drain agent A
            A <- DRAIN
            operator <- 200
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            record mark gone agent A since 1000000000.000
            A <- SHUTDOWN "Agent was marked gone by an operator"
            A closed
            F <- FAILURE of A
            A <- SHUTDOWN "Agent was marked gone by an operator"
            A closed
        "#]],
    );
}

#[test]
fn drain_survives_master_restart_and_agent_disconnection() {
    check(
        &format!(
            "agent A cpus:4
             framework F role:web checkpoint failover:600
             settle
             F accept #0 : launch t1 cpus:1
             A close
             {DRAIN}
             settle
             A back
             --
             master restarts
             framework F role:web checkpoint failover:600
             A back
             settle
             A update t1 KILLED
             F ack t1
             settle
             --
             master restarts
             A back
             settle"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            A <- LAUNCH t1 (cpus:1)
            record drain agent A
            operator <- 200
            A <- SUBSCRIBED A
            A <- DRAIN
            --
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            A <- SUBSCRIBED A
            A <- DRAIN
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            record mark drained agent A
            --
            A <- SUBSCRIBED A
        "#]],
    );
}

#[test]
fn a_deactivated_agent_keeps_its_tasks_and_makes_no_offers() {
    check(
        &format!(
            "agent A cpus:4
             framework F role:web
             settle
             {DEACTIVATE}
             {DEACTIVATE}
             after 2s
             A close
             A back
             after 2s
             --
             {REACTIVATE}
             after 1s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            record deactivate agent A
            F <- RESCIND #0
            operator <- 200
            operator <- 200
            A <- SUBSCRIBED A
            --
            record reactivate agent A
            operator <- 200
            F <- OFFERS #1 of A (cpus:4)
        "#]],
    );
}

#[test]
fn invalid_drain_calls_are_rejected() {
    check(
        r#"
        agent A cpus:4 no-draining
        agent B cpus:4 ip:10.0.0.1
        ...
        call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"nope"}}}
        call {"type":"DEACTIVATE_AGENT","deactivate_agent":{"agent_id":{"value":"nope"}}}
        call {"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":{"value":"nope"}}}
        call {"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":{"value":"@A"}}}
        call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@A"}}}
        call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@B"},"max_grace_period":{"seconds":-1}}}
        call {"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{"schedule":{"windows":[{"machine_ids":[{"hostname":"B"}],"unavailability":{"start":{"nanoseconds":1}}}]}}}
        call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@B"}}}
        "#,
        expect![[r#"
            operator <- 400: Unknown agent
            operator <- 400: Unknown agent
            operator <- 400: Unknown agent
            operator <- 400: Agent is not deactivated
            operator <- 400: Agent has no AGENT_DRAINING capability
            operator <- 400: 'max_grace_period' is negative or too long
            record schedule maintenance in 1 windows, b@ DRAINING
            operator <- 200
            operator <- 400: Agent is part of a maintenance window, and cannot be drained
        "#]],
    );
}
