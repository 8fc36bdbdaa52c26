//! Answers to callers, verbatim, and the form of events.

use expect_test::expect;

use super::check;

#[test]
fn malformed_scheduler_calls_are_rejected() {
    check(
        r#"
        post {}
        post {"type":"SUBSCRIBE"}
        post stream:abc {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"x"}}}
        post {"type":"TEARDOWN"}
        post stream:abc {"type":"KILL","framework_id":{"value":"nope"},"kill":{"task_id":{"value":"t"}}}
        post {"type":"SUBSCRIBE","framework_id":{"value":"a"},"subscribe":{"framework_info":{"user":"u","name":"x"}}}
        post principal:p {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"u","name":"x","principal":"q"}}}
        post {"type":"ACKNOWLEDGE","framework_id":{"value":"a"},"acknowledge":{"agent_id":{"value":"s"},"task_id":{"value":"t"},"uuid":"YWI="}}
        post {"type":"UPDATE_FRAMEWORK","framework_id":{"value":"a"},"update_framework":{"framework_info":{"user":"u","name":"x"}}}
        post {"type":"UNKNOWN","framework_id":{"value":"a"}}
        "#,
        expect![[r#"
            record initialize cluster m
            caller <- 400: Failed to validate scheduler::Call: Expecting 'type' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'subscribe' to be present
            caller <- 400: Subscribe calls should not include the 'Mesos-Stream-Id' header
            caller <- 400: Failed to validate scheduler::Call: Expecting 'framework_id' to be present
            caller <- 400: Framework cannot be found
            caller <- 400: Failed to validate scheduler::Call: 'framework_id' differs from 'subscribe.framework_info.id'
            caller <- 400: Failed to validate scheduler::Call: Principal 'p' does not match principal 'q' set in 'FrameworkInfo'
            caller <- 400: Failed to validate scheduler::Call: Expecting 'uuid' to have 16 bytes, not 2
            caller <- 400: Failed to validate scheduler::Call: 'framework_id' differs from 'update_framework.framework_info.id'
            caller <- 400: Framework cannot be found
        "#]],
    );
}

#[test]
fn every_scheduler_call_requires_its_message() {
    check(
        r#"
        post {"type":"ACCEPT","framework_id":{"value":"a"}}
        post {"type":"DECLINE","framework_id":{"value":"a"}}
        post {"type":"ACCEPT_INVERSE_OFFERS","framework_id":{"value":"a"}}
        post {"type":"DECLINE_INVERSE_OFFERS","framework_id":{"value":"a"}}
        post {"type":"KILL","framework_id":{"value":"a"}}
        post {"type":"SHUTDOWN","framework_id":{"value":"a"}}
        post {"type":"ACKNOWLEDGE","framework_id":{"value":"a"}}
        post {"type":"ACKNOWLEDGE_OPERATION_STATUS","framework_id":{"value":"a"}}
        post {"type":"RECONCILE","framework_id":{"value":"a"}}
        post {"type":"RECONCILE_OPERATIONS","framework_id":{"value":"a"}}
        post {"type":"MESSAGE","framework_id":{"value":"a"}}
        post {"type":"REQUEST","framework_id":{"value":"a"}}
        post {"type":"UPDATE_FRAMEWORK","framework_id":{"value":"a"}}
        "#,
        expect![[r#"
            record initialize cluster m
            caller <- 400: Failed to validate scheduler::Call: Expecting 'accept' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'decline' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'accept_inverse_offers' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'decline_inverse_offers' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'kill' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'shutdown' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'acknowledge' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'acknowledge_operation_status' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'reconcile' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'reconcile_operations' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'message' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'request' to be present
            caller <- 400: Failed to validate scheduler::Call: Expecting 'update_framework' to be present
        "#]],
    );
}

#[test]
fn calls_require_the_subscribed_stream() {
    check(
        r#"
        framework F role:web principal:p failover:60
        post stream:F principal:q {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        post {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        post stream:abc {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        post stream:F principal:p {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        post stream:F {"type":"UNKNOWN","framework_id":{"value":"m-0000"}}
        post stream:F {"type":"REQUEST","framework_id":{"value":"m-0000"},"request":{"requests":[]}}
        post stream:F {"type":"DECLINE","framework_id":{"value":"m-0000"},"decline":{"offer_ids":[{"value":"nope"}]}}
        F close
        post stream:F {"type":"REVIVE","framework_id":{"value":"m-0000"}}
        "#,
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            caller <- 400: Principal 'q' is not the principal of framework 'F'
            caller <- 400: All non-subscribe calls should include the 'Mesos-Stream-Id' header
            caller <- 400: The stream ID 'abc' is not that of the current subscription of framework 'F'
            caller <- 202
            caller <- 501: 501 Not Implemented.
            caller <- 202
            caller <- 202
            caller <- 403: Framework is not subscribed
        "#]],
    );
}

#[test]
fn invalid_subscriptions_are_rejected_with_an_error_event() {
    check(
        r#"
        post {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"x","roles":["/x"],"capabilities":[{"type":"MULTI_ROLE"}]}}}
        caller shows
        post {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"x","role":"a","roles":["b"],"capabilities":[{"type":"MULTI_ROLE"}]}}}
        post {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"x","role":"a"},"offer_constraints":{"role_constraints":{"b":{}}}}}
        post {"type":"SUBSCRIBE","subscribe":{"framework_info":{"user":"root","name":"x","role":"a"},"offer_constraints":{"role_constraints":{"a":{}}}}}
        "#,
        expect![[r#"
            record initialize cluster m
            caller <- ERROR "'FrameworkInfo.roles' contains invalid role: Role '/x' cannot start with a slash"
            caller closed
            {"type":"ERROR","error":{"message":"'FrameworkInfo.roles' contains invalid role: Role '/x' cannot start with a slash"}}
            caller <- ERROR "'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable"
            caller closed
            caller <- ERROR "Offer constraints name role 'b', which is not among the framework's roles"
            caller closed
            caller <- ERROR "Offer constraints of role 'a' have no group"
            caller closed
        "#]],
    );
}

#[test]
fn offer_event_has_the_v1_json_format() {
    check(
        "
        agent A cpus:16 mem:8000 disk:1000 ports:[31000-32000] ip:127.0.0.1 host:localhost
        framework F multi role:dev
        settle
        F shows
        ",
        expect![[r##"
            record initialize cluster m
            record admit agent localhost at localhost
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:16; mem:8000; disk:1000; ports:[31000-32000])
            {"type":"OFFERS","offers":{"offers":[{"id":{"value":"#0"},"framework_id":{"value":"F"},"agent_id":{"value":"A"},"hostname":"localhost","url":{"scheme":"http","address":{"hostname":"localhost","ip":"127.0.0.1","port":5051},"path":"/slave(1)"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":16.0},"role":"*","allocation_info":{"role":"dev"}},{"name":"mem","type":"SCALAR","scalar":{"value":8000.0},"role":"*","allocation_info":{"role":"dev"}},{"name":"disk","type":"SCALAR","scalar":{"value":1000.0},"role":"*","allocation_info":{"role":"dev"}},{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":31000,"end":32000}]},"role":"*","allocation_info":{"role":"dev"}}],"allocation_info":{"role":"dev"}}]}}
        "##]],
    );
}

