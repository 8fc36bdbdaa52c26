//! Kills that an executor does not carry out.

use expect_test::expect;

use super::driver::replay_ready;

#[test]
fn executor_ignoring_a_kill_is_destroyed() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        > ack t1
        ...
        > kill t1 grace=2s
          = task t1 of executor t1
          conn 1 <- KILL t1 grace 2000000000ns
        > wait 11s
        > wait 1s
          = executor t1 terminating delivered
          container destroy C1
        > kill t1
        > t1 exited 9 oom message=limit
          conn 1 closes
          = update t1#1 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time; limit'
          = executor t1 terminated delivered
        > ack t1
          = task t1 and updates #0..2 removed
          = executor t1 removed
          = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/t1 unused
          = framework F removed
          = path /w/slaves/S0/frameworks/F unused
        > wait 60s
    "#]]);
}

#[test]
fn repeated_kill_only_shortens_the_grace_period() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > kill t1
        > wait 1s
        ...
        > kill t1 grace=60s
          = task t1 of executor t1
          conn 1 <- KILL t1 grace 60000000000ns
        > kill t1 grace=0s
          = task t1 of executor t1
          conn 1 <- KILL t1 grace 0ns
        > wait 9s
        > wait 1s
          = executor t1 terminating delivered
          container destroy C1
    "#]]);
}

#[test]
fn reused_task_id_has_its_own_kill_deadline() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > kill t1
        > t1 update t1 KILLED
        > ack t1
        > t1 exited 0
        > launch t1
        > t1 subscribe
        > wait 10s
        > kill t1
        ...
        > wait 14s
        > wait 1s
          = executor t1 terminating delivered
          container destroy C2
    "#]]);
}

#[test]
fn custom_executor_has_no_kill_deadline() {
    replay_ready(expect![[r#"
        > launch t1 executor=e1
        > e1 subscribe
        > kill t1
        ...
        > wait 600s
          connect link 2
    "#]]);
}

#[test]
fn overdue_kill_destroys_only_the_container_of_its_task() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > e1 subscribe
        > call launch C1.a
        > call launch C1.b
        > container C1.a launched 5
        > container C1.b launched 6
        > e1 update a RUNNING in=C1.a
        > e1 update b RUNNING in=C1.b
        > ack a
        > ack b
        > kill a
        ...
        > wait 15s
          container destroy C1.a
        > container C1.a exited 9
          = container C1.a ended
          = update a#1 TASK_KILLED
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = task b of executor e1
          conn 1 <- KILL b
          container update C1 cpus:1.5;mem:96
        > e1 update a FAILED in=C1.a
          conn 1 <- ACKNOWLEDGED a
          conn 6 <- 202
        > kill b
          conn 1 <- KILL b
        > wait 15s
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = executor e1 terminating delivered
          container destroy C1
        > e1 exited 9
          conn 1 closes
          = container C1.a removed
          = container C1.b removed
          = update b#1 TASK_KILLED
          master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
    "#]]);
}

#[test]
fn overdue_kill_before_start_terminates_the_group() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > e1 subscribe
        > kill a
        ...
        > wait 15s
          = update a#0 TASK_KILLED
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = task b of executor e1
          conn 1 <- KILL b
          container update C1 cpus:1.5;mem:96
        > kill b
          conn 1 <- KILL b
        > wait 14s
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
        > kill a
        > wait 1s
          = executor e1 terminating delivered
          container destroy C1
        > e1 exited 9
          conn 1 closes
          = update b#0 TASK_KILLED
          master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
    "#]]);
}

#[test]
fn overdue_executor_is_destroyed_after_its_last_task() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > e1 subscribe
        > kill a
        > wait 15s
        ...
        > e1 update b FINISHED
          = update b#0 TASK_FINISHED
          master <- UPDATE b TASK_FINISHED
          conn 1 <- ACKNOWLEDGED b
          conn 2 <- 202
          container update C1 cpus:0.5;mem:32
        > e1 exited 9
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 9
    "#]]);
}

#[test]
fn agent_restart_restarts_the_kill_deadline() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        > kill t1 grace=1s
        > wait 10s
        ...
        > restart
          container recover C1
        > recovered
        > t1 subscribe
          conn 3 <- 200, open
          conn 3 <- SUBSCRIBED t1
          container update C1 cpus:1.1;mem:96
          conn 3 <- KILL t1 grace 1000000000ns
          = boot id boot-1
        > wait 10s
          connect link 1
        > wait 1s
          = executor t1 terminating delivered
          container destroy C1
        > restart
          container recover C1
        > recovered
          = boot id boot-1
        > wait 5s
          connect link 1
          container destroy C1
    "#]]);
}

#[test]
fn a_killed_task_of_a_lost_executor_is_reported_as_killed() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        > kill t1
        > restart
        > recovered
        ...
        > wait 2s
          = executor t1 terminating delivered
          container destroy C1
          = boot id boot-1
        > t1 exited 9
          = update t1#1 TASK_KILLED
          = executor t1 terminated delivered
    "#]]);
}

