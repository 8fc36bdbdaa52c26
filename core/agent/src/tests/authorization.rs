//! Which sender may make which call about a container.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::sync::Arc;
use std::{format, vec};

use tepui_authz::{Acls, Action, Authorizer, Entity, Rule, Subject};
use tepui_proto::json;
use tepui_proto::mesos::v1::agent::Call;
use tepui_proto::mesos::v1::executor;
use tepui_types::Status;

use super::driver::World;
use crate::rules::authorization;
use crate::{
    Caller, Look, Peer, Principal, Sender, State, authorize_operator, executor_claims, needs_known_user,
};

/// An agent with the running executor `e` of the user `nobody`.
fn state() -> State {
    let script = "start\nrecovered\ngo\ngroup e a\ne launched 7\ne subscribe\n";
    World::default().run(script).agent.expect("started").state().clone()
}

/// Rules that allow these actions to `ops`, for one user or for any object, and nothing else to any principal.
fn only(actions: &[Action], user: Option<&str>) -> Authorizer {
    let some = |name: &str| Entity::Some([name.to_string()].into());
    let objects = user.map_or(Entity::Any, some);
    let rule = || vec![Rule { principals: some("ops"), objects: objects.clone() }];
    let rules: BTreeMap<_, _> = actions.iter().map(|action| (*action, rule())).collect();
    Authorizer::new(Some(Acls::new(false, rules).expect("right")))
}

fn named(name: &str) -> Sender {
    let principal = Principal { name: Some(name.to_string()), claims: BTreeMap::new() };
    Sender { principal: Some(principal), peer: None }
}

fn with_claims(claims: BTreeMap<String, String>) -> Sender {
    Sender { principal: Some(Principal { name: None, claims }), peer: None }
}

