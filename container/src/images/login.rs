//! Logins for registries, in the form of Docker's `config.json`: `{"auths":{"host":{"auth":"<base64>"}}}`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use serde::Deserialize;

/// By host. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Logins(BTreeMap<String, String>);

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    auths: BTreeMap<String, Auth>,
}

#[derive(Deserialize)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
}

impl Logins {
    pub fn parse(text: &[u8]) -> Result<Logins, String> {
        let document: Document = serde_json::from_slice(text)
            .map_err(|err| format!("the logins for registries cannot be understood: {err}"))?;
        let login =
            |auth: Auth| match (auth.auth.filter(|auth| !auth.is_empty()), auth.username, auth.password) {
                (Some(auth), _, _) => Some(auth),
                (None, Some(name), Some(password)) => Some(STANDARD.encode(format!("{name}:{password}"))),
                _ => None,
            };
        let all = document
            .auths
            .into_iter()
            .filter_map(|(host, auth)| Some((bare(&host).to_owned(), login(auth)?)));
        Ok(Logins(all.collect()))
    }

    /// What to show to a host.
    pub(super) fn of(&self, host: &str) -> Option<HeaderValue> {
        let mut header = HeaderValue::try_from(format!("Basic {}", self.0.get(host)?)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
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
        assert!(Logins::parse(b"[").is_err());
    }
}
