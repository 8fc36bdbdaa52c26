//! Commands and statuses that a scheduler was killed with, and the next one completes.

use expect_test::expect;

use super::recovery::{ONE, PLAIN};
use super::script::replay;
use crate::scheduler::Record;
use crate::scheduler::record::read;

const PAIR: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
      side: {goal: RUNNING, cmd: side, cpus: 0.5, memory: 50, essential: false}
      once: {goal: ONCE, cmd: once, cpus: 0.1, memory: 10}
";

#[test]
fn kills_of_pod_commands_are_repeated_by_the_next_scheduler() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target pair
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side +task/node-0-once +status/node-0-once
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8 cpus:0.1@#9 mem:10@#10
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#13 with cpus:0.5@#7 mem:50@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-once__#14 with cpus:0.1@#9 mem:10@#10 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run node-0-main node-0-side
            record +status/node-0-main
            record +status/node-0-side
            > finish node-0-once
            record +status/node-0-once
            record +property/last-completed-update-type
            suppress
            > pod-restart node-0
            record +pod/node-0
            kill svc__node-0-main__#11
            kill svc__node-0-side__#13
            reply pod node-0 [node-0-main, node-0-once, node-0-side]
            > restart
            > subscribe
            reconcile svc__node-0-main__#11
            reconcile svc__node-0-side__#13
            kill svc__node-0-main__#11
            kill svc__node-0-side__#13
            suppress
            > killed node-0-main
            record +status/node-0-main
            revive
            > restart
            > subscribe
            reconcile svc__node-0-side__#13
            kill svc__node-0-side__#13
            revive
            > killed node-0-side
            record +status/node-0-side
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#15 with cpus:1@#5 mem:100@#6 in svc__node__#16 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#17 with cpus:0.5@#7 mem:50@#8 in svc__node__#16 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +status/node-0-side
            suppress
            > pause node-0
            record +override/node-0-main
            kill svc__node-0-main__#15
            record +override/node-0-side
            kill svc__node-0-side__#17
            reply pod node-0 [node-0-main, node-0-side]
            > restart
            > subscribe
            reconcile svc__node-0-main__#15
            reconcile svc__node-0-side__#17
            kill svc__node-0-main__#15
            kill svc__node-0-side__#17
            suppress
            > killed all
            record +status/node-0-main
            revive
            record +status/node-0-side
            > offers
            record +pod/node-0 +override/node-0-main +task/node-0-main +status/node-0-main +override/node-0-side +task/node-0-side +status/node-0-side
            accept O3 of A1
                LAUNCH_GROUP svc__node-0-main__#18 with cpus:1@#5 mem:100@#6 in svc__node__#19 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#20 with cpus:0.5@#7 mem:50@#8 in svc__node__#19 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +override/node-0-main
            record +status/node-0-side
            record +override/node-0-side
            suppress
            > show pods
            node-0: node-0-main PAUSED, node-0-side PAUSED, node-0-once FINISHED
            > resume node-0 main
            record +override/node-0-main
            kill svc__node-0-main__#18
            reply pod node-0 [node-0-main]
            > restart
            > subscribe
            reconcile svc__node-0-main__#18
            reconcile svc__node-0-side__#20
            kill svc__node-0-main__#18
            suppress
        "#]],
    );
}

#[test]
fn pod_restart_clears_the_delay_durably() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target pair
            > subscribe
            > offers
            ...
            > finish node-0-once
            record +status/node-0-once
            > fail node-0-main
            record +status/node-0-main
            suppress
            > killed node-0-side
            record +status/node-0-side
            > show plan deploy
            deploy (serial strategy) (DELAYED)
              node (serial strategy) (DELAYED)
                node-0:[main, side, once] (DELAYED) launched again in 10 s, after TASK_FAILED of node-0-main: exit 1
            > pod-restart node-0
            record +pod/node-0
            record +status/node-0-main
            reply pod node-0 [node-0-main, node-0-once, node-0-side]
            revive
            > restart
            > subscribe
            reconcile probe__svc__A1
            revive
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main, side, once] (PENDING) waits for the reservations on agent host-a1; no offers yet
        "#]],
    );
}

