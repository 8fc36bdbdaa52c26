//! Machines that will not be there: schedules, requests to leave, machines down and up.

use alloc::format;
use alloc::string::String;

use expect_test::expect;

use super::check;
use super::script::Script;
use crate::{Config, cluster_status};

const SCHEDULE: &str = r#"call {"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{"schedule":{"windows":[{"machine_ids":[{"hostname":"a","ip":"10.0.0.1"}],"unavailability":{"start":{"nanoseconds":2000000000000000000}}}]}}}"#;

const DOWN: &str = r#"call {"type":"START_MAINTENANCE","start_maintenance":{"machines":[{"hostname":"A","ip":"10.0.0.1"}]}}"#;

const UP: &str =
    r#"call {"type":"STOP_MAINTENANCE","stop_maintenance":{"machines":[{"hostname":"A","ip":"10.0.0.1"}]}}"#;

fn status(script: &Script) -> String {
    String::from_utf8(tepui_proto::json::to_vec(&cluster_status(script.state()))).expect("JSON is text")
}

#[test]
fn users_of_a_machine_receive_inverse_offers() {
    let mut script = Script::new(Config::default());
    script.play(&format!(
        "agent A ip:10.0.0.1 cpus:4
         framework F role:web
         settle
         F accept #0 refuse:3600 : launch t1 cpus:1
         framework G role:other
         settle
         --
         {SCHEDULE}
         settle
         F stays #3 refuse:20
         G stays #3"
    ));
    expect![[r#"{"draining_machines":[{"id":{"hostname":"a","ip":"10.0.0.1"},"statuses":[{"status":"DECLINE","framework_id":{"value":"m-0000"},"timestamp":{"nanoseconds":1000000000000000000}}]}]}"#]].assert_eq(&status(&script));
    script.play("skip 18s\n--\nskip 4s\n--\nF leaves #5 refuse:3600\nskip 30s");
    expect![[r#"{"draining_machines":[{"id":{"hostname":"a","ip":"10.0.0.1"},"statuses":[{"status":"ACCEPT","framework_id":{"value":"m-0000"},"timestamp":{"nanoseconds":1000000022000000000}}]}]}"#]].assert_eq(&status(&script));
    expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        F <- SUBSCRIBED F
        F <- HEARTBEAT
        F <- OFFERS #0 of A (cpus:4)
        A <- LAUNCH t1 (cpus:1)
        G <- SUBSCRIBED G
        G <- HEARTBEAT
        G <- OFFERS #1 of A (cpus:3)
        --
        record schedule maintenance in 1 windows, a@10.0.0.1 DRAINING
        G <- RESCIND #1
        operator <- 200
        G <- OFFERS #2 of A (cpus:3)
        F <- INVERSE_OFFERS #3 of A
        G <- INVERSE_OFFERS #4 of A
        --
        F <- INVERSE_OFFERS #5 of A
        --
    "#]]
    .assert_eq(&script.said());
}

#[test]
fn offers_contain_the_unavailability_of_the_agent() {
    check(
        &format!(
            "{SCHEDULE}
             agent A ip:10.0.0.1 cpus:4
             framework F role:web
             settle
             F shows"
        ),
        expect![[r##"
            record initialize cluster m
            record schedule maintenance in 1 windows, a@10.0.0.1 DRAINING
            operator <- 200
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            F <- INVERSE_OFFERS #1 of A
            {"type":"INVERSE_OFFERS","inverse_offers":{"inverse_offers":[{"id":{"value":"#1"},"url":{"scheme":"http","address":{"hostname":"A","ip":"10.0.0.1","port":5051},"path":"/slave(1)"},"framework_id":{"value":"F"},"agent_id":{"value":"A"},"unavailability":{"start":{"nanoseconds":2000000000000000000}}}]}}
        "##]],
    );
}

#[test]
fn changed_maintenance_window_rescinds_offers_and_inverse_offers() {
    check(
        &format!(
            r#"
            agent A ip:10.0.0.1 cpus:4
            framework F role:web
            settle
            {SCHEDULE}
            settle
            after 1s
            --
            call {{"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{{"schedule":{{}}}}}}
            after 1s
            "#
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4)
            record schedule maintenance in 1 windows, a@10.0.0.1 DRAINING
            F <- RESCIND #0
            operator <- 200
            F <- OFFERS #1 of A (cpus:4)
            F <- INVERSE_OFFERS #2 of A
            --
            record schedule maintenance in 0 windows, a@10.0.0.1 UP
            F <- RESCIND #1
            F <- RESCIND_INVERSE_OFFER #2
            operator <- 200
            F <- OFFERS #3 of A (cpus:4)
        "#]],
    );
}

#[test]
fn machine_down_shuts_down_its_agents_until_it_is_up() {
    let mut script = Script::new(Config::default());
    script.play(&format!(
        "agent A ip:10.0.0.1 cpus:4
         framework F role:web
         settle
         F accept #0 : launch t1 cpus:1
         {DOWN}
         {SCHEDULE}
         {DOWN}
         {DOWN}
         --
         agent C host:a ip:10.0.0.1 cpus:1
         agent D host:a ip:10.0.0.9 cpus:1
         master restarts
         agent E host:A ip:10.0.0.1 cpus:1
         --"
    ));
    expect![[r#"{"down_machines":[{"hostname":"a","ip":"10.0.0.1"}]}"#]].assert_eq(&status(&script));
    script.play(&format!("{UP}\n{UP}\nagent C host:a ip:10.0.0.1 cpus:1"));
    expect!["{}"].assert_eq(&status(&script));
    expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        F <- SUBSCRIBED F
        F <- HEARTBEAT
        F <- OFFERS #0 of A (cpus:4)
        A <- LAUNCH t1 (cpus:1)
        operator <- 400: Machine 'a@10.0.0.1' is not part of a maintenance schedule
        record schedule maintenance in 1 windows, a@10.0.0.1 DRAINING
        operator <- 200
        record schedule maintenance in 1 windows, a@10.0.0.1 DOWN
        record remove agent A
        F <- UPDATE t1 TASK_LOST REASON_AGENT_REMOVED "Machine is down for maintenance"
        A <- SHUTDOWN "Machine is down for maintenance"
        A closed
        F <- FAILURE of A
        operator <- 200
        operator <- 400: Machine 'a@10.0.0.1' is not in DRAINING mode, but DOWN
        --
        C <- SHUTDOWN "Machine is down for maintenance"
        C closed
        record admit agent a at a
        D <- SUBSCRIBED D
        E <- SHUTDOWN "Machine is down for maintenance"
        E closed
        --
        record schedule maintenance in 0 windows, a@10.0.0.1 UP
        operator <- 200
        operator <- 400: Machine 'a@10.0.0.1' is not part of a maintenance schedule
        record admit agent a at a
        C <- SUBSCRIBED C
    "#]]
    .assert_eq(&script.said());
}

#[test]
fn invalid_maintenance_schedules_are_rejected() {
    let windows = [
        r#"{"machine_ids":[],"unavailability":{"start":{"nanoseconds":1}}}"#,
        r#"{"machine_ids":[{"hostname":"b"}],"unavailability":{"start":{"nanoseconds":1},"duration":{"nanoseconds":-1}}}"#,
        r#"{"machine_ids":[{}],"unavailability":{"start":{"nanoseconds":1}}}"#,
        r#"{"machine_ids":[{"ip":"10.0.0.256"}],"unavailability":{"start":{"nanoseconds":1}}}"#,
        r#"{"machine_ids":[{"hostname":"b"},{"hostname":"B"}],"unavailability":{"start":{"nanoseconds":1}}}"#,
        r#"{"machine_ids":[{"hostname":"b"}],"unavailability":{"start":{"nanoseconds":1}}}"#,
    ];
    let mut script = Script::new(Config::default());
    script.play(&format!("{SCHEDULE}\n{DOWN}"));
    for window in windows {
        script.play(&format!(
            r#"call {{"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{{"schedule":{{"windows":[{window}]}}}}}}"#
        ));
    }
    script.play(
        r#"
        call {"type":"START_MAINTENANCE","start_maintenance":{"machines":[]}}
        call {"type":"START_MAINTENANCE","start_maintenance":{"machines":[{"hostname":"x"}]}}
        call {"type":"STOP_MAINTENANCE","stop_maintenance":{"machines":[{"hostname":"x"},{"hostname":"X"}]}}
        "#,
    );
    expect![[r#"
        record initialize cluster m
        record schedule maintenance in 1 windows, a@10.0.0.1 DRAINING
        operator <- 200
        record schedule maintenance in 1 windows, a@10.0.0.1 DOWN
        operator <- 200
        operator <- 400: List of machines in the maintenance window is empty
        operator <- 400: Unavailability 'duration' is negative
        operator <- 400: Both 'hostname' and 'ip' for a machine are empty
        operator <- 400: '10.0.0.256' of a machine is not an IPv4 address
        operator <- 400: Machine 'b@' appears more than once in the schedule
        operator <- 400: Machine 'a@10.0.0.1' is deactivated and cannot be removed from the schedule
        operator <- 400: List of machines is empty
        operator <- 400: Machine 'x@' is not part of a maintenance schedule
        operator <- 400: Machine 'x@' appears more than once
    "#]]
    .assert_eq(&script.said());
}
