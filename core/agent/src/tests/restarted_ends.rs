//! Restarts of an agent that is ending something, or itself: what was begun is brought to its end.

use expect_test::expect;

use super::driver::replay_ready;

#[test]
fn executor_shutdown_survives_an_agent_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > shutdown executor t1
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > restart
          container recover C1
        > recovered
          = boot id boot-1
        > wait 5s
          connect link 1
          container destroy C1
        > t1 subscribe
          conn 2 <- 200, open
          conn 2 <- SHUTDOWN
          conn 2 closes
        > t1 exited 0
          = update t1#0 TASK_FAILED
          = executor t1 terminated delivered
    "#]]);
}

#[test]
fn recover_cleanup_destroys_all_executors_and_exits() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
        > cleanup
        > restart
          container recover C1
        > recovered
          = framework F terminating
          = updates t1#0..1 removed
          = executor t1 terminating delivered
        > wait 5s
          container destroy C1
        > t1 exited 9
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

#[test]
fn draining_survives_an_agent_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
        > drain
          = drain
          = task t1 of executor t1
          conn 1 <- KILL t1
        > restart
          container recover C1
        > recovered
        > t1 subscribe
          conn 3 <- 200, open
          conn 3 <- SUBSCRIBED t1
          container update C1 cpus:1.1;mem:96
          conn 3 <- KILL t1
          = boot id boot-1
          conn 3 <- KILL t1
    "#]]);
}

#[test]
fn unregister_waits_for_container_recovery() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > restart
          container recover C1
        > unregister
        > recovered all
          = update t1#0 TASK_FAILED
          = executor t1 terminated delivered
          = framework F terminating
          = updates t1#0..1 removed
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
fn unregister_during_executor_reregistration_completes() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > restart
        ...
        > recovered
        > unregister
          = framework F terminating
          = executor t1 terminating delivered
        > wait 10s
          container destroy C1
        > t1 exited 9
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
fn framework_shutdown_survives_an_agent_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > shutdown framework F
          = framework F terminating
          = executor t1 terminating delivered
          conn 1 <- SHUTDOWN
        > restart
          container recover C1
        > recovered
          = boot id boot-1
        > wait 1s
          connect link 1
        > up
          master <- SUBSCRIBE S0
        > subscribed missing=t1
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
        > ack t1
          = task t1 and updates #0..1 removed
        > t1 exited 0
          = executor t1 terminated delivered
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
    "#]]);
}

#[test]
fn pending_kill_survives_an_agent_restart() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > t1 close
        > kill t1 grace=3s
          = task t1 of executor t1
        > kill t1 grace=3s
        > restart
          container recover C1
        > recovered
        > t1 subscribe tasks=t1
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED t1
          container update C1 cpus:1.1;mem:96
          conn 2 <- KILL t1 grace 3000000000ns
          = boot id boot-1
    "#]]);
}
