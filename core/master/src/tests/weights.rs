//! Weights that operators change while the cluster runs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use expect_test::expect;
use tepui_registry::{Operation as Record, Registry};

use super::script::Script;
use super::{check, check_with};
use crate::Config;

fn weights(script: &Script) -> String {
    let weights = script.state().weights.iter().map(|(role, weight)| format!("{role}={weight}"));
    weights.collect::<Vec<_>>().join(" ")
}

#[test]
fn weights_are_recorded_before_the_response_and_1_is_omitted() {
    check(
        r#"
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":2},{"role":" b/c ","weight":0.5}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":1.0}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{}}
        "#,
        expect![[r#"
            record initialize cluster m
            record set weights a=2 b/c=0.5
            operator <- 200
            record set weights a=1
            operator <- 200
            operator <- 200
        "#]],
    );
}

#[test]
fn one_invalid_weight_rejects_all() {
    let mut script = Script::new(Config::default());
    script.play(
        r#"call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":2}]}}"#,
    );
    for wrong in [
        r#"{"role":"b","weight":0}"#,
        r#"{"role":"b","weight":-1}"#,
        r#"{"role":"b","weight":"Infinity"}"#,
        r#"{"role":"b","weight":0.0000001}"#,
        r#"{"role":"b","weight":1e12}"#,
        r#"{"role":"","weight":1}"#,
        r#"{"role":"/b","weight":1}"#,
        r#"{"role":"b c","weight":1}"#,
        r#"{"weight":1}"#,
        r#"{"role":"a","weight":3}"#,
    ] {
        script.play(&format!(
            r#"call {{"type":"UPDATE_WEIGHTS","update_weights":{{"weight_infos":[{{"role":"a","weight":7}},{wrong}]}}}}"#
        ));
        assert_eq!(weights(&script), "a=2");
    }
    expect![[r#"
        record initialize cluster m
        record set weights a=2
        operator <- 200
        operator <- 400: Failed to validate update weights request JSON for role 'b': Invalid weight '0': Weights must be positive
        operator <- 400: Failed to validate update weights request JSON for role 'b': Invalid weight '-1': Weights must be positive
        operator <- 400: Failed to validate update weights request JSON for role 'b': Invalid weight 'inf': Weights must be positive
        operator <- 400: Failed to validate update weights request JSON for role 'b': Invalid weight '0.0000001': Weights must be between 0.000001 and 1000000000
        operator <- 400: Failed to validate update weights request JSON for role 'b': Invalid weight '1000000000000': Weights must be between 0.000001 and 1000000000
        operator <- 400: Failed to validate update weights request JSON: Invalid role '': Empty role name is invalid
        operator <- 400: Failed to validate update weights request JSON: Invalid role '/b': Role '/b' cannot start with a slash
        operator <- 400: Failed to validate update weights request JSON: Invalid role 'b c': Role 'b c' cannot contain the character ' '
        operator <- 400: Failed to validate update weights request JSON: a role is missing
        operator <- 400: Failed to validate update weights request JSON: role 'a' is named twice
    "#]].assert_eq(&script.said());
}

#[test]
fn weight_updates_outside_the_roles_whitelist_are_not_applied() {
    let config = Config {
        roles: Some(["a".into()].into()),
        weights: [(String::from("old"), 3.0)].into(),
        ..Config::default()
    };
    check_with(
        config,
        r#"
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":2},{"role":"b","weight":2}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":2},{"role":"old","weight":1}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"old","weight":2}]}}
        "#,
        expect![[r#"
            record initialize cluster m
            record set weights old=3
            operator <- 204
            record set weights a=2 old=1
            operator <- 200
            operator <- 204
        "#]],
    );
}

