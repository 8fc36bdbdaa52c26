//! Quotas: set, refused, kept over a restart, and the offers that stand in their way.

use alloc::format;

use expect_test::expect;

use super::check;
use super::script::Script;
use crate::Config;

fn update(configs: &str) -> alloc::string::String {
    format!(r#"call {{"type":"UPDATE_QUOTA","update_quota":{{"quota_configs":[{configs}]}}}}"#)
}

#[test]
fn quota_updates_are_atomic_and_quotas_are_removed() {
    let both = update(
        r#"{"role":"a","limits":{"cpus":{"value":2}}},{"role":"b","guarantees":{"cpus":{"value":1}}}"#,
    );
    let none = update(r#"{"role":"a"},{"role":"b"}"#);
    check(
        &format!(
            r#"
            agent A cpus:4
            {both}
            call {{"type":"SET_QUOTA","set_quota":{{"quota_request":{{"role":"b","guarantee":[{{"name":"cpus","type":"SCALAR","scalar":{{"value":1}}}}]}}}}}}
            call {{"type":"SET_QUOTA","set_quota":{{"quota_request":{{"role":"c","guarantee":[{{"name":"cpus","type":"SCALAR","scalar":{{"value":9}}}}]}}}}}}
            call {{"type":"SET_QUOTA","set_quota":{{"quota_request":{{"role":"c","force":true,"guarantee":[{{"name":"cpus","type":"SCALAR","scalar":{{"value":9}}}}]}}}}}}
            call {{"type":"REMOVE_QUOTA","remove_quota":{{"role":"c"}}}}
            call {{"type":"REMOVE_QUOTA","remove_quota":{{"role":"c"}}}}
            {none}
            "#
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record set quota of a b
            operator <- 200
            operator <- 400: Failed to validate set quota request: Cannot set quota for role 'b' which already has quota
            operator <- 409: Quota guarantees overcommit the cluster (use 'force' to bypass this check): Total quota guarantees 'cpus:10' exceed cluster capacity 'cpus:4'
            record set quota of c
            operator <- 200
            record set quota of c
            operator <- 200
            operator <- 400: Failed to remove quota: Role 'c' has no quota set
            record set quota of a b
            operator <- 200
        "#]],
    );
}

#[test]
fn invalid_quotas_are_rejected() {
    let mut script =
        Script::new(Config { roles: Some(["a".into(), "c".into()].into()), ..Config::default() });
    script.play("agent A cpus:4");
    for config in [
        r#"{"role":""}"#,
        r#"{"role":"a/b"}"#,
        r#"{"role":"b"}"#,
        r#"{"role":"a"},{"role":"a"}"#,
        r#"{"role":"a","limits":{"cpus":{"value":-1}}}"#,
        r#"{"role":"a","limits":{"cpus":{"value":"Infinity"}}}"#,
        r#"{"role":"a","limits":{"mem":{"value":2e12}}}"#,
        r#"{"role":"a","guarantees":{"cpus":{"value":2}},"limits":{"cpus":{"value":1}}}"#,
        r#"{"role":"a","guarantees":{"cpus":{"value":5}}}"#,
    ] {
        script.play(&update(config));
    }
    for guarantee in [
        "",
        r#"{"name":"ports","type":"RANGES","ranges":{"range":[{"begin":1,"end":2}]}}"#,
        r#"{"name":"cpus","type":"SCALAR","scalar":{"value":1},"revocable":{}}"#,
        r#"{"name":"cpus","type":"SCALAR","scalar":{"value":1}},{"name":"cpus","type":"SCALAR","scalar":{"value":1}}"#,
    ] {
        script.play(&format!(
            r#"call {{"type":"SET_QUOTA","set_quota":{{"quota_request":{{"role":"a","guarantee":[{guarantee}]}}}}}}"#
        ));
    }
    assert!(script.state().quotas.is_empty());
    expect![[r#"
        record initialize cluster m
        record admit agent A at A
        A <- SUBSCRIBED A
        operator <- 400: Failed to validate UPDATE_QUOTA: Invalid role '': Empty role name is invalid
        operator <- 400: Failed to validate UPDATE_QUOTA: Setting quota on nested role 'a/b' is not supported
        operator <- 400: Failed to validate UPDATE_QUOTA: Unknown role 'b'
        operator <- 400: Failed to validate UPDATE_QUOTA: role 'a' is named twice
        operator <- 400: Failed to validate UPDATE_QUOTA: Quota of role 'a': -1 of 'cpus' is not a valid amount
        operator <- 400: Failed to validate UPDATE_QUOTA: Quota of role 'a': inf of 'cpus' is not a valid amount
        operator <- 400: Failed to validate UPDATE_QUOTA: Quota of role 'a': 2000000000000 of 'mem' is more than 1099511627776
        operator <- 400: Failed to validate UPDATE_QUOTA: Quota of role 'a': the guarantee of 'cpus' is above its limit
        operator <- 400: Failed to validate UPDATE_QUOTA: Quota guarantees overcommit the cluster (use 'force' to bypass this check): Total quota guarantees 'cpus:5' exceed cluster capacity 'cpus:4'
        operator <- 400: Failed to validate set quota request: Quota guarantee is empty
        operator <- 400: Failed to validate set quota request: Quota guarantee of 'ports' is not an unreserved scalar
        operator <- 400: Failed to validate set quota request: Quota guarantee of 'cpus' is not an unreserved scalar
        operator <- 400: Failed to validate set quota request: Quota guarantee names 'cpus' twice
    "#]].assert_eq(&script.said());
}

#[test]
fn new_quota_rescinds_offers_that_violate_it() {
    let limit = update(r#"{"role":"a","limits":{"cpus":{"value":1}}}"#);
    let guarantee = update(r#"{"role":"b","guarantees":{"cpus":{"value":2}}}"#);
    check(
        &format!(
            "agent A cpus:2
             framework F role:a
             settle
             {limit}
             after 1s
             --
             agent B cpus:2
             framework G role:c
             after 1s
             {guarantee}
             after 1s
             framework H role:b
             after 1s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:2)
            record set quota of a
            F <- RESCIND #0
            operator <- 200
            F <- OFFERS #1 of A (cpus:1)
            --
            record admit agent B at B
            B <- SUBSCRIBED B
            G <- SUBSCRIBED G
            G <- HEARTBEAT
            G <- OFFERS #2 of B (cpus:2) #3 of A (cpus:1)
            record set quota of b
            F <- RESCIND #1
            G <- RESCIND #2
            operator <- 200
            F <- OFFERS #4 of B (cpus:1)
            H <- SUBSCRIBED H
            H <- HEARTBEAT
            H <- OFFERS #5 of B (cpus:1) #6 of A (cpus:1)
        "#]],
    );
}

#[test]
fn usage_must_fit_a_new_quota_limit_unless_forced() {
    let limit = update(r#"{"role":"a","limits":{"cpus":{"value":1}}}"#);
    let forced = limit.replace(r#""quota_configs""#, r#""force":true,"quota_configs""#);
    check(
        &format!(
            "agent A cpus:2
             framework F role:a
             settle
             F accept #0 : launch t1 cpus:1.5
             {limit}
             {forced}
             after 10s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:2)
            A <- LAUNCH t1 (cpus:1.5)
            operator <- 400: Failed to validate UPDATE_QUOTA: Role 'a' already consumes 'cpus:1.5', which is above the new limits (use 'force' to bypass this check)
            record set quota of a
            operator <- 200
        "#]],
    );
}

/// After a restart nothing is offered before the agents that hold what counts are back.
#[test]
fn quota_survives_master_restart_and_offers_wait_for_agents() {
    let limit = update(r#"{"role":"a","limits":{"cpus":{"value":3}}}"#);
    check(
        &format!(
            "agent A cpus:2
             agent B cpus:2
             agent C cpus:2
             framework F role:a checkpoint failover:600
             settle
             F accept #0 : launch t1 cpus:1
             {limit}
             master restarts
             framework F role:a checkpoint failover:600
             A back
             after 2s
             --
             B back
             after 2s"
        ),
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            record admit agent B at B
            B <- SUBSCRIBED B
            record admit agent C at C
            C <- SUBSCRIBED C
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of B (cpus:2) #1 of A (cpus:2) #2 of C (cpus:2)
            B <- LAUNCH t1 (cpus:1)
            record set quota of a
            F <- RESCIND #1
            operator <- 200
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            A <- SUBSCRIBED A
            --
            B <- SUBSCRIBED B
            F <- OFFERS #1.0 of A (cpus:2)
        "#]],
    );
}

/// With a factor of zero, or when it has waited for long enough, a new master offers what there is.
#[test]
fn wait_of_a_new_master_for_agents_is_configurable() {
    let limit = update(r#"{"role":"a","limits":{"cpus":{"value":3}}}"#);
    let script = format!(
        "agent A cpus:2
         agent B cpus:2
         agent C cpus:2
         {limit}
         master restarts
         framework F role:a
         A back
         skip 4s
         --
         skip 8s"
    );
    /// Whether F was offered something before and after the mark.
    fn offered(config: Config, script: &str) -> (bool, bool) {
        let mut run = Script::new(config);
        run.play(script);
        let said = run.said();
        let (early, late) = said.split_once("--\n").expect("the mark");
        (early.contains("F <- OFFERS"), late.contains("F <- OFFERS"))
    }
    let patient =
        Config { allocator_recovery_timeout: core::time::Duration::from_secs(8), ..Config::default() };
    let careless = Config { allocator_agent_recovery_factor: 0.0, ..Config::default() };
    assert_eq!(offered(patient, &script), (false, true));
    assert_eq!(offered(careless, &script), (true, false));
}
