//! Faults in their order: each script is one that a seed of the model found.

use expect_test::expect;

use super::script::replay;

#[test]
fn a_list_older_than_a_container_does_not_remove_it() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 STARTING id=id-c1
        record t1 on A1 regular created as id-c1
        reply 1 created id-c1
        acknowledge t1
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > up A1 node-0
        > up A1 node-0 c1
        > up A1 node-0
        record t1 forgotten
    "#]]);
}

#[test]
fn auto_removed_container_is_removed_with_its_task() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web --rm
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 STARTING id=id-c1
        record t1 on A1 regular created as id-c1
        reply 1 created id-c1
        acknowledge t1
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        record t1 forgotten
        acknowledge t1
        > create 2 web -c 1
        revive
    "#]]);
}

#[test]
fn unnamed_containers_get_a_generated_name() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > offer O2 A1 cpus:1
        > up A1 node-0
        > create 1 - -c 1 registry:5000/team/web@sha256:00
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > create 2 - -c 1 registry:5000/team/web@sha256:00
        record t2 on A1 regular launching
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t1 STARTING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > update t2 FAILED
        record t2 forgotten
        reply 2 500 Container failed to create
        acknowledge t2
    "#]]);
}

#[test]
fn reregistered_node_keeps_its_container() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        ...
        > update t1 STARTING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > update t1 UNREACHABLE by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > update t1 STARTING RECONCILIATION by-agent
        record t1 on A1 regular created as c1
        > offer O2 A1 cpus:1
        > wait 9
    "#]]);
}

#[test]
fn rescheduled_container_survives_a_manager_restart() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        > update t1 STARTING id=c1
        ...
        > update t1 GONE by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        engine A1 remove c1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2
        reconcile
        > update t2 GONE RECONCILIATION unknown
        record t2 on A1 regular rescheduling
        revive
        > offer O3 A1 cpus:1
    "#]]);
}

#[test]
fn remains_of_a_removed_container_are_cleaned_up() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > left A1 t1 web
        > update t1 UNREACHABLE by-agent
        engine A1 remove id-web
        record t1 forgotten
        reply 1 500 Container failed to create
        acknowledge t1
        > left A1 t1 web
        engine A1 remove id-web
        > left A1 t1 made-of-its-image
    "#]]);
}

#[test]
fn a_name_is_reserved_while_the_engine_renames() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 STARTING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > rename 2 t1 www
        reply 2 created c1
        > create 3 www -c 1
        reply 3 409 Conflict: The name www is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign www to a container again.
        > rename-failed www
        > rename 4 t1 web
        reply 4 409 Conflict: The name web is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign web to a container again.
        > rename 5 t1 a/b
        reply 5 400 Invalid container name (a/b), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed, 2 to 200 characters
        > rename 6 t1 www
        reply 6 created c1
        > renamed t1 www
        record t1 on A1 regular created as c1
        > create 7 web -c 1
        revive
    "#]]);
}

#[test]
fn unrecorded_rename_is_recovered_after_a_manager_restart() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 STARTING id=id-www
        record t1 on A1 regular created as id-www
        reply 1 created id-www
        acknowledge t1
        > restart
        connect A1 a1:2375
        > up A1 node-0 www
        record t1 on A1 regular created as id-www
    "#]]);
}

#[test]
fn reconciliation_does_not_override_updates_of_the_agent() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 FINISHED RECONCILIATION by-agent
        > update t1 STARTING id=c1
        record t1 on A1 regular created as c1
        reply 1 created c1
        acknowledge t1
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
    "#]]);
}

#[test]
fn failed_agent_is_reconciled_and_then_removed() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=c1
        ...
        > agent-failed A1
        reconcile t1
        > update t1 GONE by-agent
        engine A1 kill c1
        record t1 on A1 regular ended TASK_GONE
        acknowledge t1
        > removed t1
        record t1 forgotten
        record agent A1 forgotten
        disconnect A1
    "#]]);
}

#[test]
fn agents_without_containers_are_not_recovered() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:1
        record agent A1 a1:2375
        connect A1 a1:2375
        > restart
        record agent A1 forgotten
    "#]]);
}