#[test]
fn terminal_status_reason_overrides_reconciliation() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target pair
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side +task/node-0-once +status/node-0-once
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8 cpus:0.1@#9 mem:10@#10
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#13 with cpus:0.5@#7 mem:50@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-once__#14 with cpus:0.1@#9 mem:10@#10 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > finish node-0-once
            record +status/node-0-once
            > run node-0-main node-0-side
            record +status/node-0-main
            record +status/node-0-side
            record +property/last-completed-update-type
            suppress
            > lose-effects 0
            > drained node-0-main node-0-side
            > restart
            > subscribe
            reconcile svc__node-0-main__#11
            reconcile svc__node-0-side__#13
            suppress
            > resend
            record +status/node-0-main
            record +pod/node-0
            kill svc__node-0-side__#13
            revive
            record +status/node-0-side
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7 +garbage/#8 +garbage/#9 +garbage/#10
            reconcile probe__svc__A1
            > offers A2
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O2 of A2
                RESERVE cpus:0.1@#15 mem:32@#16 disk:256@#17 cpus:1@#18 mem:100@#19 cpus:0.5@#20 mem:50@#21 cpus:0.1@#22 mem:10@#23
                LAUNCH_GROUP svc__node-0-main__#24 with cpus:1@#18 mem:100@#19 in svc__node__#25 with cpus:0.1@#15 mem:32@#16 disk:256@#17
                LAUNCH_GROUP svc__node-0-side__#26 with cpus:0.5@#20 mem:50@#21 in svc__node__#25 with cpus:0.1@#15 mem:32@#16 disk:256@#17
            record +pod/node-0
        "#]],
    );
}

/// Written before restarts were recorded.
const OLD_POD: &str = r#"{"instance":{"pod":"node","index":0},"agent":"A1","hostname":"a","region":null,"zone":null,"attributes":[],"reservations":[],"ports":{},"executor_id":"E","is_replaced":false,"failing_since_ns":null,"ready_since_ns":null}"#;

#[test]
fn pods_recorded_without_restarts_are_read() {
    let Ok(Record::Pod(pod)) = read("pod/node-0", OLD_POD.as_bytes()) else { panic!("not read") };
    assert_eq!((pod.executor_id.as_str(), pod.restarting.len()), ("E", 0));
}

const ROLE: &str = "
name: svc
pods:
  node:
    count: 1
    allow-decommission: true
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
  web:
    count: 1
    allow-decommission: true
    pre-reserved-role: team
    tasks:
      main: {goal: RUNNING, cmd: main, gpus: 1}
";

const SINGLE: &str = "
name: svc
pods:
  node:
    count: 1
    allow-decommission: true
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
";

