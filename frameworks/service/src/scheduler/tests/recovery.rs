//! Failures of tasks, agents and pods, and the commands that operators have for them.

use expect_test::expect;

use super::script::replay;

const PAIR: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main:
        goal: RUNNING
        cmd: main
        cpus: 1
        memory: 100
        ports: {p: {port: 0}}
        volume: {path: data, type: ROOT, size: 10}
      side: {goal: RUNNING, cmd: side, cpus: 0.5, memory: 50, essential: false}
";

pub(super) const ONE: &str = "
name: svc
pods:
  hello:
    count: 1
    tasks:
      server: {goal: RUNNING, cmd: serve, cpus: 1, memory: 256}
";

pub(super) const PLAIN: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
";

#[test]
fn a_failed_pod_is_launched_again_with_its_reservations_and_delayed_when_it_fails_again() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > target pair
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk:10@#8 cpus:0.5@#9 mem:50@#10
                CREATE disk[data]:10@#8
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#13 with cpus:0.5@#9 mem:50@#10 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +status/node-0-side
            record +property/last-completed-update-type
            suppress
            > fail node-0-main
            record +status/node-0-main
            kill svc__node-0-side__#13
            revive
            > show plan recovery
            recovery (parallel strategy) (PENDING)
              node-0:[main, side] (serial strategy) (PENDING)
                node-0:[main, side] (PENDING) waits for node-0-side to terminate
            > killed node-0-side
            record +status/node-0-side
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#15 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#16 with cpus:0.5@#9 mem:50@#10 in svc__node__#15 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > fail node-0-main
            record +status/node-0-main
            suppress
            > show plan recovery
            recovery (parallel strategy) (DELAYED)
              node-0:[main, side] (serial strategy) (DELAYED)
                node-0:[main, side] (DELAYED) launched again in 10 s, after TASK_FAILED of node-0-main: exit 1
            > show health
            208
            > show pods
            node-0: node-0-main FAILED, node-0-side STAGING
            > wait 9
            > offers
            decline O3 for 3600 s
            > wait 1
            revive
            > killed node-0-side
            record +status/node-0-side
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O4 of A1
                LAUNCH_GROUP svc__node-0-main__#17 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#18 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#19 with cpus:0.5@#9 mem:50@#10 in svc__node__#18 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +status/node-0-side
            suppress
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[main, side] (serial strategy) (COMPLETE)
                node-0:[main, side] (COMPLETE)
            > wait 100
            > fail node-0-side
            record +status/node-0-side
            revive
            > offers
            record +pod/node-0 +task/node-0-side +status/node-0-side
            accept O5 of A1
                LAUNCH_GROUP svc__node-0-side__#20 with cpus:0.5@#9 mem:50@#10 in svc__node__#18 with cpus:0.1@#2 mem:32@#3 disk:256@#4
        "#]],
    );
}

