//! What can become of a launch before its executor runs.

use expect_test::expect;

use super::driver::{replay, replay_ready};

#[test]
fn custom_executor_runs_several_tasks() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        ...
        > launch t2 executor=e1 old
          = task t2 of executor e1
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          container update C1 cpus:2.5;mem:160
          = executor e1 live delivered
          conn 1 <- LAUNCH t1
          conn 1 <- LAUNCH t2
        > launch t3 executor=e1 old
          = task t3 of executor e1
          container update C1 cpus:3.5;mem:224
          conn 1 <- LAUNCH t3
        > e1 update t1 FINISHED
          = update t1#0 TASK_FINISHED
          master <- UPDATE t1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
          container update C1 cpus:2.5;mem:160
    "#]]);
}

/// The agent must have the container's process before statuses name it.
#[test]
fn early_executor_subscription_waits_for_the_launch_report() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        ...
        > e1 subscribe early
        > e1 subscribe early
          conn 1 <- 200, open
          conn 1 closes
        > e1 launched 7
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 2 <- LAUNCH t1
        > launch t2 executor=e2
          = executor e2 live
          = task t2 of executor e2
          container launch C2 cpus:1.5;mem:96
        > e2 subscribe early
        > e2 close
        > e2 launched 8
        > e2 subscribe
          conn 4 <- 200, open
          conn 4 <- SUBSCRIBED e2
          = executor e2 live delivered
          conn 4 <- LAUNCH t2
        > launch t3 executor=e3
          = executor e3 live
          = task t3 of executor e3
          container launch C3 cpus:1.5;mem:96
        > e3 subscribe early
        > e3 failed start boom
          = update t3#0 TASK_FAILED
          master <- UPDATE t3 TASK_FAILED REASON_CONTAINER_LAUNCH_FAILED 'Failed to launch container:
              boom'
          = executor e3 terminated
          master <- EXITED_EXECUTOR e3 status -1
          conn 5 <- 200, open
          conn 5 <- SHUTDOWN
          conn 5 closes
    "#]]);
}

#[test]
fn a_group_is_delivered_as_one() {
    replay_ready(expect![[r#"
        > group e1 a,b
          = framework F
          = executor e1 live
          = task a of executor e1
          = task b of executor e1
          container launch C1 cpus:2.5;mem:160
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH_GROUP a,b
        > group e1 c,d old
          = task c of executor e1
          = task d of executor e1
          container update C1 cpus:4.5;mem:288
          conn 1 <- LAUNCH_GROUP c,d
    "#]]);
}

#[test]
fn executor_existence_is_validated_on_launch() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1 old
          = framework F
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Executor does not exist
              any more'
        > ack t1
          = task t1 and updates #0..1 removed
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
        > launch t2 executor=e1
          = path /w/slaves/S0/frameworks/F forgotten
          = framework F
          = history [1] removed
          = executor e1 live
          = task t2 of executor e1
          container launch C1 cpus:1.5;mem:96
        > launch t3 executor=e1
          = update t3#0 TASK_DROPPED
          master <- UPDATE t3 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Executor is to be launched
              but already exists'
          = executor e1 terminating
          master <- EXITED_EXECUTOR e1 status -1
        > launch e1
          = update e1#0 TASK_DROPPED
          master <- UPDATE e1 TASK_DROPPED REASON_TASK_INVALID 'Cannot reuse an already existing
              executor for a command task'
        > e1 exited 0
          = update t2#0 TASK_FAILED
          master <- UPDATE t2 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor e1 terminated
          master <- EXITED_EXECUTOR e1 status 0
        > launch t4 executor=e1 old
          = update t4#0 TASK_DROPPED
          master <- UPDATE t4 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Executor terminated'
    "#]]);
}

#[test]
fn task_lost_replaces_task_dropped_without_partition_awareness() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1 old framework=G
          master <- UPDATE t1 TASK_LOST REASON_EXECUTOR_TERMINATED 'Executor does not exist any
              more'
        > ack t1 framework=G
          = path /w/slaves/S0/frameworks/G unused
    "#]]);
}

#[test]
fn duplicate_launch_of_a_task_is_ignored() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > launch t1
    "#]]);
}

