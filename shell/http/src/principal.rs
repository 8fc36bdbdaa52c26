//! The authenticated sender of a request.

use std::collections::BTreeMap;

use tepui_authz::Subject;

/// Somebody who proved who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Principal {
    /// None if they have claims only, as executors do.
    pub name: Option<String>,
    pub claims: BTreeMap<String, String>,
}

impl Principal {
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), claims: BTreeMap::new() }
    }
}

/// As the rules see somebody.
pub fn subject(principal: Option<&Principal>) -> Subject<'_> {
    match principal {
        None => Subject::Anonymous,
        Some(principal) => principal.name.as_deref().map_or(Subject::Claims, Subject::Principal),
    }
}
