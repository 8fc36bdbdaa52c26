//! Lent resources are reclaimed: just enough borrowers are preempted, and only then the owner's container starts.

use expect_test::expect;

use tepui_proto::mesos::v1::TaskState;
use tepui_proto::mesos::v1::task_status::{Reason, Source};

use super::driver::{World, replay};

#[test]
fn owner_launch_waits_for_the_borrower_to_terminate() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
          container recover
        > recovered
          = boot id boot-1
        > go
          connect link 1
          master <- SUBSCRIBE new
          = agent S0
        > launch b1 needs=cpus^:2;mem^:100
          = framework F
          = executor b1 live
          = task b1 of executor b1
          container launch C1 cpus:0.1;cpus:2;mem:32;mem:100
        > b1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED b1
          = executor b1 live delivered
          conn 1 <- LAUNCH b1
        > b1 update b1 RUNNING
          = update b1#0 TASK_RUNNING
          master <- UPDATE b1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED b1
          conn 2 <- 202
        > launch o1 needs=cpus(ads):4;mem(ads):64
          = executor o1 live waiting
          = task o1 of executor o1
          = executor b1 terminating delivered
          conn 1 <- SHUTDOWN
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > b1 update b1 KILLED
          = update b1#1 TASK_GONE
          conn 1 <- ACKNOWLEDGED b1
          conn 3 <- 202
        > b1 exited 0
          conn 1 closes
          = executor b1 terminated delivered
          = executor o1 live
          container launch C2 cpus:0.1;cpus:4;mem:32;mem:64
        > ack b1
          = update b1#0 TASK_RUNNING acknowledged
          master <- UPDATE b1 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
        > ack b1
          = task b1 and updates #0..2 removed
          = executor b1 removed
          = path /w/slaves/S0/frameworks/F/executors/b1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/b1 unused
        > o1 subscribe
          conn 4 <- 200, open
          conn 4 <- SUBSCRIBED o1
          = executor o1 live delivered
          conn 4 <- LAUNCH o1
    "#]]);
}

#[test]
fn unresponsive_borrower_is_destroyed_after_the_grace_period() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch b1 needs=cpus^:2 framework=G
          container launch C1 cpus:0.1;cpus:2;mem:32
        > launch b2 needs=cpus^:2
          = framework F
          = executor b2 live
          = task b2 of executor b2
          container launch C2 cpus:0.1;cpus:2;mem:32
        > b2 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED b2
          = executor b2 live delivered
          conn 1 <- LAUNCH b2
        > launch o1 needs=cpus(ads):4
          = executor o1 live waiting
          = task o1 of executor o1
          container destroy C1
          = executor b2 terminating delivered
          conn 1 <- SHUTDOWN
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 2 executors preempted,
              with a grace period of 5secs'
        > b1 exited 9
          master <- UPDATE b1 TASK_LOST REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
        > wait 5s
          container destroy C2
        > b2 exited 9
          conn 1 closes
          = update b2#0 TASK_GONE
          master <- UPDATE b2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
          = executor b2 terminated delivered
          = executor o1 live
          container launch C3 cpus:0.1;cpus:4;mem:32
    "#]]);
}

#[test]
fn fewest_youngest_borrowers_are_preempted() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch b1 needs=cpus^:1
          = framework F
          = executor b1 live
          = task b1 of executor b1
          container launch C1 cpus:0.1;cpus:1;mem:32
        > wait 1s
        > launch b2 needs=cpus^:2
          = executor b2 live
          = task b2 of executor b2
          container launch C2 cpus:0.1;cpus:2;mem:32
        > wait 1s
        > launch b3 needs=cpus^:1
          = executor b3 live
          = task b3 of executor b3
          container launch C3 cpus:0.1;cpus:1;mem:32
        > launch o1 needs=cpus(ads):2
          = executor o1 live waiting
          = task o1 of executor o1
          = executor b3 terminating
          container destroy C3
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > b3 exited 9
          = update b3#0 TASK_GONE
          master <- UPDATE b3 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
          = executor b3 terminated
          = executor o1 live
          container launch C4 cpus:0.1;cpus:2;mem:32
        > launch o2 needs=cpus(ads):2
          = executor o2 live waiting
          = task o2 of executor o2
          = executor b2 terminating
          container destroy C2
          = update o2#0 TASK_STAGING
          master <- UPDATE o2 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > b2 exited 9
          = update b2#0 TASK_GONE
          master <- UPDATE b2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
          = executor b2 terminated
          = executor o2 live
          container launch C5 cpus:0.1;cpus:2;mem:32
    "#]]);
}

