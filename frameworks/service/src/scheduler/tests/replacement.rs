//! Automatic replacement: pods that fail for too long are moved by the policy of the spec.

use expect_test::expect;

use super::recovery::PLAIN;
use super::script::replay;

const POLICY: &str = "
name: svc
replacement-failure-policy: {permanent-failure-timeout-secs: 60, min-replace-delay-secs: 100}
pods:
  node:
    count: 2
    tasks:
      main: {goal: RUNNING, cmd: main, cpus: 1, memory: 100}
";

#[test]
fn pods_that_fail_for_too_long_are_replaced_one_after_the_other() {
    replay(
        &[("policy", POLICY)],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target policy
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
            record +pod/node-0
            > offers
            record +pod/node-1 +task/node-1-main +status/node-1-main
            accept O2 of A1
                RESERVE cpus:0.1@#9 mem:32@#10 disk:256@#11 cpus:1@#12 mem:100@#13
                LAUNCH_GROUP svc__node-1-main__#14 with cpus:1@#12 mem:100@#13 in svc__node__#15 with cpus:0.1@#9 mem:32@#10 disk:256@#11
            record +pod/node-1
            > run all
            record +status/node-1-main
            record +pod/node-1
            record +property/last-completed-update-type
            suppress
            > agent A2 cpus:8;mem:4096;disk:10000
            > unreachable A1
            record +status/node-1-main
            record +pod/node-1
            revive
            record +status/node-0-main
            record +pod/node-0
            > wait 59
            > show plan recovery
            recovery (parallel strategy) (PENDING)
              node-1:[main] (serial strategy) (PENDING)
                node-1:[main] (PENDING) agent host-a1 is unreachable, node-1-main may still run there; the pod continues when the agent is back, or is replaced by `pod replace node-1`
              node-0:[main] (serial strategy) (PENDING)
                node-0:[main] (PENDING) agent host-a1 is unreachable, node-0-main may still run there; the pod continues when the agent is back, or is replaced by `pod replace node-0`
            > restart
            > subscribe
            reconcile svc__node-0-main__#7
            reconcile svc__node-1-main__#14
            reconcile svc__node-0-main__#7
            reconcile svc__node-1-main__#14
            revive
            > target policy
            reply target #1 unchanged
            > wait 1
            record +property/last-replacement
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            > offers
            record +pod/node-0 +stray/svc__node-0-main__#7 +task/node-0-main +status/node-0-main
            accept O3 of A2
                RESERVE cpus:0.1@#16 mem:32@#17 disk:256@#18 cpus:1@#19 mem:100@#20
                LAUNCH_GROUP svc__node-0-main__#21 with cpus:1@#19 mem:100@#20 in svc__node__#22 with cpus:0.1@#16 mem:32@#17 disk:256@#18
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +pod/node-0
            > wait 99
            > wait 1
            record +property/last-replacement
            record +pod/node-1
            record -pod/node-1 +garbage/#9 +garbage/#10 +garbage/#11 +garbage/#12 +garbage/#13
            reconcile probe__svc__A1
            > offers
            record +pod/node-1 +stray/svc__node-1-main__#14 +task/node-1-main +status/node-1-main
            accept O4 of A2
                RESERVE cpus:0.1@#23 mem:32@#24 disk:256@#25 cpus:1@#26 mem:100@#27
                LAUNCH_GROUP svc__node-1-main__#28 with cpus:1@#26 mem:100@#27 in svc__node__#29 with cpus:0.1@#23 mem:32@#24 disk:256@#25
            record +pod/node-1
            > run all
            record +status/node-1-main
            record +pod/node-1
            > show pods
            node-0: node-0-main RUNNING
            node-1: node-1-main RUNNING
        "#]],
    );
}

