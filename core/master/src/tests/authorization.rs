//! Authorization of roles, users and operations. Rejections have the form of v1.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect;
use tepui_authz::{Acls, Action, Authorizer, Entity, Rule};

use super::check_with;
use super::script::Script;
use crate::Config;

fn only(action: Action, principal: &str, object: &str) -> (Action, Vec<Rule>) {
    let some = |name: &str| Entity::Some([name.to_string()].into());
    let deny = Rule { principals: Entity::Any, objects: Entity::None };
    (action, vec![Rule { principals: some(principal), objects: some(object) }, deny])
}

#[test]
fn unauthorized_calls_are_rejected() {
    let rules = BTreeMap::from([
        only(Action::RegisterFramework, "p", "web"),
        only(Action::RunTask, "p", "svc"),
        only(Action::ReserveResources, "p", "other"),
    ]);
    let authorizer = Authorizer::new(Some(Acls::new(true, rules).expect("right")));
    check_with(
        Config { authorizer, ..Config::default() },
        "
        agent A cpus:4 mem:64
        framework F role:web principal:p user:svc
        framework G role:db principal:p
        framework H role:web
        --
        settle
        F accept #0 : launch t1 cpus:1 ; reserve cpus(web):1 id:r
        F close
        ",
        expect![[r#"
            record initialize cluster m
            record admit agent A at A
            A <- SUBSCRIBED A
            F <- SUBSCRIBED F
            F <- HEARTBEAT
            G <- ERROR "Not authorized to use role 'db'"
            G closed
            H <- ERROR "Not authorized to use role 'web'"
            H closed
            --
            F <- OFFERS #0 of A (cpus:4; mem:64)
            A <- LAUNCH t1 (cpus:1)
            F <- UPDATE_OPERATION_STATUS r OPERATION_ERROR "Not authorized to perform ReserveResources"
            record remove framework F
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}

/// Updates that a launch gets, if it is refused.
fn refused(config: &Config, operation: &str) -> String {
    let script = format!(
        "agent A cpus:4 mem:512 disk:512\nframework F role:web principal:p user:svc\n--\nsettle\nF accept #0 : {operation}"
    );
    let said = super::said(config.clone(), &script);
    let told = said.lines().filter(|line| line.contains("TASK_ERROR")).map(|line| line.trim().to_string());
    told.collect::<Vec<_>>().join("; ")
}

#[test]
fn every_process_of_a_task_requires_an_authorized_user() {
    let rules = BTreeMap::from([only(Action::RunTask, "p", "svc")]);
    let authorizer = Authorizer::new(Some(Acls::new(true, rules).expect("right")));
    let by_rules = Config { authorizer, ..Config::default() };
    let by_flag = Config { root_submissions: false, ..Config::default() };
    for launch in [
        "launch t cpus:1 as:root",
        "launch t cpus:1 health-as:root",
        "launch t cpus:1 check-as:root",
        "launch t cpus:1 exec:e exec-as:root",
        "launch t cpus:1 docker-user:0",
        "group e t cpus:1 as:root",
        "group e t cpus:1 health-as:root",
        "group e t cpus:1 check-as:root",
    ] {
        for config in [&by_rules, &by_flag] {
            let said = refused(config, launch);
            let reason = if launch.starts_with("group") { "GROUP_UNAUTHORIZED" } else { "TASK_UNAUTHORIZED" };
            assert!(said.contains("TASK_ERROR") && said.contains(reason), "{launch}: {said}");
        }
        let said = refused(&Config::default(), launch);
        assert!(!said.contains("UNAUTHORIZED"), "without rules everything is allowed: {launch}: {said}");
    }
    for launch in ["launch t cpus:1", "launch t cpus:1 as:svc health-as:svc", "launch t cpus:1 exec:e"] {
        for config in [&by_rules, &by_flag] {
            assert_eq!(refused(config, launch), "", "{launch}");
        }
    }
}

#[test]
fn agent_credential_is_bound_to_its_hostname_and_its_address() {
    let some = |names: &[&str]| Entity::Some(names.iter().map(ToString::to_string).collect());
    let bound =
        |principal: &str, names: &[&str]| Rule { principals: some(&[principal]), objects: some(names) };
    let deny = Rule { principals: Entity::Any, objects: Entity::None };
    let rules = vec![bound("A", &["A"]), bound("B", &["B"]), deny];
    let acls = Acls::new(true, BTreeMap::from([(Action::RegisterAgent, rules)])).expect("right");
    let config = Config { authorizer: Authorizer::new(Some(acls)), ..Config::default() };
    let agents = ["A cpus:1", "C cpus:1", "B cpus:1 host:A", "B cpus:1 ip:C"];
    let said = super::said(config.clone(), &agents.map(|agent| format!("agent {agent}")).join("\n"));
    let lines: Vec<&str> =
        said.lines().filter(|line| line.contains("<-") || line.contains("admit")).collect();
    assert!(said.contains("A <- SUBSCRIBED"), "{said}");
    let rejected = |agent: &str, name: &str| {
        let why = format!("{agent} <- 403: Not authorized to register an agent as '{name}'\n");
        assert!(said.contains(&why), "{why}: {said}");
    };
    rejected("C", "C");
    rejected("B", "A");
    rejected("B", "C");
    assert_eq!(lines.iter().filter(|line| line.contains("admit agent")).count(), 1, "{said}");
}

#[test]
fn id_of_an_unreachable_agent_requires_its_own_credential() {
    let some = |names: &[&str]| Entity::Some(names.iter().map(ToString::to_string).collect());
    let bound = |name: &str| Rule { principals: some(&[name]), objects: some(&[name]) };
    let rules = vec![bound("A"), bound("B"), Rule { principals: Entity::Any, objects: Entity::None }];
    let acls = Acls::new(true, BTreeMap::from([(Action::RegisterAgent, rules)])).expect("right");
    let config = Config { authorizer: Authorizer::new(Some(acls)), ..Config::default() };
    let lost = "agent A cpus:1\nA close\nafter 700s\n";
    let said = super::said(config.clone(), &format!("{lost}agent B cpus:1 id-of:A"));
    assert!(said.contains("mark unreachable agent A"), "{said}");
    assert!(said.contains("Not authorized to register an agent as 'A'"), "{said}");
    assert!(!said.contains("mark reachable"), "{said}");
    let said = super::said(config.clone(), &format!("{lost}master restarts\nagent B cpus:1 id-of:A"));
    assert!(said.contains("Not authorized to register an agent as 'A'"), "also for the next master: {said}");
    let said = super::said(config, &format!("{lost}A back"));
    assert!(said.contains("mark reachable agent A"), "{said}");
}

#[test]
fn agents_are_notified_of_frameworks_without_root() {
    let rules = BTreeMap::from([only(Action::RunTask, "p", "svc")]);
    let authorizer = Authorizer::new(Some(Acls::new(true, rules).expect("right")));
    for (config, expected) in [
        (Config::default(), true),
        (Config { root_submissions: false, ..Config::default() }, false),
        (Config { authorizer, ..Config::default() }, false),
    ] {
        let registry = tepui_registry::Registry::default();
        let now = tepui_fsm::Now { mono: tepui_fsm::Mono::default(), wall: tepui_fsm::Wall(0) };
        let master = crate::Master::new(config, registry, now);
        let info =
            tepui_proto::mesos::v1::FrameworkInfo { principal: Some("p".to_string()), ..Default::default() };
        assert_eq!(crate::rules::authorization::may_use(&master, &info, "root"), expected);
    }
}

/// Every change by operators has its action: without this action, and only this one, it is rejected.
#[test]
fn every_operator_change_requires_its_action() {
    let agent = r#""agent_id":{"value":"m-S0"}"#;
    let machine = r#"[{"hostname":"A","ip":"A"}]"#;
    let cpus = r#"[{"name":"cpus","type":"SCALAR","scalar":{"value":1},"reservations":[{"type":"DYNAMIC","role":"web"}]}]"#;
    let disk = r#"{"name":"disk","type":"SCALAR","scalar":{"value":8},"reservations":[{"type":"DYNAMIC","role":"web"}],
        "disk":{"persistence":{"id":"v"},"volume":{"container_path":"v","mode":"RW"}}}"#;
    let more = r#"{"value":1}"#;
    let calls = [
        (
            Action::UpdateWeight,
            r#""UPDATE_WEIGHTS","update_weights":{"weight_infos":[{"role":"web","weight":2}]}"#.to_string(),
        ),
        (
            Action::UpdateQuota,
            r#""UPDATE_QUOTA","update_quota":{"quota_configs":[{"role":"web"}]}"#.to_string(),
        ),
        (
            Action::TeardownFramework,
            r#""TEARDOWN","teardown":{"framework_id":{"value":"m-0000"}}"#.to_string(),
        ),
        (
            Action::ReserveResources,
            format!(r#""RESERVE_RESOURCES","reserve_resources":{{{agent},"resources":{cpus}}}"#),
        ),
        (
            Action::UnreserveResources,
            format!(r#""UNRESERVE_RESOURCES","unreserve_resources":{{{agent},"resources":{cpus}}}"#),
        ),
        (
            Action::CreateVolume,
            format!(r#""CREATE_VOLUMES","create_volumes":{{{agent},"volumes":[{disk}]}}"#),
        ),
        (
            Action::DestroyVolume,
            format!(r#""DESTROY_VOLUMES","destroy_volumes":{{{agent},"volumes":[{disk}]}}"#),
        ),
        (
            Action::ResizeVolume,
            format!(
                r#""GROW_VOLUME","grow_volume":{{{agent},"volume":{disk},"addition":{{"name":"disk","type":"SCALAR","scalar":{more}}}}}"#
            ),
        ),
        (
            Action::ResizeVolume,
            format!(r#""SHRINK_VOLUME","shrink_volume":{{{agent},"volume":{disk},"subtract":{more}}}"#),
        ),
        (
            Action::UpdateMaintenanceSchedule,
            r#""UPDATE_MAINTENANCE_SCHEDULE","update_maintenance_schedule":{"schedule":{}}"#.to_string(),
        ),
        (
            Action::StartMaintenance,
            format!(r#""START_MAINTENANCE","start_maintenance":{{"machines":{machine}}}"#),
        ),
        (
            Action::StopMaintenance,
            format!(r#""STOP_MAINTENANCE","stop_maintenance":{{"machines":{machine}}}"#),
        ),
        (Action::DrainAgent, format!(r#""DRAIN_AGENT","drain_agent":{{{agent}}}"#)),
        (Action::DeactivateAgent, format!(r#""DEACTIVATE_AGENT","deactivate_agent":{{{agent}}}"#)),
        (Action::ReactivateAgent, format!(r#""REACTIVATE_AGENT","reactivate_agent":{{{agent}}}"#)),
        (Action::MarkAgentGone, format!(r#""MARK_AGENT_GONE","mark_agent_gone":{{{agent}}}"#)),
    ];
    for (own, call) in &calls {
        for (denied, _) in &calls {
            let deny = Rule { principals: Entity::Any, objects: Entity::None };
            let acls = Acls::new(true, BTreeMap::from([(*denied, vec![deny])])).expect("right");
            let config = Config { authorizer: Authorizer::new(Some(acls)), ..Config::default() };
            let mut script = Script::new(config);
            script.play("framework F role:web principal:p\nagent A cpus:4 mem:64 disk:64\nsettle");
            script.play(&format!("call {{\"type\":{}}}", call.replace('\n', " ")));
            let said = script.said();
            assert_eq!(said.contains("operator <- 403"), own == denied, "{call} without {denied:?}: {said}");
        }
    }
}
