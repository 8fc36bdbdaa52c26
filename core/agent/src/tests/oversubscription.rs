//! Oversubscription: revocable offers, and kills under pressure.

use expect_test::expect;

use super::driver::replay;

#[test]
fn fixed_estimate_is_sent_on_every_link() {
    replay(expect![[r#"
        > estimator fixed cpus:2
        > start
          container recover
        > recovered
          = boot id boot-1
        > wait 5s
          connect link 1
        > up
          master <- SUBSCRIBE new oversubscribed cpus:2
        > subscribed
          = agent S0
        > wait 15s
        > launch t1 needs=cpus~:3
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:0.1;cpus:3;mem:32
        > wait 15s
          master <- UPDATE_RESOURCES oversubscribed cpus:3
        > t1 exited 9
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor t1 terminated
        > wait 15s
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          master <- UPDATE_RESOURCES oversubscribed cpus:2
    "#]]);
}

#[test]
fn unused_resources_are_estimated() {
    replay(expect![[r#"
        > estimator usage
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus:4;mem:256
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:4.1;mem:288
        > t1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 1 <- LAUNCH t1
        > used C1 0s 100
        > wait 30s
        > used C1 30s 100
        > wait 30s
        > used C1 45s 100
        > ping
          master <- PONG
        > wait 15s
          master <- UPDATE_RESOURCES oversubscribed cpus:3
        > used C1 90s 100
        > wait 15s
          master <- UPDATE_RESOURCES oversubscribed cpus:1
        > ping
          master <- PONG
        > wait 15s
        > t1 exited 0
          conn 1 closes
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor t1 terminated delivered
        > used
        > wait 15s
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          master <- UPDATE_RESOURCES
    "#]]);
}

#[test]
fn memory_is_oversubscribed_only_if_enabled() {
    replay(expect![[r#"
        > estimator usage memory
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus:4;mem:256
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:4.1;mem:288
        > t1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 1 <- LAUNCH t1
        > used C1 0s 100
        > wait 60s
        > used C1 60s 100
        > wait 15s
          master <- UPDATE_RESOURCES oversubscribed cpus:3 oversubscribed mem:128
    "#]]);
}

#[test]
fn high_load_evicts_all_revocable_tasks() {
    replay(expect![[r#"
        > controller load 4 -
        > has cpus(ads):4;cpus:4
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus:1
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:1.1;mem:32
        > launch t2 needs=cpus~:1
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:0.1;cpus:1;mem:32
        > launch t3 needs=cpus^:1 framework=G
          container launch C3 cpus:0.1;cpus:1;mem:32
        > load 4 9
        > load 4.1 0
          = executor t2 terminating
          container destroy C2
          container destroy C3
        > load 4.1 0
        > t2 exited 9
          = update t2#0 TASK_GONE
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
          = executor t2 terminated
    "#]]);
}

#[test]
fn fifteen_minute_load_average_triggers_evictions() {
    replay(expect![[r#"
        > controller load - 2
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t2 needs=cpus~:1
          = framework F
          = executor t2 live
          = task t2 of executor t2
          container launch C1 cpus:0.1;cpus:1;mem:32
        > load 9 2
        > load 0 2.5
          = executor t2 terminating
          container destroy C1
    "#]]);
}

#[test]
fn pressure_evicts_revocable_tasks_one_at_a_time() {
    replay(expect![[r#"
        > controller pressure 50 10
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus~:1
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:0.1;cpus:1;mem:32
        > wait 1s
        > launch t2 needs=cpus~:1
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:0.1;cpus:1;mem:32
        > wait 1s
        > launch t3 needs=cpus:1
          = executor t3 live
          = task t3 of executor t3
          container launch C3 cpus:1.1;mem:32
        > pressure 50 10
        > pressure 51 0
          = executor t2 terminating
          container destroy C2
        > pressure 99 99
        > t2 exited 9
          = update t2#0 TASK_GONE
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
          = executor t2 terminated
        > pressure - -
        > pressure 0 11
          = executor t1 terminating
          container destroy C1
        > pressure 99 99
    "#]]);
}

#[test]
fn qos_corrections_are_rate_limited() {
    replay(expect![[r#"
        > controller pressure 50 10
        > pause 30s
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus~:1
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:0.1;cpus:1;mem:32
        > launch t2 needs=cpus~:1
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:0.1;cpus:1;mem:32
        > pressure 99 0
          = executor t2 terminating
          container destroy C2
        > t2 exited 9
          = update t2#0 TASK_GONE
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
          = executor t2 terminated
        > wait 29s
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
        > pressure 99 0
        > wait 1s
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
        > pressure 99 0
          = executor t1 terminating
          container destroy C1
    "#]]);
}

#[test]
fn qos_corrections_shut_executors_with_their_own_grace_period_down() {
    replay(expect![[r#"
            > controller load 4 -
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
            > launch t1 needs=cpus~:1 executor=e1 grace=3s
              = framework F
              = executor e1 live
              = task t1 of executor e1
              container launch C1 cpus:0.5;cpus:1;mem:32
            > e1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED e1
              = executor e1 live delivered
              conn 1 <- LAUNCH t1
            > launch t2 needs=cpus~:1 executor=e2 grace=3s
              = executor e2 live
              = task t2 of executor e2
              container launch C2 cpus:0.5;cpus:1;mem:32
            > load 5 0
              = executor e1 terminating delivered
              conn 1 <- SHUTDOWN
              = executor e2 terminating
              container signal C2 15
            > e1 update t1 KILLED
              = update t1#0 TASK_GONE
              master <- UPDATE t1 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
                  correction'
              conn 1 <- ACKNOWLEDGED t1
              conn 2 <- 202
            > wait 5s
              container destroy C1
              container destroy C2
        "#]]);
}

#[test]
fn pressure_preempts_no_other_executor_within_a_grace_period() {
    replay(expect![[r#"
        > controller pressure 50 10
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 needs=cpus~:1 executor=e1 grace=3s
          = framework F
          = executor e1 live
          = task t1 of executor e1
          container launch C1 cpus:0.5;cpus:1;mem:32
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
        > launch t2 needs=cpus~:1 executor=e2 grace=3s
          = executor e2 live
          = task t2 of executor e2
          container launch C2 cpus:0.5;cpus:1;mem:32
        > e2 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED e2
          = executor e2 live delivered
          conn 2 <- LAUNCH t2
        > pressure 99 0
          = executor e2 terminating delivered
          conn 2 <- SHUTDOWN
        > wait 2s
        > pressure 99 0
        > e2 exited 0
          conn 2 closes
          = update t2#0 TASK_GONE
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Container preempted by QoS
              correction'
          = executor e2 terminated delivered
          master <- EXITED_EXECUTOR e2 status 0
        > pressure 99 0
          = executor e1 terminating delivered
          conn 1 <- SHUTDOWN
    "#]]);
}
