//! The authenticated sender of a request.

use std::collections::BTreeMap;

use tepui_authz::Subject;

/// The readers that share a rendering.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Viewers {
    /// Without rules all readers see the same.
    All,
    /// Of one principal, or all that are not authenticated.
    Of(Option<Principal>),
}

impl Viewers {
    pub fn new(is_limited: bool, principal: Option<Principal>) -> Self {
        if is_limited { Self::Of(principal) } else { Self::All }
    }

    pub fn subject(&self) -> Subject<'_> {
        match self {
            Self::All => Subject::Anonymous,
            Self::Of(principal) => subject(principal.as_ref()),
        }
    }
}

/// An authenticated peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Principal {
    /// None if it has claims only, as executors have.
    pub name: Option<String>,
    pub claims: BTreeMap<String, String>,
}

impl Principal {
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), claims: BTreeMap::new() }
    }
}

/// The subject of authorization rules.
pub fn subject(principal: Option<&Principal>) -> Subject<'_> {
    match principal {
        None => Subject::Anonymous,
        Some(principal) => principal.name.as_deref().map_or(Subject::Claims, Subject::Principal),
    }
}
