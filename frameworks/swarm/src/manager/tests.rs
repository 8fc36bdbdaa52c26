//! Scripts: offers, creates, updates and engines in, records and effects out.

mod faults;
mod script;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use expect_test::expect;
use tepui_types::AgentId;

use script::{World, config, replay};

use crate::info::{Counts, status_rows};
use crate::manager::Config;
use crate::schedule::Scheduler;

#[test]
fn a_create_waits_for_an_engine_and_an_offer() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > create 1 web -c 1 -m 20
        revive
        > offer O1 A1 cpus:2;mem:100
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1; mem(allocated: *):20
        > update t1 STARTING
        acknowledge t1
        > update t1 RUNNING id=c0ffee
        record t1 on A1 regular created as c0ffee
        reply 1 created c0ffee
        acknowledge t1
    "#]]);
}

#[test]
fn exited_container_gets_a_new_task_before_it_starts() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:2;mem:100
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 1
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 STARTING id=id-web
        record t1 on A1 regular created as id-web
        reply 1 created id-web
        acknowledge t1
        > up A1 node-0 web
        > hold 2 t1
        reply 2 created id-web
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > hold 3 t1
        revive
        > hold 4 t1
        reply 4 409 Conflict: the container is being started already
        > abandon 3
        > hold 5 t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 STARTING id=id-web
        record t2 on A1 regular created as id-web
        reply 5 created id-web
        acknowledge t2
        > update t2 FAILED
        record t2 on A1 regular ended TASK_FAILED
        acknowledge t2
        > hold 6 t2
        revive
        > offer O3 A1 cpus:1
        record t3 on A1 regular launching, replaces t2
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
        > update t3 FAILED No such container
        record t3 on A1 regular ended TASK_FAILED
        reply 6 500 No such container
        acknowledge t3
        > create 7 web -c 1
        reply 7 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > hold 8 t3
        revive
        > wait 5
        reply 8 500 container failed to start after 5s: no resources available to schedule container
          node-0: no offers
    "#]]);
}

#[test]
fn container_of_a_dead_executor_is_adopted_or_killed() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 RUNNING id=id-web
        record t1 on A1 regular created as id-web
        reply 1 created id-web
        acknowledge t1
        > up A1 node-0 web
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 RUNNING id=id-web
        record t2 on A1 regular created as id-web
        acknowledge t2
        > update t2 FAILED EXECUTOR_TERMINATED by-agent
        record t2 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t2
        revive
        > wait 5
        engine A1 kill id-web
        > hold 2 t2
        revive
        > offer O3 A1 cpus:1
        record t3 on A1 regular launching, replaces t2
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
        > update t3 RUNNING id=id-web
        record t3 on A1 regular created as id-web
        reply 2 created id-web
        acknowledge t3
        > update t3 FAILED PREEMPTED by-agent
        engine A1 kill id-web
        record t3 on A1 regular ended TASK_FAILED REASON_CONTAINER_PREEMPTED
        acknowledge t3
    "#]]);
}

#[test]
fn container_that_was_started_at_its_engine_is_adopted_or_killed() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        > update t1 RUNNING id=id-web
        > up A1 node-0 web
        ...
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > up A1 node-0 web running
        revive
        > up A1 node-0 web running
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 FAILED it does not run any more
        record t2 on A1 regular ended TASK_FINISHED
        engine A1 kill id-web
        acknowledge t2
        > up A1 node-0 web running
        revive
        > wait 5
        engine A1 kill id-web
    "#]]);
}

#[test]
fn preempted_container_is_not_placed_again() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 rev cpus:2
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 1 -e constraint:res-type==revocable -e reschedule:on-node-failure
        record t1 on A1 revocable launching
        accept O1 launch t1 on A1 revocable cpus(allocated: *){REV: USAGE_SLACK}:1
        > update t1 RUNNING id=id-web
        record t1 on A1 revocable created as id-web
        reply 1 created id-web
        acknowledge t1
        > up A1 node-0 web
        > update t1 GONE RECONCILIATION by-agent
        > update t1 GONE PREEMPTED by-agent Reclaimed by its owner
        engine A1 kill id-web
        record t1 on A1 revocable ended TASK_GONE REASON_CONTAINER_PREEMPTED
        acknowledge t1
    "#]]);
}

#[test]
fn launch_lost_by_a_master_is_queued_again() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        ...
        > disconnect
        > subscribe F1
        reconcile t1
        reconcile
        > wait 14
        > wait 1
        reconcile t1
        > offer O2 A1 cpus:2;mem:100
        > update t1 GONE RECONCILIATION unknown
        record t1 forgotten
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 STARTING id=c0ffee
        record t2 on A1 regular created as c0ffee
        reply 1 created c0ffee
        acknowledge t2
        > wait 15
    "#]]);
}