#[test]
fn borrowers_are_kept_while_resources_suffice() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch b1 needs=cpus^:2
          = framework F
          = executor b1 live
          = task b1 of executor b1
          container launch C1 cpus:0.1;cpus:2;mem:32
        > launch o1 needs=cpus(ads):2
          = executor o1 live
          = task o1 of executor o1
          container launch C2 cpus:0.1;cpus:2;mem:32
        > launch c1 needs=cpus:1
          = executor c1 live
          = task c1 of executor c1
          container launch C3 cpus:1.1;mem:32
    "#]]);
}

#[test]
fn running_executor_gets_its_task_after_reclamation() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch o1 executor=e1 own=cpus(ads):1 needs=cpus(ads):1
          = framework F
          = executor e1 live
          = task o1 of executor e1
          container launch C1 cpus:2
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH o1
        > launch b1 needs=cpus^:2
          = executor b1 live
          = task b1 of executor b1
          container launch C2 cpus:0.1;cpus:2;mem:32
        > launch o2 executor=e1 own=cpus(ads):1 needs=cpus(ads):2 old
          = task o2 of executor e1
          = executor b1 terminating
          container destroy C2
          = update o2#0 TASK_STAGING
          master <- UPDATE o2 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > launch o3 executor=e1 own=cpus(ads):1 needs=cpus(ads):0.5 old
          = task o3 of executor e1
          = update o3#0 TASK_STAGING
          master <- UPDATE o3 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > b1 exited 9
          = update b1#0 TASK_GONE
          master <- UPDATE b1 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
          = executor b1 terminated
          container update C1 cpus:4.5
          = task o2 of executor e1
          conn 1 <- LAUNCH o2
          = task o3 of executor e1
          conn 1 <- LAUNCH o3
    "#]]);
}

#[test]
fn unreserve_preempts_borrowers() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > operation r1 RESERVE cpus:1
          = operation OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
        > launch b1 needs=cpus^:4
          = framework F
          = executor b1 live
          = task b1 of executor b1
          container launch C1 cpus:0.1;cpus:4;mem:32
        > launch b2 needs=cpus^:1
          = executor b2 live
          = task b2 of executor b2
          container launch C2 cpus:0.1;cpus:1;mem:32
        > operation r2 UNRESERVE cpus:1
          = operation OPERATION_FINISHED
          master <- UPDATE_OPERATION OPERATION_FINISHED
          = executor b2 terminating
          container destroy C2
        > b2 exited 9
          = update b2#0 TASK_GONE
          master <- UPDATE b2 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'dev' took back the
              resources that were lent'
          = executor b2 terminated
    "#]]);
}

#[test]
fn preemption_continues_after_an_agent_restart() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch b1 needs=cpus^:4
          = framework F
          = executor b1 live
          = task b1 of executor b1
          container launch C1 cpus:0.1;cpus:4;mem:32
        > b1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED b1
          = executor b1 live delivered
          conn 1 <- LAUNCH b1
        > b1 update b1 RUNNING
          = update b1#0 TASK_RUNNING
          master <- UPDATE b1 TASK_RUNNING
          conn 1 <- ACKNOWLEDGED b1
          conn 2 <- 202
        > launch o1 needs=cpus(ads):4
          = executor o1 live waiting
          = task o1 of executor o1
          = executor b1 terminating delivered
          conn 1 <- SHUTDOWN
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > restart
          container recover C1
        > recovered
          = boot id boot-1
        > b1 subscribe
          conn 3 <- 200, open
          conn 3 <- SHUTDOWN
          conn 3 closes
        > wait 5s
          connect link 1
          container destroy C1
        > b1 exited 9
          = update b1#1 TASK_GONE
          = executor b1 terminated delivered
          = executor o1 live
          container launch C2 cpus:0.1;cpus:4;mem:32
        > up
          master <- SUBSCRIBE S0 task b1 TASK_GONE task o1 TASK_STAGING
        > subscribed
          master <- UPDATE b1 TASK_RUNNING latest TASK_GONE
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > o1 subscribe
          conn 4 <- 200, open
          conn 4 <- SUBSCRIBED o1
          = executor o1 live delivered
          conn 4 <- LAUNCH o1
    "#]]);
}