#[test]
fn declined_offers_are_revived_for_a_pod_that_has_lost_its_agent() {
    replay(
        &[("policy", &POLICY.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target policy
            > subscribe
            > offers
            > run all
            > agent A2 cpus:8;mem:4096;disk:10000
            > unreachable A1
            > wait 50
            ...
            > offers A2
            > wait 10
            decline O2 for 30 s
            record +property/last-replacement
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            revive
        "#]],
    );
}

#[test]
fn kills_by_request_are_no_failures_of_a_pod() {
    replay(
        &[("policy", &POLICY.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target policy
            > subscribe
            > offers
            > run all
            ...
            > pod-restart node-0
            record +pod/node-0
            kill svc__node-0-main__#7
            reply pod node-0 [node-0-main]
            > killed all
            record +status/node-0-main
            record +pod/node-0
            revive
            > offers
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +pod/node-0
            suppress
            > wait 50
            > pod-restart node-0
            record +pod/node-0
            kill svc__node-0-main__#9
            reply pod node-0 [node-0-main]
            > killed all
            record +status/node-0-main
            record +pod/node-0
            revive
            > wait 59
            > wait 1
            record +property/last-replacement
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
        "#]],
    );
}

#[test]
fn a_pod_that_crashes_repeatedly_is_replaced_on_another_agent() {
    replay(
        &[("policy", &POLICY.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > agent A2 cpus:8;mem:4096;disk:10000
            > target policy
            > subscribe
            > offers A1
            > run all
            ...
            > fail all
            record +status/node-0-main
            record +pod/node-0
            revive
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O2 of A1
                LAUNCH_GROUP svc__node-0-main__#9 with cpus:1@#5 mem:100@#6 in svc__node__#10 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +pod/node-0
            suppress
            > wait 5
            > fail all
            record +status/node-0-main
            record +pod/node-0
            > wait 30
            revive
            > offers A1
            record +pod/node-0 +task/node-0-main +status/node-0-main
            accept O3 of A1
                LAUNCH_GROUP svc__node-0-main__#11 with cpus:1@#5 mem:100@#6 in svc__node__#12 with cpus:0.1@#2 mem:32@#3 disk:256@#4
            > run all
            record +status/node-0-main
            record +pod/node-0
            suppress
            > wait 9
            > fail all
            record +status/node-0-main
            record +pod/node-0
            > wait 15
            > wait 1
            record +property/last-replacement
            record +pod/node-0
            record +status/node-0-main
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
            revive
            > offers-at-once
            record +pod/node-0 +task/node-0-main +status/node-0-main
            record +garbage/#2 +garbage/#5 +garbage/#3 +garbage/#6 +garbage/#4
            accept O4 of A1
                UNRESERVE cpus:0.1@#2
                UNRESERVE cpus:1@#5
                UNRESERVE mem:32@#3
                UNRESERVE mem:100@#6
                UNRESERVE disk:256@#4
            accept O5 of A2
                RESERVE cpus:0.1@#13 mem:32@#14 disk:256@#15 cpus:1@#16 mem:100@#17
                LAUNCH_GROUP svc__node-0-main__#18 with cpus:1@#16 mem:100@#17 in svc__node__#19 with cpus:0.1@#13 mem:32@#14 disk:256@#15
            record -garbage/#2
            record -garbage/#5
            record -garbage/#3
            record -garbage/#6
            record -garbage/#4
            record +pod/node-0
            > run all
            record +status/node-0-main
            record +pod/node-0
            suppress
            > show pods
            node-0: node-0-main RUNNING
        "#]],
    );
}

#[test]
fn a_pod_that_was_ready_for_longer_than_its_delay_fails_anew() {
    replay(
        &[("policy", &POLICY.replace("count: 2", "count: 1"))],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target policy
            > subscribe
            > offers
            > run all
            > fail all
            > offers
            > run all
            > wait 11
            ...
            > fail all
            record +status/node-0-main
            record +pod/node-0
            revive
            > wait 59
            > wait 1
            record +property/last-replacement
            record +pod/node-0
            record +status/node-0-main
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
        "#]],
    );
}

#[test]
fn a_policy_applies_to_pods_that_fail_already() {
    replay(
        &[
            ("none", PLAIN),
            ("policy", &POLICY.replace("count: 2", "count: 1")),
            ("shorter", &POLICY.replace("count: 2", "count: 1").replace("secs: 60", "secs: 20")),
        ],
        expect![[r#"
            > agent A1 cpus:8;mem:4096;disk:10000
            > target none
            > subscribe
            > offers
            > run all
            > unreachable A1
            > wait 100
            ...
            > target policy
            record +configuration/#9 +target +task/node-0-main
            record -configuration/#1
            record +pod/node-0
            reply target #9
            > wait 19
            > target shorter
            record +configuration/#10 +target +task/node-0-main
            record -configuration/#9
            reply target #10
            > wait 1
            record +property/last-replacement
            record +pod/node-0
            record -pod/node-0 +garbage/#2 +garbage/#3 +garbage/#4 +garbage/#5 +garbage/#6
            reconcile probe__svc__A1
        "#]],
    );
}