#[test]
fn create_without_a_node_is_rejected_with_reasons() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1 + rev cpus:4
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 2
        revive
        > create 2 db -c 1 -e constraint:node==node-9
        revive
        > wait 4
        > create 3 web -c 1
        reply 3 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > wait 1
        reply 1 500 container failed to start after 5s: no resources available to schedule container
          node-0: requested 2 regular cpus, offered 1
        reply 2 500 container failed to start after 5s: Unable to find a node that satisfies the following conditions<blank>
        [available container slots]
        [node==node-9]
          node-0: filter constraint [node==node-9]
        > create 4 web -c 2
        revive
        > wait 5
        reply 4 500 container failed to start after 5s: no resources available to schedule container
          node-0: requested 2 regular cpus, offered 1
    "#]]);
}

#[test]
fn reasons_name_what_was_offered_last() {
    let config = Config { offer_timeout: Duration::from_secs(2), ..config(true) };
    World::new(config).replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 2
        revive
        > wait 2
        decline O1
        > wait 3
        reply 1 500 container failed to start after 5s: no resources available to schedule container
          node-0: requested 2 regular cpus, offered 1
        > create 2 web -c 1
        revive
        > wait 5
        reply 2 500 container failed to start after 5s: no resources available to schedule container
          node-0: no offers
        > create 3 web -c 2
        revive
        > offer O2 A1 cpus:1.5
        > rescind O2
        > wait 5
        reply 3 500 container failed to start after 5s: no resources available to schedule container
          node-0: no offers
    "#]]);
}

#[test]
fn names_belong_to_one_container() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 1
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > create 2 web -c 1
        reply 2 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > update t1 RUNNING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > create 3 web -c 1
        reply 3 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > create 4 x -c 1
        reply 4 400 Invalid container name (x), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed, 2 to 200 characters
        > create 5 a/b -c 1
        reply 5 400 Invalid container name (a/b), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed, 2 to 200 characters
        > renamed t1 www
        record t1 on A1 regular created as c1
        > create 6 www -c 1
        reply 6 409 Conflict: The name www is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign www to a container again.
        > removed t1
        record t1 forgotten
        kill t1 on A1
    "#]]);
}

#[test]
fn missing_image_is_404_and_releases_the_name() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 FAILED no-image cannot pull the image: denied
        record t1 forgotten
        reply 1 404 No such image: busybox: cannot pull the image: denied
        acknowledge t1
        > offer O2 A1 cpus:1
        > create 2 web -c 1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn launch_on_an_invalid_offer_is_queued_again() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > wait 3
        > update t1 DROPPED INVALID_OFFERS by-agent Offer O1 is no longer valid
        record t1 forgotten
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 LOST INVALID_OFFERS by-agent Offer O2 is no longer valid
        record t2 forgotten
        acknowledge t2
        > wait 2
        reply 1 500 container failed to start after 5s: no resources available to schedule container
          node-0: no offers
    "#]]);
}

#[test]
fn offers_are_held_for_a_time_and_rescinded_ones_are_not_used() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > offer O2 A1 cpus:2
        > rescind O1
        > wait 29
        > wait 1
        decline O2 for 60s
        > create 1 web -c 1
        revive
        > down A1 refused
        > offer O3 A1 cpus:1
        decline O3
        > up A1 node-0
        > offer O4 A1 cpus:1
        record t1 on A1 regular launching
        accept O4 launch t1 on A1 regular cpus(allocated: *):1
        > offer O5 A1 cpus:1
        > wait 27
        reconcile t1
        > create 2 db -c 2
        revive
        > wait 3
        decline O5
    "#]]);
}

/// A master with an offer timeout of its own offers the same again at once.
#[test]
fn offers_that_replace_rescinded_ones_are_held_no_longer() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > wait 20
        > rescind O1
        > offer O2 A1 cpus:1
        > wait 10
        decline O2 for 60s
        > offer O3 A1 cpus:1
        > wait 20
        > rescind O3
        > wait 20
        > offer O4 A1 cpus:1
        > wait 20
        > wait 10
        decline O4 for 60s
    "#]]);
}