#[test]
fn roles_and_capabilities_of_a_new_target_update_the_framework_and_roles_stay() {
    replay(
        &[("single", SINGLE), ("role", ROLE)],
        expect![[r#"
            > start single
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > target role
            record +configuration/#2 +target +property/roles
            update framework: roles svc-role,team/svc-role, PARTITION_AWARE,RESERVATION_REFINEMENT,MULTI_ROLE,GPU_RESOURCES
            record -configuration/#1
            reply target #2
            > disconnect
            > subscribe
            update framework: roles svc-role,team/svc-role, PARTITION_AWARE,RESERVATION_REFINEMENT,MULTI_ROLE,GPU_RESOURCES
            revive
            > restart
            > start role
            reply target #2 unchanged
            > subscribe
            revive
            > target single
            record +configuration/#3 +target
            update framework: roles svc-role,team/svc-role, PARTITION_AWARE,RESERVATION_REFINEMENT,MULTI_ROLE
            record -configuration/#2
            reply target #3
        "#]],
    );
}

const BACKUP: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
      save: {goal: FINISH, cmd: save, cpus: 0.1, memory: 10}
      load: {goal: ONCE, cmd: load, cpus: 0.1, memory: 10}
plans:
  deploy: {phases: {node: {pod: node, steps: [{default: [[main]]}]}}}
  backup: {phases: {node: {pod: node, steps: [{default: [[save], [load]]}]}}}
";

#[test]
fn a_second_run_of_a_plan_is_continued_by_the_next_scheduler() {
    replay(
        &[("backup", BACKUP)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target backup
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.1@#7 mem:10@#8 cpus:0.1@#9 mem:10@#10
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run node-0-main
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > plan backup start
            record +plan/backup
            reply done
            revive
            > offers
            record +pod/node-0 +task/node-0-save +status/node-0-save
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-save__#13 with cpus:0.1@#7 mem:10@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > finish node-0-save
            record +status/node-0-save
            > offers
            record +pod/node-0 +task/node-0-load +status/node-0-load
            accept O3 of A1
                LAUNCH_GROUP svc__node-0-load__#14 with cpus:0.1@#9 mem:10@#10 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > finish node-0-load
            record +status/node-0-load
            suppress
            > show plan backup
            backup (serial strategy) (COMPLETE)
              node (serial strategy) (COMPLETE)
                node-0:[save] (COMPLETE)
                node-0:[load] (COMPLETE)
            > plan backup start
            record +plan/backup
            reply done
            > offers
            record +pod/node-0 +task/node-0-save +status/node-0-save
            accept O4 of A1
                LAUNCH_GROUP svc__node-0-save__#15 with cpus:0.1@#7 mem:10@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > finish node-0-save
            record +status/node-0-save
            > show plan backup
            backup (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[save] (COMPLETE)
                node-0:[load] (PENDING) waits for the reservations on agent host-a1; no offers yet
            > restart
            > subscribe
            reconcile svc__node-0-main__#11
            revive
            > show plan backup
            backup (serial strategy) (IN_PROGRESS)
              node (serial strategy) (IN_PROGRESS)
                node-0:[save] (COMPLETE)
                node-0:[load] (PENDING) waits for the reservations on agent host-a1; no offers yet
            > offers
            record +pod/node-0 +task/node-0-load +status/node-0-load
            accept O5 of A1
                LAUNCH_GROUP svc__node-0-load__#16 with cpus:0.1@#9 mem:10@#10 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > finish node-0-load
            record +status/node-0-load
            suppress
            > restart
            > subscribe
            reconcile svc__node-0-main__#11
            suppress
            > show plan backup
            backup (serial strategy) (COMPLETE)
              node (serial strategy) (COMPLETE)
                node-0:[save] (COMPLETE)
                node-0:[load] (COMPLETE)
        "#]],
    );
}

#[test]
fn operations_of_a_replaced_pod_are_reconciled_after_a_restart() {
    replay(
        &[("one", ONE)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > start one
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > lose-effects 1
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            > restart
            > start one
            reply target #1 unchanged
            > unreachable A1
            > subscribe
            reconcile svc__hello-0-server__#2
            reconcile operation #3
            record +status/hello-0-server
            revive
            > pod-replace hello-0
            record +pod/hello-0
            record -pod/hello-0 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7 +garbage/#8
            reconcile probe__svc__A1
            reply pod hello-0 [hello-0-server]
            > reachable A1
            > wait 60
            reconcile operation #3
            record -garbage/#5 -garbage/#6 -garbage/#4 -garbage/#7 -garbage/#8
        "#]],
    );
}

#[test]
fn a_replaced_task_that_is_back_holds_up_its_instance_under_the_next_scheduler() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            > unreachable A1
            > agent A2 cpus:4;mem:4096;disk:10000
            > pod-replace node-0
            ...
            > offers A2
            record +pod/node-0 +stray/svc__node-0-main__#7 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > run node-0-main
            record +status/node-0-main
            > fail node-0-main
            record +status/node-0-main
            > restart
            > start plain
            reply target #1 unchanged
            > reachable A1
            record +stray/svc__node-0-main__#7
            > subscribe
            reconcile svc__node-0-main__#7
            reconcile svc__node-0-main__#7
            reconcile probe__svc__A1
            reconcile probe__svc__A2
            revive
            kill svc__node-0-main__#7
            kill svc__node-0-main__#7
            kill svc__node-0-main__#7
            > offers A2
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) waits for svc__node-0-main__#7 on agent A1 to terminate, which was replaced and is back
            > killed node-0-main
            record -stray/svc__node-0-main__#7
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O3 of A2
                LAUNCH_GROUP svc__node-0-main__#16 with cpus:1@#12 mem:100@#13 in svc__node__#17 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            > run node-0-main
            record +status/node-0-main
            > show pods
            node-0: node-0-main RUNNING
        "#]],
    );
}

#[test]
fn reservations_offered_before_the_tasks_are_reconciled_are_released_later() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers A1
            > run all
            ...
            > pod-replace node-0
            record +pod/node-0
            kill svc__node-0-main__#7
            reply pod node-0 [node-0-main]
            > killed node-0-main
            record +status/node-0-main
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            revive
            > offers A2
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > run all
            record +status/node-0-main
            > lose-records garbage/
            > restart
            > start plain
            reply target #1 unchanged
            > subscribe-unanswered
            reconcile svc__node-0-main__#14
            suppress
            > offers A1
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            revive
            > wait 10
            decline O3 for 30 s
            reconcile svc__node-0-main__#14
            > offers A1
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O4 of A1
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
            suppress
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#6
            record -garbage/#4
        "#]],
    );
}