#[test]
fn drain_destroys_an_executor_ignoring_its_kill() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > drain grace=1s
        ...
        > wait 11s
          = executor t1 terminating delivered
          container destroy C1
        > t1 exited 9
          conn 1 closes
          = update t1#0 TASK_KILLED
          master <- UPDATE t1 TASK_KILLED REASON_AGENT_DRAINING 'Killed by the agent: the executor
              did not kill the task in time'
          = executor t1 terminated delivered
    "#]]);
}

/// Two groups: the one of a task that was killed ends with it, and their executor stays for the other.
#[test]
fn executor_with_other_groups_is_not_destroyed() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > group e1 c old
        > e1 subscribe
        > kill a
        ...
        > wait 15s
          = update a#0 TASK_KILLED
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = task b of executor e1
          conn 1 <- KILL b
          container update C1 cpus:2.5;mem:160
        > wait 15s
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = update b#0 TASK_KILLED
          master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          container update C1 cpus:1.5;mem:96
        > e1 update a STARTING
          conn 1 <- ACKNOWLEDGED a
          conn 2 <- 202
        > e1 update c RUNNING
          = update c#0 TASK_RUNNING
          master <- UPDATE c TASK_RUNNING
          conn 1 <- ACKNOWLEDGED c
          conn 3 <- 202
        > wait 60s
          master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          master <- UPDATE c TASK_RUNNING
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          master <- UPDATE c TASK_RUNNING
          connect link 2
    "#]]);
}

