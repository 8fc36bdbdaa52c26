//! What a restart makes of the agent itself: its machine, resources, records, directories and volumes.

use expect_test::expect;

use super::driver::replay_ready;

#[test]
fn reboot_fails_tasks_and_allows_changed_resources() {
    replay_ready(expect![[r#"
        > launch t1
        > t1 subscribe
        > t1 update t1 RUNNING
        ...
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
    "#]]);
}

#[test]
fn added_resources_require_the_additive_policy() {
    replay_ready(expect![[r#"
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
    "#]]);
}

#[test]
fn frameworks_without_checkpointing_are_not_recovered() {
    replay_ready(expect![[r#"
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
    "#]]);
}

#[test]
fn unreadable_records_stop_a_strict_start_and_are_discarded_otherwise() {
    replay_ready(expect![[r#"
        > launch t1
        ...
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
    "#]]);
}

#[test]
fn executors_with_invalid_resources_are_unreadable_records() {
    replay_ready(expect![[r#"
        > launch t1
        ...
        > corrupt executor/F/t1 resources
        > restart
          refuses to start: cannot read the record 'executor/F/t1': Resource 'cpus' is invalid:
              Invalid scalar resource: 'scalar' and no other value must be set; put the work directory
              back as it was, or start with --no-strict to go on without this record
        > lenient
        > restart
          = discarded executor/F/t1 task/F/t1/t1
          container recover
    "#]]);
}

#[test]
fn expired_sandboxes_are_removed_after_a_restart() {
    replay_ready(expect![[r#"
        > launch t1
        ...
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
          = history [3] removed
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
    "#]]);
}

#[test]
fn volumes_are_created_again_after_a_restart() {
    replay_ready(expect![[r#"
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
    "#]]);
}