#[test]
fn a_failed_launch_is_reported_to_the_client() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:9
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 1
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 FAILED pull access denied for nothing
        record t1 forgotten
        reply 1 500 pull access denied for nothing
        acknowledge t1
        > offer O2 A1 cpus:9
        > create 2 web -c 1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 FAILED EXECUTOR_TERMINATED by-agent Abnormal executor termination
        record t2 forgotten
        reply 2 500 Abnormal executor termination : please verify your SWARM_MESOS_USER is correctly set
        acknowledge t2
        > offer O3 A1 cpus:9
        > create 3 web -c 1
        record t3 on A1 regular launching
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
        > update t3 UNREACHABLE by-agent agent is unreachable
        record t3 forgotten
        reply 3 500 agent is unreachable
        acknowledge t3
        > update t3 RUNNING id=late
        kill t3 on A1
        engine A1 remove late
        acknowledge t3
    "#]]);
}

#[test]
fn container_of_a_disconnected_client_is_removed() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > create 1 web -c 1
        revive
        > abandon 1
        > create 2 web -c 1
        revive
        > offer O1 A1 cpus:9
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > abandon 2
        kill t1 on A1
        > update t1 RUNNING id=c1
        engine A1 remove c1
        record t1 forgotten
        kill t1 on A1
        acknowledge t1
        > update t1 KILLED
        acknowledge t1
        > offer O2 A1 cpus:9
        > create 3 web -c 1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > abandon 3
        kill t2 on A1
        > update t2 KILLED
        record t2 forgotten
        acknowledge t2
        > create 4 web -c 1
        revive
    "#]]);
}

#[test]
fn exit_status_is_kept_until_the_container_is_removed() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:9
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 a1 -c 1 -e constraint:res-type==*
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 RUNNING id=id-c1
        record t1 on A1 regular created as id-c1
        reply 1 created id-c1
        acknowledge t1
        > up A1 node-0 c1
        > update t1 FINISHED Container exited with status 0
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > offer O2 A1 rev cpus:9
        > create 2 a2 -c 1 -e constraint:res-type==revocable
        record t2 on A1 revocable launching
        accept O2 launch t2 on A1 revocable cpus(allocated: *){REV: USAGE_SLACK}:1
        > update t2 RUNNING id=id-c2
        record t2 on A1 revocable created as id-c2
        reply 2 created id-c2
        acknowledge t2
        > up A1 node-0 c1, c2
        > update t2 KILLED PREEMPTED by-agent preempted
        engine A1 kill id-c2
        record t2 on A1 revocable ended TASK_KILLED REASON_CONTAINER_PREEMPTED
        acknowledge t2
        > up A1 node-0 c2
        record t1 forgotten
        > offer O3 A1 cpus:9
        > create 3 a1 -c 1
        record t3 on A1 regular launching
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
        > update t3 RUNNING id=id-c3
        record t3 on A1 regular created as id-c3
        reply 3 created id-c3
        acknowledge t3
        > update t3 FINISHED removed by the engine before it was said
        record t3 on A1 regular ended TASK_FINISHED
        acknowledge t3
    "#]]);
}

#[test]
fn killed_manager_recovers_its_containers() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:9
        > up A1 node-0
        > create 1 web -c 1
        ...
        > offer O2 A1 cpus:9
        > create 2 db -c 1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t1 RUNNING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2 t1
        reconcile
        > update t1 RUNNING id=c1
        acknowledge t1
        > update t2 UNKNOWN by-agent
        record t2 forgotten
        acknowledge t2
        > create 3 web -c 1
        reply 3 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > create 4 db -c 1
        revive
        > removed t1
        record t1 forgotten
        kill t1 on A1
        > agent-failed A1
        record agent A1 forgotten
        disconnect A1
        > restart
    "#]]);
}

#[test]
fn a_container_moves_when_its_node_fails() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 RUNNING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > offer O2 A1 cpus:1
        > create 2 db -c 1
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 RUNNING id=c2
        record t2 on A1 regular created as c2
        reply 2 created c2
        acknowledge t2
        > update t1 UNREACHABLE by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > update t2 UNREACHABLE by-agent
        acknowledge t2
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2 t1
        reconcile
        revive
        > offer O3 A2 cpus:1
        record agent A2 a2:2375
        connect A2 a2:2375
        > up A2 node-1
        record t3 on A2 regular launching, replaces t1
        engine A1 remove c1
        accept O3 launch t3 on A2 regular cpus(allocated: *):1, start
        > update t3 DROPPED INVALID_OFFERS by-agent gone
        record t3 on A2 regular rescheduling
        acknowledge t3
        revive
        > offer O4 A2 cpus:1
        record t4 on A2 regular launching, replaces t3
        accept O4 launch t4 on A2 regular cpus(allocated: *):1, start
        > update t4 RUNNING id=c4
        record t4 on A2 regular created as c4
        acknowledge t4
        > update t1 RUNNING id=c1
        kill t1 on A1
        engine A1 remove c1
        acknowledge t1
        > update t2 RUNNING id=c2
        acknowledge t2
    "#]]);
}

