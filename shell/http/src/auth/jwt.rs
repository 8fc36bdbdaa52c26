//! Tokens: JWT with HS256 and nothing else, so that no token can choose how it is checked.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use serde_json::{Map, Value};

/// The longest token that is looked at.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// Makes and checks tokens. Its `Debug` does not show the key.
#[derive(Debug)]
pub struct JwtKey {
    key: hmac::Key,
}

impl JwtKey {
    pub fn new(secret: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// A token for these claims, which does not end.
    pub fn mint(&self, claims: &BTreeMap<String, String>) -> String {
        let payload: Map<String, Value> =
            claims.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let head = BASE64.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
        let signed = format!("{head}.{}", BASE64.encode(Value::Object(payload).to_string()));
        let signature = hmac::sign(&self.key, signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }

    /// The claims of a token that is ours and has not ended at `now`, since 1970. Claims that are no text are left out.
    pub fn verify(&self, token: &str, now: Duration) -> Option<BTreeMap<String, String>> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        hmac::verify(&self.key, signed.as_bytes(), &BASE64.decode(signature).ok()?).ok()?;
        let (head, payload) = signed.split_once('.')?;
        let head: Value = serde_json::from_slice(&BASE64.decode(head).ok()?).ok()?;
        let payload: Map<String, Value> = serde_json::from_slice(&BASE64.decode(payload).ok()?).ok()?;
        let ended = match payload.get("exp") {
            Some(until) => until.as_f64().is_none_or(|until| until <= now.as_secs_f64()),
            None => false,
        };
        if head["alg"] != "HS256" || head.get("crit").is_some() || ended {
            return None;
        }
        let text = |(name, value): (String, Value)| Some((name, value.as_str()?.to_owned()));
        Some(payload.into_iter().filter_map(text).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(key: &JwtKey, head: &str, payload: &str) -> String {
        let signed = format!("{}.{}", BASE64.encode(head), BASE64.encode(payload));
        let signature = hmac::sign(&key.key, signed.as_bytes());
        format!("{signed}.{}", BASE64.encode(signature.as_ref()))
    }

    #[test]
    fn forged_expired_and_malformed_tokens_are_rejected() {
        let key = JwtKey::new(b"secret");
        let now = Duration::from_secs(1000);
        let hs256 = r#"{"alg":"HS256"}"#;
        for (token, valid) in [
            (token(&key, hs256, r#"{"fid":"F"}"#), true),
            (token(&key, hs256, r#"{"fid":"F","exp":1001}"#), true),
            (token(&key, hs256, r#"{"fid":"F","exp":1000}"#), false),
            (token(&key, hs256, r#"{"fid":"F","exp":"never"}"#), false),
            (token(&key, hs256, "[]"), false),
            (token(&key, r#"{"alg":"none"}"#, "{}"), false),
            (token(&JwtKey::new(b"other"), hs256, "{}"), false),
            (format!("{}.", BASE64.encode(hs256)), false),
            ("a.b.c".to_owned(), false),
            (String::new(), false),
            ("x".repeat(TOKEN_BYTES_MAX + 1), false),
        ] {
            assert_eq!(key.verify(&token, now).is_some(), valid, "{token}");
        }
    }

    /// The example of RFC 7515, appendix A.1.
    #[test]
    fn rfc_7515_example_token_is_verified() {
        let secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let key = JwtKey::new(&BASE64.decode(secret).unwrap());
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQog\
                     Imh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let claims = key.verify(token, Duration::from_secs(1_300_000_000)).unwrap();
        assert_eq!(claims["iss"], "joe");
        assert_eq!(key.verify(token, Duration::from_secs(1_300_819_380)), None);
    }
}
