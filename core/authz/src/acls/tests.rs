//! Tables: every action alone, and the semantics of rules.

use alloc::string::ToString;
use alloc::vec;

use super::*;

fn some(values: &[&str]) -> Entity {
    Entity::Some(values.iter().map(ToString::to_string).collect())
}

fn rule(principals: Entity, objects: Entity) -> Rule {
    Rule { principals, objects }
}

fn acls(permissive: bool, action: Action, rules: Vec<Rule>) -> Acls {
    Acls::new(permissive, BTreeMap::from([(action, rules)])).expect("right")
}

/// The rule of an action applies to that action only.
#[test]
fn each_action_has_its_own_rules() {
    for action in Action::all() {
        let objects = match action.objects() {
            Objects::Names | Objects::Roles => some(&["x"]),
            Objects::Paths => some(&["/containers"]),
            Objects::AnyOrNone => Entity::Any,
        };
        let object = match action.objects() {
            Objects::Names | Objects::Roles => Some("x"),
            Objects::Paths => Some("/containers"),
            Objects::AnyOrNone => None,
        };
        let acls = acls(false, action, vec![rule(some(&["ops"]), objects)]);
        let ops = Subject::Principal("ops");
        assert!(acls.allows(ops, action, object), "{action:?}");
        assert!(!acls.allows(Subject::Principal("dev"), action, object), "{action:?}");
        assert!(!acls.allows(Subject::Anonymous, action, object), "{action:?}");
        assert!(!acls.allows(Subject::Claims, action, object), "{action:?}");
        if action.objects() != Objects::AnyOrNone {
            assert!(!acls.allows(ops, action, Some("y")), "{action:?}");
            assert!(!acls.allows(ops, action, None), "{action:?}");
        }
        for other in Action::all().filter(|other| *other != action) {
            assert!(!acls.allows(ops, other, object), "{action:?} {other:?}");
        }
    }
}

#[test]
fn irregular_rule_keys_are_accepted() {
    let keys: BTreeSet<&str> = Action::all().map(Action::key).collect();
    assert_eq!(keys.len(), Action::all().count());
    assert_eq!(Action::RunTask.key(), "run_tasks");
    assert_eq!(Action::TeardownFramework.object_key(), "framework_principals");
}

/// (rules, permissive, principal, object, allowed).
#[test]
fn first_matching_rule_decides() {
    let rules = || {
        vec![
            rule(some(&["web"]), some(&["svc", "www"])),
            rule(some(&["bad"]), Entity::None),
            rule(Entity::None, some(&["root"])),
            rule(Entity::Any, some(&["guest"])),
        ]
    };
    for (principal, object, allowed) in [
        (Some("web"), Some("svc"), Some(true)),
        (Some("web"), Some("www"), Some(true)),
        (Some("web"), Some("root"), Some(false)),
        (Some("bad"), Some("guest"), Some(false)),
        (Some("bad"), Some("svc"), Some(false)),
        (Some("any"), Some("guest"), Some(true)),
        (None, Some("guest"), Some(true)),
        (None, Some("root"), Some(false)),
        (Some("any"), Some("svc"), None),
        (Some("web"), None, None),
        (Some("bad"), None, Some(false)),
        (None, None, None),
    ] {
        for permissive in [true, false] {
            let acls = acls(permissive, Action::RunTask, rules());
            let expected = allowed.unwrap_or(permissive);
            assert_eq!(
                acls.allows(principal.into(), Action::RunTask, object),
                expected,
                "{principal:?} {object:?} {permissive}"
            );
        }
    }
}

#[test]
fn percent_pattern_matches_child_roles_only() {
    let acls = acls(false, Action::RegisterFramework, vec![rule(Entity::Any, some(&["web", "eng/%"]))]);
    for (role, allowed) in [
        ("web", true),
        ("web/a", false),
        ("eng", false),
        ("eng/a", true),
        ("eng/a/b", true),
        ("eng/", false),
        ("engine", false),
        ("engine/a", false),
    ] {
        assert_eq!(acls.allows(Subject::Anonymous, Action::RegisterFramework, Some(role)), allowed, "{role}");
    }
    // Users are no roles.
    let acls = super::tests::acls(false, Action::RunTask, vec![rule(Entity::Any, some(&["a/%"]))]);
    assert!(!acls.allows(Subject::Anonymous, Action::RunTask, Some("a/b")));
}

#[test]
fn invalid_rules_are_rejected() {
    let make = |action, objects| {
        Acls::new(true, BTreeMap::from([(action, vec![rule(Entity::Any, objects)])]))
            .map_err(|err| err.to_string())
    };
    assert_eq!(
        make(Action::ViewFlags, some(&["x"])),
        Err("'flags' of 'view_flags' must be ANY or NONE".to_string())
    );
    assert_eq!(
        make(Action::GetEndpoint, some(&["/state"])),
        Err("'/state' of 'get_endpoints' cannot be protected".to_string())
    );
    assert!(make(Action::ViewFlags, Entity::None).is_ok());
}

#[test]
fn absent_acls_allow_all_but_executor_tokens() {
    let none = Authorizer::default();
    assert!(!none.is_set());
    assert!(none.allows(Subject::Anonymous, Action::ViewFlags, None));
    assert!(!none.allows(Subject::Claims, Action::ViewFlags, None), "a token is for its executor only");
    assert!(!none.grants(Subject::Anonymous, Action::ViewFlags, None), "no rule grants it");
    let some = Authorizer::new(Some(acls(false, Action::ViewFlags, Vec::new())));
    assert!(some.is_set() && !some.allows(Subject::Anonymous, Action::ViewFlags, None));
}