#[test]
fn offer_to_a_single_role_framework_has_the_v1_json_format() {
    check(
        "
        agent A cpus:16 mem:8000 cpus(dev):1 ip:127.0.0.1 host:localhost
        framework F role:dev
        settle
        F shows
        ",
        expect![[r##"
            record initialize cluster m
            record admit agent localhost at localhost
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:16; cpus(dev):1; mem:8000)
            {"type":"OFFERS","offers":{"offers":[{"id":{"value":"#0"},"framework_id":{"value":"F"},"agent_id":{"value":"A"},"hostname":"localhost","url":{"scheme":"http","address":{"hostname":"localhost","ip":"127.0.0.1","port":5051},"path":"/slave(1)"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":16.0},"role":"*"},{"name":"cpus","type":"SCALAR","scalar":{"value":1.0},"role":"dev","reservation":{}},{"name":"mem","type":"SCALAR","scalar":{"value":8000.0},"role":"*"}]}]}}
        "##]],
    );
}

#[test]
fn offers_to_refinement_frameworks_have_the_v1_json_format() {
    check(
        "
        agent A cpus:16 mem:8000 cpus(dev,dev/x):1 ip:127.0.0.1 host:localhost
        framework F role:dev/x refine
        settle
        F shows
        ",
        expect![[r##"
            record initialize cluster m
            record admit agent localhost at localhost
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:16; cpus(dev,dev/x):1; mem:8000)
            {"type":"OFFERS","offers":{"offers":[{"id":{"value":"#0"},"framework_id":{"value":"F"},"agent_id":{"value":"A"},"hostname":"localhost","url":{"scheme":"http","address":{"hostname":"localhost","ip":"127.0.0.1","port":5051},"path":"/slave(1)"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":16.0}},{"name":"cpus","type":"SCALAR","scalar":{"value":1.0},"reservations":[{"type":"DYNAMIC","role":"dev"},{"type":"DYNAMIC","role":"dev/x"}]},{"name":"mem","type":"SCALAR","scalar":{"value":8000.0}}]}]}}
        "##]],
    );
}

#[test]
fn master_generated_statuses_have_the_v1_json_format() {
    check(
        "
        agent A cpus:4 mem:512
        framework F role:web pa checkpoint
        settle
        F accept #0 refuse:0 : launch t1 cpus:9
        F shows
        F reconcile never@A
        F shows
        F reconcile never2
        F shows
        after 1s
        F accept #1 : launch t2 cpus:1 exec:e
        A shows
        A update t2 RUNNING
        F shows
        A exited F e
        F shows
        A close
        skip 100s
        F reconcile t2@A
        F shows
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; mem:512)
            F <- UPDATE t1 TASK_ERROR REASON_TASK_INVALID "Total resources cpus:9 required by task and its executor is more than available cpus:4; mem:512"
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"t1"},"state":"TASK_ERROR","message":"Total resources cpus:9 required by task and its executor is more than available cpus:4; mem:512","source":"SOURCE_MASTER","reason":"REASON_TASK_INVALID","agent_id":{"value":"A"},"timestamp":1000000000.0}}}
            F <- UPDATE never TASK_GONE REASON_RECONCILIATION "Reconciliation: Task is unknown to the agent"
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"never"},"state":"TASK_GONE","message":"Reconciliation: Task is unknown to the agent","source":"SOURCE_MASTER","reason":"REASON_RECONCILIATION","agent_id":{"value":"A"},"timestamp":1000000000.0}}}
            F <- UPDATE never2 TASK_UNKNOWN REASON_RECONCILIATION "Reconciliation: Task is unknown"
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"never2"},"state":"TASK_UNKNOWN","message":"Reconciliation: Task is unknown","source":"SOURCE_MASTER","reason":"REASON_RECONCILIATION","timestamp":1000000000.0}}}
            F <- OFFERS #1 of A (cpus:4; mem:512)
            A <- LAUNCH t2 (cpus:1) with a new executor
            {"type":"LAUNCH","launch":{"framework_info":{"user":"me","name":"F","id":{"value":"F"},"failover_timeout":0.0,"checkpoint":true,"role":"web","capabilities":[{"type":"PARTITION_AWARE"}]},"task":{"name":"t2","task_id":{"value":"t2"},"agent_id":{"value":"A"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":1.0},"allocation_info":{"role":"web"}}],"executor":{"executor_id":{"value":"e"},"framework_id":{"value":"F"},"command":{"shell":true,"value":"executor"},"resources":[{"name":"cpus","type":"SCALAR","scalar":{"value":0.5},"allocation_info":{"role":"web"}}]}},"launch_executor":true}}
            F <- UPDATE t2 TASK_RUNNING
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"t2"},"state":"TASK_RUNNING","source":"SOURCE_EXECUTOR","agent_id":{"value":"A"},"executor_id":{"value":"e"},"uuid":"AAAAAAAAAAAAAAAAAAAAAQ=="}}}
            F <- FAILURE of A e 0
            {"type":"FAILURE","failure":{"agent_id":{"value":"A"},"executor_id":{"value":"e"},"status":0}}
            record mark unreachable agent A since 1000000090.000
            F <- UPDATE t2 TASK_UNREACHABLE REASON_AGENT_REMOVED "Agent is unreachable"
            F <- FAILURE of A
            F <- UPDATE t2 TASK_UNREACHABLE REASON_RECONCILIATION "Reconciliation: Task is unreachable"
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"t2"},"state":"TASK_UNREACHABLE","message":"Reconciliation: Task is unreachable","source":"SOURCE_MASTER","reason":"REASON_RECONCILIATION","agent_id":{"value":"A"},"timestamp":1000000101.0,"unreachable_time":{"nanoseconds":1000000090000000000}}}}
        "#]],
    );
}

