//! Authentication of a request, before anything of its body is read.
//!
//! Each endpoint belongs to a realm. In an open realm every sender is anonymous and credentials are ignored; in a
//! closed one a request without valid credentials is rejected with 401 and the accepted schemes. Secrets are kept as
//! digests only and compared in constant time. Wrong ones are slowed down by [`guesses`]; tokens are not, because
//! they cannot be guessed, and one task must not lock out the executors of others. Absent: authorization.

mod credentials;
mod guesses;
mod jwt;
mod waiting;

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
pub use credentials::{Credential, Credentials};
use guesses::{Attempt, Guesses, Origin};
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
pub use jwt::JwtKey;
use waiting::Waiting;

use crate::audit::Deed;
use crate::principal::Principal;
use crate::{HttpError, Request};

/// A part of the endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Realm {
    pub name: &'static str,
    /// Whether credentials are required.
    pub is_closed: bool,
    /// Whether a token counts as one, besides a name and a secret.
    pub takes_tokens: bool,
    /// Whether agents come here, which must not be kept out by wrong secrets of others on their machine.
    pub is_for_agents: bool,
}

/// What proofs are checked against. A cheap clone.
#[derive(Clone, Debug)]
pub struct Authentication {
    credentials: Arc<Credentials>,
    key: Option<Arc<JwtKey>>,
    guesses: Arc<Mutex<Guesses>>,
    waiting: Arc<Waiting>,
}

impl Default for Authentication {
    fn default() -> Self {
        Self::new(Credentials::default(), None)
    }
}

/// The credentials of a request.
enum Proof {
    Secret {
        name: String,
        secret: String,
    },
    Token(String),
    /// Of no scheme that the realm takes, or not in the form of its scheme.
    Unusable,
}

impl Authentication {
    pub fn new(credentials: Credentials, key: Option<Arc<JwtKey>>) -> Self {
        Self { credentials: Arc::new(credentials), key, guesses: Arc::default(), waiting: Arc::default() }
    }

    /// Authenticates the sender of a request, as far as the realm requires. Rejected credentials are noted for the
    /// audit log.
    pub async fn admit(&self, realm: Realm, request: &mut Request) -> Result<(), HttpError> {
        if !realm.is_closed {
            return Ok(());
        }
        let Some(proof) = proof(realm, &request.headers) else {
            return Err(HttpError::unauthorized(challenge(realm)));
        };
        let claimed = match &proof {
            Proof::Secret { name, .. } => Some(Principal::named(name)),
            Proof::Token(_) | Proof::Unusable => None,
        };
        match self.verify(realm, proof, request.peer.ip()).await {
            Ok(principal) => {
                request.principal = Some(principal);
                Ok(())
            }
            Err(error) => {
                // Without the query, which may hold anything.
                let endpoint = request.target.split('?').next().unwrap_or_default().to_owned();
                request.note_as(claimed, Deed::new("LOGIN").on("endpoint", endpoint).log_refusals());
                Err(error)
            }
        }
    }

    async fn verify(&self, realm: Realm, proof: Proof, address: IpAddr) -> Result<Principal, HttpError> {
        let unauthorized = || HttpError::unauthorized(challenge(realm));
        match proof {
            Proof::Secret { name, secret } => self.by_secret(realm, &name, &secret, address).await,
            Proof::Token(token) => self.by_token(&token).ok_or_else(unauthorized),
            Proof::Unusable => Err(unauthorized()),
        }
    }

    async fn by_secret(
        &self,
        realm: Realm,
        principal: &str,
        secret: &str,
        address: IpAddr,
    ) -> Result<Principal, HttpError> {
        let mut origin = Origin { address, principal, has_waited: false, trusts_proven: realm.is_for_agents };
        loop {
            match self.attempt(origin, secret) {
                Attempt::Right => return Ok(Principal::named(principal)),
                Attempt::Wrong => return Err(HttpError::unauthorized(challenge(realm))),
                Attempt::Refused(left) => return Err(too_many(left.as_secs() + 1)),
                Attempt::Wait(delay) => {
                    let refused = || too_many(delay.as_secs() + 1);
                    let _place = self.waiting.enter(address).ok_or_else(refused)?;
                    tokio::time::sleep(delay).await;
                    origin.has_waited = true;
                }
            }
        }
    }

