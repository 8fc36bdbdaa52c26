//! Disks that are short of room: of agents, of which nothing is offered then, and of the registry.

use expect_test::expect;
use tepui_fsm::Fsm;
use tepui_proto::mesos::v1::scheduler;
use tepui_proto::tepui::agent::v1 as link;
use tepui_types::{Answer, ConnId, Status};

use super::check;
use crate::{Effect, Master};

#[test]
fn agent_under_disk_pressure_is_not_offered() {
    check(
        "agent A cpus:4
         framework F role:web
         settle
         F accept #0 : launch t1 cpus:1
         framework G role:ads
         after 1s
         ...
         A disk on
         A disk on
         after 10s
         F kill t1
         A update t1 KILLED
         F ack t1
         after 10s
         --
         A close
         A back
         after 10s
         --
         A disk off
         after 10s",
        expect![[r#"
            G <- RESCIND #1
            A <- KILL t1
            F <- UPDATE t1 TASK_KILLED
            A <- ACKNOWLEDGE t1
            F <- HEARTBEAT
            G <- HEARTBEAT
            A <- PING
            A <- PING in order
            --
            A <- SUBSCRIBED A
            A <- ACKNOWLEDGE t1
            F <- HEARTBEAT
            G <- HEARTBEAT
            --
            F <- OFFERS #2 of A (cpus:4)
            A <- PING
            A <- PING in order
        "#]],
    );
}

#[test]
fn disk_pressure_survives_master_restart_and_reactivation() {
    check(
        r#"agent A cpus:4
           framework F role:web
           settle
           A disk on
           ...
           master restarts
           A back
           framework F role:web id:F
           after 10s
           call {"type":"DEACTIVATE_AGENT","deactivate_agent":{"agent_id":{"value":"@A"}}}
           call {"type":"REACTIVATE_AGENT","reactivate_agent":{"agent_id":{"value":"@A"}}}
           after 10s
           A disk off
           after 10s"#,
        expect![[r#"
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record deactivate agent A
            operator <- 200
            record reactivate agent A
            operator <- 200
            F <- HEARTBEAT
            A <- PING
            F <- OFFERS #1.0 of A (cpus:4)
            F <- HEARTBEAT
            A <- PING
        "#]],
    );
}

/// Changes that need space are rejected by name; terminations are recorded, and known agents re-register.
#[test]
fn registry_under_disk_pressure_accepts_only_removals() {
    check(
        r#"agent A cpus:4
           agent B cpus:4
           framework F role:web
           settle
           F accept #0 : launch t1 cpus:1
           ...
           registry short
           call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"web","weight":2}]}}
           agent C cpus:4
           F kill t1
           A close
           A back
           call {"type":"DRAIN_AGENT","drain_agent":{"agent_id":{"value":"@A"}}}
           operator gone B
           F close
           framework F role:web id:F
           --
           registry enough
           call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"web","weight":2}]}}
           agent C cpus:4"#,
        expect![[r#"
            operator <- 507: The registry is under disk pressure (3MB available): a change of weights, quotas or the maintenance schedule needs room on its disk; nothing was changed
            C <- 507: The registry is under disk pressure (3MB available): a new agent needs room on its disk; nothing was changed
            A <- KILL t1
            F <- UPDATE t1 TASK_LOST REASON_AGENT_DISCONNECTED "Agent disconnected and the framework does not checkpoint"
            A <- SUBSCRIBED A
            A <- KILL t1
            record drain agent A
            A <- DRAIN
            operator <- 200
            record mark gone agent B since 1000000000.000
            F <- RESCIND #1
            B <- SHUTDOWN "Agent was marked gone by an operator"
            B closed
            F <- FAILURE of B
            operator <- 200
            record remove framework F
            A <- SHUTDOWN_FRAMEWORK F
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            --
            record set weights web=2
            operator <- 200
            record admit agent C at C
            C <- SUBSCRIBED C
        "#]],
    );
}

/// What waits for no record: signs of life, kills, and rejections for lack of room.
#[test]
fn independent_effects_pass_records_that_cannot_be_written() {
    let agent = |kind| Effect::Agent {
        conn: ConnId(1),
        event: link::Event { r#type: Some(kind), ..Default::default() }.into(),
    };
    let scheduler = |kind| Effect::Scheduler {
        conn: ConnId(1),
        event: scheduler::Event { r#type: Some(kind), ..Default::default() }.into(),
    };
    let ping =
        link::Event { r#type: Some(link::event::Type::PING), in_order: Some(true), ..Default::default() };
    let ping_in_order = Effect::Agent { conn: ConnId(1), event: ping.into() };
    let answer = |answer| Effect::Answer { conn: ConnId(1), answer };
    for (effect, is_independent) in [
        (agent(link::event::Type::PING), true),
        (ping_in_order, false),
        (agent(link::event::Type::KILL), false),
        (Effect::Kill { conn: ConnId(1), event: link::Event::default().into() }, true),
        (agent(link::event::Type::LAUNCH), false),
        (scheduler(scheduler::event::Type::HEARTBEAT), true),
        (scheduler(scheduler::event::Type::OFFERS), false),
        (answer(Answer::refused(Status::InsufficientStorage, "")), true),
        (answer(Answer::Accepted), false),
    ] {
        assert_eq!(Master::is_independent(&effect), is_independent, "{effect}");
    }
}
