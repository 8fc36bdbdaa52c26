//! Logins for registries, in the form of Docker's `config.json`: `{"auths":{"host":{"auth":"<base64>"}}}`, or of the older
//! `.dockercfg`, which has the hosts themselves.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;
use serde_json::Value;

/// By host. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Logins(BTreeMap<String, String>);

#[derive(Deserialize)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl Logins {
    pub fn parse(text: &[u8]) -> Result<Logins, String> {
        let mut document: BTreeMap<String, Value> = serde_json::from_slice(text).map_err(garbled)?;
        let hosts: BTreeMap<String, Auth> = match document.remove("auths") {
            Some(auths) => serde_json::from_value(auths).map_err(garbled)?,
            // What is not a host's is a setting of Docker's.
            None => document
                .into_iter()
                .filter_map(|(host, auth)| Some((host, serde_json::from_value(auth).ok()?)))
                .collect(),
        };
        let login =
            |auth: Auth| match (auth.auth.filter(|auth| !auth.is_empty()), auth.username, auth.password) {
                (Some(auth), _, _) => Some(auth),
                (None, Some(name), Some(password)) => Some(STANDARD.encode(format!("{name}:{password}"))),
                _ => None,
            };
        let all = hosts.into_iter().filter_map(|(host, auth)| Some((bare(&host).to_owned(), login(auth)?)));
        Ok(Logins(all.collect()))
    }

    /// What to show to a host.
    pub(super) fn of(&self, host: &str) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Basic {}", self.0.get(host)?)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The same as a name and a secret.
    pub(crate) fn pair(&self, host: &str) -> Option<(String, String)> {
        let text = String::from_utf8(STANDARD.decode(self.0.get(host)?).ok()?).ok()?;
        let (name, secret) = text.split_once(':')?;
        Some((name.to_owned(), secret.trim_end_matches('\0').to_owned()))
    }
}

fn garbled(err: serde_json::Error) -> String {
    format!("the logins for registries cannot be understood: {err}")
}

/// Hosts are written as URLs too.
fn bare(host: &str) -> &str {
    let host = host.split_once("://").map_or(host, |(_, rest)| rest);
    host.split('/').next().unwrap_or(host)
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Logins({} hosts)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_by_host() {
        let text =
            r#"{"auths":{"https://h:1/v2/":{"auth":"YTpi"},"g":{"username":"a","password":"b"},"f":{}}}"#;
        let logins = Logins::parse(text.as_bytes()).expect("logins");
        for (host, header) in
            [("h:1", Some("Basic YTpi")), ("g", Some("Basic YTpi")), ("f", None), ("x", None)]
        {
            assert_eq!(logins.of(host).as_ref().and_then(|header| header.to_str().ok()), header, "{host}");
        }
        assert_eq!(format!("{logins:?}"), "Logins(2 hosts)");
        assert_eq!(logins.pair("g"), Some((String::from("a"), String::from("b"))));
        let old = Logins::parse(br#"{"https://h:1/v1/":{"auth":"YTpi","email":"x"},"credsStore":"y"}"#);
        assert!(old.expect("logins").of("h:1").is_some());
        assert!(Logins::parse(b"[").is_err());
    }
}