#[test]
fn container_that_was_not_started_moves_without_a_start() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:3
        > up A1 node-0
        > create 1 idle -c 1 -e reschedule:on-node-failure
        > update t1 STARTING id=id-idle
        > offer O2 A1 cpus:2
        > create 2 web -c 1 -e reschedule:on-node-failure
        > update t2 STARTING id=id-web
        > update t2 RUNNING id=id-web
        > offer O3 A1 cpus:1
        > create 3 fast -c 1 -e reschedule:on-node-failure
        > update t3 STARTING id=id-fast
        > restart
        > subscribe F1
        > up A1 node-0 idle, web running, fast running
        ...
        > update t1 LOST by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > update t2 LOST by-agent
        record t2 on A1 regular rescheduling
        engine A1 kill id-web
        acknowledge t2
        revive
        > update t3 LOST by-agent
        record t3 on A1 regular rescheduling
        engine A1 kill id-fast
        acknowledge t3
        revive
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t3 t1 t2
        reconcile
        revive
        > offer O4 A2 cpus:3
        record agent A2 a2:2375
        connect A2 a2:2375
        > up A2 node-1
        record t4 on A2 regular launching, replaces t3
        engine A1 remove id-fast
        accept O4 launch t4 on A2 regular cpus(allocated: *):1, start
        revive
        > offer O5 A2 cpus:2
        record t5 on A2 regular launching, replaces t1
        engine A1 remove id-idle
        accept O5 launch t5 on A2 regular cpus(allocated: *):1
        revive
        > offer O6 A2 cpus:1
        record t6 on A2 regular launching, replaces t2
        engine A1 remove id-web
        accept O6 launch t6 on A2 regular cpus(allocated: *):1, start
    "#]]);
}

