//! The main path: subscribe, launch, run, report, acknowledge, end.

use expect_test::expect;

use super::driver::replay;

#[test]
fn command_task_lifecycle() {
    replay(expect![[r#"
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:1.1;mem:96
        > t1 launched 77
        > t1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 1 <- LAUNCH t1
        > t1 update t1 STARTING
          = update t1#0 TASK_STARTING
          master <- UPDATE t1 TASK_STARTING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > t1 update t1 RUNNING
          = update t1#1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
        > ack t1
          = update t1#0 TASK_STARTING acknowledged
          master <- UPDATE t1 TASK_RUNNING
        > ack t1
          = update t1#1 TASK_RUNNING acknowledged
        > t1 update t1 FINISHED
          = update t1#2 TASK_FINISHED
          master <- UPDATE t1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 4 <- 202
          container update C1 cpus:0.1;mem:32
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
        > ack t1
          = task t1 and updates #0..3 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}