#[test]
fn task_waiting_for_reclaimed_resources_survives_a_restart() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        > launch o1 executor=e1 own=cpus(ads):1 needs=cpus(ads):1
        > e1 subscribe
        > launch b1 needs=cpus^:2
        ...
        > b1 subscribe
          conn 2 <- 200, open
          conn 2 <- SUBSCRIBED b1
          = executor b1 live delivered
          conn 2 <- LAUNCH b1
        > launch o2 executor=e1 own=cpus(ads):1 needs=cpus(ads):2 old
          = task o2 of executor e1
          = executor b1 terminating delivered
          conn 2 <- SHUTDOWN
          = update o2#0 TASK_STAGING
          master <- UPDATE o2 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > group e1 o3,o4 own=cpus(ads):1 old
          = task o3 of executor e1
          = task o4 of executor e1
          = update o3#0 TASK_STAGING
          master <- UPDATE o3 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
          = update o4#0 TASK_STAGING
          master <- UPDATE o4 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > restart
          container recover C2 C1
        > recovered
        > e1 subscribe tasks=o1
          conn 3 <- 200, open
          conn 3 <- SUBSCRIBED e1
          = boot id boot-1
        > b1 exited 9
          = update b1#0 TASK_GONE
          = executor b1 terminated delivered
          container update C1 cpus:2;cpus:4;mem:128
          = task o2 of executor e1
          conn 3 <- LAUNCH o2
          = task o3 of executor e1
          = task o4 of executor e1
          conn 3 <- LAUNCH_GROUP o3,o4
        > restart
          container recover C1
        > recovered
        > e1 subscribe tasks=o1,o2
          conn 4 <- 200, open
          conn 4 <- SUBSCRIBED e1
          = update o3#1 TASK_DROPPED
          = update o4#1 TASK_DROPPED
          container update C1 cpus:4
          = boot id boot-1
    "#]]);
}

#[test]
fn launch_waiting_for_reclaimed_resources_can_be_killed() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        > launch b1 needs=cpus^:4
        ...
        > launch o1 needs=cpus(ads):4
          = executor o1 live waiting
          = task o1 of executor o1
          = executor b1 terminating
          container destroy C1
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > kill o1
          = update o1#1 TASK_KILLED
          = executor o1 terminated
        > ack o1
          = update o1#0 TASK_STAGING acknowledged
          master <- UPDATE o1 TASK_KILLED REASON_TASK_KILLED_DURING_LAUNCH 'Killed before delivery
              to the executor'
        > ack o1
          = task o1 and updates #0..2 removed
          = executor o1 removed
          = path /w/slaves/S0/frameworks/F/executors/o1/runs/84b32cb3-64c9-4755-90c8-d8e1ecaad2f2
              unused
          = path /w/slaves/S0/frameworks/F/executors/o1 unused
        > launch o2 executor=e2 own=cpus(ads):1 needs=cpus(ads):3
          = executor e2 live waiting
          = task o2 of executor e2
          = update o2#0 TASK_STAGING
          master <- UPDATE o2 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > shutdown executor e2
          = update o2#1 TASK_FAILED
          = executor e2 terminated
          master <- EXITED_EXECUTOR e2 status -1
        > b1 exited 9
          = update b1#0 TASK_GONE
          master <- UPDATE b1 TASK_GONE REASON_CONTAINER_PREEMPTED 'Role 'ads' took back the
              resources that were lent'
          = executor b1 terminated
        > launch b2 needs=cpus^:4
          = executor b2 live
          = task b2 of executor b2
          container launch C2 cpus:0.1;cpus:4;mem:32
        > launch o3 executor=e3 own=mem:1 needs=cpus(ads):4
          = executor e3 live waiting
          = task o3 of executor e3
          = executor b2 terminating
          container destroy C2
          = update o3#0 TASK_STAGING
          master <- UPDATE o3 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > shutdown framework F
          = framework F terminating
          = updates b1#0..1 removed
          = updates o2#0..2 removed
          = updates o3#0..1 removed
          = executor e3 terminated
          master <- EXITED_EXECUTOR e3 status -1
          = task b1 and updates #0..0 removed
          = executor b1 removed
          = path /w/slaves/S0/frameworks/F/executors/b1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/b1 unused
          = task o2 and updates #0..0 removed
          = executor e2 removed
          = path /w/slaves/S0/frameworks/F/executors/e2/runs/97e1c92a-439a-46ee-816b-b738fde80973
              unused
          = path /w/slaves/S0/frameworks/F/executors/e2 unused
          = task o3 and updates #0..0 removed
          = executor e3 removed
          = path /w/slaves/S0/frameworks/F/executors/e3/runs/5ec593ae-4f8c-435f-9f61-062f15060f1a
              unused
          = path /w/slaves/S0/frameworks/F/executors/e3 unused
    "#]]);
}