#[test]
fn a_container_that_is_renamed_while_it_waits_for_a_task_keeps_its_name() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        > update t1 FINISHED
        ...
        > hold 2 t1
        revive
        > renamed t1 www
        record t1 on A1 regular ended TASK_FINISHED
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > create 3 web -c 1
        revive
    "#]]);
}

#[test]
fn executor_termination_does_not_remove_an_auto_remove_container() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web --rm
        > update t1 STARTING id=id-c1
        ...
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile
        > up A1 node-0 c1 running
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn reregistered_task_holds_its_container_again() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        > update t1 FINISHED
        ...
        > offer O2 A1 cpus:1
        > hold 2 t1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 UNREACHABLE by-agent
        record t2 on A1 regular ended TASK_FINISHED
        reply 2 500 Container failed to create
        acknowledge t2
        > hold 3 t2
        revive
        > update t2 STARTING RECONCILIATION by-agent
        record t2 on A1 regular created as id-c1
        reply 3 created id-c1
    "#]]);
}

#[test]
fn list_older_than_a_container_does_not_remove_it_when_its_task_changes() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 STARTING id=id-web
        record t1 on A1 regular created as id-web
        reply 1 created id-web
        acknowledge t1
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > hold 2 t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 DROPPED INVALID_OFFERS by-agent Offer O2 is no longer valid
        record t2 on A1 regular ended TASK_FINISHED
        acknowledge t2
        > up A1 node-0
        > up A1 node-0 web
        > up A1 node-0
        record t2 forgotten
    "#]]);
}

#[test]
fn adoption_lost_with_the_manager_is_repeated() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 RUNNING id=id-web
        record t1 on A1 regular created as id-web
        reply 1 created id-web
        acknowledge t1
        > up A1 node-0 web running
        > offer O2 A1 cpus:1
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2
        reconcile
        > up A1 node-0 web running
        > update t2 GONE unknown
        record t2 on A1 regular ended TASK_FAILED
        acknowledge t2
        revive
        > offer O3 A1 cpus:1
        record t3 on A1 regular launching, replaces t2
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn reregistration_of_an_agent_does_not_set_the_reason_of_a_container() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        ...
        > update t1 UNREACHABLE unknown
        acknowledge t1
        > update t1 FAILED REREGISTERED by-agent
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
    "#]]);
}

#[test]
fn task_unknown_to_its_agent_is_launched_again() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > update t1 DROPPED RECONCILIATION of-agent
        record t1 forgotten
        acknowledge t1
        revive
    "#]]);
}

#[test]
fn launch_before_a_manager_restart_is_reconciled_until_answered() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        ...
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t1
        reconcile
        > wait 15
        reconcile t1
        > wait 15
        reconcile t1
    "#]]);
}

#[test]
fn all_tasks_are_reconciled_periodically() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        ...
        > wait 600
        reconcile t1
        reconcile
    "#]]);
}

#[test]
fn container_started_after_preemption_is_killed() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        ...
        > update t1 GONE PREEMPTED by-agent
        engine A1 kill id-c1
        record t1 on A1 regular ended TASK_GONE REASON_CONTAINER_PREEMPTED
        acknowledge t1
        > up A1 node-0 c1 running
        engine A1 kill id-c1
    "#]]);
}

#[test]
fn container_removed_during_adoption_is_not_kept() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        ...
        > up A1 node-0 c1
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > offer O2 A1 cpus:1
        > hold 2 t1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > up A1 node-0
        > update t2 FAILED
        record t2 on A1 regular ended TASK_FINISHED
        record t2 forgotten
        reply 2 500 Container failed to create
        acknowledge t2
    "#]]);
}

#[test]
fn listed_container_is_removed_with_its_unreported_task() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > left A1 t1 web
        ...
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        engine A1 remove id-web
        record t1 forgotten
        reply 1 500 Container failed to create: REASON_EXECUTOR_TERMINATED : please verify your SWARM_MESOS_USER is correctly set
        acknowledge t1
    "#]]);
}

#[test]
fn container_with_rm_that_never_ran_is_removed_with_its_task() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web --rm
        > update t1 STARTING id=id-c1
        ...
        > up A1 node-0 c1
        > update t1 GONE PREEMPTED by-agent
        engine A1 kill id-c1
        record t1 on A1 regular ended TASK_GONE REASON_CONTAINER_PREEMPTED
        engine A1 remove id-c1
        record t1 forgotten
        acknowledge t1
    "#]]);
}

