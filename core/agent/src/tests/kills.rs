//! Kills and shutdowns.

use expect_test::expect;

use super::driver::replay_ready;

#[test]
fn kill_before_executor_registration_terminates_the_task() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > kill t1
          = update t1#0 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED REASON_TASK_KILLED_DURING_LAUNCH 'Killed before delivery
              to the executor'
        > t1 subscribe
          conn 1 <- 200, open
          = executor t1 terminating
          conn 1 <- SHUTDOWN
        > wait 6s
          container destroy C1
        > t1 exited 9
          conn 1 closes
          = executor t1 terminated
        > ack t1
          = task t1 and updates #0..1 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn kill_before_delivery_kills_the_whole_group() {
    replay_ready(expect![[r#"
        > group e1 a,b
        ...
        > kill b
          = update a#0 TASK_KILLED
          master <- UPDATE a TASK_KILLED REASON_TASK_KILLED_DURING_LAUNCH 'A task within the
              task group was killed before delivery to the executor'
          = update b#0 TASK_KILLED
          master <- UPDATE b TASK_KILLED REASON_TASK_KILLED_DURING_LAUNCH 'A task within the
              task group was killed before delivery to the executor'
    "#]]);
}

#[test]
fn kill_is_forwarded_to_the_running_executor() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > kill t1 grace=3s
          = task t1 of executor t1
          conn 1 <- KILL t1 grace 3000000000ns
        > t1 update t1 KILLED
          = update t1#0 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
          container update C1 cpus:0.1;mem:32
        > kill t1
    "#]]);
}

#[test]
fn kill_is_delivered_when_the_executor_resubscribes() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        ...
        > e1 update t1 RUNNING
          = update t1#0 TASK_RUNNING
          master <- UPDATE t1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > e1 close
        > kill t1
          = task t1 of executor e1
        > launch t2 executor=e1 old
          = task t2 of executor e1
          container update C1 cpus:2.5;mem:160
        > e1 subscribe tasks=t1
          conn 3 <- 200, open
          conn 3 <- SUBSCRIBED e1
          = task t2 of executor e1
          conn 3 <- LAUNCH t2
          conn 3 <- KILL t1
    "#]]);
}

#[test]
fn kill_of_an_unknown_task_is_task_dropped() {
    replay_ready(expect![[r#"
        > kill t1
        > launch t2
          = framework F
          = executor t2 live
          = task t2 of executor t2
          container launch C1 cpus:1.1;mem:96
        > kill t1
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Cannot find executor'
        > kill t1
    "#]]);
}

#[test]
fn executor_shutdown_has_a_grace_period() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        ...
        > shutdown executor e1
          = executor e1 terminating delivered
          conn 1 <- SHUTDOWN
        > e1 update t1 KILLED
          = update t1#0 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > wait 5s
          container destroy C1
        > e1 exited 9
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
        > ack t1
          = task t1 and updates #0..1 removed
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn framework_shutdown_sends_no_updates() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        ...
        > launch t2
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:1.1;mem:96
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
        > e1 update t1 RUNNING
          = update t1#0 TASK_RUNNING
          master <- UPDATE t1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > shutdown framework F
          = framework F terminating
          = updates t1#0..1 removed
          = executor e1 terminating delivered
          conn 1 <- SHUTDOWN
          = executor t2 terminating
        > e1 update t1 KILLED
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
        > t2 subscribe
          conn 4 <- 200, open
          conn 4 <- SHUTDOWN
          conn 4 closes
        > e1 exited 0
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 0
          = task t1 and updates #0..0 removed
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
        > t2 exited 0
          = executor t2 terminated
          = task t2 and updates #0..0 removed
          = executor t2 removed
          = path /w/slaves/S0/frameworks/F/executors/t2/runs/C2 unused
          = path /w/slaves/S0/frameworks/F/executors/t2 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn terminating_frameworks_are_not_reported() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > shutdown framework F
          = framework F terminating
          = executor t1 terminating
        > down
        > wait 5s
          connect link 2
          container destroy C1
        > up
          master <- SUBSCRIBE S0
        > subscribed
        > launch t2
          = update t2#0 TASK_DROPPED
          master <- UPDATE t2 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Framework terminating'
        > ack t2
          = task t2 and updates #0..1 removed
        > t1 exited 0
          = executor t1 terminated
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
        > launch t3
          = path /w/slaves/S0/frameworks/F forgotten
          = framework F
          = history [3] removed
          = executor t3 live
          = task t3 of executor t3
          container launch C2 cpus:1.1;mem:96
    "#]]);
}

#[test]
fn unregister_kills_tasks_and_exits() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > unregister
          master <- UNREGISTER
          = framework F terminating
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = path /w/slaves/S0 unused
          = discarded agent resources drain history/00000000000000000001 history/00000000000000000002
              history/00000000000000000003
          exit: all frameworks removed
    "#]]);
}

/// Whatever the link does, nothing new begins on an agent that leaves, and nothing keeps it.
#[test]
fn unregister_without_a_link_completes() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > down
        > unregister
          = framework F terminating
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > wait 60s
          container destroy C1
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = path /w/slaves/S0 unused
          = discarded agent resources drain history/00000000000000000001 history/00000000000000000002
              history/00000000000000000003
          exit: all frameworks removed
    "#]]);
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > down
        > wait 5s
          connect link 2
        > up
          master <- SUBSCRIBE S0 task t1 TASK_STAGING
        > unregister
          = framework F terminating
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > subscribed missing=t1
          master <- UNREGISTER
        > down
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = path /w/slaves/S0 unused
          = discarded agent resources drain history/00000000000000000001 history/00000000000000000002
              history/00000000000000000003
          exit: all frameworks removed
    "#]]);
}

#[test]
fn shutdown_kills_all_tasks_and_exits() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > shutdown
          = framework F terminating
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > launch t2
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
          = task t1 and updates #0..0 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = path /w/slaves/S0 unused
          = discarded agent resources drain history/00000000000000000001 history/00000000000000000002
              history/00000000000000000003
          exit: all frameworks removed
        > store
          boot_id
          path//w/slaves/S0
          path//w/slaves/S0/frameworks/F
          path//w/slaves/S0/frameworks/F/executors/t1
          path//w/slaves/S0/frameworks/F/executors/t1/runs/C1
    "#]]);
}
