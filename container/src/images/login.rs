//! Logins for registries, in the form of Docker's `config.json`: `{"auths":{"host":{"auth":"<base64>"}}}`, or of the
//! older `.dockercfg`, which has the hosts themselves. The operator's may also name credential helpers.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::credential::Login;
use super::fault::LoginFault;
use super::helper;

/// By host. Never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Logins {
    hosts: BTreeMap<String, Login>,
    /// Credential helpers of single hosts; they come first.
    helpers: BTreeMap<String, String>,
    /// The credential helper of all other hosts.
    store: Option<String>,
}

#[derive(Deserialize)]
struct Auth {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

impl Logins {
    /// Logins from a sandbox: credential helpers that they name are not run.
    pub fn parse(text: &[u8]) -> Result<Logins, LoginFault> {
        let logins = Logins::of_operator(text)?;
        Ok(Logins { hosts: logins.hosts, ..Default::default() })
    }

    /// What the operator gave.
    pub fn of_operator(text: &[u8]) -> Result<Logins, LoginFault> {
        let mut document: BTreeMap<String, Value> = serde_json::from_slice(text)?;
        let helpers: BTreeMap<String, String> = match document.remove("credHelpers") {
            Some(helpers) => serde_json::from_value(helpers)?,
            None => BTreeMap::new(),
        };
        let store = document.remove("credsStore").and_then(|name| name.as_str().map(str::to_owned));
        let hosts: BTreeMap<String, Auth> = match document.remove("auths") {
            Some(auths) => serde_json::from_value(auths)?,
            // What is not a host's is a setting of Docker's.
            None => document
                .into_iter()
                .filter_map(|(host, auth)| Some((host, serde_json::from_value(auth).ok()?)))
                .collect(),
        };
        let hosts =
            hosts.into_iter().filter_map(|(host, auth)| Some((bare(&host).to_owned(), auth.login()?)));
        let helpers = helpers.into_iter().map(|(host, name)| (bare(&host).to_owned(), name));
        Ok(Logins {
            hosts: hosts.collect(),
            helpers: helpers.collect(),
            store: store.filter(|name| !name.is_empty()),
        })
    }

    /// The login for a host, if there is one.
    pub(crate) async fn find(&self, host: &str) -> Result<Option<Login>, LoginFault> {
        let known = || self.hosts.get(host).cloned();
        match self.helpers.get(host).or(self.store.as_ref()) {
            Some(program) => Ok(helper::get(program, host).await?.or_else(known)),
            None => Ok(known()),
        }
    }
}

impl Auth {
    fn login(self) -> Option<Login> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        match (given(self.identitytoken), given(self.auth), self.username, self.password) {
            (Some(token), _, _, _) => Some(Login::Token(token)),
            (None, Some(auth), _, _) => Some(Login::Basic(auth)),
            (None, None, Some(name), Some(password)) => Some(Login::basic(&name, &password)),
            _ => None,
        }
    }
}

/// Hosts are written as URLs too.
fn bare(host: &str) -> &str {
    let host = host.split_once("://").map_or(host, |(_, rest)| rest);
    host.split('/').next().unwrap_or(host)
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Logins({} hosts)", self.hosts.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn registry_credentials_are_found_by_host() {
        let text = r#"{"auths":{"https://h:1/v2/":{"auth":"YTpi"},"g":{"username":"a","password":"b"},"f":{},
            "t":{"auth":"eDo=","identitytoken":"secret"}},"credsStore":"none"}"#;
        let logins = Logins::parse(text.as_bytes()).expect("logins");
        for (host, header) in
            [("h:1", Some("Basic YTpi")), ("g", Some("Basic YTpi")), ("f", None), ("x", None), ("t", None)]
        {
            let found = logins.find(host).await.expect("no program is run").and_then(|login| login.header());
            assert_eq!(found.as_ref().and_then(|header| header.to_str().ok()), header, "{host}");
        }
        assert_eq!(format!("{logins:?}"), "Logins(3 hosts)");
        let found = async |host: &str| logins.find(host).await.expect("no program is run").expect("a login");
        assert_eq!(found("g").await.pair(), Some((String::from("a"), String::from("b"))));
        assert!(found("t").await == Login::Token(String::from("secret")));
        let old = Logins::parse(br#"{"https://h:1/v1/":{"auth":"YTpi","email":"x"},"credsStore":"y"}"#);
        assert!(old.expect("logins").find("h:1").await.expect("no program is run").is_some());
        assert!(Logins::parse(b"[").is_err());
    }
}