    /// Under the lock from the look at the tally to its change: attempts at the same time count one after the other.
    fn attempt(&self, origin: Origin<'_>, secret: &str) -> Attempt {
        let mut guesses = self.guesses.lock().expect("no code panics while it holds this lock");
        guesses.attempt(Instant::now(), origin, || self.credentials.hold(origin.principal, secret))
    }

    fn by_token(&self, token: &str) -> Option<Principal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut claims = self.key.as_ref()?.verify(token, now)?;
        let name = claims.remove("sub");
        Some(Principal { name, claims })
    }
}

/// None if nothing is shown.
fn proof(realm: Realm, headers: &HeaderMap) -> Option<Proof> {
    let shown = headers.get(AUTHORIZATION)?.to_str().unwrap_or_default();
    let (scheme, proof) = shown.split_once(' ').unwrap_or_default();
    let proof = proof.trim();
    Some(match scheme {
        _ if scheme.eq_ignore_ascii_case("Basic") => basic(proof).unwrap_or(Proof::Unusable),
        _ if scheme.eq_ignore_ascii_case("Bearer") && realm.takes_tokens => Proof::Token(proof.to_owned()),
        _ => Proof::Unusable,
    })
}

fn basic(proof: &str) -> Option<Proof> {
    let decoded = String::from_utf8(BASE64_STANDARD.decode(proof).ok()?).ok()?;
    let (name, secret) = decoded.split_once(':')?;
    Some(Proof::Secret { name: name.to_owned(), secret: secret.to_owned() })
}