#[test]
fn launch_on_reclaimed_resources_is_rejected_as_preempted() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch o1 needs=cpus(ads):4
          = framework F
          = executor o1 live
          = task o1 of executor o1
          container launch C1 cpus:0.1;cpus:4;mem:32
        > launch b1 needs=cpus^:2
          = executor b1 live waiting
          = task b1 of executor b1
          = update b1#0 TASK_GONE
          master <- UPDATE b1 TASK_GONE REASON_CONTAINER_PREEMPTED 'The resources that were lent
              are in use by their owner'
          = executor b1 terminated
    "#]]);
}

#[test]
fn task_finished_during_preemption_keeps_its_state() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        ...
        > launch b1 executor=e1 own=mem:10 needs=cpus^:4
          = framework F
          = executor e1 live
          = task b1 of executor e1
          container launch C1 cpus:4;mem:10
        > e1 subscribe
          conn 1 <- 200, open
          conn 1 <- SUBSCRIBED e1
          = executor e1 live delivered
          conn 1 <- LAUNCH b1
        > launch o1 needs=cpus(ads):4
          = executor o1 live waiting
          = task o1 of executor o1
          = executor e1 terminating delivered
          conn 1 <- SHUTDOWN
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > e1 update b1 FINISHED
          = update b1#0 TASK_FINISHED
          master <- UPDATE b1 TASK_FINISHED
          conn 1 <- ACKNOWLEDGED b1
          conn 2 <- 202
        > ack b1
          = task b1 and updates #0..1 removed
        > e1 exited 0
          conn 1 closes
          = executor e1 terminated delivered
          master <- EXITED_EXECUTOR e1 status 0
          = executor e1 removed
          = path /w/slaves/S0/frameworks/F/executors/e1/runs/C1 unused
          = path /w/slaves/S0/frameworks/F/executors/e1 unused
          = executor o1 live
          container launch C2 cpus:0.1;cpus:4;mem:32
    "#]]);
}

#[test]
fn a_preemption_has_one_source_reason_and_message() {
    for end in [
        "b1 update b1 KILLED",
        "b1 update b1 FAILED",
        "b1 exited 0",
        "b1 exited 9",
        "wait 5s\n b1 exited 9",
        "b1 update b1 RUNNING\n ack b1\n b1 update b1 KILLED",
    ] {
        let world = World::default().run(&std::format!(
            "
            has cpus(ads):4;mem(ads):400;cpus:1;mem:100
            start
            recovered
            go
            launch b1 needs=cpus^:4
            b1 subscribe
            launch o1 needs=cpus(ads):4
            ack o1
            {end}
            "
        ));
        let last = world.statuses.last().expect("an end");
        let told = (last.task_id.value.as_str(), last.state, last.source, last.reason);
        let preempted = Some(Reason::REASON_CONTAINER_PREEMPTED);
        assert_eq!(told, ("b1", TaskState::TASK_GONE, Some(Source::SOURCE_AGENT), preempted), "{end}");
        assert_eq!(
            last.message.as_deref(),
            Some("Role 'ads' took back the resources that were lent"),
            "{end}"
        );
    }
}

/// A crash came between the record of an executor and that of its task: nothing would ever start or end it.
#[test]
fn pending_executor_without_tasks_is_removed_after_a_restart() {
    replay(expect![[r#"
        > has cpus(ads):4;mem(ads):400;cpus:1;mem:100
        > start
        > recovered
        > go
        > launch b1 needs=cpus^:4
        > b1 subscribe
        ...
        > launch o1 needs=cpus(ads):4
          = executor o1 live waiting
          = task o1 of executor o1
          = executor b1 terminating delivered
          conn 1 <- SHUTDOWN
          = update o1#0 TASK_STAGING
          master <- UPDATE o1 TASK_STAGING 'Waiting for lent resources: 1 executor preempted,
              with a grace period of 5secs'
        > lose task/F/o1
        > lose update/F/o1
        > restart
          container recover C1
        > recovered
          = executor o1 terminated
          = executor o1 removed
          = path /w/slaves/S0/frameworks/F/executors/o1/runs/84b32cb3-64c9-4755-90c8-d8e1ecaad2f2
              unused
          = path /w/slaves/S0/frameworks/F/executors/o1 unused
          = boot id boot-1
    "#]]);
}
