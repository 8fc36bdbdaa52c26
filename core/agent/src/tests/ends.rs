//! Updates, acknowledgements and the end of executors.

use expect_test::expect;

use super::driver::{replay, replay_ready};

/// A framework that launches under the id of a task has acknowledged its end, though the agent has not received that.
#[test]
fn relaunch_with_a_reused_task_id_is_a_new_task() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        ...
        > e1 update t1 FINISHED
          = update t1#0 TASK_FINISHED
          master <- UPDATE t1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
          container update C1 cpus:0.5;mem:32
        > launch t1 executor=e1 old
          = task t1 and updates #0..1 removed
          = task t1 of executor e1
          container update C1 cpus:1.5;mem:96
          conn 1 <- LAUNCH t1
        > e1 update t1 FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
        > e1 update t1 FAILED
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED
          conn 1 <- ACKNOWLEDGED t1
          conn 4 <- 202
          container update C1 cpus:0.5;mem:32
        > down
        > wait 1s
          connect link 2
        > up
          master <- SUBSCRIBE S0 task t1 TASK_FAILED executor e1
        > subscribed missing=t1 ended
          master <- UPDATE t1 TASK_FAILED
          = task t1 and updates #0..1 removed
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
    "#]]);
}

#[test]
fn repeated_updates_and_acknowledgements_are_ignored() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > t1 update t1 RUNNING
          = update t1#0 TASK_RUNNING
          master <- UPDATE t1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > t1 update t1 RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
        > ack t1 uuid=other
        > ack t1
          = update t1#0 TASK_RUNNING acknowledged
        > ack t1
        > t1 update t1 RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 4 <- 202
        > t1 update t1 FINISHED
          = update t1#1 TASK_FINISHED
          master <- UPDATE t1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 5 <- 202
          container update C1 cpus:0.1;mem:32
        > t1 update t1 FAILED
          conn 1 <- ACKNOWLEDGED t1
          conn 6 <- 202
        > t1 update t9 RUNNING
          conn 1 <- ACKNOWLEDGED t9
          conn 7 <- 202
    "#]]);
}

#[test]
fn an_update_is_retried_until_it_is_acknowledged() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
        > wait 10s
          master <- UPDATE t1 TASK_RUNNING
        > ping
          master <- PONG
        > wait 20s
          master <- UPDATE t1 TASK_RUNNING
        > t1 update t1 FINISHED
          = update t1#1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
          container update C1 cpus:0.1;mem:32
        > ping in order
          master <- PONG in order
        > wait 40s
          master <- UPDATE t1 TASK_RUNNING latest TASK_FINISHED
        > ack t1
          = update t1#0 TASK_RUNNING acknowledged
          master <- UPDATE t1 TASK_FINISHED
        > framework F renamed
          = framework F
          master <- UPDATE t1 TASK_FINISHED
    "#]]);
}

#[test]
fn executor_exit_fails_its_tasks() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > launch t2 executor=e1 old
        > e1 subscribe
        > launch t3 executor=e1 old
        > e1 update t1 FINISHED
        ...
        > e1 exited 256
          conn 1 closes
          = update t2#0 TASK_FAILED
          master <- UPDATE t2 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = update t3#0 TASK_FAILED
          master <- UPDATE t3 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 256
        > ack t1
          = task t1 and updates #0..1 removed
        > ack t2
          = task t2 and updates #0..1 removed
        > ack t3
          = task t3 and updates #0..1 removed
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn container_limitation_is_the_reason_of_the_task() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > t1 exited 9 state=FAILED oom message=memory
          conn 1 closes
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY 'memory'
          = executor t1 terminated delivered
    "#]]);
}

