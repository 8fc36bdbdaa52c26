//! What flags limit: rates, ages, lengths of lists, the life of an offer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use expect_test::{Expect, expect};

use super::check_with;
use crate::Config;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn agent_removals_are_rate_limited() {
    check_with(
        Config { agent_removal_rate_limit: Some((1, 20 * SECOND)), ..Config::default() },
        "
        agent A cpus:1
        agent B cpus:1
        agent C cpus:1
        skip 100s
        C pong
        skip 100s
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record admit agent B at B
            B <- SUBSCRIBED B
            record admit agent C at C
            C <- SUBSCRIBED C
            record mark unreachable agent A since 1000000090.000
            A closed
            record mark unreachable agent B since 1000000110.000
            B closed
            record mark unreachable agent C since 1000000180.000
            C closed
        "#]],
    );
}

/// Two of three known agents do not re-register with a new master.
fn two_of_three_missing(limit: f64, expected: Expect) {
    check_with(
        Config { recovery_agent_removal_limit: limit, ..Config::default() },
        "
        agent A cpus:1
        agent B cpus:1
        agent C cpus:1
        ...
        master restarts
        A back
        skip 601s
        ",
        expected,
    );
}

#[test]
fn missing_agents_above_the_removal_limit_stop_the_master() {
    two_of_three_missing(
        0.6,
        expect![[r#"
        A <- SUBSCRIBED A
        record mark unreachable agent A since 1000000090.000
        A closed
        halt: 2 of 3 known agents (66.7%) did not come back within 600s, and --recovery_agent_removal_limit is 60%: find out why, or raise it; missing are B, C
    "#]],
    );
}

#[test]
fn missing_agents_below_the_removal_limit_are_marked_unreachable() {
    two_of_three_missing(
        0.7,
        expect![[r#"
        A <- SUBSCRIBED A
        record mark unreachable agent A since 1000000090.000
        A closed
        record mark unreachable agent B since 1000000600.000
        record mark unreachable agent C since 1000000600.000
    "#]],
    );
}

#[test]
fn new_master_rate_limits_agent_removals() {
    check_with(
        Config { agent_removal_rate_limit: Some((1, 20 * SECOND)), ..Config::default() },
        "
        agent A cpus:1
        agent B cpus:1
        agent C cpus:1
        master restarts
        --
        skip 610s
        B back
        skip 60s
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record admit agent B at B
            B <- SUBSCRIBED B
            record admit agent C at C
            C <- SUBSCRIBED C
            --
            record mark unreachable agent A since 1000000600.000
            B <- SUBSCRIBED B
            record mark unreachable agent C since 1000000640.000
        "#]],
    );
}

#[test]
fn an_unanswered_offer_is_rescinded() {
    check_with(
        Config { offer_timeout: Some(5 * SECOND), ..Config::default() },
        "
        agent A cpus:1 mem:64
        framework F role:web
        settle
        after 4s
        --
        after 1s
        --
        F accept #1 : launch t1 cpus:1
        after 6s
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            --
            F <- RESCIND #0
            F <- OFFERS #1 of A (cpus:1; mem:64)
            --
            A <- LAUNCH t1 (cpus:1)
            F <- OFFERS #2 of A (mem:64)
        "#]],
    );
}

#[test]
fn completed_and_unreachable_entries_are_limited() {
    check_with(
        Config {
            max_completed_tasks_per_framework: 2,
            max_unreachable_tasks_per_framework: 1,
            max_completed_frameworks: 1,
            ..Config::default()
        },
        "
        agent A cpus:4 mem:64
        framework F role:web pa checkpoint failover:1000
        framework G role:ops
        framework H role:ops
        settle
        F accept #0 refuse:0 : launch t1 cpus:1 ; launch t2 cpus:1 ; launch t3 cpus:1 ; launch t4 cpus:1
        A update t1 FINISHED
        F ack t1
        A update t2 FINISHED
        F ack t2
        G teardown
        H teardown
        --
        G back
        H back
        G teardown
        skip 100s
        F lists
        A lost t4
        A back
        F lists
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            H <- SUBSCRIBED H
            H <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            A <- LAUNCH t2 (cpus:1)
            A <- LAUNCH t3 (cpus:1)
            A <- LAUNCH t4 (cpus:1)
            F <- UPDATE t1 TASK_FINISHED
            A <- ACKNOWLEDGE t1
            F <- UPDATE t2 TASK_FINISHED
            A <- ACKNOWLEDGE t2
            record remove framework G
            G closed
            record remove framework H
            H closed
            --
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            H <- ERROR "Framework has been removed"
            H closed
            record remove framework G
            G closed
            F <- OFFERS #1 of A (cpus:2; mem:64)
            A <- PING in order
            record mark unreachable agent A since 1000000090.000
            F <- RESCIND #1
            F <- UPDATE t3 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- UPDATE t4 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            A closed
            F <- FAILURE of A
            unreachable t4 TASK_UNREACHABLE
            completed t1 TASK_FINISHED
            completed t2 TASK_FINISHED
            record mark reachable agent A at A
            A <- SUBSCRIBED A
            F <- UPDATE t3 TASK_STAGING REASON_AGENT_REREGISTERED "Agent reregistered"
            F <- UPDATE t4 TASK_GONE REASON_RECONCILIATION "Task is unknown to the agent"
            live t3 TASK_STAGING
            completed t2 TASK_FINISHED
            completed t4 TASK_GONE
        "#]],
    );
}

#[test]
fn old_unreachable_agents_are_pruned_from_the_registry() {
    check_with(
        Config { registry_max_agent_count: 2, registry_max_agent_age: 3000 * SECOND, ..Config::default() },
        "
        framework F role:web pa failover:1000000 checkpoint
        agent A cpus:1
        settle
        F accept #0 : launch t1 cpus:1
        A close
        skip 100s
        agent B cpus:1
        B close
        skip 100s
        agent C cpus:1
        C close
        operator gone C
        --
        skip 600s
        F reconcile t1@A
        agent D cpus:1
        D close
        skip 200s
        --
        skip 1000s
        F reconcile t1@A
        F lists
        skip 3000s
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- OFFERS #0 of A (cpus:1)
            A <- LAUNCH t1 (cpus:1)
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE t1 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- FAILURE of A
            record admit agent B at B
            B <- SUBSCRIBED B
            record mark unreachable agent B since 1000000190.000
            F <- FAILURE of B
            record admit agent C at C
            C <- SUBSCRIBED C
            record mark gone agent C since 1000000200.000
            F <- FAILURE of C
            operator <- 200
            --
            F <- UPDATE t1 TASK_UNREACHABLE REASON_RECONCILIATION "Reconciliation: Task is unreachable"
            record admit agent D at D
            D <- SUBSCRIBED D
            record mark unreachable agent D since 1000000890.000
            F <- FAILURE of D
            record prune 1 unreachable and 0 gone agents
            --
            F <- UPDATE t1 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
            record prune 1 unreachable and 1 gone agents
            record prune 1 unreachable and 0 gone agents
        "#]],
    );
}

#[test]
fn subscriber_limit_disconnects_the_oldest_operator() {
    check_with(
        Config { max_operator_event_stream_subscribers: 1, ..Config::default() },
        "
        operator subscribe
        operator subscribe
        agent A cpus:1
        operator unknown
        ",
        expect![[r#"
            record initialize cluster m
            operator opened at 0 <- HEARTBEAT
            operator closed
            operator opened at 0 <- HEARTBEAT
            record admit agent A at A
            operators <- AGENT_ADDED A
            A <- SUBSCRIBED A
            operator <- 501: 501 Not Implemented.
        "#]],
    );
}

#[test]
fn roles_whitelist_and_root_submissions_are_enforced() {
    check_with(
        Config { roles: Some([String::from("web")].into()), root_submissions: false, ..Config::default() },
        "
        framework F role:web
        framework G role:ops
        framework H role:*
        framework I role:web user:root
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            G <- ERROR "Role 'ops' is not present in the master's --roles"
            G closed
            H <- SUBSCRIBED H
            H <- HEARTBEAT
            I <- ERROR "User 'root' is not allowed to run frameworks without --root_submissions set"
            I closed
        "#]],
    );
}

#[test]
fn weights_are_recorded_once() {
    check_with(
        Config { weights: [(String::from("web"), 2.0)].into(), ..Config::default() },
        "
        settle
        master restarts
        settle
        ",
        expect![[r#"
            record initialize cluster m
            record set weights web=2
        "#]],
    );
}

/// An agent with a longer description could not register again. What makes it shorter is not rejected.
#[test]
fn reservations_of_an_agent_are_limited_by_the_size_of_its_description() {
    let mut config = Config::default();
    config.limits.agent_info = 4000;
    let call = |kind: &str, label: &str| {
        let labels = format!(r#"{{"labels":[{{"key":"{label}","value":"{}"}}]}}"#, "x".repeat(1000));
        let reservation = format!(r#"{{"type":"DYNAMIC","role":"web","labels":{labels}}}"#);
        let resource = format!(
            r#"{{"name":"disk","type":"SCALAR","scalar":{{"value":1}},"reservations":[{reservation}]}}"#
        );
        let body = format!(r#"{{"agent_id":{{"value":"@A"}},"resources":[{resource}]}}"#);
        format!(r#"call {{"type":"{kind}_RESOURCES","{}_resources":{body}}}"#, kind.to_lowercase())
    };
    let calls = [call("RESERVE", "a"), call("RESERVE", "b"), call("RESERVE", "c"), call("UNRESERVE", "a")];
    check_with(
        config,
        &format!("agent A cpus:4 disk:150\n{}\n{}", calls.join("\n"), calls[2]),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            operator <- 400: Invalid RESERVE operation on agent A at slave(1)@A:5051 (A): The description of the agent would take 4278 bytes with its 'resources', more than the limit of 4000 (--max_agent_info_size)
            A <- APPLY_OPERATION UNRESERVE
            operator <- 202
            A <- APPLY_OPERATION RESERVE
            operator <- 202
        "#]],
    );
}

/// A smaller volume leaves disk with the same reservation, which is an entry of its own.
#[test]
fn shrinking_a_volume_is_limited_by_the_size_of_the_description() {
    let mut config = Config::default();
    config.limits.agent_info = 4000;
    let disk = |megabytes: u32, label: &str, volume: &str| {
        let labels = format!(r#"{{"labels":[{{"key":"{label}","value":"{}"}}]}}"#, "x".repeat(1000));
        let reservation = format!(r#"{{"type":"DYNAMIC","role":"web","labels":{labels}}}"#);
        format!(
            r#"{{"name":"disk","type":"SCALAR","scalar":{{"value":{megabytes}}},{volume}"reservations":[{reservation}]}}"#
        )
    };
    let call = |kind: &str, fields: &str| {
        let name = kind.to_lowercase();
        format!(r#"call {{"type":"{kind}","{name}":{{"agent_id":{{"value":"@A"}},{fields}}}}}"#)
    };
    let volume = r#""disk":{"persistence":{"id":"v"},"volume":{"mode":"RW","container_path":"data"}},"#;
    let calls = [
        call("RESERVE_RESOURCES", &format!(r#""resources":[{}]"#, disk(10, "a", ""))),
        call("CREATE_VOLUMES", &format!(r#""volumes":[{}]"#, disk(10, "a", volume))),
        call("RESERVE_RESOURCES", &format!(r#""resources":[{}]"#, disk(1, "b", ""))),
        call("SHRINK_VOLUME", &format!(r#""volume":{},"subtract":{{"value":4}}"#, disk(10, "a", volume))),
    ];
    let unreserve = call("UNRESERVE_RESOURCES", &format!(r#""resources":[{}]"#, disk(1, "b", "")));
    check_with(
        config,
        &format!("agent A cpus:4 disk:150\n{}\n{unreserve}\n{}", calls.join("\n"), calls[3]),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            A <- APPLY_OPERATION CREATE
            operator <- 202
            A <- APPLY_OPERATION RESERVE
            operator <- 202
            operator <- 400: Invalid SHRINK_VOLUME operation on agent A at slave(1)@A:5051 (A): The description of the agent would take 4295 bytes with its 'resources', more than the limit of 4000 (--max_agent_info_size)
            A <- APPLY_OPERATION UNRESERVE
            operator <- 202
            A <- APPLY_OPERATION SHRINK_VOLUME
            operator <- 202
        "#]],
    );
}

#[test]
fn maintenance_schedule_is_limited() {
    let mut config = Config::default();
    config.limits.maintenance_schedule = 100;
    let schedule = |machines: &[&str]| {
        let machines: Vec<_> = machines.iter().map(|name| format!(r#"{{"hostname":"{name}"}}"#)).collect();
        let window = format!(
            r#"{{"machine_ids":[{}],"unavailability":{{"start":{{"nanoseconds":1}}}}}}"#,
            machines.join(",")
        );
        format!(
            r#"call {{"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{{"schedule":{{"windows":[{window}]}}}}}}"#
        )
    };
    let long = "x".repeat(50);
    check_with(
        config,
        &format!("{}\n{}", schedule(&[&long]), schedule(&[&long, &long.replace('x', "y")])),
        expect![[r#"
            record initialize cluster m
            record schedule maintenance in 1 windows, xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@ DRAINING
            operator <- 200
            operator <- 400: The schedule takes 116 bytes, more than the limit of 100; its field 'windows' takes 114 (--max_maintenance_schedule_size)
        "#]],
    );
}
