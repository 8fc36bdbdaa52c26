//! Restarts at every point of a task's life: nothing is launched twice, no update is lost.

use expect_test::expect;

use super::driver::replay_ready;

#[test]
fn running_task_survives_an_agent_restart() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > t1 launched 7
        > t1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 1 <- LAUNCH t1
        > t1 update t1 RUNNING
          = update t1#0 TASK_RUNNING
          master <- UPDATE t1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > restart
          container recover C1
        > t1 subscribe
          conn 3 <- 503: Agent has not finished recovery
        > recovered
        > t1 update t1 FINISHED
          conn 4 <- 503: Agent has not finished recovery
        > t1 subscribe updates=t1:RUNNING:t1RUNNING,t1:FINISHED:fin
          conn 5 <- 200, open
          conn 5 <- SUBSCRIBED t1
          conn 5 <- ACKNOWLEDGED t1
          = update t1#1 TASK_FINISHED
          conn 5 <- ACKNOWLEDGED t1
          container update C1 cpus:0.1;mem:32
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE S0 task t1 TASK_FINISHED
          master <- UPDATE t1 TASK_RUNNING latest TASK_FINISHED
        > ack t1
          = update t1#0 TASK_RUNNING acknowledged
          master <- UPDATE t1 TASK_FINISHED
        > ack t1
          = task t1 and updates #0..2 removed
        > t1 exited 0
          conn 5 closes
          = executor t1 terminated delivered
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
        > store
          agent
          boot_id
          history/00000000000000000001
          history/00000000000000000002
          history/00000000000000000003
          path//w/slaves/S0/frameworks/F
          path//w/slaves/S0/frameworks/F/executors/t1
          path//w/slaves/S0/frameworks/F/executors/t1/runs/C1
    "#]]);
}

#[test]
fn queued_tasks_are_delivered_after_a_restart() {
    replay_ready(expect![[r#"
        > group e1 a,b
        ...
        > launch t1 executor=e2
          = executor e2 live
          = task t1 of executor e2
          container launch C2 cpus:1.5;mem:96
        > launch t2 executor=e2 old
          = task t2 of executor e2
        > restart
          container recover C1 C2
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE S0 task a TASK_STAGING task b TASK_STAGING task t1 TASK_STAGING
              task t2 TASK_STAGING executor e1 executor e2
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          container update C1 cpus:2.5;mem:160
          = executor e1 live delivered
          conn 1 <- LAUNCH_GROUP a,b
        > e2 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED e2
          container update C2 cpus:2.5;mem:160
          = executor e2 live delivered
          conn 2 <- LAUNCH t1
          conn 2 <- LAUNCH t2
    "#]]);
}

#[test]
fn undelivered_task_is_dropped_after_a_restart() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        ...
        > restart
          container recover C1
        > recovered
        > e1 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED e1
          = update t1#0 TASK_DROPPED
          container update C1 cpus:0.5;mem:32
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE S0 task t1 TASK_DROPPED executor e1
          master <- UPDATE t1 TASK_DROPPED REASON_AGENT_RESTARTED 'Task launched during agent
              restart'
    "#]]);
}

#[test]
fn executor_missing_its_reregistration_is_destroyed() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
        > restart
          container recover C1
        > recovered
        > wait 2s
          = executor t1 terminating delivered
          container destroy C1
          = boot id boot-1
        > t1 exited 9
          = update t1#1 TASK_GONE
          = executor t1 terminated delivered
        > go
          connect link 1
          master <- SUBSCRIBE S0 task t1 TASK_GONE
          master <- UPDATE t1 TASK_RUNNING latest TASK_GONE
    "#]]);
}

#[test]
fn container_exit_during_a_restart_fails_its_tasks() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        > e1 update t1 RUNNING
        ...
        > restart
          container recover C1
        > recovered C1
          = update t1#1 TASK_FAILED
          = executor e1 terminated delivered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE S0 task t1 TASK_FAILED
          master <- UPDATE t1 TASK_RUNNING latest TASK_FAILED
        > ack t1
          = update t1#0 TASK_RUNNING acknowledged
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
        > ack t1
          = task t1 and updates #0..2 removed
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn undelivered_command_task_is_dropped_after_a_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > restart
        ...
        > recovered
        > t1 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED t1
          = update t1#0 TASK_DROPPED
          container update C1 cpus:0.1;mem:32
          = executor t1 terminating delivered
          conn 2 <- SHUTDOWN
          = boot id boot-1
    "#]]);
}

#[test]
fn undelivered_group_is_dropped_after_a_restart() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > e1 subscribe
        ...
        > restart
          container recover C1
        > recovered
        > e1 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED e1
          = update a#0 TASK_DROPPED
          = update b#0 TASK_DROPPED
          container update C1 cpus:0.5;mem:32
          = executor e1 terminating delivered
          conn 2 <- SHUTDOWN
          = boot id boot-1
    "#]]);
}

/// The agent crashes when it has recorded the framework's shutdown, and not yet that its updates are no longer
/// needed.
#[test]
fn interrupted_framework_shutdown_is_completed_after_a_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 launched 7
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
        > save update/
        > shutdown framework F
          = framework F terminating
          = updates t1#0..1 removed
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > put back
        > restart
          container recover C1
        > recovered all
          = executor t1 terminated delivered
          = updates t1#0..1 removed
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = boot id boot-1
        > store
          agent
          boot_id
          history/00000000000000000001
          history/00000000000000000002
          history/00000000000000000003
          path//w/slaves/S0/frameworks/F
          path//w/slaves/S0/frameworks/F/executors/t1
          path//w/slaves/S0/frameworks/F/executors/t1/runs/C1
    "#]]);
}