#[test]
fn executor_calls_of_unknown_or_unsubscribed_senders_are_rejected() {
    replay_ready(expect![[r#"
        > t1 subscribe
          conn 1 <- 400: Framework cannot be found
        > t1 heartbeat
          conn 2 <- 202
        > launch t1
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:1.1;mem:96
        > t1 update t1 RUNNING
          conn 3 <- 403: Executor is not subscribed
        > t1 subscribe
          conn 4 <- 200, open
          conn 4 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 4 <- LAUNCH t1
        > t1 update t1 STAGING
          conn 5 <- 400: Failed to validate Executor::Call: Received TASK_STAGING from executor
              t1 of framework F which is not allowed
        > t1 subscribe framework=X
          conn 6 <- 400: Framework cannot be found
        > e9 subscribe
          conn 7 <- 400: Executor cannot be found
        > t1 message hello
          master <- MESSAGE of t1 (5 bytes)
          conn 8 <- 202
        > message t1 hello
          conn 4 <- MESSAGE (5 bytes)
        > t1 close
        > message t1 hello
    "#]]);
}

#[test]
fn a_second_stream_closes_the_first() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > t1 subscribe tasks=t1
          conn 2 <- 200, open
          conn 1 closes
          conn 2 <- SUBSCRIBED t1
        > wait 1800s
          connect link 2
          conn 2 <- HEARTBEAT
    "#]]);
}

#[test]
fn updates_in_a_subscription_are_validated() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > t1 subscribe tasks=t1 updates=t1:STAGING:x
          conn 2 <- 200, open
          conn 1 closes
          conn 2 <- SUBSCRIBED t1
          = executor t1 terminating delivered
          conn 2 <- SHUTDOWN
    "#]]);
}

/// Where memory is limited, the end of a task waits until the container was examined, and everything else behind it.
#[test]
fn oom_kill_is_the_reason_of_a_task_that_fails_or_finishes() {
    replay(expect![[r#"
        > isolation cgroups/mem
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 executor=e1
          = framework F
          = executor e1 live
          = task t1 of executor e1
          container launch C1 cpus:1.5;mem:96
        > launch t2 executor=e1 old
          = task t2 of executor e1
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          container update C1 cpus:2.5;mem:160
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
          conn 1 <- LAUNCH t2
        > e1 update t1 FAILED
          container examine C1
          conn 2 <- 202
        > e1 update t2 FAILED
          conn 3 <- 202
        > container C1 examined Memory limit exceeded
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY 'Memory limit exceeded'
          conn 1 <- ACKNOWLEDGED t1
          container examine C1
          container update C1 cpus:1.5;mem:96
        > container C1 examined
          = update t2#0 TASK_FAILED
          master <- UPDATE t2 TASK_FAILED
          conn 1 <- ACKNOWLEDGED t2
          container update C1 cpus:0.5;mem:32
        > launch t3 executor=e1 old
          = task t3 of executor e1
          container update C1 cpus:1.5;mem:96
          conn 1 <- LAUNCH t3
        > e1 update t3 FINISHED
          = update t3#0 TASK_FINISHED
          master <- UPDATE t3 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t3
          conn 4 <- 202
          container update C1 cpus:0.5;mem:32
        > launch t4
          = executor t4 live
          = task t4 of executor t4
          container launch C2 cpus:1.1;mem:96
        > t4 subscribe
          conn 5 <- 200, open
          conn 5 <- SUBSCRIBED t4
          = executor t4 live delivered
          conn 5 <- LAUNCH t4
        > t4 update t4 FINISHED
          container examine C2
          conn 6 <- 202
        > container C2 examined Memory limit exceeded
          = update t4#0 TASK_FAILED
          master <- UPDATE t4 TASK_FAILED REASON_CONTAINER_LIMITATION_MEMORY 'Memory limit exceeded'
          conn 5 <- ACKNOWLEDGED t4
          container update C2 cpus:0.1;mem:32
    "#]]);
}

#[test]
fn container_exit_during_examination_completes_the_update() {
    replay(expect![[r#"
        > isolation cgroups/mem
        > start
        > recovered
        > go
        > launch t1 executor=e1
        ...
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
        > e1 update t1 FAILED
          container examine C1
          conn 2 <- 202
        > container C1 exited 256
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED
          conn 1 <- ACKNOWLEDGED t1
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 256
    "#]]);
}