#[test]
fn container_restarted_before_task_termination_is_adopted() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        ...
        > up A1 node-0 c1 running
        > update t1 FINISHED
        record t1 on A1 regular ended TASK_FINISHED
        acknowledge t1
        > offer O2 A1 cpus:1
        > wait 10
        > wait 1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn container_renamed_while_another_task_adopts_it_has_its_new_name() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 STARTING id=id-c1
        > update t1 FINISHED
        ...
        > rename 2 t1 site
        reply 2 created id-c1
        > offer O2 A1 cpus:1
        > hold 3 t1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > renamed t1 site
        record t2 on A1 regular launching
        > create 4 site -c 1
        reply 4 409 Conflict: The name site is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign site to a container again.
        > create 5 web -c 1
        revive
    "#]]);
}

#[test]
fn unreported_container_of_a_failed_node_is_removed_once_replaced() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        ...
        > update t1 STARTING id=id-c1
        record t1 on A1 regular created as id-c1
        reply 1 created id-c1
        acknowledge t1
        > update t1 LOST by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        engine A1 remove id-c1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > left A1 t2 web
        > update t2 UNREACHABLE by-agent
        record t2 on A1 regular rescheduling
        acknowledge t2
        revive
        > offer O3 A1 cpus:1
        record t3 on A1 regular launching, replaces t2
        engine A1 remove id-web
        accept O3 launch t3 on A1 regular cpus(allocated: *):1
    "#]]);
}

#[test]
fn container_of_a_failed_adoption_of_an_earlier_life_is_not_left_running() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        > update t1 RUNNING id=id-web
        ...
        > up A1 node-0 web running
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2
        reconcile
        > up A1 node-0 web running
        > update t2 FAILED by-agent REGISTRATION_TIMEOUT
        record t2 on A1 regular ended TASK_FAILED REASON_EXECUTOR_REGISTRATION_TIMEOUT
        engine A1 kill id-web
        acknowledge t2
    "#]]);
}

#[test]
fn container_that_its_adopter_did_not_find_is_forgotten() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        ...
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t1
        reconcile
        > up A1 node-0
        > update t1 STARTING id=id-web
        record t1 on A1 regular created as id-web
        acknowledge t1
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > update t2 FAILED No such container
        record t2 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        engine A1 kill id-web
        acknowledge t2
        > wait 10
        record t2 forgotten
        > create 2 web -c 1
        revive
    "#]]);
}

#[test]
fn container_removed_before_its_adoption_was_lost_is_forgotten() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2;mem:100
        > up A1 node-0
        > create 1 web -c 1
        > update t1 RUNNING id=id-web
        > up A1 node-0 web running
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        > offer O2 A1 cpus:1
        > restart
        > subscribe F1
        ...
        > up A1 node-0
        > update t2 GONE RECONCILIATION unknown
        record t2 on A1 regular ended TASK_FAILED
        record t2 forgotten
    "#]]);
}

