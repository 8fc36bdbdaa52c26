//! What frameworks and flags ask of offers reaches the allocator.

use alloc::format;
use alloc::string::String;

use expect_test::expect;

use super::script::domain;
use super::{check, check_with};
use crate::Config;

/// A framework in the role web that subscribes with this in its info.
fn subscribe(info: &str) -> String {
    let info = format!(r#"{{"user":"me","name":"x","role":"web",{info}}}"#);
    format!(r#"post {{"type":"SUBSCRIBE","subscribe":{{"framework_info":{info}}}}}"#)
}

#[test]
fn framework_minimum_offer_is_enforced() {
    let least =
        r#"{"quantities":[{"quantities":{"cpus":{"value":2}}},{"quantities":{"mem":{"value":900}}}]}"#;
    let framework =
        subscribe(&format!(r#""offer_filters":{{"web":{{"min_allocatable_resources":{least}}}}}"#));
    let agents = "agent A cpus:1 mem:64\nagent B cpus:2 mem:64\nagent C cpus:1 mem:900\n...\n";
    check(
        &format!("{agents}{framework}\nsettle"),
        expect![[r#"
            caller <- SUBSCRIBED caller
            caller <- HEARTBEAT
            caller <- OFFERS #0 of B (cpus:2; mem:64) #1 of C (cpus:1; mem:900)
        "#]],
    );
}

#[test]
fn cluster_minimum_offer_is_enforced() {
    check_with(
        Config { min_allocatable_resources: "cpus:2".into(), ..Config::default() },
        "
        agent A cpus:1 mem:64
        agent B cpus:2 mem:64
        ...
        framework F role:web
        settle
        ",
        expect![[r#"
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of B (cpus:2; mem:64)
        "#]],
    );
}

#[test]
fn remote_agents_are_offered_to_region_aware_frameworks() {
    let mut config = Config::default();
    config.master_info.domain = domain("home/m").into();
    let aware = subscribe(r#""capabilities":[{"type":"REGION_AWARE"}]"#);
    check_with(
        config,
        &format!(
            "
            agent A cpus:1 mem:64 zone:home/a
            agent B cpus:1 mem:64 zone:away/b
            ...
            framework F role:web
            settle
            {aware}
            settle
            "
        ),
        expect![[r#"
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            F <- OFFERS #0 of A (cpus:1; mem:64)
            caller <- SUBSCRIBED caller
            caller <- HEARTBEAT
            caller <- OFFERS #1 of B (cpus:1; mem:64)
        "#]],
    );
}

/// F has most of the disk, G more of the cpus.
#[test]
fn excluded_resource_names_do_not_affect_fair_shares() {
    let script = "
        agent A cpus:10 mem:100 disk:100
        framework F role:a
        settle
        F accept #0 : launch t1 cpus:1 disk:90
        framework G role:b
        settle
        G accept #1 : launch t2 cpus:2
        agent B cpus:1 mem:64
        ...
        settle
        ";
    check(
        script,
        expect![[r#"
            G <- OFFERS #2 of B (cpus:1; mem:64)
        "#]],
    );
    check_with(
        Config { fair_sharing_excluded_resource_names: ["disk".into()].into(), ..Config::default() },
        script,
        expect![[r#"
            F <- OFFERS #2 of B (cpus:1; mem:64)
        "#]],
    );
}
