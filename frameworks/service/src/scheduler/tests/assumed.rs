//! Agents without operation feedback, and the zones of agents.

use expect_test::expect;

use super::recovery::ONE;
use super::script::replay;

#[test]
fn agents_without_operation_feedback_confirm_by_tasks_and_by_time() {
    replay(
        &[("hello", ONE)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000 feedback=no zone=z1
            > agents
            > target hello
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:256@#6
                LAUNCH_GROUP svc__hello-0-server__#7 with cpus:1@#5 mem:256@#6 in svc__hello__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/hello-0-server
            record +pod/hello-0
            record +property/last-completed-update-type
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              hello (serial strategy) (COMPLETE)
                hello-0:[server] (COMPLETE)
            > show zones
            {"hello-0-server": "z1"}
            None
            > uninstall
            record +property/uninstalling
            reply done
            record +override/hello-0-server
            kill svc__hello-0-server__#7
            > killed all
            record +status/hello-0-server
            record -pod/hello-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            revive
            > offers
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O2 of A1
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:256@#6
                UNRESERVE disk:256@#4
            > show plan deploy
            deploy (dependency strategy) (IN_PROGRESS)
              kill-tasks (parallel strategy) (COMPLETE)
                kill-task-svc__hello-0-server__#7 (COMPLETE)
              unreserve-resources-host-a1 (parallel strategy) (PENDING)
                unreserve-#2 (PENDING) waits for agent host-a1 to release it
                unreserve-#3 (PENDING) waits for agent host-a1 to release it
                unreserve-#4 (PENDING) waits for agent host-a1 to release it
                unreserve-#5 (PENDING) waits for agent host-a1 to release it
                unreserve-#6 (PENDING) waits for agent host-a1 to release it
              deregister-service (serial strategy) (PENDING)
                deregister (PENDING)
            > wait 30
            record -garbage/#6
            record -garbage/#3
            record -garbage/#2
            record -garbage/#5
            record -garbage/#4
            record +property/deregistering
            teardown
            record -status/hello-0-server -override/hello-0-server -task/hello-0-server -configuration/#1 -property/deregistering -property/last-completed-update-type -property/uninstalling -framework -target +uninstalled
            finished
            > show reservations
        "#]],
    );
}

#[test]
fn reservations_that_were_only_assumed_are_made_again() {
    replay(
        &[("hello", ONE)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000 feedback=no
            > agents
            > target hello
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > lose-effects 1
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            > restart
            > agents
            > subscribe
            reconcile svc__hello-0-server__#2
            record +status/hello-0-server
            revive
            > offers
            record -pod/hello-0 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7
            reconcile probe__svc__A1
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O2 of A1
                RESERVE cpus:0.1@#8 mem:32@#9 disk:256@#10 cpus:1@#11 mem:256@#12
                LAUNCH_GROUP svc__hello-0-server__#13 with cpus:1@#11 mem:256@#12 in svc__hello__#14 with cpus:0.1@#8 mem:32@#9 disk:256@#10
            > wait 0
            > run all
            record +status/hello-0-server
            record +pod/hello-0
            record +property/last-completed-update-type
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              hello (serial strategy) (COMPLETE)
                hello-0:[server] (COMPLETE)
            > show reservations
            A1: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #8})]):0.1
            A1: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #11})]):1
            A1: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #12})]):256
            A1: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #9})]):32
            A1: disk(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #10})]):256
            > wait 60
            record -garbage/#4 -garbage/#5 -garbage/#3 -garbage/#6 -garbage/#7
            suppress
        "#]],
    );
}
