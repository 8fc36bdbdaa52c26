//! The rules and how they decide.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Action, Objects};

/// The endpoints that rules for `get_endpoints` may name.
const PATHS: &[&str] = &[
    "/containers",
    "/containerizer/debug",
    "/files/debug",
    "/logging/toggle",
    "/metrics/snapshot",
    "/monitor/statistics",
];

/// Principals or objects, as a rule names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entity {
    Any,
    None,
    Some(BTreeSet<String>),
}

/// The principals that may perform an action on the objects; with `None`, those that may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub principals: Entity,
    pub objects: Entity,
}

/// The requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// Without authentication.
    Anonymous,
    Principal(&'a str),
    /// Authenticated by claims and without a name, such as an executor; rules cannot name it.
    Claims,
}

/// All rules of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acls {
    /// What is allowed that no rule speaks of.
    permissive: bool,
    rules: BTreeMap<Action, Vec<Rule>>,
}

/// Why rules are no rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclsError {
    /// The action's rules do not distinguish objects.
    Unexpected { action: Action },
    /// No rule can protect this endpoint.
    Path { path: String },
}

/// Decides every request; without rules everything is allowed. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Authorizer {
    acls: Option<Arc<Acls>>,
}

impl Acls {
    pub fn new(permissive: bool, rules: BTreeMap<Action, Vec<Rule>>) -> Result<Self, AclsError> {
        for (action, rules) in &rules {
            rules.iter().try_for_each(|rule| check(*action, rule))?;
        }
        Ok(Self { permissive, rules })
    }

    /// Whether `subject` may do `action` to `object`; none is "any object at all".
    pub fn allows(&self, subject: Subject<'_>, action: Action, object: Option<&str>) -> bool {
        self.rule(subject, action, object).unwrap_or(self.permissive)
    }

    /// The decision of the first rule that matches, if one does.
    fn rule(&self, subject: Subject<'_>, action: Action, object: Option<&str>) -> Option<bool> {
        let principal = match subject {
            Subject::Anonymous => None,
            Subject::Principal(name) => Some(name),
            Subject::Claims => return Some(false),
        };
        let holds = if action.objects() == Objects::Roles { holds_role } else { holds_name };
        for rule in self.rules.get(&action).into_iter().flatten() {
            if rule.principals.matches(principal, holds_name) && rule.objects.matches(object, holds) {
                // What matches a list is in it.
                return Some(rule.principals != Entity::None && rule.objects != Entity::None);
            }
        }
        None
    }
}

impl Entity {
    /// Whether a rule with this entity applies to `requested`; `None` means any principal or object.
    fn matches(&self, requested: Option<&str>, holds: fn(&BTreeSet<String>, &str) -> bool) -> bool {
        match (self, requested) {
            (Entity::Any | Entity::None, _) => true,
            (Entity::Some(values), Some(requested)) => holds(values, requested),
            (Entity::Some(_), None) => false,
        }
    }
}

fn holds_name(values: &BTreeSet<String>, requested: &str) -> bool {
    values.contains(requested)
}

/// `eng/%` means every role below `eng`, and not `eng` itself.
fn holds_role(values: &BTreeSet<String>, requested: &str) -> bool {
    let below = |value: &String| {
        let parent = value.strip_suffix("/%");
        parent.is_some_and(|parent| {
            requested.strip_prefix(parent).is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
        })
    };
    values.contains(requested) || values.iter().any(below)
}

fn check(action: Action, rule: &Rule) -> Result<(), AclsError> {
    match (action.objects(), &rule.objects) {
        (Objects::AnyOrNone, Entity::Some(_)) => Err(AclsError::Unexpected { action }),
        (Objects::Paths, Entity::Some(paths)) => {
            match paths.iter().find(|path| !PATHS.contains(&path.as_str())) {
                Some(path) => Err(AclsError::Path { path: path.clone() }),
                None => Ok(()),
            }
        }
        (Objects::Names | Objects::Roles | Objects::Paths | Objects::AnyOrNone, _) => Ok(()),
    }
}

impl Authorizer {
    pub fn new(acls: Option<Acls>) -> Self {
        Self { acls: acls.map(Arc::new) }
    }

    /// Whether there are rules; without rules every principal may see and do everything.
    pub fn is_set(&self) -> bool {
        self.acls.is_some()
    }

    /// Claims alone are never enough: the rights of a token's holder are not decided by rules.
    pub fn allows(&self, subject: Subject<'_>, action: Action, object: Option<&str>) -> bool {
        match &self.acls {
            Some(acls) => acls.allows(subject, action, object),
            None => subject != Subject::Claims,
        }
    }

    /// Whether a rule allows it, and not merely the absence of rules.
    pub fn grants(&self, subject: Subject<'_>, action: Action, object: Option<&str>) -> bool {
        self.acls.as_ref().is_some_and(|acls| acls.rule(subject, action, object) == Some(true))
    }
}

impl<'a> From<Option<&'a str>> for Subject<'a> {
    fn from(principal: Option<&'a str>) -> Self {
        principal.map_or(Subject::Anonymous, Subject::Principal)
    }
}

impl fmt::Display for AclsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AclsError::Unexpected { action } => {
                write!(f, "'{}' of '{}' must be ANY or NONE", action.object_key(), action.key())
            }
            AclsError::Path { path } => write!(f, "'{path}' of 'get_endpoints' cannot be protected"),
        }
    }
}

impl core::error::Error for AclsError {}

#[cfg(test)]
mod tests;