/// Also for a right secret: it is not looked at.
fn too_many(seconds: u64) -> HttpError {
    let message = format!("Too many wrong secrets; try again in {seconds} seconds");
    HttpError::new(StatusCode::TOO_MANY_REQUESTS, message).retry_after(seconds)
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
    use std::collections::BTreeMap;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const OPEN: Realm = Realm { name: "r", is_closed: false, takes_tokens: true, is_for_agents: false };
    const CLOSED: Realm = Realm { is_closed: true, ..OPEN };

    fn headers(shown: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, shown.parse().unwrap());
        headers
    }

    async fn admit(authentication: &Authentication, realm: Realm, shown: &str) -> Result<Principal, u16> {
        let address = "10.0.0.1".parse().unwrap();
        let proof = proof(realm, &headers(shown)).expect("something is shown");
        authentication.verify(realm, proof, address).await.map_err(|error| error.status.as_u16())
    }

    fn basic(proof: &str) -> String {
        format!("Basic {}", BASE64_STANDARD.encode(proof))
    }

    #[tokio::test]
    async fn basic_and_bearer_credentials_are_authenticated() {
        let text = br#"{"credentials":[{"principal":"ops","secret":"a:b"},{"principal":"empty"}]}"#;
        let key = Arc::new(JwtKey::new(b"tokens-secret"));
        let claims = BTreeMap::from([("fid".to_owned(), "F".to_owned())]);
        let bearer = |key: &JwtKey| format!("Bearer {}", key.mint(&claims));
        let named = |name: &str| Ok(Principal::named(name));
        let refused = Err(401);
        for (shown, realm, expected) in [
            (basic("ops:a:b"), CLOSED, named("ops")),
            (basic("ops:a:b").replace("Basic", "basic"), CLOSED, named("ops")),
            (basic("ops:a"), CLOSED, refused.clone()),
            (basic("ops:"), CLOSED, refused.clone()),
            (basic("empty:"), CLOSED, refused.clone()),
            (basic("other:a:b"), CLOSED, refused.clone()),
            (basic("ops"), CLOSED, refused.clone()),
            ("Basic ???".to_owned(), CLOSED, refused.clone()),
            (String::new(), CLOSED, refused.clone()),
            (bearer(&key), CLOSED, Ok(Principal { name: None, claims: claims.clone() })),
            (bearer(&JwtKey::new(b"other")), CLOSED, refused.clone()),
            (bearer(&key), Realm { takes_tokens: false, ..CLOSED }, refused.clone()),
        ] {
            let authentication = Authentication::new(Credentials::parse(text).unwrap(), Some(key.clone()));
            assert_eq!(admit(&authentication, realm, &shown).await, expected, "{shown} {realm:?}");
            let debug = format!("{authentication:?}");
            assert!(!debug.contains("a:b") && !debug.contains("tokens-secret"), "{debug}");
        }
        assert!(proof(CLOSED, &HeaderMap::new()).is_none());
    }

    #[tokio::test]
    async fn failed_secrets_are_rate_limited_and_tokens_are_not() {
        let text = br#"{"credentials":[{"principal":"ops","secret":"right"}]}"#;
        let key = Arc::new(JwtKey::new(b"tokens-secret"));
        let token = format!("Bearer {}", key.mint(&BTreeMap::new()));
        let authentication = Authentication::new(Credentials::parse(text).unwrap(), Some(key));
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(admit(&authentication, CLOSED, &basic("ops:wrong")).await.unwrap_err());
            assert_eq!(admit(&authentication, CLOSED, "Bearer wrong").await, Err(401));
        }
        assert_eq!(seen, [401, 401, 401, 401, 401, 401, 429, 429]);
        assert_eq!(admit(&authentication, CLOSED, &basic("ops:right")).await, Err(429), "not looked at");
        assert!(admit(&authentication, CLOSED, &token).await.is_ok());
    }

    #[tokio::test]
    async fn one_address_does_not_use_all_places_of_delayed_attempts() {
        let text = br#"{"credentials":[{"principal":"ops","secret":"right"}]}"#;
        let authentication = Authentication::new(Credentials::parse(text).unwrap(), None);
        let attempt = |address: [u8; 4], principal: &str| {
            let (authentication, principal) = (authentication.clone(), principal.to_owned());
            let answer = async move {
                authentication.by_secret(CLOSED, &principal, "wrong", address.into()).await.unwrap_err()
            };
            let mut attempt = Box::pin(answer);
            let polled = attempt.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            (attempt, polled.map(|error| error.status.as_u16()))
        };
        // Both the principal and one of the addresses are suspect.
        for number in 0..=50 {
            assert_eq!(attempt([10, 0, 1, number], "ops").1, Poll::Ready(401));
            assert_eq!(attempt([10, 0, 0, 1], &format!("name{number}")).1, Poll::Ready(401));
        }
        let attempts: Vec<_> =
            (0..300).map(|number| attempt([10, 0, 0, 1], &format!("more{number}"))).collect();
        assert_eq!(attempts.last().unwrap().1, Poll::Ready(429));
        assert_eq!(attempt([10, 0, 0, 2], "ops").1, Poll::Pending, "it waits and is checked then");
        drop(attempts);
        assert_eq!(attempt([10, 0, 0, 1], "later").1, Poll::Pending, "places are free again");
    }

    #[test]
    fn rejection_has_challenge_and_retry_after_headers() {
        let realm = Realm { name: "mesos-agent-executor", ..CLOSED };
        let response = crate::Response::from(HttpError::unauthorized(challenge(realm)));
        assert_eq!(
            response.headers()["www-authenticate"],
            "Basic realm=\"mesos-agent-executor\", Bearer realm=\"mesos-agent-executor\""
        );
        assert_eq!(crate::Response::from(too_many(3)).headers()["retry-after"], "3");
    }
}
