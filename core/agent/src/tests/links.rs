//! The link with the master.

use expect_test::expect;

use super::driver::{replay, replay_ready};

#[test]
fn failed_link_is_retried_with_backoff() {
    replay(expect![[r#"
        > start
          container recover
        > recovered
          = boot id boot-1
        > wait 1s
          connect link 1
        > down
        > wait 2s
          connect link 2
        > down
        > wait 4s
          connect link 3
        > up
          master <- SUBSCRIBE new
        > down
        > wait 8s
          connect link 4
        > up
          master <- SUBSCRIBE new
        > subscribed
          = agent S0
        > down
        > wait 1s
          connect link 5
    "#]]);
}

#[test]
fn silent_link_times_out() {
    replay(expect![[r#"
        > start
        > recovered
        ...
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > wait 74s
        > ping
          master <- PONG
        > wait 74s
        > wait 2s
          connect link 2
        > up
          master <- SUBSCRIBE S0
        > wait 61s
    "#]]);
}

#[test]
fn tasks_unknown_to_the_agent_are_reported_missing() {
    replay(expect![[r#"
        > start
        > recovered
        ...
        > wait 1s
          connect link 1
        > up
          master <- SUBSCRIBE new
        > subscribed missing=t7 operation=9
          = agent S0
          master <- UPDATE t7 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
          = operation OPERATION_DROPPED
          master <- UPDATE_OPERATION OPERATION_DROPPED
          master <- UPDATE_RESOURCES
        > ack t7
        > down
        > wait 5s
          connect link 2
        > up
          master <- SUBSCRIBE S0 operation OPERATION_DROPPED
        > subscribed missing=t8
          master <- UPDATE_OPERATION OPERATION_DROPPED
          master <- UPDATE t8 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
        > shutdown framework F
        > wait 60s
          master <- UPDATE_OPERATION OPERATION_DROPPED
          master <- UPDATE_OPERATION OPERATION_DROPPED
    "#]]);
}

#[test]
fn executor_exit_during_subscription_is_reported() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
          = framework F
          = executor e1 live
          = task t1 of executor e1
          container launch C1 cpus:1.5;mem:96
        > down
        > wait 5s
          connect link 2
        > up
          master <- SUBSCRIBE S0 task t1 TASK_STAGING executor e1
        > e1 exited 0
          = update t1#0 TASK_FAILED
          = executor e1 terminated
          master <- EXITED_EXECUTOR e1 status 0
        > subscribed
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
    "#]]);
}

#[test]
fn subscription_under_another_agent_id_is_rejected() {
    replay_ready(expect![[r#"
        > down
        > wait 1s
          connect link 2
        > up
          master <- SUBSCRIBE S0
        > subscribed id=S1
          exit as failed: registered as S1 but this agent is S0: two agents share one work directory,
              or the master mixed them up
    "#]]);
}

#[test]
fn pending_updates_are_resent_on_a_new_link() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        ...
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
        > launch t2
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:1.1;mem:96
        > e1 update t1 RUNNING
          = update t1#0 TASK_RUNNING
          master <- UPDATE t1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > operation o1 RESERVE cpus:1
          = operation OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > down
        > e1 update t1 FINISHED
          = update t1#1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
          container update C1 cpus:0.5;mem:32
        > wait 1s
          connect link 2
        > up
          master <- SUBSCRIBE S0 task t1 TASK_FINISHED task t2 TASK_STAGING executor e1 operation
              OPERATION_FINISHED
        > subscribed
          master <- UPDATE t1 TASK_RUNNING latest TASK_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > operation o1 ack
          = operation removed
        > operation o1 ack
    "#]]);
}

#[test]
fn operations_are_reported_until_acknowledged() {
    replay_ready(expect![[r#"
        > operation o1 RESERVE disk:64
          = operation OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > operation o1 RESERVE disk:64
        > operation o2 CREATE disk:64
          = operation OPERATION_FINISHED
          container create volume /w/volumes/roles/dev/v
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > wait 10s
          master <- UPDATE_OPERATION OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > operation o1 ack
          = operation removed
        > operation o2 ack
          = operation removed
        > operation o3 DESTROY disk:64
          = operation OPERATION_FINISHED
          container destroy volume /w/volumes/roles/dev/v
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > operation o4 UNRESERVE disk:65
          = operation OPERATION_FAILED
          master <- UPDATE_OPERATION OPERATION_FAILED
          master <- UPDATE_RESOURCES
    "#]]);
}

/// A master without such an update would declare the task unknown, and its id could be reused too early.
#[test]
fn dropped_tasks_are_reported_until_acknowledged() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > subscribed missing=t7
          = update t7#0 TASK_DROPPED
          master <- UPDATE t7 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
        > restart
          container recover C1
        > recovered
          = boot id boot-1
        > wait 1s
          connect link 1
        > up
          master <- SUBSCRIBE S0 task t1 TASK_STAGING task t7 TASK_DROPPED
        > subscribed
          master <- UPDATE t7 TASK_DROPPED REASON_RECONCILIATION 'Task unknown to the agent'
        > ack t7
          = task t7 and updates #0..1 removed
        > down
        > wait 5s
          connect link 2
        > up
          master <- SUBSCRIBE S0 task t1 TASK_STAGING
    "#]]);
}
