//! Tables: what each call needs, with nothing else allowed.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec;

use tepui_authz::{Acls, Authorizer, Entity, Rule};
use tepui_fsm::{Mono, Now, Wall};
use tepui_proto::json;
use tepui_registry::Registry;

use super::*;
use crate::Config;

fn some(name: &str) -> Entity {
    Entity::Some([name.to_string()].into())
}

/// A master that allows one action to `ops`, and nothing else to any principal.
fn master(action: Option<Action>, objects: Entity) -> Master {
    let rules = action.map(|action| (action, vec![Rule { principals: some("ops"), objects }]));
    let acls = Acls::new(false, BTreeMap::from_iter(rules)).expect("right");
    let config = Config { authorizer: Authorizer::new(Some(acls)), ..Config::default() };
    Master::new(config, Registry::default(), Now { mono: Mono::default(), wall: Wall(0) })
}

const RESERVED: &str = r#"{"name":"cpus","type":"SCALAR","scalar":{"value":1},
    "reservations":[{"type":"DYNAMIC","role":"top","principal":"p"},{"type":"DYNAMIC","role":"x","principal":"x"}]}"#;
const OLD: &str =
    r#"{"name":"cpus","type":"SCALAR","scalar":{"value":1},"role":"x","reservation":{"principal":"x"}}"#;
const VOLUME: &str = r#"{"name":"disk","type":"SCALAR","scalar":{"value":1},
    "reservations":[{"type":"DYNAMIC","role":"x","principal":"p"}],
    "disk":{"persistence":{"id":"v","principal":"x"}}}"#;

/// (call, the one action it needs; its object, if it has one, is `x`)
#[test]
fn every_operator_call_requires_its_action() {
    let resources = |kind: &str, field: &str, what: &str| {
        let name = kind.to_lowercase();
        alloc::format!(r#"{{"type":"{kind}","{name}":{{"agent_id":{{"value":"A"}},"{field}":[{what}]}}}}"#)
    };
    let resize = |kind: &str, by: &str| {
        let (name, amount) = (kind.to_lowercase(), r#"{"value":1}"#);
        let by = if by == "addition" { OLD } else { amount };
        let field = if kind == "GROW_VOLUME" { "addition" } else { "subtract" };
        alloc::format!(r#"{{"type":"{kind}","{name}":{{"volume":{VOLUME},"{field}":{by}}}}}"#)
    };
    let agent = |kind: &str| {
        let name = kind.to_lowercase();
        alloc::format!(r#"{{"type":"{kind}","{name}":{{"agent_id":{{"value":"A"}}}}}}"#)
    };
    for (call, action) in [
        (
            r#"{"type":"TEARDOWN","teardown":{"framework_id":{"value":"F"}}}"#.to_string(),
            Action::TeardownFramework,
        ),
        (agent("MARK_AGENT_GONE"), Action::MarkAgentGone),
        (agent("DRAIN_AGENT"), Action::DrainAgent),
        (agent("DEACTIVATE_AGENT"), Action::DeactivateAgent),
        (agent("REACTIVATE_AGENT"), Action::ReactivateAgent),
        (
            r#"{"type":"UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{"schedule":{}}}"#
                .to_string(),
            Action::UpdateMaintenanceSchedule,
        ),
        (r#"{"type":"START_MAINTENANCE","start_maintenance":{}}"#.to_string(), Action::StartMaintenance),
        (r#"{"type":"STOP_MAINTENANCE","stop_maintenance":{}}"#.to_string(), Action::StopMaintenance),
        (
            r#"{"type":"UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"x","weight":2.0}]}}"#
                .to_string(),
            Action::UpdateWeight,
        ),
        (
            r#"{"type":"UPDATE_QUOTA","update_quota":{"quota_configs":[{"role":"x"}]}}"#.to_string(),
            Action::UpdateQuota,
        ),
        (
            r#"{"type":"SET_QUOTA","set_quota":{"quota_request":{"role":"x"}}}"#.to_string(),
            Action::UpdateQuota,
        ),
        (r#"{"type":"REMOVE_QUOTA","remove_quota":{"role":"x"}}"#.to_string(), Action::UpdateQuota),
        (resources("RESERVE_RESOURCES", "resources", RESERVED), Action::ReserveResources),
        (resources("RESERVE_RESOURCES", "resources", OLD), Action::ReserveResources),
        (resources("UNRESERVE_RESOURCES", "resources", RESERVED), Action::UnreserveResources),
        (resources("UNRESERVE_RESOURCES", "resources", OLD), Action::UnreserveResources),
        (resources("CREATE_VOLUMES", "volumes", VOLUME), Action::CreateVolume),
        (resources("DESTROY_VOLUMES", "volumes", VOLUME), Action::DestroyVolume),
        (resize("GROW_VOLUME", "addition"), Action::ResizeVolume),
        (resize("SHRINK_VOLUME", "subtract"), Action::ResizeVolume),
    ] {
        let parsed: Call = json::from_slice(call.as_bytes()).unwrap_or_else(|err| panic!("{call}: {err:?}"));
        let allowed = |master: &Master, who| operator(master, who, &parsed).is_ok();
        // An unknown framework has no principal: only a rule for all of them fits.
        let named =
            action.objects() != tepui_authz::Objects::AnyOrNone && action != Action::TeardownFramework;
        let objects = if named { some("x") } else { Entity::Any };
        let right = master(Some(action), objects);
        assert!(allowed(&right, Some("ops")), "{call}");
        assert!(!allowed(&right, Some("dev")) && !allowed(&right, None), "{call}");
        assert!(!allowed(&master(None, Entity::Any), Some("ops")), "{call}");
        if named {
            assert!(!allowed(&master(Some(action), some("y")), Some("ops")), "{call}");
        }
    }
}

#[test]
fn framework_registration_requires_authorization_for_every_role() {
    let master = master(Some(Action::RegisterFramework), some("x"));
    let info = |principal: &str, roles: &[&str]| pb::FrameworkInfo {
        principal: Some(principal.to_string()),
        roles: roles.iter().map(ToString::to_string).collect(),
        capabilities: vec![pb::framework_info::Capability {
            r#type: Some(pb::framework_info::capability::Type::MULTI_ROLE),
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(register_framework(&master, &info("ops", &["x"])), Ok(()));
    assert!(register_framework(&master, &info("ops", &["x", "y"])).is_err());
    assert!(register_framework(&master, &info("dev", &["x"])).is_err());
}
