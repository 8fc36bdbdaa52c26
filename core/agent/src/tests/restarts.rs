//! Restarts at every point: nothing is launched twice, no update is lost.

use expect_test::expect;

use super::driver::check;

#[test]
fn while_a_task_runs() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 launched 7
        t1 subscribe
        t1 update t1 RUNNING
        restart
        t1 subscribe
        recovered
        t1 update t1 FINISHED
        t1 subscribe updates=t1:RUNNING:t1RUNNING,t1:FINISHED:fin
        go
        ack t1
        ack t1
        t1 exited 0
        store
        ",
        expect![[r#"
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
              container update C1 cpus:0.1;mem:32
              conn 5 <- ACKNOWLEDGED t1
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
              path//w/slaves/S0/frameworks/F
              path//w/slaves/S0/frameworks/F/executors/t1
              path//w/slaves/S0/frameworks/F/executors/t1/runs/C1
        "#]],
    );
}

#[test]
fn while_the_executor_registers() {
    check(
        "
        start
        recovered
        go
        group e1 a,b
        launch t1 executor=e2
        launch t2 executor=e2 old
        restart
        recovered
        go
        e1 subscribe
        e2 subscribe
        ",
        expect![[r#"
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
            > group e1 a,b
              = framework F
              = executor e1 live
              = task a of executor e1
              = task b of executor e1
              container launch C1 cpus:2.5;mem:160
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
        "#]],
    );
}

#[test]
fn while_a_task_was_handed_over() {
    check(
        "
        start
        recovered
        go
        launch t1 executor=e1
        e1 subscribe
        restart
        recovered
        e1 subscribe
        go
        ",
        expect![[r#"
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
            > e1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED e1
              = executor e1 live delivered
              conn 1 <- LAUNCH t1
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
        "#]],
    );
}

#[test]
fn an_executor_that_does_not_come_back() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        restart
        recovered
        wait 2s
        t1 exited 9
        go
        ",
        expect![[r#"
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
        "#]],
    );
}

#[test]
fn a_container_that_ended_meanwhile() {
    check(
        "
        start
        recovered
        go
        launch t1 executor=e1
        e1 subscribe
        e1 update t1 RUNNING
        restart
        recovered C1
        go
        ack t1
        ack t1
        ",
        expect![[r#"
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
        "#]],
    );
}

#[test]
fn after_the_machine_restarted() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        boot boot-2
        restart
        recovered
        go
        has cpus:1
        restart
        boot boot-3
        restart
        recovered
        go
        ",
        expect![[r#"
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
            > boot boot-2
            > restart
              container recover C1
            > recovered
              = update t1#1 TASK_FAILED
              = executor t1 terminated delivered
              = boot id boot-2
            > go
              connect link 1
              master <- SUBSCRIBE S0 task t1 TASK_FAILED
              master <- UPDATE t1 TASK_RUNNING latest TASK_FAILED
            > has cpus:1
            > restart
              refuses to start: this agent is not the one that used the work directory: its resources
                  were cpus:4; mem:1024; disk:2048 and are cpus:1; start it as it was, allow additions
                  with --reconfiguration_policy=additive, or run it once with --recover=cleanup to end
                  what it ran and join as a new agent
            > boot boot-3
            > restart
              = discarded framework/F executor/F/t1 task/F/t1/t1 update/F/t1/00000000000000000000
                  update/F/t1/00000000000000000001 agent
              = path /w/slaves/S0 unused
              container recover
            > recovered
              = boot id boot-3
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
        "#]],
    );
}

#[test]
fn with_more_resources_than_before() {
    check(
        "
        start
        recovered
        go
        operation o1 RESERVE cpus:1
        has cpus:8;mem:1024;disk:2048
        restart
        additive
        restart
        recovered
        go
        launch t1 reserved
        ",
        expect![[r#"
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
            > operation o1 RESERVE cpus:1
              = operation OPERATION_FINISHED
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > has cpus:8;mem:1024;disk:2048
            > restart
              refuses to start: this agent is not the one that used the work directory: its resources
                  were cpus:4; mem:1024; disk:2048 and are cpus:8; mem:1024; disk:2048; start it as it
                  was, allow additions with --reconfiguration_policy=additive, or run it once with --recover=cleanup
                  to end what it ran and join as a new agent
            > additive
            > restart
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE S0 operation OPERATION_FINISHED
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > launch t1 reserved
              = framework F
              = executor t1 live
              = task t1 of executor t1
              container launch C1 cpus:0.1;cpus:1;mem:32
        "#]],
    );
}

#[test]
fn a_shutdown_is_not_forgotten() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        shutdown executor t1
        restart
        recovered
        wait 5s
        t1 subscribe
        t1 exited 0
        ",
        expect![[r#"
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
            > t1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              = executor t1 live delivered
              conn 1 <- LAUNCH t1
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
        "#]],
    );
}

#[test]
fn what_does_not_checkpoint_is_gone() {
    check(
        "
        start
        recovered
        go
        launch t1 framework=G
        t1 subscribe framework=G
        t1 update t1 RUNNING framework=G
        store
        restart
        ",
        expect![[r#"
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
            > launch t1 framework=G
              container launch C1 cpus:1.1;mem:96
            > t1 subscribe framework=G
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              conn 1 <- LAUNCH t1
            > t1 update t1 RUNNING framework=G
              master <- UPDATE t1 TASK_RUNNING
              conn 1 <- ACKNOWLEDGED t1
              conn 2 <- 202
            > store
              agent
              boot_id
            > restart
              container recover
        "#]],
    );
}

#[test]
fn records_that_cannot_be_read() {
    check(
        "
        start
        recovered
        go
        launch t1
        launch t2
        corrupt executor/F/t1
        corrupt nonsense
        restart
        lenient
        restart
        recovered
        corrupt agent
        restart
        store
        ",
        expect![[r#"
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
            > launch t2
              = executor t2 live
              = task t2 of executor t2
              container launch C2 cpus:1.1;mem:96
            > corrupt executor/F/t1
            > corrupt nonsense
            > restart
              refuses to start: cannot read the record 'executor/F/t1': unexpected end of buffer;
                  put the work directory back as it was, or start with --no-strict to go on without this
                  record
            > lenient
            > restart
              = discarded executor/F/t1 nonsense task/F/t1/t1
              container recover C2
            > recovered
              = boot id boot-1
            > corrupt agent
            > restart
              = discarded framework/F executor/F/t2 task/F/t2/t2 agent
              container recover
            > store
              boot_id
        "#]],
    );
}

#[test]
fn cleaning_up() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        cleanup
        restart
        recovered
        wait 5s
        t1 exited 9
        store
        ",
        expect![[r#"
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
              = discarded agent resources drain
              exit: all frameworks ended
            > store
              boot_id
              path//w/slaves/S0
              path//w/slaves/S0/frameworks/F
              path//w/slaves/S0/frameworks/F/executors/t1
              path//w/slaves/S0/frameworks/F/executors/t1/runs/C1
        "#]],
    );
}

#[test]
fn draining_goes_on() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        drain
        restart
        recovered
        t1 subscribe
        ",
        expect![[r#"
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
            > drain
              = drain
              conn 1 <- KILL t1
            > restart
              container recover C1
            > recovered
            > t1 subscribe
              conn 3 <- 200, open
              conn 3 <- SUBSCRIBED t1
              container update C1 cpus:1.1;mem:96
              = boot id boot-1
              conn 3 <- KILL t1
        "#]],
    );
}

#[test]
fn old_sandboxes_are_removed_in_time() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 exited 0
        ack t1
        wait 518400s
        restart
        recovered
        go
        disk 0.1
        disk 0.5
        launch t2
        done /w/slaves/S0/frameworks/F
        t2 exited 0
        ack t2
        disk 0.95
        done /w/slaves/S0/frameworks/F not permitted
        ",
        expect![[r#"
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
            > t1 exited 0
              = update t1#0 TASK_FAILED
              master <- UPDATE t1 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
              = executor t1 terminated
            > ack t1
              = task t1 and updates #0..1 removed
              = executor t1 removed
              = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
              = path /w/slaves/S0/frameworks/F/executors/t1 unused
              = framework F removed
              = path /w/slaves/S0/frameworks/F unused
            > wait 518400s
              connect link 2
            > restart
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE S0
            > disk 0.1
              container remove path /w/slaves/S0/frameworks/F
              = path /w/slaves/S0/frameworks/F/executors/t1 forgotten
              = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 forgotten
            > disk 0.5
            > launch t2
              = framework F
              = executor t2 live
              = task t2 of executor t2
              container launch C2 cpus:1.1;mem:96
            > done /w/slaves/S0/frameworks/F
              = path /w/slaves/S0/frameworks/F forgotten
            > t2 exited 0
              = update t2#0 TASK_FAILED
              master <- UPDATE t2 TASK_FAILED REASON_EXECUTOR_TERMINATED 'Executor terminated'
              = executor t2 terminated
            > ack t2
              = task t2 and updates #0..1 removed
              = executor t2 removed
              = path /w/slaves/S0/frameworks/F/executors/t2/runs/C2 unused
              = path /w/slaves/S0/frameworks/F/executors/t2 unused
              = framework F removed
              = path /w/slaves/S0/frameworks/F unused
            > disk 0.95
              container remove path /w/slaves/S0/frameworks/F
              = path /w/slaves/S0/frameworks/F/executors/t2 forgotten
              = path /w/slaves/S0/frameworks/F/executors/t2/runs/C2 forgotten
            > done /w/slaves/S0/frameworks/F not permitted
              = path /w/slaves/S0/frameworks/F forgotten
        "#]],
    );
}

#[test]
fn volumes_are_made_again() {
    check(
        "
        start
        recovered
        go
        operation o1 RESERVE disk:64
        operation o2 CREATE disk:64
        restart
        recovered
        go
        launch t1 volume
        operation o1 ack
        operation o2 ack
        operation o3 DESTROY disk:64
        restart
        recovered
        ",
        expect![[r#"
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
            > operation o1 RESERVE disk:64
              = operation OPERATION_FINISHED
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > operation o2 CREATE disk:64
              = operation OPERATION_FINISHED
              container create volume /w/volumes/roles/dev/v
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > restart
              container recover
            > recovered
              = boot id boot-1
              container create volume /w/volumes/roles/dev/v
            > go
              connect link 1
              master <- SUBSCRIBE S0 operation OPERATION_FINISHED operation OPERATION_FINISHED
              master <- UPDATE_OPERATION OPERATION_FINISHED
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > launch t1 volume
              = framework F
              = executor t1 live
              = task t1 of executor t1
              container launch C1 cpus:0.1;mem:32;disk:64
            > operation o1 ack
              = operation removed
            > operation o2 ack
              = operation removed
            > operation o3 DESTROY disk:64
              = operation OPERATION_FINISHED
              container destroy volume /w/volumes/roles/dev/v
              master <- UPDATE_OPERATION OPERATION_FINISHED
            > restart
              container recover C1
            > recovered
              = boot id boot-1
              container destroy volume /w/volumes/roles/dev/v
        "#]],
    );
}

#[test]
fn while_a_command_task_was_handed_over() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        restart
        recovered
        t1 subscribe
        ",
        expect![[r#"
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
            > t1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              = executor t1 live delivered
              conn 1 <- LAUNCH t1
            > restart
              container recover C1
            > recovered
            > t1 subscribe
              conn 2 <- 200, open
              conn 2 <- SUBSCRIBED t1
              = update t1#0 TASK_DROPPED
              container update C1 cpus:0.1;mem:32
              = executor t1 terminating delivered
              conn 2 <- SHUTDOWN
              = boot id boot-1
        "#]],
    );
}

#[test]
fn while_a_group_was_handed_over() {
    check(
        "
        start
        recovered
        go
        group e1 a,b
        e1 subscribe
        restart
        recovered
        e1 subscribe
        ",
        expect![[r#"
            > start
              container recover
            > recovered
              = boot id boot-1
            > go
              connect link 1
              master <- SUBSCRIBE new
              = agent S0
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
            > restart
              container recover C1
            > recovered
            > e1 subscribe
              conn 2 <- 200, open
              conn 2 <- SUBSCRIBED e1
              = update a#0 TASK_DROPPED
              container update C1 cpus:1.5;mem:96
              = update b#0 TASK_DROPPED
              container update C1 cpus:0.5;mem:32
              = executor e1 terminating delivered
              conn 2 <- SHUTDOWN
              = boot id boot-1
        "#]],
    );
}

#[test]
fn told_to_leave_before_the_containers_are_known() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        restart
        unregister
        recovered all
        ",
        expect![[r#"
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
            > t1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              = executor t1 live delivered
              conn 1 <- LAUNCH t1
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
              = discarded agent resources drain
              exit: all frameworks ended
              = path /w/slaves/S0 unused
              = discarded agent resources drain
              exit: all frameworks ended
        "#]],
    );
}

#[test]
fn told_to_leave_while_executors_come_back() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        restart
        recovered
        unregister
        wait 10s
        t1 exited 9
        ",
        expect![[r#"
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
            > t1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              = executor t1 live delivered
              conn 1 <- LAUNCH t1
            > restart
              container recover C1
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
              = discarded agent resources drain
              exit: all frameworks ended
        "#]],
    );
}

#[test]
fn an_end_that_a_crash_interrupts() {
    check(
        "
        start
        recovered
        go
        launch t1
        t1 subscribe
        shutdown framework F
        restart
        recovered
        wait 1s
        up
        subscribed missing=t1
        ack t1
        t1 exited 0
        ",
        expect![[r#"
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
            > t1 subscribe
              conn 1 <- 200, open
              conn 1 <- SUBSCRIBED t1
              = executor t1 live delivered
              conn 1 <- LAUNCH t1
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
        "#]],
    );
}
