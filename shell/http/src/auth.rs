//! Who a request comes from, found out before anything of its body is read.
//!
//! Each endpoint belongs to a realm. In an open realm everybody is anonymous and what they show is not looked at; in
//! a closed one a request without a valid proof is refused with 401 and the ways in which it could be given.
//!
//! Secrets are kept as digests only and compared in constant time. Never here: what somebody may do.

mod credentials;
mod jwt;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
pub use credentials::{Credential, Credentials};
use http::HeaderMap;
use http::header::AUTHORIZATION;
pub use jwt::JwtKey;
use tepui_authz::Subject;

use crate::HttpError;

/// Somebody who proved who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Principal {
    /// None if they have claims only, as executors do.
    pub name: Option<String>,
    pub claims: BTreeMap<String, String>,
}

/// A part of the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Realm {
    pub name: &'static str,
    /// Whether a proof is asked for.
    pub is_closed: bool,
    /// Whether a token counts as one, besides a name and a secret.
    pub takes_tokens: bool,
}

/// What proofs are checked against. A cheap clone.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    credentials: Arc<Credentials>,
    key: Option<Arc<JwtKey>>,
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

impl Authentication {
    pub fn new(credentials: Credentials, key: Option<Arc<JwtKey>>) -> Self {
        Self { credentials: Arc::new(credentials), key }
    }

    /// Who sent these headers, as far as the realm wants to know.
    pub fn check(&self, realm: Realm, headers: &HeaderMap) -> Result<Option<Principal>, HttpError> {
        if !realm.is_closed {
            return Ok(None);
        }
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (scheme, proof) = shown.split_once(' ').unwrap_or_default();
        let principal = match scheme {
            _ if scheme.eq_ignore_ascii_case("Basic") => self.by_secret(proof.trim()),
            _ if scheme.eq_ignore_ascii_case("Bearer") && realm.takes_tokens => self.by_token(proof.trim()),
            _ => None,
        };
        principal.map(Some).ok_or_else(|| HttpError::unauthorized(challenge(realm)))
    }

    fn by_secret(&self, proof: &str) -> Option<Principal> {
        let decoded = String::from_utf8(BASE64_STANDARD.decode(proof).ok()?).ok()?;
        let (name, secret) = decoded.split_once(':')?;
        self.credentials.hold(name, secret).then(|| Principal::named(name))
    }

    fn by_token(&self, token: &str) -> Option<Principal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut claims = self.key.as_ref()?.verify(token, now)?;
        let name = claims.remove("sub");
        Some(Principal { name, claims })
    }
}

fn challenge(realm: Realm) -> String {
    let basic = format!("Basic realm=\"{}\"", realm.name);
    match realm.takes_tokens {
        true => format!("{basic}, Bearer realm=\"{}\"", realm.name),
        false => basic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs() {
        let text = br#"{"credentials":[{"principal":"ops","secret":"a:b"},{"principal":"empty"}]}"#;
        let key = Arc::new(JwtKey::new(b"tokens-secret"));
        let claims = BTreeMap::from([("fid".to_owned(), "F".to_owned())]);
        let bearer = |key: &JwtKey| format!("Bearer {}", key.mint(&claims));
        let authentication = Authentication::new(Credentials::parse(text).unwrap(), Some(key.clone()));
        let basic = |proof: &str| format!("Basic {}", BASE64_STANDARD.encode(proof));
        let closed = Realm { name: "r", is_closed: true, takes_tokens: true };
        let named = |name: &str| Ok(Some(Principal::named(name)));
        let refused = Err(401);
        for (shown, realm, expected) in [
            (basic("ops:a:b"), closed, named("ops")),
            (basic("ops:a:b").replace("Basic", "basic"), closed, named("ops")),
            (basic("ops:a"), closed, refused.clone()),
            (basic("ops:"), closed, refused.clone()),
            (basic("empty:"), closed, refused.clone()),
            (basic("other:a:b"), closed, refused.clone()),
            (basic("ops"), closed, refused.clone()),
            ("Basic ???".to_owned(), closed, refused.clone()),
            (String::new(), closed, refused.clone()),
            (bearer(&key), closed, Ok(Some(Principal { name: None, claims: claims.clone() }))),
            (bearer(&JwtKey::new(b"other")), closed, refused.clone()),
            (bearer(&key), Realm { takes_tokens: false, ..closed }, refused.clone()),
            (basic("ops:wrong"), Realm { is_closed: false, ..closed }, Ok(None)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, shown.parse().unwrap());
            let found = authentication.check(realm, &headers).map_err(|error| error.status.as_u16());
            assert_eq!(found, expected, "{shown} {realm:?}");
        }
        let debug = format!("{authentication:?}");
        assert!(!debug.contains("a:b") && !debug.contains("tokens-secret"), "{debug}");
    }

    #[test]
    fn a_refusal_says_how_to_ask() {
        let realm = Realm { name: "mesos-agent-executor", is_closed: true, takes_tokens: true };
        let error = Authentication::default().check(realm, &HeaderMap::new()).unwrap_err();
        let response = crate::Response::from(error);
        assert_eq!(
            response.headers()["www-authenticate"],
            "Basic realm=\"mesos-agent-executor\", Bearer realm=\"mesos-agent-executor\""
        );
    }
}