#[test]
fn restart_keeps_the_agent_and_replace_releases_it() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > target pair
            > subscribe
            > offers
            > run all
            ...
            > pod-restart node-0
            record +pod/node-0
            kill svc__node-0-main__#11
            kill svc__node-0-side__#13
            reply pod node-0 [node-0-main, node-0-side]
            > killed all
            record +status/node-0-main
            revive
            record +status/node-0-side
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#15 with cpus:0.1@#2 mem:32@#3 disk:256@#4
                LAUNCH_GROUP svc__node-0-side__#16 with cpus:0.5@#9 mem:50@#10 in svc__node__#15 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +status/node-0-side
            suppress
            > pod-replace node-0
            record +pod/node-0
            kill svc__node-0-main__#14
            kill svc__node-0-side__#16
            reply pod node-0 [node-0-main, node-0-side]
            > agent A2 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > killed node-0-main
            record +status/node-0-main
            > offers A2
            > killed node-0-side
            record +status/node-0-side
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6 +garbage/#7 +garbage/#8 +garbage/#9 +garbage/#10
            reconcile probe__svc__A1
            record +pod/node-0 +task/node-0-main +status/node-0-main +task/node-0-side +status/node-0-side
            accept O3 of A2
                RESERVE cpus:0.1@#17 mem:32@#18 disk:256@#19 cpus:1@#20 mem:100@#21 ports:[1000-1000]@#22 disk:10@#23 cpus:0.5@#24 mem:50@#25
                CREATE disk[data]:10@#23
                LAUNCH_GROUP svc__node-0-main__#26 with cpus:1@#20 mem:100@#21 ports:[1000-1000]@#22 disk[data]:10@#23 in svc__node__#27 with cpus:0.1@#17 mem:32@#18 disk:256@#19
                LAUNCH_GROUP svc__node-0-side__#28 with cpus:0.5@#24 mem:50@#25 in svc__node__#27 with cpus:0.1@#17 mem:32@#18 disk:256@#19
            record +pod/node-0
            > show plan recovery
            recovery (parallel strategy) (STARTING)
              node-0:[main, side] (serial strategy) (STARTING)
                node-0:[main, side] (STARTING) waits for TASK_RUNNING
            > offers
            record +garbage/#9 +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#10 +garbage/#6 +garbage/#4 +garbage/#8 +garbage/#7
            accept O4 of A1
                UNRESERVE cpus:0.5@#9
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:50@#10
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
                DESTROY disk[data]:10@#8
                UNRESERVE disk:10@#8
                UNRESERVE ports:[1000-1000]@#7
            record -garbage/#9
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#10
            record -garbage/#6
            record -garbage/#4
            record -garbage/#8
            record -garbage/#7
            > run all
            record +status/node-0-main
            record +status/node-0-side
            decline O5 for 3600 s
            > show reservations
            A2: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #17})]):0.1
            A2: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #20})]):1
            A2: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #24})]):0.5
            A2: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #21})]):100
            A2: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #18})]):32
            A2: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #25})]):50
            A2: disk(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #19})]):256
            A2: disk(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #23})])[#29:data]:10
            A2: ports(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #22})]):[1000-1000]
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[main, side] (serial strategy) (COMPLETE)
                node-0:[main, side] (COMPLETE)
            > pod-replace node-7
            reply Pod node-7 not found
            > pod-restart other
            reply Pod other not found
        "#]],
    );
}

#[test]
fn pause_and_resume_launch_the_task_with_another_command() {
    replay(
        &[("pair", PAIR)],
        expect![[r##"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > target pair
            > subscribe
            > offers
            > run all
            ...
            > pause node-0 main
            record +override/node-0-main
            kill svc__node-0-main__#11
            reply pod node-0 [node-0-main]
            > show pods
            node-0: node-0-main PAUSING, node-0-side RUNNING
            > killed node-0-main
            record +status/node-0-main
            revive
            > offers
            record +pod/node-0 +override/node-0-main +task/node-0-main +status/node-0-main
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > show task node-0-main
            agent_id: {"value":"A1"}
            command: {"env":{[{"FRAMEWORK_HOST"="svc.autoip.dcos.thisdcos.directory"},{"FRAMEWORK_NAME"="svc"},{"FRAMEWORK_VIP_HOST"="svc.l4lb.thisdcos.directory"},{"PLACEMENT_REFERENCED_REGION"="false"},{"PLACEMENT_REFERENCED_ZONE"="false"},{"POD_INSTANCE_INDEX"="0"},{"SCHEDULER_API_HOSTNAME"="api"},{"SCHEDULER_API_PORT"="8080"},{"TASK_NAME"="node-0-main"},{"node-0-main"="true"}]},"shell":true,"user":"root"="echo This task is PAUSED; while sleep 3600; do :; done"}
            container: {"linux_info":{"share_cgroups":false,"share_pid_namespace":false},"type":"MESOS"}
            discovery: {"node-0-main","ports":{"ports":[{"p","number":1000,"protocol":"tcp","visibility":"CLUSTER"}]},"visibility":"CLUSTER"}
            executor: {"linux_info":{"share_cgroups":false},"type":"MESOS"}
            kill_policy: {"grace_period":{"nanoseconds":0}}
            labels: {"labels":[{"key":"target_configuration"="#1"},{"key":"task_type"="node"},{"key":"index"="0"},{"key":"offer_attributes"=""},{"key":"offer_hostname"="host-a1"}]}
            name: "node-0-main"
            task_id: {"value":"svc__node-0-main__#14"}
            > run all
            record +status/node-0-main
            record +override/node-0-main
            suppress
            > show pods
            node-0: node-0-main PAUSED, node-0-side RUNNING
            > pause node-0 nothing
            reply Task nothing not found
            > resume node-0 main
            record +override/node-0-main
            kill svc__node-0-main__#14
            reply pod node-0 [node-0-main]
            > killed node-0-main
            record +status/node-0-main
            > offers
            record +pod/node-0 +override/node-0-main +task/node-0-main +status/node-0-main
            accept O3 of A1
                LAUNCH_GROUP svc__node-0-main__#15 with cpus:1@#5 mem:100@#6 ports:[1000-1000]@#7 disk[data]:10@#8 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > show pods
            node-0: node-0-main STARTING, node-0-side RUNNING
            > run all
            record +status/node-0-main
            record -override/node-0-main
            > show pods
            node-0: node-0-main RUNNING, node-0-side RUNNING
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (serial strategy) (COMPLETE)
                node-0:[main, side] (COMPLETE)
        "##]],
    );
}

#[test]
fn pod_waits_for_an_unreachable_agent_and_not_for_a_gone_one() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:100@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > unreachable A1
            record +status/node-0-main
            revive
            > show plan recovery
            recovery (parallel strategy) (PENDING)
              node-0:[main] (serial strategy) (PENDING)
                node-0:[main] (PENDING) agent host-a1 is unreachable, node-0-main may still run there; the pod continues when the agent is back, or is replaced by `pod replace node-0`
            > agent A2 cpus:4;mem:4096;disk:10000
            > offers
            > reachable A1
            record +status/node-0-main
            decline O2 for 3600 s
            suppress
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[main] (serial strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
            > gone A1
            record +status/node-0-main
            record -pod/node-0
            reconcile probe__svc__A1
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O3 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > run all
            record +status/node-0-main
            > show pods
            node-0: node-0-main RUNNING
        "#]],
    );
}

#[test]
fn a_replaced_pod_does_not_wait_for_an_unreachable_agent_that_is_cleaned_when_it_returns() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            > unreachable A1
            ...
            > agent A2 cpus:4;mem:4096;disk:10000
            > pod-replace node-0
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            reply pod node-0 [node-0-main]
            > offers
            record +pod/node-0 +stray/svc__node-0-main__#7 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > run node-0-main
            record +status/node-0-main
            > reachable A1
            record +stray/svc__node-0-main__#7
            kill svc__node-0-main__#7
            > offers A1
            > show reservations
            A1: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #2})]):0.1
            A1: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #5})]):1
            A1: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #3})]):32
            A1: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #6})]):100
            A1: disk(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #4})]):256
            A2: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #9})]):0.1
            A2: cpus(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #12})]):1
            A2: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #10})]):32
            A2: mem(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #13})]):100
            A2: disk(reservations: [(DYNAMIC,svc-role,svc-principal,{framework_id: F1, resource_id: #11})]):256
        "#]],
    );
}

#[test]
fn instance_is_not_launched_while_its_replaced_task_is_running() {
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
            > offers
            > run node-0-main
            ...
            > fail node-0-main
            record +status/node-0-main
            > reachable A1
            record +stray/svc__node-0-main__#7
            kill svc__node-0-main__#7
            > offers A2
            > unreachable A1
            record +stray/svc__node-0-main__#7
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O3 of A2
                LAUNCH_GROUP svc__node-0-main__#16 with cpus:1@#12 mem:100@#13 in svc__node__#17 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            > run node-0-main
            record +status/node-0-main
            > fail node-0-main
            record +status/node-0-main
            > reachable A1
            record +stray/svc__node-0-main__#7
            kill svc__node-0-main__#7
            > wait 10
            kill svc__node-0-main__#7
            kill svc__node-0-main__#7
            > offers A2
            > killed node-0-main
            record -stray/svc__node-0-main__#7
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O4 of A2
                LAUNCH_GROUP svc__node-0-main__#18 with cpus:1@#12 mem:100@#13 in svc__node__#19 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            > run node-0-main
            record +status/node-0-main
            > show pods
            node-0: node-0-main RUNNING
        "#]],
    );
}

/// The agent did not learn that its machine was taken down.
#[test]
fn a_task_that_was_declared_lost_is_killed_when_it_returns() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            ...
            > machine-down A1
            record +status/node-0-main
            revive
            > reachable A1
            record +stray/svc__node-0-main__#7
            kill svc__node-0-main__#7
            > offers A1
            > wait 10
            kill svc__node-0-main__#7
            decline O2 for 30 s
            kill svc__node-0-main__#7
            > killed node-0-main
            record -stray/svc__node-0-main__#7
            > run node-0-main
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O3 of A1
                LAUNCH_GROUP svc__node-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run node-0-main
            record +status/node-0-main
            suppress
        "#]],
    );
}

#[test]
fn pods_of_a_drained_agent_are_moved() {
    replay(
        &[("plain", PLAIN), ("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target plain
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:100@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > drained all
            record +status/node-0-main
            record +pod/node-0
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
            > show pods
            node-0: node-0-main RUNNING
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[main] (serial strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
        "#]],
    );
}

#[test]
fn pods_that_are_down_leave_a_draining_agent_unless_their_data_is_there() {
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
            > fail all
            record +status/node-0-main
            revive
            > drain A1
            > agents
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > run all
            record +status/node-0-main
            > show pods
            node-0: node-0-main RUNNING
        "#]],
    );
    // The launch arrived after the drain.
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers A1
            ...
            > dropped-by-drain all
            record +status/node-0-main
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            > offers A2
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
        "#]],
    );
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > target pair
            > subscribe
            > offers
            > run all
            > fail all
            > drain A1
            ...
            > agents
            > show plan recovery
            recovery (parallel strategy) (PENDING)
              node-0:[main, side] (serial strategy) (PENDING)
                node-0:[main, side] (PENDING) waits for the reservations on agent host-a1; no offers yet
        "#]],
    );
    // Its tasks may run.
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            > unreachable A1
            > drain A1
            ...
            > agents
        "#]],
    );
}

#[test]
fn an_agent_drained_to_be_marked_gone_has_its_reservations_until_then() {
    // It is reactivated.
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target plain
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:100@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > drained-to-gone all
            record +status/node-0-main
            record +pod/node-0
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
            > offers A1
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O3 of A1
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
    // It registers again after it was out of contact meanwhile.
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers A1
            > run all
            > unreachable A1
            ...
            > reachable-drained-to-gone A1
            record +status/node-0-main
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O2 of A1
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
            record +pod/node-0
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#6
            record -garbage/#4
        "#]],
    );
    // It is marked gone: nothing is left to release.
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > agent A2 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers A1
            > run all
            > drained-to-gone all
            > offers A2
            > run all
            ...
            > gone A1
            reconcile probe__svc__A1
            record -garbage/#3 -garbage/#4 -garbage/#2 -garbage/#5 -garbage/#6
            suppress
        "#]],
    );
}

#[test]
fn tasks_of_a_replaced_pod_do_not_wait_for_the_agent_that_it_has_left() {
    replay(
        &[("duo", DUO), ("changed", &DUO.replace("cmd: job", "cmd: other"))],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target duo
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-job +status/node-0-job
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6 cpus:1@#7 mem:100@#8
                LAUNCH_GROUP svc__node-0-job__#9 with cpus:1@#7 mem:100@#8 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > finish node-0-job
            record +status/node-0-job
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run node-0-main
            record +status/node-0-main
            record +property/last-completed-update-type
            suppress
            > target changed
            record +configuration/#13 +target +task/node-0-main
            reply target #13
            revive
            > unreachable A1
            record +status/node-0-main
            > pod-replace node-0
            record +pod/node-0
            record -pod/node-0 +garbage/#7 +garbage/#8 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            reply pod node-0 [node-0-job, node-0-main]
            > agent A2 cpus:4;mem:4096;disk:10000
            > offers A2
            record +pod/node-0 +task/node-0-job +status/node-0-job
            accept O3 of A2
                RESERVE cpus:0.1@#14 mem:32@#15 disk:256@#16 cpus:1@#17 mem:100@#18 cpus:1@#19 mem:100@#20
                LAUNCH_GROUP svc__node-0-job__#21 with cpus:1@#19 mem:100@#20 in svc__node__#22 with cpus:0.1@#14 mem:32@#15 disk:256@#16
            record +pod/node-0
            > finish node-0-job
            record +status/node-0-job
            record -configuration/#1
            > show plan recovery
            recovery (parallel strategy) (IN_PROGRESS)
              node-0:[main] (serial strategy) (IN_PROGRESS)
                node-0:[main] (PREPARED) waits for the reservations on agent host-a2; 1 agent: 1 did not offer the running executor and did not offer the reserved cpus, mem
            > offers A2
            record +pod/node-0 +stray/svc__node-0-main__#11 +task/node-0-main +status/node-0-main
            accept O4 of A2
                LAUNCH_GROUP svc__node-0-main__#23 with cpus:1@#17 mem:100@#18 in svc__node__#24 with cpus:0.1@#14 mem:32@#15 disk:256@#16
            > run node-0-main
            record +status/node-0-main
            > show pods
            node-0: node-0-main RUNNING, node-0-job FINISHED
        "#]],
    );
}

const DUO: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
      job: {goal: FINISH, cmd: job, cpus: 1, memory: 100}
plans:
  deploy:
    phases:
      node: {pod: node, steps: [{default: [[job], [main]]}]}
";

#[test]
fn a_task_that_the_master_does_not_know_is_shown_and_left_by_a_replacement() {
    replay(
        &[("job", JOB)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target job
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:100@#6
                LAUNCH_GROUP svc__node-0-main__#7 with cpus:1@#5 mem:100@#6 in svc__node__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            > forgotten A1
            > disconnect
            > subscribe
            reconcile svc__node-0-main__#7
            record +status/node-0-main
            revive
            > show plan deploy
            deploy (serial strategy) (PENDING)
              node (serial strategy) (PENDING)
                node-0:[main] (PENDING) agent host-a1 is unknown to the master, node-0-main may still run there; the pod continues when the agent is back, or is replaced by `pod replace node-0`
            > agent A2 cpus:4;mem:4096;disk:10000
            > pod-replace node-0
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            reply pod node-0 [node-0-main]
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A2
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-0
            > finish node-0-main
            record +status/node-0-main
            record +property/last-completed-update-type
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              node (serial strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
        "#]],
    );
}

const JOB: &str = "
name: svc
pods:
  node:
    count: 1
    tasks:
      main: {goal: FINISH, cmd: main, cpus: 1, memory: 100}
";

#[test]
fn calls_without_an_answer_are_made_up_for() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            ...
            > fail node-0-main
            record +status/node-0-main
            revive
            > calls-lost O7 O8
            > wait 4
            > calls-lost
            > wait 5
            decline O7,O8 for 30 s
            reconcile probe__svc__A1
            revive
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > calls-lost O9
            > disconnect
            > wait 10
            > subscribe
            reconcile svc__node-0-main__#9
            record +status/node-0-main
        "#]],
    );
}

#[test]
fn reregistered_task_of_a_released_pod_is_killed() {
    replay(
        &[("plain", PLAIN)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target plain
            > subscribe
            > offers
            > run all
            > unreachable A1
            ...
            > pod-replace node-0
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            reply pod node-0 [node-0-main]
            > reachable A1
            record +status/node-0-main
            kill svc__node-0-main__#7
            > show plan recovery
            recovery (parallel strategy) (PENDING)
              node-0:[main] (serial strategy) (PENDING)
                node-0:[main] (PENDING) waits for node-0-main to terminate
            > killed all
            record +status/node-0-main
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O2 of A1
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-0-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
            record +pod/node-0
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#6
            record -garbage/#4
            > run all
            record +status/node-0-main
            suppress
            > show plan recovery
            recovery (parallel strategy) (COMPLETE)
              node-0:[main] (serial strategy) (COMPLETE)
                node-0:[main] (COMPLETE)
        "#]],
    );
}

#[test]
fn kills_of_a_replacement_are_repeated_after_a_restart_of_the_scheduler() {
    replay(
        &[("pair", PAIR)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000;ports:[1000-2000]
            > target pair
            > subscribe
            > offers
            > run all
            ...
            > pod-replace node-0
            record +pod/node-0
            kill svc__node-0-main__#11
            kill svc__node-0-side__#13
            reply pod node-0 [node-0-main, node-0-side]
            > restart
            > target pair
            reply target #1 unchanged
            > subscribe
            reconcile svc__node-0-main__#11
            reconcile svc__node-0-side__#13
            kill svc__node-0-main__#11
            kill svc__node-0-side__#13
            suppress
        "#]],
    );
}

#[test]
fn launches_that_an_agent_reports_as_dropped_are_repeated() {
    replay(
        &[("one", ONE)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target one
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:256@#6
                LAUNCH_GROUP svc__hello-0-server__#7 with cpus:1@#5 mem:256@#6 in svc__hello__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/hello-0
            > dropped hello-0-server
            record +status/hello-0-server
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O2 of A1
                LAUNCH_GROUP svc__hello-0-server__#9 with cpus:1@#5 mem:256@#6 in svc__hello__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/hello-0-server
            record +property/last-completed-update-type
            suppress
            > show plan deploy
            deploy (serial strategy) (COMPLETE)
              hello (serial strategy) (COMPLETE)
                hello-0:[server] (COMPLETE)
        "#]],
    );
}

#[test]
fn a_scheduler_that_resubscribes_revives_if_it_has_work() {
    replay(
        &[("one", ONE), ("two", &ONE.replace("count: 1", "count: 2"))],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target one
            record +configuration/#1 +target
            reply target #1
            > subscribe
            record +service +framework
            > offers
            record +pod/hello-0 +task/hello-0-server +status/hello-0-server
            accept O1 of A1
                RESERVE cpus:0.1@#2 mem:32@#3 disk:256@#4 cpus:1@#5 mem:256@#6
                LAUNCH_GROUP svc__hello-0-server__#7 with cpus:1@#5 mem:256@#6 in svc__hello__#8 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            record +pod/hello-0
            > run all
            record +status/hello-0-server
            record +property/last-completed-update-type
            suppress
            > disconnect
            > target two
            record +configuration/#9 +target +task/hello-0-server
            record -configuration/#1
            reply target #9
            > subscribe
            reconcile svc__hello-0-server__#7
            revive
        "#]],
    );
}

#[test]
fn tasks_of_unreachable_agents_are_reconciled_periodically() {
    replay(
        &[("one", ONE)],
        expect![[r#"
            > agent A1 cpus:4;mem:4096;disk:10000
            > target one
            > subscribe
            > offers
            ...
            > run all
            record +status/hello-0-server
            record +property/last-completed-update-type
            suppress
            > unreachable A1
            record +status/hello-0-server
            revive
            > wait 3600
            reconcile svc__hello-0-server__#7
        "#]],
    );
}
