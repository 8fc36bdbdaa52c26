//! What is counted, and that counting alone makes no new version.

use alloc::format;
use alloc::string::String;

use expect_test::{Expect, expect};
use tepui_proto::Enumeration;

use super::script::Script;
use crate::{Config, Counter, State, Tally};

/// Plays a script and lists every count that is not zero.
fn check(script: &str, expected: Expect) {
    let mut run = Script::new(Config::default());
    run.play(script);
    expected.assert_eq(&counted(run.state()));
}

fn counted(state: &State) -> String {
    let mut text = String::new();
    let counters = &state.counters;
    for counter in Counter::ALL.iter().filter(|counter| counters.get(**counter) > 0) {
        text.push_str(&format!("{} {}\n", counter.name(), counters.get(*counter)));
    }
    text.push_str(&format!("tasks{}\n", tally(&counters.tasks)));
    for ((state, source, reason), count) in counters.reasons.iter() {
        let (state, source) = (state.proto_name(), source.proto_name());
        text.push_str(&format!("{state} {source} {} {count}\n", reason.proto_name()));
    }
    for ((kind, state), count) in counters.operations.iter() {
        text.push_str(&format!("operation {} {} {count}\n", kind.proto_name(), state.proto_name()));
    }
    for (id, counters) in state.framework_counters.iter() {
        let offers: String =
            counters.offers.iter().map(|(fate, count)| format!(" {fate:?}:{count}")).collect();
        text.push_str(&format!(
            "{id}: calls{} events{} offers{offers} operations{} tasks{}\n",
            tally(&counters.calls),
            tally(&counters.events),
            tally(&counters.operations),
            tally(&counters.tasks),
        ));
    }
    text
}

fn tally<T: Enumeration + Copy + PartialEq>(tally: &Tally<T>) -> String {
    tally.iter().map(|(what, count)| format!(" {}:{count}", what.proto_name())).collect()
}

#[test]
fn task_transitions_are_counted() {
    check(
        "
        framework F role:web multi pa checkpoint refine
        agent A cpus:4 mem:1024 disk:100
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 ; launch t2 cpus:99 ; reserve cpus:1
        A update t1 RUNNING
        F ack t1
        A update t1 FINISHED
        F ack t1
        F ack t1
        F says e A
        F kill never@A
        settle
        ",
        expect![[r#"
            messages_register_framework 1
            messages_kill_task 1
            messages_status_update_acknowledgement 3
            messages_launch_tasks 1
            messages_framework_to_executor 1
            messages_register_slave 1
            messages_status_update 2
            valid_framework_to_executor_messages 1
            valid_status_updates 2
            valid_status_update_acknowledgements 3
            slave_registrations 1
            tasks TASK_ERROR:1 TASK_FINISHED:1
            TASK_ERROR SOURCE_MASTER REASON_TASK_INVALID 1
            operation RESERVE OPERATION_ERROR 1
            m-0000: calls SUBSCRIBE:1 ACCEPT:1 ACKNOWLEDGE:3 MESSAGE:1 KILL:1 events SUBSCRIBED:1 HEARTBEAT:1 OFFERS:2 UPDATE:4 offers Sent:2 Accepted:1 operations LAUNCH:1 tasks TASK_ERROR:1 TASK_FINISHED:1
        "#]],
    );
}

#[test]
fn agent_transitions_are_counted() {
    check(
        "
        framework F role:web pa checkpoint
        agent A cpus:4 mem:1024
        agent B cpus:4 mem:1024
        agent C cpus:4 mem:1024
        settle
        F accept #0 : launch t1 cpus:1
        A close
        A back
        B leave
        C close
        skip 700s
        operator gone A
        F teardown
        settle
        ",
        expect![[r#"
            messages_register_framework 1
            messages_unregister_framework 1
            messages_launch_tasks 1
            messages_register_slave 3
            messages_reregister_slave 1
            messages_unregister_slave 1
            slave_registrations 3
            slave_reregistrations 1
            slave_removals 3
            slave_removals/reason_unhealthy 2
            slave_removals/reason_unregistered 1
            slave_unreachable_scheduled 2
            slave_unreachable_completed 2
            tasks TASK_LOST:1
            TASK_LOST SOURCE_MASTER REASON_AGENT_REMOVED 1
            m-0000: calls SUBSCRIBE:1 ACCEPT:1 TEARDOWN:1 events SUBSCRIBED:1 HEARTBEAT:47 OFFERS:2 RESCIND:3 UPDATE:1 FAILURE:4 offers Sent:4 Accepted:1 Rescinded:3 operations LAUNCH:1 tasks TASK_LOST:1
        "#]],
    );
}

#[test]
fn rejected_calls_are_not_counted() {
    check(
        r#"
        framework F role:web
        agent A cpus:4 mem:1024
        settle
        F decline #0
        post stream:F {"type":"SUPPRESS","framework_id":{"value":"nobody"}}
        post {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        F suppress
        A close
        settle
        "#,
        expect![[r#"
            messages_register_framework 1
            messages_decline_offers 1
            messages_suppress_offers 1
            messages_register_slave 1
            slave_registrations 1
            tasks
            m-0000: calls SUBSCRIBE:1 DECLINE:1 SUPPRESS:1 events SUBSCRIBED:1 HEARTBEAT:1 OFFERS:1 offers Sent:1 Declined:1 operations tasks
        "#]],
    );
}

#[test]
fn counters_do_not_change_the_state_version() {
    let mut run = Script::new(Config::default());
    run.play("framework F role:web\nsettle");
    let before = run.state().clone();
    run.play("F kill never\nsettle");
    let after = run.state();
    assert_eq!(after.version, before.version);
    assert_eq!(after.counters.get(Counter::MessagesKillTask), 1);
    assert_eq!(before.counters.get(Counter::MessagesKillTask), 0);
}