/// A call about the container `n`, in the executor's container or standalone.
fn call(kind: &str, parent: Option<&str>) -> Call {
    let parent = parent.map(|id| format!(r#","parent":{{"value":"{id}"}}"#)).unwrap_or_default();
    let member = kind.to_lowercase();
    let kind_of_input = if member == "attach_container_input" { r#""type":"CONTAINER_ID","# } else { "" };
    let text = format!(
        r#"{{"type":"{kind}","{member}":{{{kind_of_input}"container_id":{{"value":"n"{parent}}}}}}}"#
    );
    json::from_slice(text.as_bytes()).expect("a call")
}

fn container(state: &State) -> String {
    let mut executors = state.frameworks.values().flat_map(|framework| framework.executors.values());
    executors.next().expect("launched").container_id.value().to_string()
}

#[test]
fn container_calls_need_their_actions() {
    use Action::*;
    let state = state();
    let parent = container(&state);
    for (kind, nested, standalone) in [
        (
            "LAUNCH_NESTED_CONTAINER",
            &[LaunchNestedContainerAsUser, LaunchNestedContainerUnderParent][..],
            LaunchStandaloneContainer,
        ),
        (
            "LAUNCH_CONTAINER",
            &[LaunchNestedContainerAsUser, LaunchNestedContainerUnderParent],
            LaunchStandaloneContainer,
        ),
        (
            "LAUNCH_NESTED_CONTAINER_SESSION",
            &[LaunchNestedContainerSessionAsUser, LaunchNestedContainerSessionUnderParent],
            LaunchStandaloneContainer,
        ),
        ("WAIT_NESTED_CONTAINER", &[WaitNestedContainer], WaitStandaloneContainer),
        ("WAIT_CONTAINER", &[WaitNestedContainer], WaitStandaloneContainer),
        ("KILL_NESTED_CONTAINER", &[KillNestedContainer], KillStandaloneContainer),
        ("KILL_CONTAINER", &[KillNestedContainer], KillStandaloneContainer),
        ("REMOVE_NESTED_CONTAINER", &[RemoveNestedContainer], RemoveStandaloneContainer),
        ("REMOVE_CONTAINER", &[RemoveNestedContainer], RemoveStandaloneContainer),
        ("ATTACH_CONTAINER_OUTPUT", &[AttachContainerOutput], ViewStandaloneContainer),
        ("ATTACH_CONTAINER_INPUT", &[AttachContainerInput], ViewStandaloneContainer),
    ] {
        let decide = |rules: &Authorizer, sender: &str, call: &Call| {
            authorize_operator(&state, rules, &named(sender), call).map_err(|rejection| rejection.status)
        };
        let (below, alone) = (call(kind, Some(&parent)), call(kind, None));
        let allowed = Ok(Caller::Operator);
        let denied = Err(Status::Forbidden);
        assert_eq!(decide(&only(nested, Some("nobody")), "ops", &below), allowed, "{kind}");
        assert_eq!(decide(&only(nested, Some("root")), "ops", &below), denied, "{kind}");
        assert_eq!(decide(&only(nested, Some("nobody")), "other", &below), denied, "{kind}");
        assert_eq!(decide(&only(&nested[1..], Some("nobody")), "ops", &below), denied, "{kind}");
        assert_eq!(decide(&only(&[standalone], None), "ops", &alone), allowed, "{kind}");
        assert_eq!(decide(&only(nested, None), "ops", &alone), denied, "{kind}");
        assert_eq!(needs_known_user(&alone), !kind.starts_with("WAIT"), "{kind}");
    }
}

#[test]
fn executors_call_for_their_own_containers_only() {
    let state = state();
    let parent = container(&state);
    let own =
        executor_claims(state.frameworks.values().next().expect("one").executors.values().next().expect("e"));
    let other = BTreeMap::from([("fid".to_string(), "F9".to_string())]);
    let executor_call = executor::Call {
        framework_id: state.frameworks.values().next().expect("one").id.to_proto().into(),
        executor_id: tepui_types::ExecutorId::new("e").to_proto().into(),
        ..Default::default()
    };
    let denied = Err(Status::Forbidden);
    for (sender, about_container, about_itself) in [
        (with_claims(own), Ok(Caller::Executor), Ok(())),
        (with_claims(other), denied, Err(Status::Forbidden)),
        (named("ops"), Ok(Caller::Operator), Err(Status::Forbidden)),
        (Sender::default(), Ok(Caller::Operator), Ok(())),
    ] {
        let kill = call("KILL_NESTED_CONTAINER", Some(&parent));
        let decided = authorize_operator(&state, &Authorizer::default(), &sender, &kill);
        assert_eq!(decided.map_err(|rejection| rejection.status), about_container, "{sender:?}");
        let decided = authorization::executor(&state, &sender, &executor_call);
        assert_eq!(decided.map_err(|rejection| rejection.status), about_itself, "{sender:?}");
        let stranger = call("KILL_NESTED_CONTAINER", Some("unknown"));
        let decided = authorize_operator(&state, &Authorizer::default(), &sender, &stranger);
        let is_token = sender.principal.is_some_and(|principal| principal.name.is_none());
        assert_eq!(decided.is_err(), is_token);
    }
}

#[test]
fn peers_without_authentication_are_authorized_by_user() {
    let state = state();
    let kill = call("KILL_NESTED_CONTAINER", Some(&container(&state)));
    for (peer, expected) in [
        (Peer::Remote, Ok(Caller::Operator)),
        (Peer::Trusted, Ok(Caller::Operator)),
        (Peer::Executor, Ok(Caller::Executor)),
        (Peer::Other, Err(Status::Forbidden)),
    ] {
        let sender = Sender { principal: None, peer: Some(peer) };
        let decide = |rules: &Authorizer| {
            authorize_operator(&state, rules, &sender, &kill).map_err(|rejection| rejection.status)
        };
        assert_eq!(decide(&Authorizer::default()), expected, "{peer:?}");
        assert_eq!(decide(&only(&[Action::KillNestedContainer], None)), Err(Status::Forbidden), "{peer:?}");
    }
}

#[test]
fn operations_are_visible_with_their_framework_and_their_roles() {
    let apply = "operation o1 RESERVE cpus:1\n";
    let known = format!("start\nrecovered\ngo\nlaunch t\n{apply}");
    let unknown = format!("start\nrecovered\ngo\n{apply}");
    let any = |actions: &[Action]| only(actions, None);
    let of_user = |user: &str| {
        let some = |name: &str| Entity::Some([name.to_string()].into());
        let rule = |objects| vec![Rule { principals: some("ops"), objects }];
        let rules = [(Action::ViewFramework, rule(some(user))), (Action::ViewRole, rule(Entity::Any))];
        Authorizer::new(Some(Acls::new(false, rules.into()).expect("right")))
    };
    use Action::{ViewFramework, ViewRole};
    for (script, authorizer, expected) in [
        (&known, Authorizer::default(), 1),
        (&known, any(&[ViewFramework, ViewRole]), 1),
        (&known, any(&[ViewFramework]), 0),
        (&known, any(&[ViewRole]), 0),
        (&known, of_user("nobody"), 1),
        (&known, of_user("other"), 0),
        (&unknown, any(&[ViewFramework, ViewRole]), 1),
        (&unknown, any(&[ViewRole]), 0),
        (&unknown, of_user("nobody"), 0),
    ] {
        let state = Arc::new(World::default().run(script).agent.expect("started").state().clone());
        let seen = state.visible_to(&authorizer, Subject::Principal("ops"), Look::Everything);
        assert_eq!(
            (state.operations.size(), seen.operations.size()),
            (1, expected),
            "{script}{authorizer:?}"
        );
    }
}
