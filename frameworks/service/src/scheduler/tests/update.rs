//! New targets, decommission, uninstallation, restarts of the scheduler.

use expect_test::expect;

use super::script::replay;

const BASE: &str = "
name: svc
pods:
  a:
    count: 2
    allow-decommission: true
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
      side: {goal: RUNNING, cmd: side, cpus: 0.5, memory: 50}
  b:
    count: 1
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100, volume: {path: d, type: ROOT, size: 10}}
";

#[test]
fn updates_restart_changed_tasks_only() {
    let changed =
        BASE.replace("cmd: side", "cmd: side2").replace("cpus: 0.5, memory: 50", "cpus: 0.2, memory: 80");
    replay(
        &[("base", BASE), ("changed", &changed)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/a-0 +task/a-0-main +status/a-0-main +task/a-0-side +status/a-0-side
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8
                LAUNCH_GROUP svc__a-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__a-0-side__#11 with cpus:0.5@#7 mem:50@#8 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/a-0
            > run all
            record +status/a-0-main
            record +status/a-0-side
            > offers
            record +pod/a-1 +task/a-1-main +status/a-1-main +task/a-1-side +status/a-1-side
            accept O2 of A1
                RESERVE cpus:0.1@#12 mem:32@#13 disk:256@#14 cpus:1@#15 mem:100@#16 cpus:0.5@#17 mem:50@#18
                LAUNCH_GROUP svc__a-1-main__#19 with cpus:1@#15 mem:100@#16 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
                LAUNCH_GROUP svc__a-1-side__#21 with cpus:0.5@#17 mem:50@#18 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
            record +pod/a-1
            > run all
            record +status/a-1-main
            record +status/a-1-side
            > offers
            record +pod/b-0 +task/b-0-main +status/b-0-main
            accept O3 of A1
                RESERVE cpus:0.1@#22 mem:32@#23 disk:256@#24 cpus:1@#25 mem:100@#26 disk:10@#27
                CREATE disk[d]:10@#27
                LAUNCH_GROUP svc__b-0-main__#28 with cpus:1@#25 mem:100@#26 disk[d]:10@#27 in svc__b__#29 with cpus:0.1@#22 mem:32@#23 disk:256@#24
            record +pod/b-0
            > run all
            record +status/b-0-main
            record +property/last-completed-update-type
            suppress
            > target base
            reply target #1 unchanged
            > target changed
            record +configuration/#30 +target +task/a-0-main +task/a-1-main +task/b-0-main
            reply target #30
            kill svc__a-0-side__#11
            revive
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              a (serial strategy) (PENDING)
                a-0:[main, side] (PENDING) waits for a-0-side to terminate
                a-1:[main, side] (PENDING) waits for its turn in the plan
              b (serial strategy) (COMPLETE)
                b-0:[main] (COMPLETE)
            > show configurations
            #1 #30 target #30
            > killed a-0-side
            record +status/a-0-side
            > offers
            record +pod/a-0 +task/a-0-side +status/a-0-side
            accept O4 of A1
                UNRESERVE cpus:0.3@#7
                RESERVE mem:30@#8
                LAUNCH_GROUP svc__a-0-side__#31 with cpus:0.2@#7 mem:80@#8 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/a-0-side
            kill svc__a-1-side__#21
            > killed a-1-side
            record +status/a-1-side
            > offers
            record +pod/a-1 +task/a-1-side +status/a-1-side
            accept O5 of A1
                UNRESERVE cpus:0.3@#17
                RESERVE mem:30@#18
                LAUNCH_GROUP svc__a-1-side__#32 with cpus:0.2@#17 mem:80@#18 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
            > run all
            record +status/a-1-side
            record -configuration/#1
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              a (serial strategy) (COMPLETE)
                a-0:[main, side] (COMPLETE)
                a-1:[main, side] (COMPLETE)
              b (serial strategy) (COMPLETE)
                b-0:[main] (COMPLETE)
            > show configurations
            #30 target #30
        "#]],
    );
}

#[test]
fn forbidden_changes_keep_the_old_target_and_are_shown() {
    let fewer =
        BASE.replace("allow-decommission: true", "allow-decommission: false").replace("count: 2", "count: 1");
    let bad = fewer
        .replace("size: 10", "size: 20")
        .replace("name: svc", "name: svc\nscheduler: {user: nobody}")
        .replace(
            "  b:\n    count: 1\n",
            "  b:\n    count: 1\n    networks: {dcos: }\n    pre-reserved-role: pre\n",
        );
    replay(
        &[("base", BASE), ("bad", &bad), ("other", &BASE.replace("name: svc", "name: other"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/a-0 +task/a-0-main +status/a-0-main +task/a-0-side +status/a-0-side
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8
                LAUNCH_GROUP svc__a-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__a-0-side__#11 with cpus:0.5@#7 mem:50@#8 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/a-0
            > target bad
            reply rejected: scheduler.user: "root" -> "nobody": the user cannot change, because files of volumes belong to it; pods.a.count: 2 -> 1: instances cannot be removed unless allow-decommission is true; pods.b.pre-reserved-role: "*" -> "pre": the role of reservations cannot change; pods.b.networks: a pod cannot change between host ports and addresses of its own; pods.b.tasks.main.volumes: volumes cannot change, because they hold data
            suppress
            > show plan deploy
            deploy (serial strategy) (ERROR)
              a (serial strategy) (STARTING)
                a-0:[main, side] (STARTING) waits for TASK_RUNNING
                a-1:[main, side] (PENDING) waits for its turn in the plan
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for its turn in the plan
              error: scheduler.user: "root" -> "nobody": the user cannot change, because files of volumes belong to it
              error: pods.a.count: 2 -> 1: instances cannot be removed unless allow-decommission is true
              error: pods.b.pre-reserved-role: "*" -> "pre": the role of reservations cannot change
              error: pods.b.networks: a pod cannot change between host ports and addresses of its own
              error: pods.b.tasks.main.volumes: volumes cannot change, because they hold data
            > show health
            500
            > run all
            record +status/a-0-main
            record +status/a-0-side
            > target base
            reply target #1 unchanged
            revive
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              a (serial strategy) (IN_PROGRESS)
                a-0:[main, side] (COMPLETE)
                a-1:[main, side] (PENDING) no offers yet
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for its turn in the plan
            > target other
            reply rejected: name: "svc" -> "other": a service keeps its name
        "#]],
    );
}

#[test]
fn decommission_waits_for_an_unreachable_agent_until_the_master_has_removed_it() {
    replay(
        &[("base", BASE), ("fewer", &BASE.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/a-0 +task/a-0-main +status/a-0-main +task/a-0-side +status/a-0-side
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8
                LAUNCH_GROUP svc__a-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__a-0-side__#11 with cpus:0.5@#7 mem:50@#8 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/a-0
            > run all
            record +status/a-0-main
            record +status/a-0-side
            > offers
            record +pod/a-1 +task/a-1-main +status/a-1-main +task/a-1-side +status/a-1-side
            accept O2 of A1
                RESERVE cpus:0.1@#12 mem:32@#13 disk:256@#14 cpus:1@#15 mem:100@#16 cpus:0.5@#17 mem:50@#18
                LAUNCH_GROUP svc__a-1-main__#19 with cpus:1@#15 mem:100@#16 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
                LAUNCH_GROUP svc__a-1-side__#21 with cpus:0.5@#17 mem:50@#18 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
            record +pod/a-1
            > run all
            record +status/a-1-main
            record +status/a-1-side
            > offers
            record +pod/b-0 +task/b-0-main +status/b-0-main
            accept O3 of A1
                RESERVE cpus:0.1@#22 mem:32@#23 disk:256@#24 cpus:1@#25 mem:100@#26 disk:10@#27
                CREATE disk[d]:10@#27
                LAUNCH_GROUP svc__b-0-main__#28 with cpus:1@#25 mem:100@#26 disk[d]:10@#27 in svc__b__#29 with cpus:0.1@#22 mem:32@#23 disk:256@#24
            record +pod/b-0
            > run all
            record +status/b-0-main
            record +property/last-completed-update-type
            suppress
            > unreachable A1
            record +status/a-1-main
            kill svc__a-1-side__#21
            revive
            record +status/a-1-side
            record +status/a-0-main
            kill svc__a-0-side__#11
            record +status/a-0-side
            record +status/b-0-main
            > target fewer
            record +configuration/#30 +target +task/a-0-main +task/a-0-side +task/a-1-main +task/a-1-side +task/b-0-main +override/a-1-main +override/a-1-side
            record -configuration/#1
            reply target #30
            record +override/a-1-main
            kill svc__a-1-main__#19
            > show plan decommission
            decommission (serial strategy) (PENDING)
              a-1 (serial strategy) (PENDING)
                kill-a-1-main (PENDING) agent host-a1 is unreachable, the task may still run there; the step completes when the agent is back, marked as gone or removed, or is forced by an operator
                kill-a-1-side (PENDING) agent host-a1 is unreachable, the task may still run there; the step completes when the agent is back, marked as gone or removed, or is forced by an operator
                unreserve-#12 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#13 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#14 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#15 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#16 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#17 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#18 (PENDING) waits for the tasks of its pod to terminate
                erase-a-1-main (PENDING)
                erase-a-1-side (PENDING)
            > forgotten A1
            > subscribe
            reconcile svc__a-0-main__#9
            reconcile svc__a-0-side__#11
            reconcile svc__a-1-main__#19
            reconcile svc__a-1-side__#21
            reconcile svc__b-0-main__#28
            reconcile svc__a-0-main__#9
            reconcile svc__a-0-side__#11
            reconcile svc__a-1-main__#19
            reconcile svc__a-1-side__#21
            reconcile svc__b-0-main__#28
            record +status/a-0-main
            record +status/a-0-side
            record +status/a-1-main
            record -pod/a-1 +garbage/#12 +garbage/#13 +garbage/#14 +garbage/#15 +garbage/#16 +garbage/#17 +garbage/#18
            reconcile probe__svc__A1
            record +override/a-1-side
            record +status/a-1-side
            record +status/b-0-main
            record -status/a-1-main -override/a-1-main -task/a-1-main
            record -status/a-1-side -override/a-1-side -task/a-1-side
            > show plans
            deploy recovery decommission
            > show plan decommission
            decommission (serial strategy) (COMPLETE)
              a-1 (serial strategy) (COMPLETE)
                kill-a-1-main (COMPLETE)
                kill-a-1-side (COMPLETE)
                unreserve-#12 (COMPLETE)
                unreserve-#13 (COMPLETE)
                unreserve-#14 (COMPLETE)
                unreserve-#15 (COMPLETE)
                unreserve-#16 (COMPLETE)
                unreserve-#17 (COMPLETE)
                unreserve-#18 (COMPLETE)
                erase-a-1-main (COMPLETE)
                erase-a-1-side (COMPLETE)
        "#]],
    );
}

#[test]
fn pods_that_are_not_needed_any_more_are_decommissioned() {
    replay(
        &[("base", BASE), ("fewer", &BASE.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            > subscribe
            > offers
            > run all
            > offers
            > run all
            > offers
            > run all
            ...
            > target fewer
            record +configuration/#30 +target +task/a-0-main +task/a-0-side +task/a-1-main +task/a-1-side +task/b-0-main +override/a-1-main +override/a-1-side
            record -configuration/#1
            reply target #30
            record +override/a-1-main
            kill svc__a-1-main__#19
            > show plans
            deploy recovery decommission
            > show pods
            a-0: a-0-main RUNNING, a-0-side RUNNING
            a-1: a-1-main DECOMMISSIONING, a-1-side DECOMMISSIONING
            b-0: b-0-main RUNNING
            > killed a-1-main
            record +status/a-1-main
            record +override/a-1-side
            kill svc__a-1-side__#21
            > restart
            > subscribe
            reconcile svc__a-0-main__#9
            reconcile svc__a-0-side__#11
            reconcile svc__a-1-side__#21
            reconcile svc__b-0-main__#28
            kill svc__a-1-side__#21
            > target fewer
            reply target #30 unchanged
            > show plan decommission
            decommission (serial strategy) (IN_PROGRESS)
              a-1 (serial strategy) (IN_PROGRESS)
                kill-a-1-main (COMPLETE)
                kill-a-1-side (PENDING) waits for the task to terminate
                unreserve-#12 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#13 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#14 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#15 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#16 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#17 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#18 (PENDING) waits for the tasks of its pod to terminate
                erase-a-1-main (PENDING)
                erase-a-1-side (PENDING)
            > killed a-1-side
            record +status/a-1-side
            record -pod/a-1 +garbage/#12 +garbage/#13 +garbage/#14 +garbage/#15 +garbage/#16 +garbage/#17 +garbage/#18
            reconcile probe__svc__A1
            revive
            > offers
            record +garbage/#12 +garbage/#17 +garbage/#15 +garbage/#16 +garbage/#18 +garbage/#13 +garbage/#14
            accept O4 of A1
                UNRESERVE cpus:0.1@#12
                UNRESERVE cpus:0.5@#17
                UNRESERVE cpus:1@#15
                UNRESERVE mem:100@#16
                UNRESERVE mem:50@#18
                UNRESERVE mem:32@#13
                UNRESERVE disk:256@#14
            record -garbage/#12
            record -garbage/#17
            record -garbage/#15
            record -garbage/#16
            record -garbage/#18
            record -garbage/#13
            record -garbage/#14
            record -status/a-1-main -override/a-1-main -task/a-1-main
            record -status/a-1-side -override/a-1-side -task/a-1-side
            suppress
            > show plan decommission
            decommission (serial strategy) (COMPLETE)
              a-1 (serial strategy) (COMPLETE)
                kill-a-1-main (COMPLETE)
                kill-a-1-side (COMPLETE)
                unreserve-#12 (COMPLETE)
                unreserve-#13 (COMPLETE)
                unreserve-#14 (COMPLETE)
                unreserve-#15 (COMPLETE)
                unreserve-#16 (COMPLETE)
                unreserve-#17 (COMPLETE)
                unreserve-#18 (COMPLETE)
                erase-a-1-main (COMPLETE)
                erase-a-1-side (COMPLETE)
            > show pods
            a-0: a-0-main RUNNING, a-0-side RUNNING
            b-0: b-0-main RUNNING
            > target base
            record +configuration/#31 +target +task/a-0-main +task/a-0-side +task/b-0-main
            record -configuration/#30
            reply target #31
            > show plans
            deploy recovery
        "#]],
    );
}

#[test]
fn uninstall_kills_tasks_and_releases_all_reservations() {
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/a-0 +task/a-0-main +status/a-0-main +task/a-0-side +status/a-0-side
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:0.5@#7 mem:50@#8
                LAUNCH_GROUP svc__a-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__a-0-side__#11 with cpus:0.5@#7 mem:50@#8 in svc__a__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/a-0
            > run all
            record +status/a-0-main
            record +status/a-0-side
            > offers
            record +pod/a-1 +task/a-1-main +status/a-1-main +task/a-1-side +status/a-1-side
            accept O2 of A1
                RESERVE cpus:0.1@#12 mem:32@#13 disk:256@#14 cpus:1@#15 mem:100@#16 cpus:0.5@#17 mem:50@#18
                LAUNCH_GROUP svc__a-1-main__#19 with cpus:1@#15 mem:100@#16 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
                LAUNCH_GROUP svc__a-1-side__#21 with cpus:0.5@#17 mem:50@#18 in svc__a__#20 with cpus:0.1@#12 mem:32@#13 disk:256@#14
            record +pod/a-1
            > uninstall
            record +property/uninstalling
            reply done
            record +override/a-0-main
            kill svc__a-0-main__#9
            record +override/a-0-side
            kill svc__a-0-side__#11
            record +override/a-1-main
            kill svc__a-1-main__#19
            record +override/a-1-side
            kill svc__a-1-side__#21
            > uninstall
            reply already done
            > target base
            reply rejected: the service is being uninstalled, which cannot be undone
            > pod-restart a-0
            reply invalid: the service is being uninstalled
            > show plan deploy
            deploy (dependency strategy) (PENDING)
              kill-tasks (parallel strategy) (PENDING)
                kill-task-svc__a-0-main__#9 (PENDING) waits for the task to terminate
                kill-task-svc__a-0-side__#11 (PENDING) waits for the task to terminate
                kill-task-svc__a-1-main__#19 (PENDING) waits for the task to terminate
                kill-task-svc__a-1-side__#21 (PENDING) waits for the task to terminate
              unreserve-resources-host-a1 (parallel strategy) (PENDING)
                unreserve-#2 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#3 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#4 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#5 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#6 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#7 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#8 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#12 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#13 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#14 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#15 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#16 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#17 (PENDING) waits for the tasks of its pod to terminate
                unreserve-#18 (PENDING) waits for the tasks of its pod to terminate
              deregister-service (serial strategy) (PENDING)
                deregister (PENDING)
            > killed a-0-main a-0-side
            record +status/a-0-main
            record +status/a-0-side
            record -pod/a-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7 +garbage/#8
            reconcile probe__svc__A1
            > restart
            > subscribe
            reconcile svc__a-1-main__#19
            reconcile svc__a-1-side__#21
            reconcile probe__svc__A1
            kill svc__a-1-main__#19
            kill svc__a-1-side__#21
            revive
            record +status/a-1-main
            record +status/a-1-side
            > offers
            record +garbage/#2 +garbage/#5 +garbage/#7 +garbage/#3 +garbage/#8 +garbage/#6 +garbage/#4
            accept O3 of A1
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE cpus:0.5@#7
                UNRESERVE mem:32@#3
                UNRESERVE mem:50@#8
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
            record -garbage/#2
            record -garbage/#5
            record -garbage/#7
            record -garbage/#3
            record -garbage/#8
            record -garbage/#6
            record -garbage/#4
            > killed all
            record +status/a-1-main
            record +status/a-1-side
            record -pod/a-1 +garbage/#12 +garbage/#13 +garbage/#14 +garbage/#15 +garbage/#16 +garbage/#17 +garbage/#18
            reconcile probe__svc__A1
            > offers
            record +garbage/#12 +garbage/#17 +garbage/#15 +garbage/#16 +garbage/#18 +garbage/#13 +garbage/#14
            accept O4 of A1
                UNRESERVE cpus:0.1@#12
                UNRESERVE cpus:0.5@#17
                UNRESERVE cpus:1@#15
                UNRESERVE mem:100@#16
                UNRESERVE mem:50@#18
                UNRESERVE mem:32@#13
                UNRESERVE disk:256@#14
            record -garbage/#12
            record -garbage/#17
            record -garbage/#15
            record -garbage/#16
            record -garbage/#18
            record -garbage/#13
            record -garbage/#14
            record +property/deregistering
            teardown
            record -status/a-0-main -override/a-0-main -task/a-0-main -status/a-0-side -override/a-0-side -task/a-0-side -status/a-1-main -override/a-1-main -task/a-1-main -status/a-1-side -override/a-1-side -task/a-1-side -configuration/#1 -property/deregistering -property/uninstalling -framework -target +uninstalled
            finished
            > show reservations
            > show plan deploy
            deploy (dependency strategy) (COMPLETE)
              kill-tasks (parallel strategy) (COMPLETE)
                kill-task-svc__a-1-main__#19 (COMPLETE)
                kill-task-svc__a-1-side__#21 (COMPLETE)
              unreserve-resources-host-a1 (parallel strategy) (COMPLETE)
                unreserve-#12 (COMPLETE)
                unreserve-#13 (COMPLETE)
                unreserve-#14 (COMPLETE)
                unreserve-#15 (COMPLETE)
                unreserve-#16 (COMPLETE)
                unreserve-#17 (COMPLETE)
                unreserve-#18 (COMPLETE)
                unreserve-#3 (COMPLETE)
                unreserve-#4 (COMPLETE)
                unreserve-#2 (COMPLETE)
                unreserve-#5 (COMPLETE)
                unreserve-#7 (COMPLETE)
                unreserve-#8 (COMPLETE)
                unreserve-#6 (COMPLETE)
              deregister-service (serial strategy) (COMPLETE)
                deregister (COMPLETE)
            > pod-restart a-0
            reply invalid: the service is uninstalled
        "#]],
    );
}

#[test]
fn teardown_is_repeated_until_the_master_has_answered() {
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > uninstall-unanswered
            record +property/uninstalling
            reply done
            record +property/deregistering
            teardown
            > show plan deploy
            deploy (dependency strategy) (IN_PROGRESS)
              kill-tasks (parallel strategy) (COMPLETE)
              deregister-service (serial strategy) (PENDING)
                deregister (PENDING) waits for the master to remove the framework
            > disconnect
            > subscribe-unanswered
            teardown
            > restart
            > subscribe-unanswered
            teardown
            > calls-lost
            > wait 10
            teardown
            record -configuration/#1 -property/deregistering -property/uninstalling -framework -target +uninstalled
            finished
        "#]],
    );
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            > subscribe
            > uninstall-unanswered
            ...
            > restart
            > error Framework has been removed
            record -configuration/#1 -property/deregistering -property/uninstalling -framework -target +uninstalled
            finished
        "#]],
    );
}

#[test]
fn an_uninstallation_ends_without_an_agent_that_an_operator_gives_up() {
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            > subscribe
            > offers
            > run all
            ...
            > unreachable A1
            record +status/a-0-main
            kill svc__a-0-side__#11
            record +status/a-0-side
            > uninstall
            record +property/uninstalling
            record -pod/a-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7 +garbage/#8
            reconcile probe__svc__A1
            reply done
            record +override/a-0-main
            kill svc__a-0-main__#9
            record +override/a-0-side
            > show plan deploy
            deploy (dependency strategy) (PENDING)
              kill-tasks (parallel strategy) (PENDING)
                kill-task-svc__a-0-main__#9 (PENDING) agent host-a1 is unreachable, the task may still run there; the step completes when the agent is back, marked as gone or removed, or is forced by an operator
                kill-task-svc__a-0-side__#11 (PENDING) agent host-a1 is unreachable, the task may still run there; the step completes when the agent is back, marked as gone or removed, or is forced by an operator
              unreserve-resources-host-a1 (parallel strategy) (PENDING)
                unreserve-#3 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#4 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#2 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#5 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#7 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#8 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#6 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
              deregister-service (serial strategy) (PENDING)
                deregister (PENDING)
            > plan deploy complete kill-tasks
            reply done
            > show plan deploy
            deploy (dependency strategy) (IN_PROGRESS)
              kill-tasks (parallel strategy) (COMPLETE)
                kill-task-svc__a-0-main__#9 (COMPLETE)
                kill-task-svc__a-0-side__#11 (COMPLETE)
              unreserve-resources-host-a1 (parallel strategy) (PENDING)
                unreserve-#3 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#4 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#2 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#5 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#7 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#8 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
                unreserve-#6 (PENDING) waits for an offer of agent host-a1, which is unreachable; the step completes when the agent is back or removed, or is forced by an operator
              deregister-service (serial strategy) (PENDING)
                deregister (PENDING)
            > plan deploy complete unreserve-resources-host-a1
            reply done
            record +property/deregistering
            teardown
            record -status/a-0-main -override/a-0-main -task/a-0-main -status/a-0-side -override/a-0-side -task/a-0-side -garbage/#3 -garbage/#4 -garbage/#2 -garbage/#5 -garbage/#7 -garbage/#8 -garbage/#6 -configuration/#1 -property/deregistering -property/uninstalling -framework -target +uninstalled
            finished
        "#]],
    );
}

#[test]
fn a_scheduler_that_is_killed_between_record_and_accept_launches_once() {
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            > subscribe
            > offers
            ...
            > restart
            > subscribe
            reconcile svc__a-0-main__#9
            reconcile svc__a-0-side__#11
            record +status/a-0-main
            record +status/a-0-side
            > show plan deploy
            deploy (serial strategy) (STARTING)
              a (serial strategy) (STARTING)
                a-0:[main, side] (STARTING) waits for TASK_RUNNING
                a-1:[main, side] (PENDING) waits for its turn in the plan
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for its turn in the plan
            > run all
            record +status/a-0-main
            record +status/a-0-side
            revive
            > show plan deploy
            deploy (serial strategy) (IN_PROGRESS)
              a (serial strategy) (IN_PROGRESS)
                a-0:[main, side] (COMPLETE)
                a-1:[main, side] (PENDING) no offers yet
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for its turn in the plan
            > error framework failed over
            stop: the master ended the session: framework failed over; if another scheduler of service "svc" runs, stop one of them
        "#]],
    );
}

#[test]
fn interruptions_and_forced_steps_outlive_the_scheduler() {
    replay(
        &[("base", BASE), ("other", &BASE.replace("cmd: side", "cmd: other"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > plan deploy complete a a-1:[main, side]
            record +plan/deploy
            reply done
            > plan deploy complete a a-0:[main, side]
            record +plan/deploy
            reply done
            > plan deploy interrupt b
            record +plan/deploy
            reply done
            suppress
            > restart
            > target base
            reply target #1 unchanged
            > subscribe
            suppress
            > show plan deploy
            deploy (serial strategy) (WAITING)
              a (serial strategy) (COMPLETE)
                a-0:[main, side] (COMPLETE)
                a-1:[main, side] (COMPLETE)
              b (serial strategy) (WAITING)
                b-0:[main] (PENDING) waits for an operator to continue the plan or the phase
            > plan deploy continue b
            record +plan/deploy
            reply done
            revive
            > plan deploy interrupt
            record +plan/deploy
            reply done
            suppress
            > restart
            > target base
            reply target #1 unchanged
            > subscribe
            suppress
            > show plan deploy
            deploy (serial strategy) (WAITING)
              a (serial strategy) (COMPLETE)
                a-0:[main, side] (COMPLETE)
                a-1:[main, side] (COMPLETE)
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for an operator to continue the plan or the phase
            > target other
            record +configuration/#2 +target -plan/deploy
            record -configuration/#1
            reply target #2
            revive
            > show plan deploy
            deploy (serial strategy) (PENDING)
              a (serial strategy) (PENDING)
                a-0:[main, side] (PENDING) no offers yet
                a-1:[main, side] (PENDING) waits for its turn in the plan
              b (serial strategy) (PENDING)
                b-0:[main] (PENDING) waits for its turn in the plan
        "#]],
    );
}

#[test]
fn an_uninstalled_service_is_installed_again_by_request_only() {
    replay(
        &[("base", BASE)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target base
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > uninstall
            record +property/uninstalling
            reply done
            record +property/deregistering
            teardown
            record -configuration/#1 -property/deregistering -property/uninstalling -framework -target +uninstalled
            finished
            > restart
            > start base
            reply invalid: the service is uninstalled
            > subscribe
            > offers
            > restart reinstall=F0
            > start base
            reply invalid: the service is uninstalled
            > restart reinstall=F1
            > start base
            record +configuration/#2 +target -uninstalled
            reply target #2
            > restart
            > subscribe
            record +service +framework
        "#]],
    );
}
