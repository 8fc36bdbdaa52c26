//! Rules at work: roles, users, operations. Denied is told as v1 tells it.

use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use expect_test::expect;
use tepui_authz::{Acls, Action, Authorizer, Entity, Rule};

use super::check_with;
use crate::Config;

fn only(action: Action, principal: &str, object: &str) -> (Action, Vec<Rule>) {
    let some = |name: &str| Entity::Some([name.to_string()].into());
    let deny = Rule { principals: Entity::Any, objects: Entity::None };
    (action, vec![Rule { principals: some(principal), objects: some(object) }, deny])
}

#[test]
fn what_is_not_allowed_is_told() {
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
            A <- SHUTDOWN_FRAMEWORK F
        "#]],
    );
}
