//! Users of what runs on an agent: tasks, executors, checks, and containers that executors launch.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, vec};

use tepui_authz::{Acls, Action, Authorizer, Entity, Rule};
use tepui_proto::mesos::v1::TaskState;

use super::driver::World;

const START: &str = "start\nrecovered\ngo\n";

/// Rules that allow these users to any principal, and no others.
fn only(users: &[&str]) -> Authorizer {
    let users = Entity::Some(users.iter().map(ToString::to_string).collect());
    let allow = Rule { principals: Entity::Any, objects: users };
    let deny = Rule { principals: Entity::Any, objects: Entity::None };
    let rules = BTreeMap::from([(Action::RunTask, vec![allow, deny])]);
    Authorizer::new(Some(Acls::new(true, rules).expect("right")))
}

fn world(authorizer: Authorizer, script: &str) -> World {
    let mut world = World::default();
    world.config.authorizer = authorizer;
    world.run(&format!("{START}{script}"))
}

/// The state and reason of each update, or the user of each container that was launched.
fn outcome(world: &World) -> String {
    let ended = world.statuses.iter().filter(|status| status.state == TaskState::TASK_ERROR);
    let ended = ended.map(|status| format!("{:?}", status.reason.unwrap_or_default()));
    let launched = world.specs.iter().map(|spec| spec.user.clone().unwrap_or_default());
    ended.chain(launched).collect::<Vec<_>>().join(" ")
}

#[test]
fn agent_authorizes_users_of_launches_again() {
    let unauthorized = "REASON_TASK_UNAUTHORIZED";
    let group = "REASON_TASK_GROUP_UNAUTHORIZED";
    for (script, expected) in [
        ("launch t", "nobody"),
        ("launch t user=svc", "svc"),
        ("launch t user=root", unauthorized),
        ("launch t health=root", unauthorized),
        ("launch t executor=e", "nobody"),
        ("group e a user=svc", "nobody"),
        ("group e a,b user=root", &format!("{group} {group}")),
        ("group e a health=root", group),
    ] {
        assert_eq!(outcome(&world(only(&["nobody", "svc"]), script)), expected, "{script}");
    }
    // Without rules the master decides alone, and its restriction of root holds.
    assert_eq!(outcome(&world(Authorizer::default(), "launch t user=root")), "root");
    assert_eq!(outcome(&world(Authorizer::default(), "launch t user=root no-root")), unauthorized);
}

#[test]
fn executor_launches_containers_as_users_of_its_tasks_only() {
    let begin = "e launched 7\ne subscribe\n";
    for (authorizer, task, call, expected) in [
        (Authorizer::default(), "group e a", "by=executor", Some("nobody")),
        (Authorizer::default(), "group e a", "by=executor user=nobody", Some("nobody")),
        (Authorizer::default(), "group e a", "by=executor user=root", None),
        (Authorizer::default(), "group e a user=svc", "by=executor user=svc", Some("svc")),
        (Authorizer::default(), "group e a health=svc", "by=executor user=svc", Some("svc")),
        (only(&["nobody", "svc"]), "group e a", "by=executor user=svc", Some("svc")),
        (only(&["nobody", "svc"]), "group e a", "by=executor user=root", None),
        (only(&["nobody", "root"]), "group e a no-root", "by=executor user=root", None),
        // Other callers were authorized for the user.
        (Authorizer::default(), "group e a", "user=root", Some("root")),
    ] {
        let script = format!("{task}\n{begin}call launch C1.a {call}");
        let world = world(authorizer, &script);
        let nested = world.specs.iter().find(|spec| spec.id.parent().is_some());
        let user = nested.map(|spec| spec.user.as_deref().unwrap_or_default());
        assert_eq!(user, expected, "{script}\n{}", world.text);
        if expected.is_none() {
            assert!(world.text.contains("<- 403: Not authorized to launch a container"), "{}", world.text);
        }
    }
}

#[test]
fn containers_below_an_executor_without_root_cannot_become_root() {
    let begin = "group e a no-root\ne launched 7\ne subscribe\n";
    for (call, expected) in [("by=executor", true), ("", true), ("user=root", false)] {
        let world = world(Authorizer::default(), &format!("{begin}call launch C1.a {call}"));
        let no_root: Vec<bool> = world.specs.iter().map(|spec| spec.no_root).collect();
        assert_eq!(no_root, [true, expected], "{call}");
    }
    let world = world(Authorizer::default(), &format!("{begin}crash\nstart"));
    let agent = world.agent.expect("it started again");
    let executors = agent.state.frameworks.values().flat_map(|framework| framework.executors.values());
    assert!(executors.map(|executor| executor.no_root).eq([true]), "a restart does not change that");
}

#[test]
fn variables_of_a_task_do_not_change_its_generated_executor() {
    let set = "LD_PRELOAD,TEPUI_BECOME_TASK,MESOS_AGENT_ENDPOINT,GLIBC_TUNABLES,PLAIN";
    let world = world(Authorizer::default(), &format!("launch t set={set}"));
    let variable = |name: &str| world.specs[0].environment.get(name).map(String::as_str);
    assert_eq!(variable("PLAIN"), Some("set by the task"));
    for name in ["LD_PRELOAD", "TEPUI_BECOME_TASK", "GLIBC_TUNABLES"] {
        assert_eq!(variable(name), None, "{name}");
    }
    assert_eq!(variable("MESOS_AGENT_ENDPOINT"), Some("10.0.0.1:5051"));
}

#[test]
fn secrets_by_reference_are_named_in_the_launch_with_the_principal_of_the_framework() {
    let mut world = World::default();
    world.frameworks.values_mut().for_each(|framework| framework.principal = Some("web".into()));
    let set = "@KEY,@LD_PRELOAD,@MESOS_AGENT_ENDPOINT,PLAIN";
    let script = format!("launch t set={set}\nlaunch t2 executor=e set={set}\n");
    let world = world.run(&format!("{START}{script}"));
    let spec = &world.specs[0];
    assert_eq!(spec.secrets.principal.as_deref(), Some("web"));
    let names: Vec<&str> = spec.secrets.variables.values().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["secret of KEY"], "others would change the executor");
    assert!(!spec.environment.contains_key("KEY") && spec.environment.contains_key("PLAIN"));
    assert_eq!(world.specs[1].secrets.variables.len(), 0, "the executor has an environment of its own");
}

#[test]
fn last_variable_of_a_name_wins_whether_value_or_reference() {
    for (set, value, reference) in
        [("A,@A", None, Some("secret of A")), ("@A,A", Some("set by the task"), None)]
    {
        let world = world(Authorizer::default(), &format!("launch t set={set}"));
        let spec = &world.specs[0];
        let named = spec.secrets.variables.get("A").map(|own| own.name.as_str());
        assert_eq!((spec.environment.get("A").map(String::as_str), named), (value, reference), "{set}");
    }
}
