//! A disk that is short of room: nothing new begins, everything that terminates does.

use expect_test::{Expect, expect};
use tepui_fsm::Fsm;
use tepui_proto::mesos::v1::executor::event;
use tepui_proto::tepui::agent::v1::call;
use tepui_types::{Answer, ConnId, Status};

use super::driver::replay_after;
use crate::{Agent, Effect, LinkId};

/// One task runs, and the disk is short of room.
fn run(transcript: Expect) {
    let beginning = "
        start
        recovered
        go
        launch a
        a launched 7
        a subscribe
        a update a RUNNING
        ack a
    ";
    replay_after(beginning, transcript);
}

#[test]
fn launches_and_new_containers_are_rejected_until_there_is_room() {
    run(expect![[r#"
        > room short
          master <- DISK_PRESSURE on
        > room short
        > launch b
          = update b#0 TASK_DROPPED
          master <- UPDATE b TASK_DROPPED REASON_CONTAINER_LIMITATION_DISK 'The agent is under
              disk pressure (3MB available): a launch needs disk space and is rejected until more is
              available'
        > ack b
          = task b and updates #0..1 removed
        > group e1 x,y
          = update x#0 TASK_DROPPED
          master <- UPDATE x TASK_DROPPED REASON_CONTAINER_LIMITATION_DISK 'The agent is under
              disk pressure (3MB available): a launch needs disk space and is rejected until more is
              available'
          = update y#0 TASK_DROPPED
          master <- UPDATE y TASK_DROPPED REASON_CONTAINER_LIMITATION_DISK 'The agent is under
              disk pressure (3MB available): a launch needs disk space and is rejected until more is
              available'
          master <- EXITED_EXECUTOR e1 status -1
        > call launch alone
          conn 3 <- 507: The agent is under disk pressure (3MB available): a container needs
              disk space and is rejected until more is available
        > call session C1.s
          container launch C1.s
        > operation o1 RESERVE cpus:1
          = operation OPERATION_FAILED
          master <- UPDATE_OPERATION OPERATION_FAILED
          master <- UPDATE_RESOURCES
        > room enough
          master <- DISK_PRESSURE off
        > launch c
          = executor c live
          = task c of executor c
          container launch C2 cpus:1.1;mem:96
    "#]]);
}

#[test]
fn a_running_task_is_killed_and_its_sandbox_removed_at_once() {
    run(expect![[r#"
        > room short
          master <- DISK_PRESSURE on
        > ping
          master <- PONG
        > kill a
          = task a of executor a
          conn 1 <- KILL a
        > a update a KILLED
          = update a#1 TASK_KILLED
          master <- UPDATE a TASK_KILLED
          conn 1 <- ACKNOWLEDGED a
          conn 3 <- 202
          container update C1 cpus:0.1;mem:32
        > a exited 0
          conn 1 closes
          = executor a terminated delivered
        > ack a
          = task a and updates #0..2 removed
          = executor a removed
          = path /w/slaves/S0/frameworks/F/executors/a/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/a unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          container remove path /w/slaves/S0/frameworks/F
          = path /w/slaves/S0/frameworks/F/executors/a forgotten
          = path /w/slaves/S0/frameworks/F/executors/a/runs/C1 forgotten
    "#]]);
}

/// Reported with SUBSCRIBE, and when it ends.
#[test]
fn disk_pressure_is_reported_on_a_new_link() {
    run(expect![[r#"
        > down
        > room short
        > wait 60s
          connect link 2
        > up
          master <- SUBSCRIBE S0 under disk pressure task a TASK_RUNNING
        > room enough
          master <- DISK_PRESSURE off
    "#]]);
}

/// What waits for no record: signs of life, kills, and rejections for lack of room.
#[test]
fn independent_effects_pass_records_that_cannot_be_written() {
    let link_call = |kind| tepui_proto::tepui::agent::v1::Call { r#type: Some(kind), ..Default::default() };
    let master = |kind| Effect::Master { link: LinkId(1), call: link_call(kind).into() };
    let executor = |kind| Effect::Executor {
        conn: ConnId(1),
        event: tepui_proto::mesos::v1::executor::Event { r#type: Some(kind), ..Default::default() }.into(),
    };
    let pong = tepui_proto::tepui::agent::v1::Call { in_order: Some(true), ..link_call(call::Type::PONG) };
    let pong_in_order = Effect::Master { link: LinkId(1), call: pong.into() };
    let answer = |answer| Effect::Answer { conn: ConnId(1), answer };
    for (effect, is_independent) in [
        (master(call::Type::PONG), true),
        (pong_in_order, false),
        (master(call::Type::UPDATE), false),
        (executor(event::Type::HEARTBEAT), true),
        (executor(event::Type::KILL), false),
        (
            Effect::Kill {
                conn: ConnId(1),
                event: tepui_proto::mesos::v1::executor::Event::default().into(),
            },
            true,
        ),
        (executor(event::Type::LAUNCH), false),
        (executor(event::Type::ACKNOWLEDGED), false),
        (answer(Answer::refused(Status::InsufficientStorage, "")), true),
        (answer(Answer::refused(Status::NotFound, "")), false),
        (answer(Answer::Ok), false),
    ] {
        assert_eq!(Agent::is_independent(&effect), is_independent, "{effect}");
    }
}