/// The engine removes such a container when it exits, and it may run though its new task did not get anywhere.
#[test]
fn auto_remove_container_is_on_record_until_its_engine_is_listed() {
    replay(expect![[r#"
        > subscribe F1
        record framework F1
        > offer O1 A1 cpus:2;mem:100
        record agent A1 a1:2375
        connect A1 a1:2375
        > up A1 node-0
        > create 1 web --rm
        record t1 on A1 regular launching
        accept O1 launch t1 on A1 regular cpus(allocated: *):1
        > update t1 RUNNING id=id-web
        record t1 on A1 regular created as id-web
        reply 1 created id-web
        acknowledge t1
        > up A1 node-0 web running
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        record t1 on A1 regular ended TASK_FAILED REASON_EXECUTOR_TERMINATED
        acknowledge t1
        revive
        > offer O2 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        accept O2 launch t2 on A1 regular cpus(allocated: *):1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t2
        reconcile
        > update t2 UNREACHABLE RECONCILIATION unknown
        record t2 on A1 regular ended TASK_UNREACHABLE REASON_RECONCILIATION
        > up A1 node-0 web running
        engine A1 kill id-web
    "#]]);
}

/// The manager was killed between its removal of an abandoned container and the record of that.
#[test]
fn container_removed_before_its_update_arrived_is_forgotten() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > restart
        > subscribe F1
        > up A1 node-0
        ...
        > update t1 STARTING id=id-web
        record t1 on A1 regular created as id-web
        acknowledge t1
        > update t1 KILLED
        record t1 on A1 regular ended TASK_KILLED
        acknowledge t1
        > up A1 node-0 other
        > wait 10
        record t1 forgotten
    "#]]);
}

#[test]
fn rename_without_an_answer_is_found_in_the_list_of_the_engine() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1
        > update t1 RUNNING id=id-site
        > rename 2 t1 site
        ...
        > rename-failed site
        > up A1 node-0 site running
        record t1 on A1 regular created as id-site
        > create 3 site -c 1
        reply 3 409 Conflict: The name site is already assigned or in pending tasks. You have to delete (or rename) that container to be able to assign site to a container again.
        > create 4 web -c 1
        revive
    "#]]);
}

#[test]
fn remains_of_a_removed_agent_are_killed_while_no_other_node_fits() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2
        > up A1 node-0
        > create 1 web -c 2 -e reschedule:on-node-failure
        > update t1 RUNNING id=id-web
        > up A1 node-0 web running
        ...
        > update t1 LOST by-agent
        record t1 on A1 regular rescheduling
        engine A1 kill id-web
        acknowledge t1
        revive
        > agent-failed A1
        > restart
        connect A1 a1:2375
        > subscribe F1
        reconcile t1
        reconcile
        revive
        > offer O2 A2 cpus:1
        record agent A2 a2:2375
        connect A2 a2:2375
        > up A2 node-0 web running
        reconcile t1
        > update t1 UNKNOWN RECONCILIATION unknown
        > up A1 node-0 web running
        reconcile t1
        > update t1 UNKNOWN RECONCILIATION unknown
        engine A1 kill id-web
        > up A1 node-0 web
    "#]]);
}

#[test]
fn container_of_an_unreachable_node_runs_until_its_task_terminates() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:2
        > up A1 node-0
        > create 1 web -c 2 -e reschedule:on-node-failure
        > update t1 RUNNING id=id-web
        > up A1 node-0 web running
        ...
        > update t1 UNREACHABLE by-agent
        record t1 on A1 regular rescheduling
        acknowledge t1
        revive
        > up A1 node-0 web running
        reconcile t1
        > update t1 UNREACHABLE RECONCILIATION by-agent
        > offer O2 A1 cpus:1
        > update t1 FAILED REREGISTERED by-agent
        > update t1 FAILED EXECUTOR_TERMINATED by-agent
        engine A1 kill id-web
        acknowledge t1
        > up A1 node-0 web
        > offer O3 A1 cpus:1
        record t2 on A1 regular launching, replaces t1
        engine A1 remove id-web
        accept O2,O3 launch t2 on A1 regular cpus(allocated: *):2, start
    "#]]);
}

#[test]
fn unreported_container_of_a_lost_task_is_removed_before_it_is_replaced() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        > update t1 STARTING id=id-c1
        > update t1 LOST by-agent
        > offer O2 A1 cpus:1
        > left A1 t2 web
        ...
        > update t2 LOST by-agent
        record t2 on A1 regular rescheduling
        engine A1 remove id-web
        acknowledge t2
        revive
    "#]]);
}

#[test]
fn task_of_no_container_is_not_killed_if_the_master_does_not_have_it() {
    replay(expect![[r#"
        > subscribe F1
        > offer O1 A1 cpus:1
        > up A1 node-0
        > create 1 web -c 1 -e reschedule:on-node-failure
        > update t1 STARTING id=id-web
        > update t1 LOST by-agent
        ...
        > removed t1
        record t1 forgotten
        kill t1 on A1
        > update t1 UNKNOWN RECONCILIATION unknown
        > update t1 UNREACHABLE RECONCILIATION by-agent
        > update t1 RUNNING RECONCILIATION by-agent
        kill t1 on A1
    "#]]);
}