/// Each change of the offers gives a new attempt to all that wait; there is time for one.
#[test]
fn create_behind_those_that_do_not_fit_is_tried_in_spite_of_frequent_changes() {
    let mut world = World::new(config(true));
    world.has_short_turns = true;
    world.replay(expect![[r#"
        > subscribe F1
        > create 1 big -c 8
        > create 2 large -c 8
        > create 3 web -c 1
        > create 4 db -c 1
        ...
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > up A1 node-0
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        revive
        > up A1 node-0
        > up A1 node-0
        > up A1 node-0
        > up A1 node-0
        > offer O2 A1 cpus:1
        > up A1 node-0
        > up A1 node-0
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn names_of_containers_of_other_clients_are_taken() {
    replay(expect![[r#"
        > create 1 early -c 1
        > subscribe F1
        > offer O1 A1 cpus:2
        > up A1 node-0 other, mine com.docker.swarm.mesos.framework=F1, theirs com.docker.swarm.mesos.framework=F2
        ...
        > create 2 other -c 1
        reply 2 409 Conflict: The name other is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign other to a container again.
        > create 3 theirs -c 1
        reply 3 409 Conflict: The name theirs is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign theirs to a container again.
        > create 4 mine -c 1
        revive
        > up A1 node-0 mine com.docker.swarm.mesos.framework=F1
        > update t1 RUNNING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > rename 5 t1 other
        reply 5 created c1
        > up A1 node-0 theirs
        > rename 6 t1 theirs
        reply 6 409 Conflict: The name theirs is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign theirs to a container again.
    "#]]);
}

#[test]
fn labels_follow_every_change_of_the_offers() {
    let mut world = World::new(config(true));
    let mut table = String::new();
    for line in [
        "subscribe F1",
        "offer O1 A1 cpus:1;disk:9",
        "up A1 node-0",
        "offer O2 A1 rev cpus:1",
        "rescind O1",
        "offer O3 A1 cpus:2",
        "create 1 web -c 2",
        "up A1 node-0",
        "offer O4 A1 cpus:1;mem:1",
        "wait 30",
        "offer O5 A1 rev mem:1",
        "agent-failed A1",
        "offer O6 A1 cpus:1 + rev cpus:1",
        "disconnect",
    ] {
        world.play(line);
        let view = world.view();
        let label = view.agents.get(&AgentId::new("A1")).and_then(|agent| agent.res_type());
        table += &format!("{line}: {}\n", label.unwrap_or("-"));
    }
    expect![[r#"
        subscribe F1: -
        offer O1 A1 cpus:1;disk:9: regular
        up A1 node-0: regular
        offer O2 A1 rev cpus:1: any
        rescind O1: revocable
        offer O3 A1 cpus:2: any
        create 1 web -c 2: revocable
        up A1 node-0: revocable
        offer O4 A1 cpus:1;mem:1: any
        wait 30: -
        offer O5 A1 rev mem:1: revocable
        agent-failed A1: -
        offer O6 A1 cpus:1 + rev cpus:1: any
        disconnect: -
    "#]]
    .assert_eq(&table);
}

#[test]
fn revocable_resources_are_unused_by_default() {
    World::new(config(false)).replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1 + rev cpus:4
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web -c 2
        revive
        > wait 5
        reply 1 500 container failed to start after 5s: no resources available to schedule container
          node-0: requested 2 regular cpus, offered 1
    "#]]);
}

#[test]
fn info_shows_offers_and_engines_by_kind() {
    let mut world = World::new(config(true));
    world.play(
        "
        subscribe F1
        offer O1 A1 cpus:3;mem:1006;ports:[31000-32000] + rev cpus:4
        offer O2 A1 cpus:1;mem:20
        up A1 node-0
        create 1 web -c 1 -m 20
        offer O3 A2 rev cpus:0.5
        ",
    );
    let counts = BTreeMap::from([("A1", Counts { running: 1, paused: 0, stopped: 1 })]);
    let view = world.view();
    let rows = status_rows(&view, &Scheduler::default(), "primary", &view.by_agent(), &counts);
    let text: Vec<String> = rows.iter().map(|[key, value]| format!("{key}: {value}")).collect();
    expect![[r#"
        Role: primary
        Strategy: spread
        Filters: health, port, containerslots, dependency, affinity, constraint, whitelist
        Offers: 2
          Offer: O1
           └ cpus: 3
           └ cpus(revocable): 4
           └ mem: 1006 MiB
           └ ports: 31000-32000
          Offer: O3
           └ cpus(revocable): 0
        Nodes: 2
         node-0: a1:2375
          └ ID: A1
          └ Status: Healthy
          └ Containers: 2 (1 Running, 0 Paused, 1 Stopped)
          └ Reserved CPUs (regular): 1 / 4
          └ Reserved Memory (regular): 20 MiB / 1.002 GiB
          └ Reserved CPUs (revocable): 0 / 4
          └ Reserved Memory (revocable): 0 B / 0 B
          └ Labels: res-type=any
         a2:2375: a2:2375
          └ ID: A2
          └ Status: Pending
          └ Containers: 0 (0 Running, 0 Paused, 0 Stopped)
          └ Reserved CPUs (regular): 0 / 0
          └ Reserved Memory (regular): 0 B / 0 B
          └ Reserved CPUs (revocable): 0 / 0.5
          └ Reserved Memory (revocable): 0 B / 0 B
          └ Labels: res-type=revocable"#]]
    .assert_eq(&text.join("\n"));
}

#[test]
fn containers_are_found_by_name_and_id() {
    let mut world = World::new(config(true));
    world.play(
        "
        subscribe F1
        offer O1 A1 cpus:9
        up A1 node-0
        create 1 web -c 1
        update t1 RUNNING id=abcdef0123456789
        offer O2 A1 cpus:9
        create 2 abc -c 1
        update t2 RUNNING id=abd0000000000000
        ",
    );
    let view = world.view();
    for (named, expected) in [
        ("web", Some("web")),
        ("/web", Some("web")),
        ("node-0/web", Some("web")),
        ("engine-node-0/web", Some("web")),
        ("node-1/web", None),
        ("abcdef0123456789", Some("web")),
        ("abcdef012345", Some("web")),
        ("abc", Some("abc")),
        ("abcd", Some("web")),
        ("ab", None),
        ("", None),
        ("/", None),
    ] {
        assert_eq!(view.find(named).map(|container| &*container.occupant.name), expected, "{named:?}");
    }
}

#[test]
fn dependency_by_name_wins_over_the_beginning_of_an_id() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:2;mem:100
        record agent A1 a1:2375
        connect A1 a1:2375
        > offer O2 A2 cpus:2;mem:100
        record agent A2 a2:2375
        connect A2 a2:2375
        > up A1 node-0 other
        > up A2 node-1 id more
        > create 1 web -c 1 --link id:x
        record t1 on A2 regular launching
        accept O2 launch t1 on A2 regular cpus(allocated: *):1
    "#]]);
}