#[test]
fn launch_with_unknown_reservation_is_rejected() {
    replay_ready(expect![[r#"
        > launch t1 reserved
          = framework F
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_RESOURCES_UNKNOWN 'Task uses resources that
              the agent does not have'
        > operation o1 RESERVE cpus:1
          = operation OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > launch t2 reserved
          = executor t2 live
          = task t2 of executor t2
          container launch C1 cpus:0.1;cpus:1;mem:32
    "#]]);
}

#[test]
fn limits_without_isolator_are_rejected() {
    replay_ready(expect![[r#"
        > launch t1 limits=mem:128
          = framework F
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_TASK_INVALID 'A limit on 'mem' needs the isolator
              'cgroups/mem', which this agent lacks'
    "#]]);
    replay(expect![[r#"
        > isolation cgroups/cpu,cgroups/mem
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch t1 limits=mem:128
          = framework F
          = executor t1 live
          = task t1 of executor t1
          container launch C1 cpus:1.1;mem:96
    "#]]);
}

#[test]
fn failed_launch_reports_its_stage_and_message() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > t1 failed sandbox Failed to create executor directory '/w/x': No such user
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_EXECUTOR_TERMINATED 'Failed to create executor
              directory '/w/x': No such user'
          = executor t1 terminated
        > launch t2
          = executor t2 live
          = task t2 of executor t2
          container launch C2 cpus:1.1;mem:96
        > t2 failed fetch Failed to fetch all URIs
          = update t2#0 TASK_FAILED
          master <- UPDATE t2 TASK_FAILED REASON_CONTAINER_LAUNCH_FAILED 'Failed to launch container:
              Failed to fetch all URIs'
          = executor t2 terminated
        > launch t3 executor=e3
          = executor e3 live
          = task t3 of executor e3
          container launch C3 cpus:1.5;mem:96
        > e3 failed start out of processes
          = update t3#0 TASK_FAILED
          master <- UPDATE t3 TASK_FAILED REASON_CONTAINER_LAUNCH_FAILED 'Failed to launch container:
              out of processes'
          = executor e3 terminated
          master <- EXITED_EXECUTOR e3 status -1
    "#]]);
}

#[test]
fn executor_registration_timeout_kills_the_container() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > wait 59s
        > wait 2s
          = executor t1 terminating
          container destroy C1
        > t1 exited 9
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_REGISTRATION_TIMEOUT 'Executor did
              not register within 1mins'
          = executor t1 terminated
    "#]]);
}

#[test]
fn executor_registration_timeout_cancels_the_fetch() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > wait 61s
          = executor t1 terminating
          container destroy C1
        > t1 failed fetch Container destroyed while fetching
          = update t1#0 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_REGISTRATION_TIMEOUT 'Executor did
              not register within 1mins; Container destroyed while fetching'
          = executor t1 terminated
    "#]]);
}

#[test]
fn failed_container_update_terminates_the_executor() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        ...
        > launch t2 executor=e1 old
          = task t2 of executor e1
          container update C1 cpus:2.5;mem:160
          conn 1 <- LAUNCH t2
        > e1 unfit no such cgroup
          = executor e1 terminating delivered
          container destroy C1
        > e1 exited 9
          conn 1 closes
          = update t1#0 TASK_GONE
          master <- UPDATE t1 TASK_GONE REASON_CONTAINER_UPDATE_FAILED 'Failed to update resources
              for container: no such cgroup'
          = update t2#0 TASK_GONE
          master <- UPDATE t2 TASK_GONE REASON_CONTAINER_UPDATE_FAILED 'Failed to update resources
              for container: no such cgroup'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
    "#]]);
}

#[test]
fn launches_are_rejected_while_draining() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > t1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED t1
          = executor t1 live delivered
          conn 1 <- LAUNCH t1
        > drain grace=5s
          = drain
          = task t1 of executor t1
          conn 1 <- KILL t1 grace 5000000000ns
        > launch t2
          = update t2#0 TASK_DROPPED
          master <- UPDATE t2 TASK_DROPPED REASON_AGENT_DRAINING 'Task was received while agent
              was already draining'
        > t1 update t1 KILLED
          = update t1#0 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED REASON_AGENT_DRAINING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
          container update C1 cpus:0.1;mem:32
        > ack t1
          = task t1 and updates #0..1 removed
        > t1 exited 0
          conn 1 closes
          = executor t1 terminated delivered
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
        > ack t2
          = task t2 and updates #0..1 removed
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
          = drained
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
fn a_drained_agent_marked_gone_logs_it() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        ...
        > drain gone
          = drain
          = task t1 of executor t1
          conn 1 <- KILL t1
        > t1 update t1 KILLING
          = update t1#0 TASK_KILLING
          master <- UPDATE t1 TASK_KILLING REASON_AGENT_DRAINING
          conn 1 <- ACKNOWLEDGED t1
          conn 2 <- 202
        > t1 update t1 KILLED
          = update t1#1 TASK_GONE_BY_OPERATOR
          conn 1 <- ACKNOWLEDGED t1
          conn 3 <- 202
          container update C1 cpus:0.1;mem:32
        > ack t1
          = update t1#0 TASK_KILLING acknowledged
          master <- UPDATE t1 TASK_GONE_BY_OPERATOR REASON_AGENT_DRAINING
        > ack t1
          = task t1 and updates #0..2 removed
    "#]]);
}

#[test]
fn task_without_resources_is_rejected() {
    replay_ready(expect![[r#"
        > launch t1 needs=
          = framework F
          = update t1#0 TASK_DROPPED
          master <- UPDATE t1 TASK_DROPPED REASON_TASK_INVALID 'A task without resources needs
              an agent with --best_effort_tasks'
    "#]]);
}