#[test]
fn weights_flag_applies_only_to_a_new_registry() {
    let config = Config { weights: [(String::from("a"), 3.0)].into(), ..Config::default() };
    let mut script = Script::new(config);
    script.play(
        r#"
        settle
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":1},{"role":"b","weight":2}]}}
        master restarts
        settle
        "#,
    );
    assert_eq!(weights(&script), "b=2");
    expect![[r#"
        record initialize cluster m
        record set weights a=3
        record set weights a=1 b=2
        operator <- 200
    "#]]
    .assert_eq(&script.said());
}

/// With weights 1:3 of eight agents two go to A; offers that are out when the weights change stay.
#[test]
fn the_next_offers_follow_the_new_weights() {
    let agents: String = (0..7).map(|n| format!("agent N{n} cpus:1 mem:64\n")).collect();
    let mut script = Script::new(Config::default());
    script.play("framework A role:a\nframework B role:b\nagent M cpus:1 mem:64\nsettle");
    let before = script.offers().len();
    script.play(
        r#"call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"b","weight":3}]}}"#,
    );
    assert_eq!((before, script.offers().len()), (1, 1), "what is offered stays offered");
    script.play(&agents);
    script.play("after 2s");
    let of = |name: &str| script.offers().iter().filter(|(_, owner)| *owner == name).count();
    assert_eq!((of("A"), of("B")), (2, 6));
}

/// What PUT rejects, the flag does not get past either.
#[test]
fn the_flag_is_validated_as_the_call_is() {
    for (role, weight, expected) in [
        ("a/b", 0.000_001, None),
        ("a", 1e9, None),
        ("", 1.0, Some("--weights: =1: Invalid role '': Empty role name is invalid")),
        ("/b", 1.0, Some("--weights: /b=1: Invalid role '/b': Role '/b' cannot start with a slash")),
        ("a", 0.0, Some("--weights: a=0: Invalid weight '0': Weights must be positive")),
        (
            "a",
            0.000_000_1,
            Some(
                "--weights: a=0.0000001: Invalid weight '0.0000001': Weights must be between 0.000001 and 1000000000",
            ),
        ),
    ] {
        let config = Config { weights: [(String::from(role), weight)].into(), ..Config::default() };
        assert_eq!(config.check().err().as_deref(), expected);
    }
}

#[test]
fn ignored_weights_are_those_that_differ_from_the_registry() {
    let weights = [("a", 3.0), ("b", 2.0), ("c", 1.0), ("d", 5.0)];
    let weights = weights.map(|(role, weight)| (String::from(role), weight)).into();
    let config = Config { weights, ..Config::default() };
    let mut registry = Registry::default();
    assert_eq!(config.ignored_weights(&registry).count(), 0, "a new registry takes them all");
    let known = [(String::from("a"), 4.0), (String::from("b"), 2.0)].into();
    for record in [Record::Initialize { cluster_id: "m".into() }, Record::SetWeights(known)] {
        registry.apply(&record);
    }
    let ignored: Vec<_> = config.ignored_weights(&registry).collect();
    assert_eq!(ignored, [("a", 3.0, 4.0), ("d", 5.0, 1.0)]);
}

/// What many calls leave is bounded together; what takes room away is not rejected.
#[test]
fn weights_and_quotas_of_all_roles_are_bounded_together() {
    let mut config = Config::default();
    config.limits.role_config = 60;
    check_with(
        config,
        r#"
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":2},{"role":"b","weight":2}]}}
        call {"type":"UPDATE_QUOTA","update_quota":{"force":true,"quota_configs":[{"role":"a","limits":{"cpus":{"value":1}}}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"c","weight":2},{"role":"d","weight":2}]}}
        call {"type":"UPDATE_QUOTA","update_quota":{"force":true,"quota_configs":[{"role":"b","limits":{"cpus":{"value":1}}}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":3}]}}
        call {"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"a","weight":1},{"role":"b","weight":1}]}}
        call {"type":"UPDATE_QUOTA","update_quota":{"force":true,"quota_configs":[{"role":"b","limits":{"cpus":{"value":1}}}]}}
        "#,
        expect![[r#"
            record initialize cluster m
            record set weights a=2 b=2
            operator <- 200
            record set quota of a
            operator <- 200
            operator <- 400: Weights and quotas of all roles would take 91 bytes, more than 60 (--max_role_config_size); nothing was changed
            operator <- 400: Weights and quotas of all roles would take 80 bytes, more than 60 (--max_role_config_size); nothing was changed
            record set weights a=3
            operator <- 200
            record set weights a=1 b=1
            operator <- 200
            record set quota of b
            operator <- 200
        "#]],
    );
}