/// It may be the task's: no update has named it.
#[test]
fn an_unrelated_container_does_not_terminate_the_task() {
    replay_ready(expect![[r#"
        > group e1 a,b
        > group e1 c old
        > e1 subscribe
        > call launch C1.x
        > container C1.x launched 5
        > kill a
        ...
        > wait 15s
        > e1 update b STARTING in=C1.x
          = update b#0 TASK_STARTING
          master <- UPDATE b TASK_STARTING
          conn 1 <- ACKNOWLEDGED b
          conn 3 <- 202
          = update a#0 TASK_KILLED
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          = task b of executor e1
          conn 1 <- KILL b
          container update C1 cpus:2.5;mem:160
        > kill b
          conn 1 <- KILL b
        > wait 15s
          master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
              executor did not kill the task in time'
          master <- UPDATE b TASK_STARTING
          container destroy C1.x
        > container C1.x exited 9
          = container C1.x ended
          = update b#1 TASK_KILLED
          container update C1 cpus:1.5;mem:96
    "#]]);
}

/// A terminal task does not start: the executor's update about its container before the launch is enough.
#[test]
fn container_of_a_terminated_task_is_not_launched() {
    replay_ready(expect![[r#"
        > group e1 a
        > group e1 c old
        > e1 subscribe
        > kill a
        > wait 15s
        > ack a
        ...
        > e1 update a STARTING in=C1.a
          conn 1 <- ACKNOWLEDGED a
          conn 2 <- 202
        > call launch C1.a
          conn 3 <- 400: The task of container C1.a has terminated
        > e1 update c STARTING in=C1.c
          = update c#0 TASK_STARTING
          master <- UPDATE c TASK_STARTING
          conn 1 <- ACKNOWLEDGED c
          conn 4 <- 202
        > call launch C1.c
          = container C1.c
          container launch C1.c
    "#]]);
}

/// The same if its launch was interrupted by the kill and is repeated.
#[test]
fn interrupted_launch_of_a_terminated_task_is_not_repeated() {
    replay_ready(expect![[r#"
        > group e1 a
        > group e1 c old
        > e1 subscribe
        > e1 update a STARTING in=C1.a
        > call launch C1.a
        > kill a
        ...
        > wait 15s
          master <- UPDATE a TASK_STARTING
          container destroy C1.a
        > container C1.a failed destroyed
          conn 3 <- 400: destroyed
          = container C1.a removed
          = update a#1 TASK_KILLED
          container update C1 cpus:1.5;mem:96
        > call launch C1.a
          conn 4 <- 400: The task of container C1.a has terminated
    "#]]);
}

/// The launch may be faster than the update that names the container: it is repeated until the update has arrived.
#[test]
fn container_launch_waits_for_its_task_after_a_kill() {
    replay_ready(expect![[r#"
        > group e1 a
        > group e1 c old
        > e1 subscribe
        > kill a
        > wait 15s
        > ack a
        ...
        > call launch C1.a
          conn 2 <- 503: Container C1.a may belong to a terminated task: its executor has not
              named it yet
        > call session C1.s
          container launch C1.s
        > e1 update c STARTING in=C1.c
          = update c#0 TASK_STARTING
          master <- UPDATE c TASK_STARTING
          conn 1 <- ACKNOWLEDGED c
          conn 4 <- 202
        > call launch C1.c
          = container C1.c
          container launch C1.c
        > e1 update a STARTING in=C1.a
          conn 1 <- ACKNOWLEDGED a
          conn 6 <- 202
        > call launch C1.a
          conn 7 <- 400: The task of container C1.a has terminated
        > call launch C1.d
          = container C1.d
          container launch C1.d
    "#]]);
}

/// A task that a broken stream did not deliver is not waited for.
#[test]
fn resubscription_resumes_waiting_container_launches() {
    replay_ready(expect![[r#"
        > group e1 a
        > group e1 c old
        > e1 subscribe
        > kill a
        > wait 15s
        ...
        > call launch C1.c
          conn 2 <- 503: Container C1.c may belong to a terminated task: its executor has not
              named it yet
        > e1 subscribe tasks=c
          conn 3 <- 200, open
          conn 1 closes
          conn 3 <- SUBSCRIBED e1
        > call launch C1.c
          = container C1.c
          container launch C1.c
    "#]]);
}

/// What an executor starts late, when it is over, ends again. A restarted agent does not wait for names.
#[test]
fn containers_of_a_late_executor_are_destroyed() {
    replay_ready(expect![[r#"
        > group e1 a
        > group e1 c old
        > e1 subscribe
        > e1 update c STARTING in=C1.c
        > kill a
        > wait 15s
        > ack a
        > restart
        > recovered
        > e1 subscribe
        ...
        > call launch C1.a
          = container C1.a
          container launch C1.a
        > container C1.a launched 5
          conn 4 <- 200
        > e1 update a STARTING in=C1.a
          container destroy C1.a
          conn 3 <- ACKNOWLEDGED a
          conn 5 <- 202
        > call launch C1.c
          = container C1.c
          container launch C1.c
        > container C1.c launched 6
          conn 6 <- 200
        > e1 update a FAILED in=C1.a
          conn 3 <- ACKNOWLEDGED a
          conn 7 <- 202
    "#]]);
}

#[test]
fn max_completion_time_terminates_the_task() {
    replay_ready(expect![[r#"
        > launch t1 max=60s
        > t1 subscribe
        > t1 update t1 RUNNING
        > ack t1
        ...
        > wait 69s
        > wait 1s
          = executor t1 terminating delivered
          container destroy C1
        > t1 exited 9 oom message=limit
          conn 1 closes
          = update t1#1 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_MAX_COMPLETION_TIME_REACHED 'Killed by the agent:
              the executor did not kill the task after its max_completion_time; limit'
          = executor t1 terminated delivered
    "#]]);
}

/// Its time is its own: not that of waiting for its executor, nor that of others.
#[test]
fn max_completion_time_applies_to_each_task_of_an_executor() {
    replay_ready(expect![[r#"
        > group e1 a max=60s
        > group e1 b old
        > wait 30s
        > e1 subscribe
        > call launch C1.a
        > call launch C1.b
        > container C1.a launched 5
        > container C1.b launched 6
        > e1 update a RUNNING in=C1.a
        > e1 update b RUNNING in=C1.b
        > ack a
        > ack b
        ...
        > wait 69s
        > wait 1s
          container destroy C1.a
        > container C1.a exited 9
          = container C1.a ended
          = update a#1 TASK_FAILED
          master <- UPDATE a TASK_FAILED REASON_MAX_COMPLETION_TIME_REACHED 'Killed by the agent:
              the executor did not kill the task after its max_completion_time'
          container update C1 cpus:1.5;mem:96
        > e1 update a FAILED in=C1.a
          conn 1 <- ACKNOWLEDGED a
          conn 6 <- 202
        > wait 600s
          connect link 2
    "#]]);
}

#[test]
fn a_task_that_terminates_in_time_is_not_killed() {
    replay_ready(expect![[r#"
        > launch t1 max=60s
        > t1 subscribe
        > launch t2 executor=e2 max=60s
        > e2 subscribe
        > launch t3 max=0s
        > t3 subscribe
        > wait 60s
        > t1 update t1 FAILED
        ...
        > wait 60s
          master <- UPDATE t1 TASK_FAILED
          connect link 2
    "#]]);
}

#[test]
fn agent_restart_restarts_the_max_completion_time() {
    replay_ready(expect![[r#"
        > launch t1 max=60s
        > t1 subscribe
        > t1 update t1 RUNNING
        > wait 60s
        ...
        > restart
          container recover C1
        > recovered
        > t1 subscribe
          conn 3 <- 200, open
          conn 3 <- SUBSCRIBED t1
          container update C1 cpus:1.1;mem:96
          = boot id boot-1
        > wait 69s
          connect link 1
        > wait 1s
          = executor t1 terminating delivered
          container destroy C1
    "#]]);
}

/// An executor that exits by itself, or is killed for another reason, does not change the reason of its tasks.
#[test]
fn executor_exit_before_the_deadline_has_its_own_reason() {
    replay_ready(expect![[r#"
        > launch t1 max=60s
        > t1 subscribe
        > t1 update t1 RUNNING
        > ack t1
        ...
        > t1 exited 256
          conn 1 closes
          = update t1#1 TASK_FAILED
          master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
          = executor t1 terminated delivered
    "#]]);
}