#[test]
fn invalid_group_status_has_the_v1_json_format() {
    check(
        "
        agent A cpus:4 mem:512
        framework F multi role:web pa checkpoint
        settle
        F accept #0 : group e g1 cpus:1 mem:32
        F shows
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:4; mem:512)
            F <- UPDATE g1 TASK_ERROR REASON_TASK_GROUP_INVALID "'ExecutorInfo.framework_id' must be set"
            {"type":"UPDATE","update":{"status":{"task_id":{"value":"g1"},"state":"TASK_ERROR","message":"'ExecutorInfo.framework_id' must be set","source":"SOURCE_MASTER","reason":"REASON_TASK_GROUP_INVALID","agent_id":{"value":"A"},"timestamp":1000000000.0}}}
        "#]],
    );
}

#[test]
fn agent_subscribed_event_has_the_expected_fields() {
    check(
        "
        framework F role:web
        agent A cpus:4 mem:512
        A shows
        ",
        expect![[r#"
            record initialize cluster m
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            record admit agent A at A
            A <- SUBSCRIBED A
            {"type":"SUBSCRIBED","subscribed":{"agent_id":{"value":"A"},"master_info":{"id":"m","ip":0,"port":5050},"silence_timeout_seconds":75.0}}
        "#]],
    );
}
