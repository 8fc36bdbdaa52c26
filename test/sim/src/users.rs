//! Authorization: the first framework may run tasks as any user, the others only as `nobody`. All of them try.

use std::collections::{BTreeMap, BTreeSet};

use tepui_authz::{Acls, Action, Authorizer, Entity, Rule};

use crate::plan::Plan;
use crate::sabotage::Sabotage;

/// May be any user.
pub(crate) const TRUSTED: &str = "trusted";
pub(crate) const UNTRUSTED: &str = "untrusted";

/// The rules of masters and agents; none in worlds without authorization.
pub(crate) fn authorizer(plan: &Plan, sabotage: Sabotage) -> Authorizer {
    if !plan.authorization || sabotage == Sabotage::NoAuthorization {
        return Authorizer::default();
    }
    let some = |name: &str| Entity::Some(BTreeSet::from([name.to_owned()]));
    let rules = vec![
        Rule { principals: some(TRUSTED), objects: Entity::Any },
        Rule { principals: some(UNTRUSTED), objects: some("nobody") },
        Rule { principals: Entity::Any, objects: Entity::None },
    ];
    let acls = Acls::new(true, BTreeMap::from([(Action::RunTask, rules)])).expect("rules about users");
    Authorizer::new(Some(acls))
}
