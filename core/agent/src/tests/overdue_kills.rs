//! Kills that an executor does not carry out.

use expect_test::expect;

use super::driver::check;

fn run(script: &str, expected: expect_test::Expect) {
    check(&std::format!("start\nrecovered\ngo\n{script}"), expected);
}

#[test]
fn a_silent_executor_is_ended() {
    run(
        "
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        ack t1
        ...
        kill t1 grace=2s
        wait 11s
        wait 1s
        kill t1
        t1 exited 9 oom message=limit
        ack t1
        wait 60s
        ",
        expect![[r#"
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
                  executor did not end it in time; limit'
              = executor t1 terminated delivered
            > ack t1
              = task t1 and updates #0..2 removed
              = executor t1 removed
              = path /w/slaves/S0/frameworks/F/executors/t1/runs/C1 unused
              = path /w/slaves/S0/frameworks/F/executors/t1 unused
              = framework F removed
              = path /w/slaves/S0/frameworks/F unused
            > wait 60s
        "#]],
    );
}

#[test]
fn a_repeated_kill_shortens_the_time_only() {
    run(
        "
        launch t1
        t1 subscribe
        kill t1
        wait 1s
        ...
        kill t1 grace=60s
        kill t1 grace=0s
        wait 9s
        wait 1s
        ",
        expect![[r#"
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
        "#]],
    );
}

#[test]
fn an_id_that_is_used_again_has_its_own_time() {
    run(
        "
        launch t1
        t1 subscribe
        kill t1
        t1 update t1 KILLED
        ack t1
        t1 exited 0
        launch t1
        t1 subscribe
        wait 10s
        kill t1
        ...
        wait 14s
        wait 1s
        ",
        expect![[r#"
            > wait 14s
            > wait 1s
              = executor t1 terminating delivered
              container destroy C2
        "#]],
    );
}

#[test]
fn a_frameworks_own_executor_has_all_time() {
    run(
        "
        launch t1 executor=e1
        e1 subscribe
        kill t1
        ...
        wait 600s
        ",
        expect![[r#"
            > wait 600s
              connect link 2
        "#]],
    );
}

#[test]
fn of_several_tasks_the_one_that_is_killed_ends() {
    run(
        "
        group e1 a,b
        e1 subscribe
        call launch C1.a
        call launch C1.b
        container C1.a launched 5
        container C1.b launched 6
        e1 update a RUNNING in=C1.a
        e1 update b RUNNING in=C1.b
        ack a
        ack b
        kill a
        ...
        wait 15s
        container C1.a exited 9
        e1 update a FAILED in=C1.a
        kill b
        wait 15s
        e1 exited 9
        ",
        expect![[r#"
            > wait 15s
              container destroy C1.a
            > container C1.a exited 9
              = container C1.a ended
            > e1 update a FAILED in=C1.a
              = update a#1 TASK_KILLED
              master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              container update C1 cpus:1.5;mem:96
              conn 1 <- ACKNOWLEDGED a
              conn 6 <- 202
            > kill b
              = task b of executor e1
              conn 1 <- KILL b
            > wait 15s
              master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              = executor e1 terminating delivered
              container destroy C1
            > e1 exited 9
              conn 1 closes
              = container C1.a removed
              = container C1.b removed
              = update b#1 TASK_KILLED
              master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              = executor e1 terminated delivered
              master <- EXITED_EXECUTOR e1 status 9
        "#]],
    );
}

#[test]
fn a_task_that_never_came_to_run_keeps_its_executor() {
    run(
        "
        group e1 a,b
        e1 subscribe
        kill a
        ...
        wait 15s
        kill b
        wait 14s
        kill a
        wait 1s
        e1 exited 9
        ",
        expect![[r#"
            > wait 15s
            > kill b
              = task b of executor e1
              conn 1 <- KILL b
            > wait 14s
            > kill a
              conn 1 <- KILL a
            > wait 1s
              = executor e1 terminating delivered
              container destroy C1
            > e1 exited 9
              conn 1 closes
              = update a#0 TASK_KILLED
              master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              = update b#0 TASK_KILLED
              master <- UPDATE b TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              = executor e1 terminated delivered
              master <- EXITED_EXECUTOR e1 status 9
        "#]],
    );
}

#[test]
fn when_the_last_other_task_ends_the_executor_does() {
    run(
        "
        group e1 a,b
        e1 subscribe
        kill a
        wait 15s
        ...
        e1 update b FINISHED
        e1 exited 9
        ",
        expect![[r#"
            > e1 update b FINISHED
              = update b#0 TASK_FINISHED
              master <- UPDATE b TASK_FINISHED
              container update C1 cpus:1.5;mem:96
              = executor e1 terminating delivered
              container destroy C1
              conn 1 <- ACKNOWLEDGED b
              conn 2 <- 202
            > e1 exited 9
              conn 1 closes
              = update a#0 TASK_KILLED
              master <- UPDATE a TASK_KILLED REASON_EXECUTOR_TERMINATED 'Killed by the agent: the
                  executor did not end it in time'
              = executor e1 terminated delivered
              master <- EXITED_EXECUTOR e1 status 9
        "#]],
    );
}

#[test]
fn a_restart_begins_the_time_anew() {
    run(
        "
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        kill t1 grace=1s
        wait 10s
        ...
        restart
        recovered
        t1 subscribe
        wait 10s
        wait 1s
        restart
        recovered
        wait 5s
        ",
        expect![[r#"
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
        "#]],
    );
}

#[test]
fn an_executor_that_does_not_come_back_ends_as_asked() {
    run(
        "
        launch t1
        t1 subscribe
        t1 update t1 RUNNING
        kill t1
        restart
        recovered
        ...
        wait 2s
        t1 exited 9
        ",
        expect![[r#"
            > wait 2s
              = executor t1 terminating delivered
              container destroy C1
              = boot id boot-1
            > t1 exited 9
              = update t1#1 TASK_KILLED
              = executor t1 terminated delivered
        "#]],
    );
}

#[test]
fn while_the_agent_is_drained() {
    run(
        "
        launch t1
        t1 subscribe
        drain grace=1s
        ...
        wait 11s
        t1 exited 9
        ",
        expect![[r#"
            > wait 11s
              = executor t1 terminating delivered
              container destroy C1
            > t1 exited 9
              conn 1 closes
              = update t1#0 TASK_KILLED
              master <- UPDATE t1 TASK_KILLED REASON_AGENT_DRAINING 'Killed by the agent: the executor
                  did not end it in time'
              = executor t1 terminated delivered
        "#]],
    );
}
